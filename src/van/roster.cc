#include "van/roster.h"

#include <sstream>

#include "van/socket.h"

namespace hipress {
namespace {

constexpr char kRegisterWord[] = "hipress-register-1";
constexpr char kRosterWord[] = "hipress-roster-1";

/// Reads words and checks them; every slip is a ProtocolError.
class Reader {
 public:
  explicit Reader(const std::string& text) : stream_(text) {}

  std::string Word(const char* what) {
    std::string word;
    if (!(stream_ >> word) || word.size() > 300) Fail(what);
    return word;
  }
  int Number(const char* what, int low, int high) {
    const std::string word = Word(what);
    size_t used = 0;
    int value = 0;
    try {
      value = std::stoi(word, &used);
    } catch (const std::exception&) {
      Fail(what);
    }
    if (used != word.size() || value < low || value > high) Fail(what);
    return value;
  }
  Role ReadRole() {
    const std::string word = Word("role");
    for (const Role role : {Role::kServer, Role::kWorker}) {
      if (word == NameOf(role)) return role;
    }
    Fail("role");
  }
  std::string Address() {
    const std::string word = Word("address");
    try {
      SplitAddress(word);
    } catch (const Error& error) {
      throw ProtocolError(error.what());
    }
    return word;
  }
  void End() {
    std::string word;
    if (stream_ >> word) Fail("end");
  }
  [[noreturn]] static void Fail(const char* what) {
    throw ProtocolError(std::string("a membership message has no valid ") + what);
  }

 private:
  std::istringstream stream_;
};

}  // namespace

std::string Registration::ToText() const {
  std::ostringstream out;
  out << kRegisterWord << ' ' << NameOf(role) << ' ' << wanted_rank << ' ' << address << ' '
      << num_workers << ' ' << num_servers;
  return out.str();
}

Registration Registration::Parse(const std::string& text) {
  Reader in(text);
  if (in.Word("format") != kRegisterWord) Reader::Fail("format");
  Registration r;
  r.role = in.ReadRole();
  r.wanted_rank = in.Number("rank", -1, kFirstProvisionalRank - 1);
  r.address = in.Address();
  r.num_workers = in.Number("number of workers", 0, kFirstProvisionalRank);
  r.num_servers = in.Number("number of servers", 0, kFirstProvisionalRank);
  in.End();
  return r;
}

std::string Roster::ToText() const {
  std::ostringstream out;
  out << kRosterWord << ' ' << NameOf(self.role) << ' ' << self.rank << ' ' << addresses.size() << '\n';
  for (const auto& [id, address] : addresses) {
    out << NameOf(id.role) << ' ' << id.rank << ' ' << address << '\n';
  }
  return out.str();
}

Roster Roster::Parse(const std::string& text) {
  Reader in(text);
  if (in.Word("format") != kRosterWord) Reader::Fail("format");
  const auto read_id = [&in] {
    const Role role = in.ReadRole();
    return NodeId{role, static_cast<uint16_t>(in.Number("rank", 0, kFirstProvisionalRank - 1))};
  };
  Roster roster;
  roster.self = read_id();
  const int count = in.Number("number of nodes", 1, 2 * kFirstProvisionalRank);
  for (int i = 0; i < count; ++i) {
    const NodeId id = read_id();
    if (!roster.addresses.emplace(id, in.Address()).second) Reader::Fail("list without repetitions");
  }
  in.End();
  if (roster.addresses.count(roster.self) == 0) Reader::Fail("place for this node");
  return roster;
}

Message NodeDown(NodeId node, const std::string& what) {
  Message message(MessageKind::kNodeDown, what);
  message.header.key = node.Packed();
  return message;
}

std::string PrintableTextIn(const Message& message) {
  std::string text = TextIn(message);
  for (char& c : text) {
    if ((c >= 0 && c < 32 && c != '\n') || c == 127) c = '?';
  }
  return text;
}

std::string JoinWords(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace hipress
