/*!
 * \file pauses.h
 * \brief How long a van's thread did not run: the process was stopped, or starved.
 */
#pragma once

#include <algorithm>
#include <string>

#include "van/socket.h"
#include "van/van.h"

namespace hipress {

/// All methods run on the van's thread.
class Pauses {
 public:
  using Duration = std::chrono::steady_clock::duration;

  explicit Pauses(const VanOptions& options) : options_(options) {}
  void Start() { last_tick_ = std::chrono::steady_clock::now(); }

  /// Notes a tick, which was due `interval` after the last one. \return how long this thread was stalled before
  /// it: the peers' silence of that time does not count, because their messages are still to be read
  Duration Tick(SteadyTime now, Duration interval) {
    auto stalled = now - last_tick_ - interval;
    if (stalled < options_.heartbeat_timeout / 4) stalled = stalled.zero();
    last_tick_ = now;
    // A short pause does not hide the long one that was just before it.
    const bool over = now - held_up_until_ >= options_.heartbeat_timeout;
    if (stalled > (over ? stalled.zero() : held_up_)) {
      held_up_ = stalled;
      held_up_until_ = now;
    }
    return stalled;
  }

  /// As Van::HeldUp.
  std::string Text() const {
    // Shorter than this, a pause and the heartbeat that was due make no silence that is death.
    const auto limit = options_.heartbeat_timeout - options_.heartbeat_interval;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_tick_ > limit) return SecondsText(now - last_tick_);
    const bool recent = now - held_up_until_ < options_.heartbeat_timeout;
    return recent && held_up_ > limit ? SecondsText(held_up_) : "";
  }

 private:
  const VanOptions& options_;
  SteadyTime last_tick_;
  SteadyTime held_up_until_;  ///< the end of the last pause
  Duration held_up_{0};
};

}  // namespace hipress
