/*!
 * \file lock_for.h
 * \brief Locks a mutex within a time limit, for debug dumps of nodes that hang.
 */
#pragma once

#include <chrono>
#include <mutex>
#include <thread>

namespace hipress {

/// Locks `mutex`. Owns nothing if another thread holds it for the whole time.
inline std::unique_lock<std::mutex> LockFor(
    std::mutex* mutex, std::chrono::milliseconds patience = std::chrono::milliseconds(500)) {
  const auto until = std::chrono::steady_clock::now() + patience;
  std::unique_lock<std::mutex> lock(*mutex, std::try_to_lock);
  while (!lock && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    static_cast<void>(lock.try_lock());
  }
  return lock;
}

}  // namespace hipress
