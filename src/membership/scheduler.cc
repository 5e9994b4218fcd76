#include "membership/scheduler.h"

#include <algorithm>
#include <sstream>

#include "base/log.h"
#include "transport/address.h"
#include "membership/postoffice.h"

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

Message Refusal(const std::string& why) {
  Message message(MessageKind::kRoster, why);
  message.header.flags = kRefusalFlag;
  return message;
}

Message Release(uint64_t kind, uint8_t flags, const std::string& text) {
  Message message(MessageKind::kRelease, text);
  message.header.key = kind;
  message.header.flags = flags;
  return message;
}

std::string Plural(int count, Role role) {
  return std::to_string(count) + " " + NameOf(role) + (count == 1 ? "" : "s");
}

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

bool Members::IsDead(NodeId node) const {
  return std::any_of(deaths.begin(), deaths.end(), [node](const auto& death) { return death.first == node; });
}

bool Members::Lives(NodeId node) const {
  return (node == Scheduler() || addresses.count(node) != 0) && !IsDead(node) && left.count(node) == 0;
}

int SchedulerState::Wanted(Role role) const {
  return role == Role::kWorker ? options_.num_workers : options_.num_servers;
}

int SchedulerState::Count(Role role) const {
  return static_cast<int>(std::count_if(applicants_.begin(), applicants_.end(), [&](const Applicant& a) {
    return a.registration.role == role;
  }));
}

std::string SchedulerState::Objection(const Registration& r) const {
  if (r.num_workers != options_.num_workers || r.num_servers != options_.num_servers) {
    return "this " + std::string(NameOf(r.role)) + " was told of a job with " +
           Plural(r.num_workers, Role::kWorker) + " and " + Plural(r.num_servers, Role::kServer) +
           ", but the scheduler's job has " + Plural(options_.num_workers, Role::kWorker) + " and " +
           Plural(options_.num_servers, Role::kServer) +
           "; DMLC_NUM_WORKER and DMLC_NUM_SERVER must be the same on all nodes";
  }
  if (r.wanted_rank >= Wanted(r.role)) {
    return "rank " + std::to_string(r.wanted_rank) + " was asked for, but the job has only " +
           Plural(Wanted(r.role), r.role) + "; ranks count from 0";
  }
  if (phase_ == Phase::kFailed) return failure_;
  if (phase_ != Phase::kRegistering) return "the job has already started with all its nodes";
  if (Count(r.role) >= Wanted(r.role)) {
    return "the job already has its " + Plural(Wanted(r.role), r.role);
  }
  return "";
}

void SchedulerState::OnRegister(NodeId from, const Message& message) {
  const Registration registration = Registration::Parse(PrintableTextIn(message));
  if (registration.role != from.role) throw ProtocolError("it registers for another role than its own");
  for (const Applicant& a : applicants_) {
    if (a.provisional == from) throw ProtocolError("it registers twice");
  }
  if (members_.addresses.count(from) != 0) throw ProtocolError("it registers again");
  const std::string objection = Objection(registration);
  if (!objection.empty()) {
    LogWarning("did not let a " + std::string(NameOf(from.role)) + " at " + registration.address +
               " join: " + objection);
    return send_(from, Refusal(objection));
  }
  applicants_.push_back({from, registration});
  LogInfo(std::string(NameOf(from.role)) + " at " + registration.address + " registered");
  if (Count(Role::kWorker) == options_.num_workers && Count(Role::kServer) == options_.num_servers) {
    Form();
  }
}

void SchedulerState::Form() {
  std::vector<NodeId> ids(applicants_.size());
  std::vector<bool> named(applicants_.size(), false);
  // Of applicants for the same rank the first one gets it; the rest fill the free ranks.
  for (const bool wanting : {true, false}) {
    for (size_t i = 0; i < applicants_.size(); ++i) {
      const Registration& r = applicants_[i].registration;
      if (named[i] || (wanting && r.wanted_rank < 0)) continue;
      int rank = wanting ? r.wanted_rank : 0;
      const auto id = [&] { return NodeId{r.role, static_cast<uint16_t>(rank)}; };
      while (!wanting && members_.addresses.count(id()) != 0) ++rank;
      if (!members_.addresses.emplace(id(), r.address).second) continue;
      ids[i] = id();
      named[i] = true;
    }
  }
  for (size_t i = 0; i < ids.size(); ++i) rename_(applicants_[i].provisional, ids[i]);
  phase_ = Phase::kConnecting;
  Roster roster;
  roster.addresses = members_.addresses;
  for (const NodeId id : ids) {
    roster.self = id;
    send_(id, Message(MessageKind::kRoster, roster.ToText()));
  }
  if (ids.empty()) phase_ = Phase::kRunning;
}

std::string SchedulerState::Missing() const {
  if (phase_ == Phase::kConnecting) return NamesOfMissing(kReadyBarrier) + " to connect";
  std::vector<std::string> parts;
  for (const Role role : {Role::kWorker, Role::kServer}) {
    const int wanted = Wanted(role);
    const int missing = wanted - Count(role);
    if (missing <= 0) continue;
    std::string part = std::to_string(missing) + " of " + Plural(wanted, role);
    std::set<int> ranks;
    for (int i = 0; i < wanted; ++i) ranks.insert(i);
    for (const Applicant& a : applicants_) {
      if (a.registration.role == role) ranks.erase(a.registration.wanted_rank);
    }
    // Only if all nodes requested a rank do the remaining ranks identify the missing ones.
    if (static_cast<int>(ranks.size()) == missing && missing < wanted && missing <= 16) {
      std::vector<std::string> names;
      for (const int rank : ranks) {
        names.push_back(role == Role::kWorker ? options_.van.names.RankOf(rank) : std::to_string(rank));
      }
      part += " (rank " + JoinWords(names) + ")";
    }
    parts.push_back(part);
  }
  return JoinWords(parts);
}

void SchedulerState::GiveUp(const std::string& why) {
  if (phase_ == Phase::kFailed || phase_ == Phase::kRunning) return;
  const bool formed = phase_ == Phase::kConnecting;
  phase_ = Phase::kFailed;
  failure_ = why;
  if (formed) {
    for (const auto& entry : members_.addresses) send_(entry.first, Refusal(why));
  } else {
    for (const Applicant& a : applicants_) send_(a.provisional, Refusal(why));
  }
}

void SchedulerState::OnApplicantDown(NodeId peer, const std::string& reason) {
  const auto it = std::find_if(applicants_.begin(), applicants_.end(),
                               [&](const Applicant& a) { return a.provisional == peer; });
  if (it == applicants_.end()) return;
  const Registration& r = it->registration;
  const std::string role = NameOf(r.role);
  const std::string name =
      r.wanted_rank < 0 ? "a " + role : options_.van.names({r.role, static_cast<uint16_t>(r.wanted_rank)});
  const std::string missing = impatient_.count(peer) != 0 ? Missing() : "";
  GiveUp(name + " (" + r.address + ") " +
         (missing.empty() ? "went away while the job was starting: it " + reason
                          : "gave up waiting for " + missing));
}

void SchedulerState::OnLeave() {
  for (uint64_t kind = 0; kind < kBarrierKinds; ++kind) CheckBarrier(kind);
}

void SchedulerState::OnDeath(NodeId node, const std::string& what) {
  if (options_.view > 0) {
    LogInfo(what);  // the next view follows
  } else {
    LogWarning(what);
  }
  GiveUp(what);
  for (const auto& [member, _] : members_.addresses) {
    if (members_.Lives(member)) send_(member, NodeDown(node, what));
  }
}

std::vector<NodeId> SchedulerState::Participants(uint64_t kind) const {
  std::vector<NodeId> nodes;
  for (const auto& entry : members_.addresses) {
    if (kind != kWorkersBarrier || entry.first.role == Role::kWorker) nodes.push_back(entry.first);
  }
  return nodes;
}

void SchedulerState::OnBarrier(NodeId from, const Message& message) {
  const uint64_t kind = message.header.key;
  if (kind >= kBarrierKinds) throw ProtocolError("it comes to a barrier of unknown kind");
  if (message.header.flags == kQueryFlag) {
    const bool forming = kind == kReadyBarrier;
    if (forming) impatient_.insert(from);
    return send_(from, Release(kind, kQueryFlag, forming ? Missing() : NamesOfMissing(kind)));
  }
  const std::vector<NodeId> participants = Participants(kind);
  if (std::find(participants.begin(), participants.end(), from) == participants.end()) {
    throw ProtocolError("it comes to a barrier that is not for it");
  }
  Barrier& barrier = barriers_[kind];
  // A node that timed out may try again, also when other nodes have just completed the barrier.
  const uint32_t number = message.header.iteration;
  if (number == static_cast<uint32_t>(barrier.completed) && barrier.completed > 0) return;
  if (number != static_cast<uint32_t>(barrier.completed + 1)) {
    throw ProtocolError("it comes to a barrier out of turn");
  }
  barrier.arrived.insert(from);
  CheckBarrier(kind);
}

void SchedulerState::CheckBarrier(uint64_t kind) {
  Barrier& barrier = barriers_[kind];
  if (barrier.arrived.empty()) return;
  const std::vector<NodeId> participants = Participants(kind);
  for (const NodeId node : participants) {
    if (members_.left.count(node) == 0 || barrier.arrived.count(node) != 0) continue;
    const std::string why = options_.van.names(node) + " has left the job and will not come to the barrier";
    for (const NodeId waiting : barrier.arrived) send_(waiting, Release(kind, kFailureFlag, why));
    return;
  }
  if (barrier.arrived.size() < participants.size()) return;
  ++barrier.completed;
  barrier.arrived.clear();
  if (kind == kReadyBarrier && phase_ == Phase::kConnecting) phase_ = Phase::kRunning;
  for (const NodeId node : participants) send_(node, Release(kind, kPlainFlag, ""));
}

std::vector<NodeId> SchedulerState::NotArrived(uint64_t kind) const {
  std::vector<NodeId> nodes = Participants(kind);
  const std::set<NodeId>& arrived = barriers_[kind].arrived;
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), [&](NodeId node) { return arrived.count(node) != 0; }),
              nodes.end());
  return nodes;
}

std::string SchedulerState::NamesOfMissing(uint64_t kind) const {
  constexpr size_t kMaxNames = 20;
  const std::vector<NodeId> missing = NotArrived(kind);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(missing.size(), kMaxNames); ++i) {
    names.push_back(options_.van.names(missing[i]));
  }
  if (missing.size() > kMaxNames) names.push_back("others");
  return JoinWords(names);
}

std::string NameOfBarrier(uint64_t kind, uint64_t number) {
  static const char* const kNames[kBarrierKinds] = {"workers", "all nodes", "start"};
  return kNames[kind] + std::string(" ") + std::to_string(number);
}

void SchedulerState::Describe(JsonWriter* json) const {
  static const char* const kPhases[] = {"registering", "connecting", "running", "failed"};
  json->Name("phase").Text(kPhases[int(phase_)]);
  const bool starting = phase_ == Phase::kRegistering || phase_ == Phase::kConnecting;
  if (starting) json->Name("missing").Text(Missing());
  json->Name("barriers").Array();
  for (uint64_t kind = 0; kind < kBarrierKinds; ++kind) {
    const Barrier& barrier = barriers_[kind];
    if (barrier.arrived.empty()) continue;
    json->Object().Name("about").Text(NameOfBarrier(kind, barrier.completed + 1));
    json->Name("missing").Array();
    for (const NodeId node : NotArrived(kind)) json->Text(node.ToString());
    json->EndArray().EndObject();
  }
  json->EndArray();
}

}  // namespace hipress
