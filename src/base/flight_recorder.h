/*!
 * \file flight_recorder.h
 * \brief Keeps the last events of a node's gradients in a ring, for debug dumps.
 *
 * It is always on, so an event must be cheap: each thread has its own ring, and an event is a read
 * of the processor's clock and five stores. A reader skips events that are being overwritten.
 */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/timeline.h"

namespace hipress {

/// State that a task, or a whole gradient, has entered.
enum class FlightState : uint8_t {
  kPushed = 0,    ///< the user's gradient is ready
  kReady = 1,     ///< queued for a compute thread
  kStarted = 2,   ///< a compute thread, or the transport, has it
  kArriving = 3,  ///< a message's header has arrived, but not its payload
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
  /// \param entries that are kept of each thread, rounded up to a power of two; 0: none
  explicit FlightRecorder(size_t entries);

  bool on() const { return mask_ != 0; }
  void Record(FlightState state, TimelineOp op, uint64_t key, uint32_t iteration,
              uint32_t partition, uint32_t peer = timeline::kNoPeer) {
    if (mask_ == 0) return;
    MyRing().Put({Ticks(), key, uint64_t(iteration) << 32 | partition,
                  uint64_t(peer) << 32 | uint64_t(op) << 8 | uint64_t(state)}, mask_);
  }
  /// Events that are still there, oldest first.
  std::vector<FlightEvent> Events() const;
  /// Number of events recorded so far.
  uint64_t recorded() const;
  /// The events as a JSON array of [seconds, key, iteration, partition, op, state, peer or ""].
  void Describe(JsonWriter* json) const;

  /// A clock that is read in some nanoseconds; its unit is found when events are read.
  static uint64_t Ticks();
  /// Seconds from then until now.
  double Since(uint64_t ticks) const;

 private:
  struct Words {
    uint64_t ticks, key, where, what;
  };
  /// The events of one thread. Only it writes.
  class Ring {
   public:
    explicit Ring(size_t entries) : slots_(std::make_unique<Slot[]>(entries)) {}
    void Put(const Words& words, uint64_t mask) {
      const uint64_t index = next_.load(std::memory_order_relaxed);
      // A reader of a word of this event sees by next_ that the slot's old one is invalid.
      std::atomic_thread_fence(std::memory_order_release);
      Slot& slot = slots_[index & mask];
      slot.ticks.store(words.ticks, std::memory_order_relaxed);
      slot.key.store(words.key, std::memory_order_relaxed);
      slot.where.store(words.where, std::memory_order_relaxed);
      slot.what.store(words.what, std::memory_order_relaxed);
      next_.store(index + 1, std::memory_order_release);
    }
    /// Adds the recorded events that are not being overwritten.
    void Read(uint64_t mask, std::vector<Words>* out) const;
    uint64_t recorded() const { return next_.load(std::memory_order_relaxed); }

    std::atomic<bool> taken{true};  ///< by a thread that lives

   private:
    struct Slot {
      std::atomic<uint64_t> ticks{0}, key{0}, where{0}, what{0};
    };
    const std::unique_ptr<Slot[]> slots_;
    alignas(64) std::atomic<uint64_t> next_{0};
  };
  /// The rings of one thread, of all recorders that it has written to.
  struct MyRings;
  double Since(uint64_t ticks, uint64_t now) const;
  Ring& MyRing() { return last_.number == number_ ? *last_.ring : OtherRing(); }
  Ring& OtherRing();
  std::shared_ptr<Ring> NewRing();

  /// The recorder that this thread has written to last, and its ring. (No thread_local: that asks
  /// each time whether it is to be initialized.)
  struct Last {
    uint64_t number;
    Ring* ring;
  };
  static __thread Last last_;

  const uint64_t mask_;    ///< 0: off
  const uint64_t number_;  ///< no other recorder of this process ever has it
  const uint64_t start_ticks_;
  const double start_;  ///< the same moment on the steady clock, in seconds
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Ring>> rings_;
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
