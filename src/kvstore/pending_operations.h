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

  /// Blocks until none is pending.
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
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
