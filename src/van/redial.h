/*!
 * \file redial.h
 * \brief Calls the peer of a connection that has broken, until it answers or is known to be dead.
 */
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "van/lanes.h"

namespace hipress {

/// Works in a thread of its own, which ends with this object.
///
/// The end that called for the connection opens new lanes. The other one cannot, but tells it: that end
/// may not know that the connection has broken, and who listens no longer is dead.
class Redial {
 public:
  struct Hooks {
    std::function<void(Opened opened)> opened;
    /// Nobody listens there, or another process than before.
    std::function<void()> refused;
  };

  /// \param id the last one of the connection; tries of the caller count on from its generation
  /// \param caller whether this node called for the connection. Hooks run on the thread; one at most does.
  Redial(const Call& call, LaneId id, bool caller, const VanOptions& options, Hooks hooks);
  /// Gives up.
  ~Redial();

 private:
  void Run();
  /// \return whether there is nothing more to do
  bool Try(const Deadline& deadline);

  const Call call_;
  LaneId id_;
  const bool caller_;
  const VanOptions& options_;
  const Hooks hooks_;
  std::atomic<bool> cancelled_{false};
  std::thread thread_;
};

}  // namespace hipress
