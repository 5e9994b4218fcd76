/*!
 * \file handover.h
 * \brief Hands operations that become ready soon after one another to the store as one batch.
 *
 * A Trainer makes a call for each of its parameters. Handed over one by one, each small gradient
 * would be a separate message and wake a thread for each of its tasks (base/batch.h). The number
 * of calls is unknown, but a step repeats the previous one: an operation that was followed by
 * another at once is expected to be so again, and is kept until the other one arrives. A wrong
 * expectation costs one wait of a millisecond.
 */
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "graph/executor.h"
#include "base/batch.h"
#include "base/thread_name.h"

namespace hipress::mxnet {

class Handover {
 public:
  using Clock = std::chrono::steady_clock;

  /// \param patience an operation that comes so soon after another follows it. None is kept for
  ///        longer, except for the time that entering takes.
  explicit Handover(Clock::duration patience = std::chrono::milliseconds(1))
      : patience_(patience), watch_([this] { Watch(); }) {}
  ~Handover() { Stop(); }

  /*!
   * \brief Calls `enter`, soon and in the order of the calls, on any thread. It must neither block
   *        nor throw.
   * \param elements of the operation's array
   * \param followed whether another operation followed the last one like this, false at first;
   *        lives as long as this object
   */
  void Add(std::function<void()> enter, int64_t elements, bool* followed) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto now = Clock::now();
    if (last_ != nullptr) *last_ = now - last_at_ < patience_;
    last_ = followed;
    last_at_ = now;
    kept_.push_back(std::move(enter));
    ++added_;
    elements_ += elements;
    if (!*followed || stopped_ || kept_.size() >= kMaxKeptOperations ||
        elements_ >= Executor::kJobElements) {
      return Enter(&lock);
    }
    if (kept_.size() > 1) return;
    deadline_ = now + patience_;
    if (watch_sleeps_) watched_.notify_one();
  }

  /// Returns when all operations that were added before have entered, or are about to on this very
  /// thread.
  void Flush() {
    std::unique_lock<std::mutex> lock(mutex_);
    EnterAll(&lock);
  }

  /// Flush, after which no operation is kept.
  void Stop() {
    std::unique_lock<std::mutex> lock(mutex_);
    stopped_ = true;
    EnterAll(&lock);
    watched_.notify_one();
    if (!watch_.joinable()) return;
    std::thread watch = std::move(watch_);
    lock.unlock();
    watch.join();
  }

 private:
  /// Operations that are kept at most; also, elements as one large gradient has.
  static constexpr size_t kMaxKeptOperations = 128;

  /// One thread at a time, to keep the order: if another one is entering, it continues.
  void Enter(std::unique_lock<std::mutex>* lock) {
    due_ = true;
    if (is_entering_) return;
    is_entering_ = true;
    enters_ = std::this_thread::get_id();
    while (due_) {
      due_ = false;
      elements_ = 0;
      entering_.swap(kept_);
      lock->unlock();
      {
        Batch batch;
        for (auto& enter : entering_) enter();
      }
      const size_t count = entering_.size();
      entering_.clear();
      lock->lock();
      entered_ += count;
      all_entered_.notify_all();
    }
    is_entering_ = false;
    if (watch_sleeps_ && !kept_.empty()) watched_.notify_one();
  }

  void EnterAll(std::unique_lock<std::mutex>* lock) {
    const uint64_t all = added_;
    Enter(lock);
    if (is_entering_ && enters_ == std::this_thread::get_id()) return;  // called by an operation
    all_entered_.wait(*lock, [this, all] { return entered_ >= all; });
  }

  void Watch() {
    NameThisThread("hipress-mxnet");
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopped_) {
      if (kept_.empty() || is_entering_) {  // the entering thread wakes this one if it must wait
        watch_sleeps_ = true;
        watched_.wait(lock);
        watch_sleeps_ = false;
      } else if (Clock::now() >= deadline_) {
        Enter(&lock);
      } else {
        watched_.wait_until(lock, deadline_);
      }
    }
  }

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
  bool* last_ = nullptr;  // `followed` of the latest operation
  Clock::time_point last_at_;
  bool stopped_ = false;

  Clock::time_point deadline_;
  bool watch_sleeps_ = false;
  std::condition_variable watched_;
  std::thread watch_;
};

}  // namespace hipress::mxnet
