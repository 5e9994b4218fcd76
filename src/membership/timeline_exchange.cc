#include "membership/timeline_exchange.h"

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/log.h"

namespace hipress {
namespace {

constexpr int kClockQueries = 16;
constexpr int kMaxClockQueries = 4096;
/// Size of one message, so that a timeline does not delay other messages for long.
constexpr size_t kPieceBytes = 4 << 20;
/// Size of one node's timeline, at most: all events that a recorder keeps, and names.
constexpr size_t kMaxTimelineBytes = 128 << 20;

/// Values of header.flags.
enum Flag : uint8_t { kTime = 0, kPiece = 1, kLastPiece = 2 };

Message Make(Flag flag, const void* data, size_t size) {
  Message message(MessageKind::kTimeline);
  message.header.flags = flag;
  if (size > 0) {
    message.payload = AllocateBuffer(size);
    std::memcpy(message.payload.data, data, size);
  }
  return message;
}

}  // namespace

void TimelineExchange::Begin() {
  if (timeline::kOn) Ask();
}

void TimelineExchange::Again() {
  if (timeline::kOn && asked_ >= kClockQueries && asked_ < kMaxClockQueries) Ask();
}

void TimelineExchange::Ask() {
  ++asked_;
  Message question = Make(kTime, nullptr, 0);
  question.header.key = uint64_t(timeline::Now());
  send_(Scheduler(), std::move(question));
}

void TimelineExchange::AtNode(const Message& message) {
  if (message.header.flags != kTime) throw ProtocolError("a timeline sent to a node");
  if (!timeline::kOn || message.header.elements == 0) return;  // the scheduler does not record
  const int64_t asked = int64_t(message.header.key), now = timeline::Now();
  if (asked < 0 || asked > now) throw ProtocolError("an answer to a question that was not asked");
  if (message.header.elements > uint64_t(INT64_MAX)) throw ProtocolError("a time that cannot be");
  if (now - asked < clock_.round_trip) {
    clock_ = {int64_t(message.header.elements) - (asked + (now - asked) / 2), now - asked};
  }
  if (asked_ < kClockQueries) Ask();
}

void TimelineExchange::Ship() {
  // Without an answer no node is there to write it.
  if (!timeline::kOn || clock_.round_trip == INT64_MAX) return;
  const std::string all = timeline::Take(node_);
  for (size_t begin = 0; begin < all.size(); begin += kPieceBytes) {
    const size_t size = std::min(kPieceBytes, all.size() - begin);
    Message piece = Make(begin + size == all.size() ? kLastPiece : kPiece, all.data() + begin, size);
    piece.header.key = uint64_t(clock_.offset);
    piece.header.elements = uint64_t(clock_.round_trip);
    send_(Scheduler(), std::move(piece));
  }
}

void TimelineExchange::WriteOwn(NodeId self) {
  if (!timeline::kOn || clock_.round_trip == INT64_MAX) return;
  file_.Add(self, timeline::Take(node_), clock_);
  complete_.insert(self);
  if (file_.num_events() > 0) Write();
}

void TimelineExchange::AtScheduler(NodeId from, const Message& message) {
  if (message.header.flags == kTime) {
    Message answer = Make(kTime, nullptr, 0);
    answer.header.key = message.header.key;
    answer.header.elements = uint64_t(timeline::Now());  // 0 if this process does not record
    return send_(from, std::move(answer));
  }
  if (message.header.flags > kLastPiece) throw ProtocolError("a timeline with unknown flags");
  if (!timeline::kOn || complete_.count(from) != 0) throw ProtocolError("an unwanted timeline");
  std::string& text = arriving_[from];
  if (text.size() + message.payload.size > kMaxTimelineBytes) {
    throw ProtocolError("a timeline that is too large");
  }
  text.append(reinterpret_cast<const char*>(message.payload.data), message.payload.size);
  if (message.header.flags != kLastPiece) return;
  file_.Add(from, text, {int64_t(message.header.key), int64_t(message.header.elements)});
  arriving_.erase(from);
  complete_.insert(from);
}

bool TimelineExchange::Lacks(int nodes) const {
  return timeline::kOn && int(complete_.size()) < nodes;
}

void TimelineExchange::Write() {
  if (!timeline::kOn || complete_.empty()) return;
  const std::string why = ReplaceFile(path_, file_.ToJson());
  if (!why.empty()) {
    return LogWarning("the timeline could not be written to '" + path_ + "': " + why);
  }
  LogInfo("timeline of " + std::to_string(complete_.size()) + " nodes, " +
          std::to_string(file_.num_events()) + " events, in " + path_);
}

}  // namespace hipress
