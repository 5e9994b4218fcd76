#include "common/timeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "common/thread_object.h"
#include "common/timeline_file.h"

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
}  // namespace hipress
