/*!
 * \file pending_operations.h
 * \brief Counts asynchronous operations that have not called back yet.
 */
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "casync/flow.h"
#include "common/interrupt.h"

namespace hipress {

class PendingOperations {
 public:
  /// Counts one operation until the callback that this returns, which calls `done`, has run.
  Done Count(Done done) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++count_;
    }
    if (!done) return [this](const char*) { End(); };  // small enough not to be allocated
    return [this, done = std::move(done)](const char* error) {
      done(error);
      End();
    };
  }

  /// Blocks until none is pending. \throw interrupt::Interrupted
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    interrupt::WaitUntil(&none_, &lock, std::chrono::steady_clock::time_point::max(), [this] { return count_ == 0; });
  }

  /// Operations that are pending now.
  int64_t count() {
    std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }

 private:
  void End() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable none_;
  int64_t count_ = 0;
};

}  // namespace hipress
