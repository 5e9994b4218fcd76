#include "common/timeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "common/json.h"
#include "common/thread_object.h"

namespace hipress {

const char* NameOf(TimelineOp op) {
  static const char* const kNames[kTimelineOps] = {"encode",  "decode", "merge",   "send",
                                                   "receive", "update", "gradient"};
  return kNames[int(op)];
}

namespace timeline {
namespace {

constexpr size_t kBlockEvents = 4096;
/// 56 MB; a job that runs for hours must not die of its timeline.
constexpr int64_t kMaxEvents = 1 << 20;
/// Node of an event that has been taken; no node has this number.
constexpr uint8_t kTaken = 255;

/// A stretch of one thread's events. Only that thread writes; `count` tells readers how far.
struct Block {
  TimelineEvent events[kBlockEvents];
  std::atomic<size_t> count{0};
};

/// Whether it is full and not in use any more.
bool IsTaken(const std::shared_ptr<Block>& block) {
  return block->count.load(std::memory_order_acquire) == kBlockEvents &&
         std::all_of(block->events, block->events + kBlockEvents,
                     [](const TimelineEvent& event) { return event.node == kTaken; });
}

struct Recorder {
  std::mutex mutex;
  std::vector<std::shared_ptr<Block>> blocks;
  std::map<uint64_t, std::string> names;
  std::atomic<int64_t> recorded{0};
  std::atomic<int64_t> dropped{0};
  std::atomic<uint16_t> threads{0};
  std::atomic<uint32_t> nodes{0};
};

/// Never destroyed: threads of the library may outlive static objects.
Recorder& TheRecorder() {
  static Recorder* recorder = new Recorder;
  return *recorder;
}

struct ThreadState {
  std::shared_ptr<Block> block;
  uint16_t number = TheRecorder().threads.fetch_add(1, std::memory_order_relaxed);
};

void Append(std::string* out, const void* data, size_t size) {
  out->append(static_cast<const char*>(data), size);
}

bool Wanted() {
  const char* file = std::getenv("HIPRESS_TIMELINE");
  return file != nullptr && file[0] != '\0';
}

}  // namespace

const bool kOn = Wanted();

int64_t Now() {
  if (!kOn) return 0;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Record(TimelineOp op, uint64_t key, uint32_t partition, uint32_t iteration, uint64_t bytes,
            uint64_t elements, int64_t begin, uint32_t peer, uint8_t node) {
  if (!kOn) return;
  Recorder& recorder = TheRecorder();
  if (recorder.recorded.fetch_add(1, std::memory_order_relaxed) >= kMaxEvents) {
    recorder.recorded.fetch_sub(1, std::memory_order_relaxed);
    recorder.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  ThreadState& state = ThreadObject<ThreadState>();
  size_t at = state.block ? state.block->count.load(std::memory_order_relaxed) : kBlockEvents;
  if (at == kBlockEvents) {
    state.block = std::make_shared<Block>();
    at = 0;
    std::lock_guard<std::mutex> lock(recorder.mutex);
    recorder.blocks.push_back(state.block);
  }
  state.block->events[at] = {begin,     Now(),     key,  bytes,        elements,
                             iteration, partition, peer, state.number, uint8_t(op), node};
  state.block->count.store(at + 1, std::memory_order_release);
}

void NameKey(uint64_t key, const std::string& name) {
  if (!kOn) return;
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  recorder.names[key] = name;
}

uint8_t NewNode() {
  const uint32_t count = TheRecorder().nodes.fetch_add(1, std::memory_order_relaxed);
  const uint8_t node = uint8_t(count % kTaken);
  if (count >= kTaken) Take(node);  // leftovers of a former node with this number
  return node;
}

std::string Take(uint8_t node) {
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  int64_t taken_events = 0;
  TimelineHeader header;
  header.dropped = uint64_t(recorder.dropped.exchange(0));
  std::string names, events;
  for (const auto& [key, name] : recorder.names) {
    const uint32_t size = uint32_t(name.size());
    Append(&names, &key, sizeof(key));
    Append(&names, &size, sizeof(size));
    names += name;
  }
  for (const auto& block : recorder.blocks) {
    const size_t count = block->count.load(std::memory_order_acquire);
    for (TimelineEvent* event = block->events; event != block->events + count; ++event) {
      if (event->node != node) continue;
      TimelineEvent taken = *event;
      taken.node = 0;
      Append(&events, &taken, sizeof(taken));
      event->node = kTaken;
      ++taken_events;
    }
  }
  // A process may be in one job after another.
  recorder.recorded -= taken_events;
  auto& blocks = recorder.blocks;
  blocks.erase(std::remove_if(blocks.begin(), blocks.end(), IsTaken), blocks.end());
  header.names = uint32_t(recorder.names.size());
  header.events = events.size() / sizeof(TimelineEvent);
  std::string out;
  Append(&out, &header, sizeof(header));
  return out + names + events;
}

}  // namespace timeline

// ---- The file

namespace {

/// Largest time of a clock, and between clocks: 36 years in nanoseconds, so that no sum or difference
/// overflows.
constexpr int64_t kMaxTime = int64_t(1) << 60;

/// Reads fields from a node's bytes; every slip is a ProtocolError.
class Bytes {
 public:
  explicit Bytes(const std::string& text) : text_(text) {}
  void Read(void* to, size_t size) {
    if (size > left()) throw ProtocolError("a timeline that is cut short");
    std::memcpy(to, text_.data() + at_, size);
    at_ += size;
  }
  std::string Text(size_t size) {
    if (size > left()) throw ProtocolError("a timeline that is cut short");
    at_ += size;
    return text_.substr(at_ - size, size);
  }
  size_t left() const { return text_.size() - at_; }

 private:
  const std::string& text_;
  size_t at_ = 0;
};

std::string Microseconds(int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.3f", double(nanoseconds) / 1e3);
  return text;
}

/// Rows of a kind of event of one node: events of a row do not overlap, as viewers require.
class Rows {
 public:
  int Place(int64_t begin, int64_t end) {
    for (size_t i = 0; i < free_.size(); ++i) {
      if (free_[i] > begin) continue;
      free_[i] = end;
      return int(i);
    }
    free_.push_back(end);
    return int(free_.size()) - 1;
  }

 private:
  std::vector<int64_t> free_;
};

/// Compute tasks have their threads' rows; other tasks get rows as they need them.
bool IsCompute(uint8_t op) {
  return op == uint8_t(TimelineOp::kEncode) || op == uint8_t(TimelineOp::kDecode) ||
         op == uint8_t(TimelineOp::kMerge) || op == uint8_t(TimelineOp::kUpdate);
}

void Name(std::string* out, const char* what, uint32_t pid, int tid, const std::string& name) {
  *out += "{\"ph\":\"M\",\"name\":\"" + std::string(what) + "\",\"pid\":" + std::to_string(pid) +
          ",\"tid\":" + std::to_string(tid) + ",\"args\":{\"name\":" + Quoted(name) + "}},\n";
}

}  // namespace

void TimelineFile::Add(NodeId node, const std::string& taken, ClockOffset clock) {
  if (clock.offset < -kMaxTime || clock.offset > kMaxTime) {
    throw ProtocolError("a timeline of a clock that cannot be");
  }
  Bytes in(taken);
  TimelineHeader header;
  in.Read(&header, sizeof(header));
  for (uint32_t i = 0; i < header.names; ++i) {
    uint64_t key = 0;
    uint32_t size = 0;
    in.Read(&key, sizeof(key));
    in.Read(&size, sizeof(size));
    names_[key] = in.Text(size);
  }
  if (in.left() / sizeof(TimelineEvent) != header.events ||
      in.left() % sizeof(TimelineEvent) != 0) {
    throw ProtocolError("a timeline whose number of events is wrong");
  }
  Part& part = parts_[node];
  part.dropped += header.dropped;
  part.clock = clock;
  for (uint64_t i = 0; i < header.events; ++i) {
    TimelineEvent event;
    in.Read(&event, sizeof(event));
    if (event.op >= kTimelineOps || event.begin < 0 || event.end < event.begin ||
        event.end > kMaxTime) {
      throw ProtocolError("a timeline with an event that cannot be");
    }
    event.begin += clock.offset;
    event.end += clock.offset;
    part.events.push_back(event);
  }
}

size_t TimelineFile::num_events() const {
  size_t count = 0;
  for (const auto& [node, part] : parts_) count += part.events.size();
  return count;
}

std::string TimelineFile::ToJson() const {
  int64_t start = INT64_MAX;
  for (const auto& [node, part] : parts_) {
    for (const TimelineEvent& event : part.events) start = std::min(start, event.begin);
  }
  std::string out = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"recorded\":true";
  if (about_.view > 0) out += ",\"view\":" + std::to_string(about_.view);
  out += ",\"job\":" + Quoted(about_.job) +
         ",\"begin_us\":" + Microseconds(start == INT64_MAX ? 0 : start) + ",\"clocks\":{";
  bool first = true;
  for (const auto& [node, part] : parts_) {
    out += (first ? "" : ",") + Quoted(node.ToString()) +
           ":{\"offset_us\":" + Microseconds(part.clock.offset) +
           ",\"round_trip_us\":" + Microseconds(part.clock.round_trip) +
           ",\"dropped\":" + std::to_string(part.dropped) + "}";
    first = false;
  }
  out += "}},\n\"traceEvents\":[\n";
  uint32_t pid = 0;
  for (const auto& [node, part] : parts_) {
    ++pid;
    Name(&out, "process_name", pid, 0, node.ToString());
    std::vector<TimelineEvent> events = part.events;
    std::sort(events.begin(), events.end(), [](const TimelineEvent& a, const TimelineEvent& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    Rows rows[kTimelineOps];
    std::map<int, std::string> row_names;
    for (const TimelineEvent& event : events) {
      const char* name = NameOf(TimelineOp(event.op));
      int tid = event.thread;
      if (IsCompute(event.op)) {
        row_names[tid] = "thread " + std::to_string(tid);
      } else {
        tid = 1000 * (event.op + 100) + rows[event.op].Place(event.begin, event.end);
        row_names[tid] = name;
      }
      const auto key = names_.find(event.key);
      out += "{\"ph\":\"X\",\"name\":\"" + std::string(name) + "\",\"pid\":" +
             std::to_string(pid) + ",\"tid\":" + std::to_string(tid) +
             ",\"ts\":" + Microseconds(event.begin - start) +
             ",\"dur\":" + Microseconds(event.end - event.begin) + ",\"args\":{\"key\":" +
             Quoted(key == names_.end() ? std::to_string(event.key) : key->second) +
             ",\"partition\":" + std::to_string(event.partition) +
             ",\"iteration\":" + std::to_string(event.iteration) +
             ",\"bytes\":" + std::to_string(event.bytes) +
             ",\"elements\":" + std::to_string(event.elements) + ",\"node\":" + Quoted(node.ToString());
      if (event.peer != timeline::kNoPeer) {
        out += ",\"peer\":" + Quoted(NodeId::Unpack(event.peer).ToString());
      }
      out += "}},\n";
    }
    for (const auto& [tid, name] : row_names) Name(&out, "thread_name", pid, tid, name);
  }
  if (!parts_.empty()) out.erase(out.size() - 2, 1);  // the last comma
  return out + "]}\n";
}

}  // namespace hipress
