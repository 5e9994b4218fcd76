/*!
 * \file flight_recorder.h
 * \brief The last things that happened to a node's gradients, kept in a ring for whoever debugs a hang.
 *
 * Always on, so an event must cost next to nothing: a ticket, a reading of the processor's clock and five
 * stores. Any thread writes, without locks; a reader may come at any time and leaves out what is being
 * written just then.
 */
#ifndef HIPRESS_COMMON_FLIGHT_RECORDER_H_
#define HIPRESS_COMMON_FLIGHT_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/json.h"
#include "common/timeline.h"

namespace hipress {

/// What became of a task, or of a whole gradient.
enum class FlightState : uint8_t {
  kPushed = 0,    ///< the user's gradient is there
  kReady = 1,     ///< queued for a compute thread
  kStarted = 2,   ///< a compute thread, or the transport, has it
  kArriving = 3,  ///< a message's header is there, and its payload not yet
  kDone = 4,
};
constexpr int kFlightStates = 5;
const char* NameOf(FlightState state);

struct FlightEvent {
  double time;  ///< seconds since 1970
  uint64_t key;
  uint32_t iteration;
  uint32_t partition;
  uint32_t peer;  ///< NodeId::Packed(), or timeline::kNoPeer
  TimelineOp op;
  FlightState state;
};

#if !defined(__x86_64__) && !defined(__aarch64__)
uint64_t SteadyNanoseconds();
#endif

class FlightRecorder {
 public:
  /// \param entries that are kept, rounded up to a power of two; 0: none
  explicit FlightRecorder(size_t entries);

  bool on() const { return mask_ != 0; }
  void Record(FlightState state, TimelineOp op, uint64_t key, uint32_t iteration,
              uint32_t partition, uint32_t peer = timeline::kNoPeer) {
    if (mask_ == 0) return;
    const uint64_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    Put(&slots_[ticket & mask_], ticket,
        {Ticks(), key, uint64_t(iteration) << 32 | partition,
         uint64_t(peer) << 32 | uint64_t(op) << 8 | uint64_t(state)});
  }
  /// What is still there, oldest first.
  std::vector<FlightEvent> Events() const;
  /// How many have been recorded so far.
  uint64_t recorded() const { return next_.load(std::memory_order_relaxed); }
  /// The events as a JSON array of [seconds, key, iteration, partition, op, state, peer or ""].
  void Describe(JsonWriter* json) const;

  /// A clock that is read in some nanoseconds; its unit is found when events are read.
  static uint64_t Ticks();
  /// Seconds from then until now.
  double Since(uint64_t ticks) const;

 private:
  /// The fields of an event, and what tells whether they are of one: two writers may meet in a slot if
  /// one sleeps for a whole round of the ring. Then no ticket fits, and a reader leaves it out.
  struct Slot {
    std::atomic<uint64_t> check{0}, ticks{0}, key{0}, where{0}, what{0};
  };
  struct Words {
    uint64_t ticks, key, where, what;
  };
  /// A mixture of words of two events must not look like one of some other ticket, so each counts in
  /// all bits. (Odd numbers without a pattern.)
  static uint64_t Mix(const Words& words) {
    return words.ticks * 0x9e3779b97f4a7c15u + words.key * 0xc2b2ae3d27d4eb4fu +
           words.where * 0xff51afd7ed558ccdu + words.what * 0xd6e8feb86659fd93u;
  }
  static void Put(Slot* slot, uint64_t ticket, const Words& words) {
    slot->check.store((ticket + 1) ^ Mix(words), std::memory_order_relaxed);
    slot->ticks.store(words.ticks, std::memory_order_relaxed);
    slot->key.store(words.key, std::memory_order_relaxed);
    slot->where.store(words.where, std::memory_order_relaxed);
    slot->what.store(words.what, std::memory_order_relaxed);
  }

  const uint64_t mask_;  ///< 0: off
  const std::unique_ptr<Slot[]> slots_;
  const uint64_t start_ticks_;
  const double start_;  ///< the same moment on the steady clock, in seconds
  alignas(64) std::atomic<uint64_t> next_{0};  ///< not beside what threads only read
};

inline uint64_t FlightRecorder::Ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return SteadyNanoseconds();
#endif
}

}  // namespace hipress

#endif  // HIPRESS_COMMON_FLIGHT_RECORDER_H_
