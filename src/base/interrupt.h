/*!
 * \file interrupt.h
 * \brief Runs an interpreter's signal handlers while its main thread waits in this library.
 *
 * CPython runs signal handlers on its main thread, between two bytecodes. Calls of this library
 * that wait for other nodes would delay them, and so Ctrl-C. On the main thread the functions below
 * therefore call PyErr_CheckSignals every kInterval, and throw Interrupted if a handler has raised
 * an exception. On other threads, and without an interpreter, they only wait.
 */
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>

struct HipressInterpreter;

namespace hipress::interrupt {

/// Time between two checks for signals.
constexpr std::chrono::milliseconds kInterval{100};

/// A signal handler has raised an exception. Not an Error: no code may handle it as a failed wait.
struct Interrupted {};

/// Sets the interpreter of this process; null: none.
void SetInterpreter(const HipressInterpreter* interpreter);

/// Whether this thread is the interpreter's main thread, and checks are not suspended.
bool Needed();
/// Runs pending signal handlers if Needed(). The caller holds no lock that a handler may need.
/// \throw Interrupted
void Check();
/// Returns the exception of the last Interrupted on this thread as PyErr_Fetch does, once.
void Take(void** type, void** value, void** traceback);

/// Suspends checks on this thread: for destructors and for leaving a job after a failure.
class Suspended {
 public:
  Suspended();
  ~Suspended();
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;
};

/// Runs handlers from a loop that polls more often than kInterval.
class PolledCheck {
 public:
  void operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kInterval) return;
    last_ = now;
    Check();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Waits as `changed.wait_until(*lock, deadline, done)` does. The lock is released during handlers,
/// and held when this returns or throws. \throw Interrupted
template <typename Predicate>
bool WaitUntil(std::condition_variable* changed, std::unique_lock<std::mutex>* lock,
               std::chrono::steady_clock::time_point deadline, Predicate done) {
  while (Needed()) {
    const auto now = std::chrono::steady_clock::now();
    const bool last = deadline - now <= kInterval;
    if (changed->wait_until(*lock, last ? deadline : now + kInterval, done)) return true;
    if (last) return false;
    lock->unlock();
    try {
      Check();
    } catch (...) {
      lock->lock();
      throw;
    }
    lock->lock();
  }
  if (deadline != std::chrono::steady_clock::time_point::max()) return changed->wait_until(*lock, deadline, done);
  changed->wait(*lock, done);
  return true;
}

/// Waits until the future is ready. \return false if it is not by the deadline. \throw Interrupted
template <typename T>
bool WaitUntil(const std::future<T>& future, std::chrono::steady_clock::time_point deadline) {
  while (Needed()) {
    const auto now = std::chrono::steady_clock::now();
    const bool last = deadline - now <= kInterval;
    if (future.wait_until(last ? deadline : now + kInterval) == std::future_status::ready) return true;
    if (last) return false;
    Check();
  }
  if (deadline != std::chrono::steady_clock::time_point::max()) {
    return future.wait_until(deadline) == std::future_status::ready;
  }
  future.wait();
  return true;
}

}  // namespace hipress::interrupt
