/*!
 * \file lanes.h
 * \brief The sockets (lanes) of a connection: one, or several over a long link.
 */
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "transport/handshake.h"
#include "transport/socket.h"
#include "transport/stream.h"
#include "transport/van.h"

namespace hipress {

struct Lane {
  UniqueFd fd;
  std::unique_ptr<Stream> stream;
};

/// All lanes of a connection, and what is needed to call its peer again.
struct Opened {
  std::vector<Lane> lanes;
  LaneId id;  ///< of the first lane; how many lanes there are is what both ends agreed on
  bool caller = true;
  /// Where the peer listens. Without a port if that is not where its sockets come from: there
  /// something else (a router that translates addresses) would answer in its name.
  SocketAddress peer;
};

/// The called node, and the caller's identity.
struct Call {
  SocketAddress remote;
  NodeId self;
  NodeId peer;
};

/// Connects and authenticates the sockets of a new connection: as many as its link needs.
/// \param listens where this node listens
/// \return no lanes if it cannot be reached now, with *error the errno. \throw as CallerHandshake
Opened OpenLanes(const Call& call, const VanOptions& options, const SocketAddress& listens,
                 const Deadline& deadline, int* error);
/// Calls it again, because connection `id` has broken. \return, \throw as above
Opened ReopenLanes(const Call& call, const VanOptions& options, LaneId id, const Deadline& deadline,
                   int* error);
/// Notifies the node that called for connection `id` that it has broken. \throw as above
void Probe(const Call& call, const VanOptions& options, LaneId id, const Deadline& deadline, int* error);

/// Calls the peer of a broken connection from a thread, until it answers or is dead.
///
/// The end that called for the connection opens new lanes. The other end only sends probes, because
/// the caller may not have noticed the break.
///
/// A peer that does not listen is dead. On this host its first refusal shows that. Between machines
/// a router that has just started may refuse, so all calls must be refused for half a second.
class Redial {
 public:
  /// One of them is called, on the thread.
  struct Hooks {
    std::function<void(Opened opened)> opened;
    std::function<void()> refused;  ///< the peer, or this connection, is gone
  };

  /// \param id the connection's last; each try of the caller increases its generation
  /// \param caller whether this node called for the connection
  Redial(const Call& call, LaneId id, bool caller, bool same_host, const VanOptions& options, Hooks hooks);
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
  std::atomic<bool> canceled_{false};
  std::thread thread_;
};

/// Accepted sockets of connections that are not yet complete.
class Gathering {
 public:
  /// \return all lanes of the connection, if this is the last one; else none
  Opened Add(const Transcript& transcript, Lane lane, SteadyTime now);
  /// Closes those of callers that do not open the rest.
  void DropOld(SteadyTime now);

 private:
  struct Group {
    std::vector<Lane> lanes;
    SteadyTime since;
  };
  /// By caller, its connection, and the try to resume it.
  std::map<std::tuple<uint32_t, uint32_t, uint16_t>, Group> groups_;
};

}  // namespace hipress
