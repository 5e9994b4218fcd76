#include "kvstore/protocol.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

namespace hipress {
namespace {

constexpr size_t kMaxNameBytes = 4096;

}  // namespace

Buffer InitKeyBody::Pack() const {
  const uint64_t name_bytes = name.size();
  const size_t padded = (name_bytes + 7) / 8 * 8;
  Buffer out = AllocateBuffer(8 + padded + program.size() * 8);
  std::memset(out.data, 0, 8 + padded);
  std::memcpy(out.data, &name_bytes, 8);
  std::memcpy(out.data + 8, name.data(), name_bytes);
  if (!program.empty()) std::memcpy(out.data + 8 + padded, program.data(), program.size() * 8);
  return out;
}

InitKeyBody InitKeyBody::Unpack(const Buffer& payload) {
  uint64_t name_bytes = 0;
  if (payload.size >= 8) std::memcpy(&name_bytes, payload.data, 8);
  const size_t padded = name_bytes <= kMaxNameBytes ? (name_bytes + 7) / 8 * 8 : payload.size;
  if (payload.size < 8 + padded || payload.size % 8 != 0) {
    throw ProtocolError("a malformed request to initialize a key");
  }
  InitKeyBody body;
  body.name.assign(payload.as<char>() + 8, name_bytes);
  body.program.resize((payload.size - 8 - padded) / 8);
  if (!body.program.empty()) {
    std::memcpy(body.program.data(), payload.data + 8 + padded, body.program.size() * 8);
  }
  return body;
}

InitRequest::InitRequest(NodeId from, const MessageHeader& header, std::string name)
    : from(from),
      request(header.iteration),
      elements(int64_t(header.elements)),
      dtype(DTypeFromFlag(header.dtype)),
      digest(header.config),
      name(std::move(name)) {}

std::string Disagreement(const std::vector<InitRequest>& requests, const NodeNames& names) {
  const InitRequest* first = nullptr;
  for (const InitRequest& request : requests) {
    if (request.from == Worker(0)) first = &request;
  }
  for (const InitRequest& other : requests) {
    if (other.elements != first->elements || other.dtype != first->dtype) {
      return "key '" + first->name + "' was initialized by " + names(Worker(0)) + " with " +
             std::to_string(first->elements) + " " + NameOf(first->dtype) + " elements, but by " +
             names(other.from) + " with " + std::to_string(other.elements) + " " +
             NameOf(other.dtype) + " elements";
    }
    if (other.digest != first->digest || other.name != first->name) {
      return names(Worker(0)) + " and " + names(other.from) + " disagree on key '" + first->name + "'" +
             (other.name == first->name ? "" : ", which the latter calls '" + other.name + "'") +
             ": they must initialize the same keys in the same order, with the same settings";
    }
  }
  return "";
}

std::string WhoWillNotInit(const std::vector<InitRequest>& requests, const std::set<NodeId>& left,
                           const NodeNames& names) {
  for (const NodeId node : left) {
    const bool came = std::any_of(requests.begin(), requests.end(),
                                  [node](const InitRequest& request) { return request.from == node; });
    if (came || requests.empty()) continue;
    return names(node) + " has left the job and will not initialize key '" + requests.front().name + "'";
  }
  return "";
}

MessageHeader ReplyHeader(uint32_t request, bool ok) {
  MessageHeader header;
  header.kind = MessageKind::kReply;
  header.iteration = request;
  header.flags = ok ? kReplyOk : kReplyError;
  return header;
}

Message ReplyMessage(uint32_t request, bool ok, const std::string& text) {
  Message message(MessageKind::kReply, text);
  message.header = ReplyHeader(request, ok);
  return message;
}

void SendText(const MessageHeader& header, std::string text, size_t piece_bytes,
              const std::function<void(Message piece, int priority)>& send) {
  const auto whole = std::make_shared<std::string>(std::move(text));
  const Buffer all = {reinterpret_cast<uint8_t*>(whole->data()), whole->size(), whole};
  const int priority = all.size > piece_bytes ? kTextPriority : kControlPriority;
  size_t at = 0;
  do {
    const size_t size = std::min(piece_bytes, all.size - at);
    Message piece(header, all.Slice(at, size));
    at += size;
    piece.header.step = at < all.size ? kTextGoesOn : 0;
    send(std::move(piece), priority);
  } while (at < all.size);
}

std::optional<std::string> TextPieces::Add(NodeId from, const Message& piece) {
  const MessageHeader& header = piece.header;
  if (header.step > kTextGoesOn) throw ProtocolError("a piece of a text that is of no known kind");
  if (header.step == kTextGoesOn && piece.payload.size == 0) {
    throw ProtocolError("an empty piece of a text that continues");
  }
  const auto about = std::make_tuple(from, header.kind, header.iteration);
  const auto begun = texts_.find(about);
  const bool last = header.step != kTextGoesOn;
  if (begun == texts_.end() && last) return TextIn(piece);
  std::string& text = begun == texts_.end() ? texts_[about] : begun->second;
  text.append(piece.payload.as<char>(), piece.payload.size);
  if (!last) return std::nullopt;
  std::string whole = std::move(text);
  texts_.erase(about);
  return whole;
}

void TextPieces::Forget(NodeId from) {
  for (auto it = texts_.begin(); it != texts_.end();) {
    it = std::get<NodeId>(it->first) == from ? texts_.erase(it) : std::next(it);
  }
}

Error FailureIn(const Message& message, NodeId from) {
  if (message.header.flags == kTimedOutFlag) return Error(TextIn(message), Cause::kTimedOut);
  return Error(TextIn(message), Cause::kReported, from);
}

Message FailureMessage(const Error& error) {
  Message message(MessageKind::kFailure, error.what());
  message.header.flags = error.cause == Cause::kTimedOut ? kTimedOutFlag : 0;
  return message;
}

}  // namespace hipress
