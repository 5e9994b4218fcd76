/*!
 * \file acceptor.h
 * \brief Listens for connections, and admits those that know the secret.
 */
#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "transport/handshake.h"
#include "transport/lanes.h"
#include "transport/socket.h"
#include "transport/van.h"

namespace hipress {

class PendingHandshake;

/// All methods run on the van's thread.
class Acceptor {
 public:
  struct Hooks {
    std::function<NodeId()> self;
    /// Whether what an authenticated caller wants can be done now: kAccepted, kTaken or kGone.
    std::function<VerdictCode(const Hello&)> judge;
    std::function<void(const Transcript& transcript, Lane lane)> accepted;
    /// The listener of a connection that this node called for says that it has broken.
    std::function<void(const LaneId&)> probed;
  };

  Acceptor(asio::io_context& io, UniqueFd listener, const VanOptions& options,
           VanCounters* counters, Hooks hooks);
  ~Acceptor();

  void Start();
  /// Takes no new connections any more, but still lets those there are be resumed.
  void OnlyResume() { only_resume_ = true; }
  void Stop();

 private:
  friend class PendingHandshake;
  void Wait();
  void AcceptSome();
  /// Calls AcceptSome; after an error, tries again later.
  void AcceptGuarded();
  /// Continues to accept after a short time.
  void Pause();
  /// Makes room. Peers that know the secret stay as long as there are any others.
  void RefuseSlowest();
  void Refused(const std::string& address, const std::string& why);
  void Forget(PendingHandshake* pending);

  asio::io_context& io_;
  asio::posix::stream_descriptor listener_;
  asio::steady_timer pause_;
  const VanOptions& options_;
  VanCounters& counters_;
  Hooks hooks_;
  bool only_resume_ = false;
  std::list<std::shared_ptr<PendingHandshake>> pending_;  ///< oldest first
  SteadyTime last_log_{};
  int unlogged_ = 0;
};

}  // namespace hipress
