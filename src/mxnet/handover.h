/*!
 * \file handover.h
 * \brief Hands operations that become ready soon after one another to the store as one batch.
 *
 * A Trainer makes a call for each of its parameters. Handed over one by one, each small gradient would be a
 * separate message and wake a thread for each of its tasks (common/batch.h). The number of calls is unknown,
 * but a step repeats the previous one: an operation that was followed by another at once is expected to be so
 * again, and is kept until the other one arrives. A wrong expectation costs one wait of a millisecond.
 */
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hipress::mxnet {

class Handover {
 public:
  using Clock = std::chrono::steady_clock;

  /// \param patience what comes so soon after another follows it; nothing is kept for longer, but
  ///        for the time that entering takes
  explicit Handover(Clock::duration patience = std::chrono::milliseconds(1));
  ~Handover();

  /*!
   * \brief Calls `enter`, soon and in the order of the calls, on any thread. It must neither block
   *        nor throw.
   * \param elements of the operation's array
   * \param followed what is known of operations like this one, false at first; lives as long as this
   */
  void Add(std::function<void()> enter, int64_t elements, bool* followed);
  /// Returns when all that was added before has entered, or is about to on this very thread.
  void Flush();
  /// The same, and nothing is kept from now on.
  void Stop();

 private:
  void Enter(std::unique_lock<std::mutex>* lock);
  void EnterAll(std::unique_lock<std::mutex>* lock);
  void Watch();

  const Clock::duration patience_;
  std::mutex mutex_;
  std::vector<std::function<void()>> kept_;
  std::vector<std::function<void()>> entering_;  // used by the thread in Enter
  int64_t elements_ = 0;
  bool due_ = false;
  bool is_entering_ = false;
  std::thread::id enters_;  // that thread
  uint64_t added_ = 0, entered_ = 0;
  std::condition_variable all_entered_;
  bool* last_ = nullptr;  // what the latest operation knows
  Clock::time_point last_at_;
  bool stopped_ = false;

  Clock::time_point deadline_;
  bool watch_sleeps_ = false;
  std::condition_variable watched_;
  std::thread watch_;
};

}  // namespace hipress::mxnet
