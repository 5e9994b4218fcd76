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
/// may not know that the connection has broken.
///
/// Who listens no longer is dead. On one host its first refusal says so. From another machine a router that has
/// just been started, without its rules, can refuse, too; so there all calls must be refused for half a second.
class Redial {
 public:
  struct Hooks {
    std::function<void(Opened opened)> opened;
    /// Nobody listens there any more, or another process than before.
    std::function<void()> refused;
  };

  /// \param id the last one of the connection; tries of the caller count on from its generation
  /// \param caller whether this node called for the connection. Hooks run on the thread; one at most does.
  /// \param same_host whether the peer is on this host
  Redial(const Call& call, LaneId id, bool caller, bool same_host, const VanOptions& options, Hooks hooks);
  /// Gives up.
  ~Redial();

 private:
  enum class Answer { kOpened, kGone, kRefused, kNone };
  void Run();
  Answer Try(const Deadline& deadline);

  const Call call_;
  LaneId id_;
  const bool caller_, same_host_;
  const VanOptions& options_;
  const Hooks hooks_;
  std::atomic<bool> cancelled_{false};
  std::thread thread_;
};

}  // namespace hipress
