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

/// Works in a separate thread, which ends with this object.
///
/// The end that called for the connection opens new lanes. The other end cannot, but notifies it: that end may
/// not know that the connection has broken.
///
/// A peer that does not listen any more is dead. On one host its first refusal shows that. On another machine,
/// a router that has just been started, without its rules, can also refuse, so there all calls must be refused
/// for half a second.
class Redial {
 public:
  struct Hooks {
    std::function<void(Opened opened)> opened;
    /// The address refuses connections, or another process listens there.
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
