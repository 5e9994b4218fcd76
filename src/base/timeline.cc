#include "base/timeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>

#include "base/json.h"

namespace hipress {

const char* NameOf(TimelineOp op) {
  static const char* const kNames[kTimelineOps] = {"encode",  "decode", "merge",   "send",
                                                   "receive", "update", "gradient"};
  return kNames[int(op)];
}

namespace timeline {
namespace {

/// 56 MB; a job that runs for hours must not fail because of its timeline.
constexpr size_t kMaxEvents = 1 << 20;
/// Numbers of nodes; a process that makes more nodes uses them again.
constexpr uint32_t kMaxNodes = 255;

struct Recorder {
  std::mutex mutex;
  std::deque<TimelineEvent> events;
  uint64_t dropped = 0;
  std::map<uint64_t, std::string> names;
  std::atomic<uint16_t> threads{0};
  std::atomic<uint32_t> nodes{0};
};

/// Never destroyed: threads of the library may outlive static objects.
Recorder& TheRecorder() {
  static Recorder* recorder = new Recorder;
  return *recorder;
}

void Append(std::string* out, const void* data, size_t size) {
  out->append(static_cast<const char*>(data), size);
}

}  // namespace

const bool kOn = [] {
  const char* file = std::getenv("HIPRESS_TIMELINE");
  return file != nullptr && file[0] != '\0';
}();

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
  thread_local const uint16_t thread = recorder.threads.fetch_add(1, std::memory_order_relaxed);
  const TimelineEvent event = {begin,     Now(),     key,  bytes,  elements,
                               iteration, partition, peer, thread, uint8_t(op), node};
  std::lock_guard<std::mutex> lock(recorder.mutex);
  if (recorder.events.size() < kMaxEvents) {
    recorder.events.push_back(event);
  } else {
    ++recorder.dropped;
  }
}

void NameKey(uint64_t key, const std::string& name) {
  if (!kOn) return;
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  recorder.names[key] = name;
}

uint8_t NewNode() {
  const uint32_t count = TheRecorder().nodes.fetch_add(1, std::memory_order_relaxed);
  const uint8_t node = uint8_t(count % kMaxNodes);
  if (count >= kMaxNodes) Take(node);  // leftovers of a former node with this number
  return node;
}

std::string Take(uint8_t node) {
  Recorder& recorder = TheRecorder();
  std::lock_guard<std::mutex> lock(recorder.mutex);
  TimelineHeader header;
  header.dropped = std::exchange(recorder.dropped, 0);
  std::string names, events;
  for (const auto& [key, name] : recorder.names) {
    const uint32_t size = uint32_t(name.size());
    Append(&names, &key, sizeof(key));
    Append(&names, &size, sizeof(size));
    names += name;
  }
  const auto first = std::stable_partition(recorder.events.begin(), recorder.events.end(),
                                           [node](const TimelineEvent& event) { return event.node != node; });
  for (auto event = first; event != recorder.events.end(); ++event) {
    event->node = 0;
    Append(&events, &*event, sizeof(*event));
  }
  header.events = uint64_t(recorder.events.end() - first);
  recorder.events.erase(first, recorder.events.end());
  header.names = uint32_t(recorder.names.size());
  std::string out;
  Append(&out, &header, sizeof(header));
  return out + names + events;
}

}  // namespace timeline

// ---- The file

namespace {

/// Largest time of a clock, and between clocks, in nanoseconds: 36 years, so that no sum overflows.
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

/// Finds the first row that is free, since viewers require that events of a row do not overlap.
/// \param free_from times from which rows are free
int RowOf(const TimelineEvent& event, std::vector<int64_t>* free_from) {
  auto row = std::find_if(free_from->begin(), free_from->end(),
                          [&](int64_t time) { return time <= event.begin; });
  if (row == free_from->end()) row = free_from->insert(row, 0);
  *row = event.end;
  return int(row - free_from->begin());
}

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
    std::vector<int64_t> rows[kTimelineOps];
    std::map<int, std::string> row_names;
    for (const TimelineEvent& event : events) {
      const char* name = NameOf(TimelineOp(event.op));
      int tid = event.thread;
      if (IsCompute(event.op)) {
        row_names[tid] = "thread " + std::to_string(tid);
      } else {
        tid = 1000 * (event.op + 100) + RowOf(event, &rows[event.op]);
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
