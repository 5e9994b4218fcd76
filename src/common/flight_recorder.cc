#include "common/flight_recorder.h"

#include <algorithm>
#include <chrono>

namespace hipress {
namespace {

template <typename Clock>
double SecondsOf() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// A mask for that many slots; 0: off. One slot would have the mask of none, so there are two at least.
uint64_t MaskFor(size_t entries) {
  if (entries == 0) return 0;
  uint64_t slots = 2;
  while (slots < entries) slots *= 2;
  return slots - 1;
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

FlightRecorder::FlightRecorder(size_t entries)
    : mask_(MaskFor(entries)),
      slots_(mask_ == 0 ? nullptr : std::make_unique<Slot[]>(mask_ + 1)),
      start_ticks_(Ticks()),
      start_(SecondsOf<std::chrono::steady_clock>()) {}

double FlightRecorder::Since(uint64_t ticks) const {
  const uint64_t now = Ticks();
  const double passed = SecondsOf<std::chrono::steady_clock>() - start_;
  if (now <= ticks || now <= start_ticks_) return 0.0;
  return passed * (double(now - ticks) / double(now - start_ticks_));
}

std::vector<FlightEvent> FlightRecorder::Events() const {
  std::vector<std::pair<uint64_t, Words>> found;
  const uint64_t next = recorded();
  const uint64_t oldest = next > mask_ + 1 ? next - mask_ - 1 : 0;
  for (uint64_t i = 0; on() && i <= mask_; ++i) {
    const Slot& slot = slots_[i];
    const uint64_t check = slot.check.load(std::memory_order_relaxed);
    const Words words{slot.ticks.load(std::memory_order_relaxed),
                      slot.key.load(std::memory_order_relaxed),
                      slot.where.load(std::memory_order_relaxed),
                      slot.what.load(std::memory_order_relaxed)};
    const uint64_t ticket = (check ^ Mix(words)) - 1;
    // Of an event, or of one that came while this reads; all else is no event.
    if ((ticket & mask_) != i || ticket < oldest || ticket >= next + mask_ + 1) continue;
    if (int(words.what & 0xff) >= kFlightStates || int(words.what >> 8 & 0xff) >= kTimelineOps) continue;
    found.emplace_back(ticket, words);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  const double now = SecondsOf<std::chrono::system_clock>();
  std::vector<FlightEvent> events;
  events.reserve(found.size());
  for (const auto& [ticket, words] : found) {
    events.push_back({now - Since(words.ticks), words.key, uint32_t(words.where >> 32),
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
