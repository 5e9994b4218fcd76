#include "base/flight_recorder.h"

#include <algorithm>
#include <chrono>

#include "base/thread_object.h"

namespace hipress {
namespace {

template <typename Clock>
double SecondsOf() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// A mask for at least two slots; 0: off.
uint64_t MaskFor(size_t entries) {
  if (entries == 0) return 0;
  uint64_t slots = 2;
  while (slots < entries) slots *= 2;
  return slots - 1;
}

uint64_t NextNumber() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#if !defined(__x86_64__) && !defined(__aarch64__)
uint64_t SteadyNanoseconds() {
  return uint64_t(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}
#endif

const char* NameOf(FlightState state) {
  static const char* const kNames[kFlightStates] = {"pushed", "ready", "started", "arriving", "done"};
  return kNames[int(state)];
}

struct FlightRecorder::MyRings {
  /// Rings outlive their threads, and serve other ones then.
  ~MyRings() {
    for (auto& [number, ring] : all) ring->taken = false;
    last_ = {0, nullptr};
  }
  std::vector<std::pair<uint64_t, std::shared_ptr<Ring>>> all;
};

FlightRecorder::FlightRecorder(size_t entries)
    : mask_(MaskFor(entries)),
      number_(NextNumber()),
      start_ticks_(Ticks()),
      start_(SecondsOf<std::chrono::steady_clock>()) {}

__thread FlightRecorder::Last FlightRecorder::last_ = {0, nullptr};

FlightRecorder::Ring& FlightRecorder::OtherRing() {
  MyRings& mine = ThreadObject<MyRings>();
  auto entry = std::find_if(mine.all.begin(), mine.all.end(),
                            [this](const auto& each) { return each.first == number_; });
  if (entry == mine.all.end()) {
    // Those of recorders that are no more go at last.
    mine.all.erase(std::remove_if(mine.all.begin(), mine.all.end(),
                                  [](const auto& each) { return each.second.use_count() == 1; }),
                   mine.all.end());
    entry = mine.all.insert(mine.all.end(), {number_, NewRing()});
  }
  last_ = {number_, entry->second.get()};
  return *last_.ring;
}

std::shared_ptr<FlightRecorder::Ring> FlightRecorder::NewRing() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& ring : rings_) {
    if (!ring->taken.exchange(true)) return ring;
  }
  rings_.push_back(std::make_shared<Ring>(mask_ + 1));
  return rings_.back();
}

uint64_t FlightRecorder::recorded() const {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t count = 0;
  for (const auto& ring : rings_) count += ring->recorded();
  return count;
}

void FlightRecorder::Ring::Read(uint64_t mask, std::vector<Words>* out) const {
  const uint64_t next = next_.load(std::memory_order_acquire);
  const uint64_t first = next > mask + 1 ? next - mask - 1 : 0;
  const size_t begin = out->size();
  for (uint64_t i = first; i < next; ++i) {
    const Slot& slot = slots_[i & mask];
    out->push_back({slot.ticks.load(std::memory_order_relaxed),
                    slot.key.load(std::memory_order_relaxed),
                    slot.where.load(std::memory_order_relaxed),
                    slot.what.load(std::memory_order_relaxed)});
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  // The thread may be overwriting the oldest event that was not yet read.
  const uint64_t now = next_.load(std::memory_order_relaxed);
  const uint64_t first_intact = now > mask ? now - mask : 0;
  if (first_intact <= first) return;
  const auto oldest = out->begin() + std::ptrdiff_t(begin);
  out->erase(oldest, oldest + std::ptrdiff_t(std::min(first_intact, next) - first));
}

double FlightRecorder::Since(uint64_t ticks) const { return Since(ticks, Ticks()); }

double FlightRecorder::Since(uint64_t ticks, uint64_t now) const {
  const double passed = SecondsOf<std::chrono::steady_clock>() - start_;
  if (now <= ticks || now <= start_ticks_) return 0.0;
  return passed * (double(now - ticks) / double(now - start_ticks_));
}

std::vector<FlightEvent> FlightRecorder::Events() const {
  std::vector<Words> recorded;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& ring : rings_) ring->Read(mask_, &recorded);
  }
  std::stable_sort(recorded.begin(), recorded.end(),
                   [](const Words& a, const Words& b) { return a.ticks < b.ticks; });
  const double now = SecondsOf<std::chrono::system_clock>();
  const uint64_t now_ticks = Ticks();
  std::vector<FlightEvent> events;
  events.reserve(recorded.size());
  for (const Words& words : recorded) {
    events.push_back({now - Since(words.ticks, now_ticks), words.key, uint32_t(words.where >> 32),
                      uint32_t(words.where), uint32_t(words.what >> 32),
                      TimelineOp(words.what >> 8 & 0xff), FlightState(words.what & 0xff)});
  }
  return events;
}

void FlightRecorder::Describe(JsonWriter* json) const {
  json->Array();
  for (const FlightEvent& event : Events()) {
    json->Array().Seconds(event.time).Unsigned(event.key).Unsigned(event.iteration);
    json->Unsigned(event.partition).Text(NameOf(event.op)).Text(NameOf(event.state));
    json->Text(event.peer == timeline::kNoPeer ? "" : NodeId::Unpack(event.peer).ToString());
    json->EndArray();
  }
  json->EndArray();
}

}  // namespace hipress
