/*!
 * \file van.h
 * \brief The transport: moves messages between authenticated nodes, and reports when one is gone.
 *
 * A van owns one thread on which every callback runs, so callbacks need no locks among themselves
 * and must not block. Sends to one peer leave highest priority first, and in the order of the calls
 * among equals; messages of one priority arrive in that order.
 */
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "transport/message.h"

namespace hipress {

/// Rank of a node that the scheduler has not named yet. Several may connect to one listener; it
/// calls them {role, kFirstProvisionalRank + k} until Van::RenamePeer. Ranks in a job are smaller.
constexpr uint16_t kUnnamedRank = 0xFFFF;
constexpr uint16_t kFirstProvisionalRank = 0x8000;

/// Upcalls of a van; all on its one thread.
class VanReceiver {
 public:
  virtual ~VanReceiver() = default;
  /*!
   * \brief A checked header has arrived; choose where its payload goes.
   * \return a buffer of at least header.payload_bytes, or an empty one to let the van allocate
   * \throw ProtocolError to refuse the message: it is counted and logged with the sender's name and
   *        address, and the connection is closed (the peer then goes down with that reason).
   */
  virtual Buffer OnHeader(NodeId from, const MessageHeader& header) = 0;
  /// The whole message is here and its checksum is right. May throw ProtocolError as above.
  virtual void OnMessage(NodeId from, Message message) = 0;
  virtual void OnUp(NodeId peer) {}
  /// Exactly once per peer that was up. `graceful`: it said goodbye first. `reason`: a full clause,
  /// e.g. "closed the connection without saying goodbye", "has been silent for 3.0 s".
  virtual void OnDown(NodeId peer, bool graceful, const std::string& reason) = 0;
  /// Several times in a heartbeat interval, by vans that keep time.
  virtual void OnTick() {}
};

/// Monotonic counters, readable from any thread.
struct VanCounters {
  std::atomic<uint64_t> bytes_sent{0};      ///< headers and payloads before encryption
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> data_bytes_sent{0};      ///< of these, kData, kFused, kFetched messages
  std::atomic<uint64_t> data_bytes_received{0};
  std::atomic<uint64_t> messages_sent{0};
  std::atomic<uint64_t> messages_received{0};
  std::atomic<uint64_t> writes{0};  ///< to the kernel; one carries all messages that are ready
  std::atomic<uint64_t> shared_memory_bytes{0};  ///< part of bytes_sent that peers read in place
  std::atomic<uint64_t> resumed_connections{0};  ///< after a break or silence
  std::atomic<uint64_t> refused_connections{0};  ///< strangers, wrong secrets, garbage
  std::atomic<uint64_t> refused_messages{0};     ///< corrupt, malformed or out of place
};

/// All options of a van. Defaults suit a cluster.
struct VanOptions {
  NodeNames names;          ///< of nodes in sentences (HIPRESS_RANKS)
  std::string secret;       ///< the job secret; every connection proves knowledge of it, both ways
  /// Network interface to listen on (DMLC_INTERFACE); empty: choose by route.
  std::string interface;
  /// TLS 1.3 keyed from the secret: "auto" (on unless both ends are on one host), "on", "off".
  std::string tls = "auto";
  int streams = 0;  ///< sockets of a connection, 1 to 16; 0: 1, or several if it is a long link
  /// TCP's congestion control; empty: BBR on long links, otherwise the kernel's, but not BBR.
  std::string congestion_control;
  bool shared_memory = true;     ///< for large payloads to peers on this host (shared_payload.h)
  std::chrono::milliseconds heartbeat_interval{1000};
  /// Silence after which a peer is down. TCP sends again after 0.2, 0.6, 1.4, 3.0, 6.2 s and so on,
  /// so after an outage of t seconds, up to another t pass before the first byte arrives.
  std::chrono::milliseconds heartbeat_timeout{12000};
  std::chrono::milliseconds connect_timeout{60000};    ///< retried until then (peers start late)
  uint64_t max_payload_bytes = uint64_t(1) << 32;      ///< a larger one is refused unread
};

class Van {
 public:
  using SendDone = std::function<void(bool sent)>;
  virtual ~Van() = default;

  /// Starts the thread and listens. \return "host:port" that peers can reach.
  /// \throw Error in one sentence ("port 9091 on 127.0.0.1 is in use ...").
  virtual std::string Start(NodeId self, const std::string& host, int port, VanReceiver* receiver) = 0;
  /// This node's name once it is known (the scheduler assigns ranks).
  virtual void Rename(NodeId self) = 0;
  /// The name of a connected peer once it is known; on the van's thread.
  virtual void RenamePeer(NodeId from, NodeId to) = 0;
  /// Connects and authenticates; blocks the caller, at most until `deadline`.
  /// \throw Error with the node that could not be reached, where, and why; interrupt::Interrupted
  virtual void Connect(NodeId peer, const std::string& address,
                       std::chrono::steady_clock::time_point deadline) = 0;
  /// Never blocks. `done` runs on the van's thread when the payload may be released, with
  /// sent=false if the peer is unknown or went down first. \throw Error if the payload is too large
  virtual void Send(NodeId to, Message message, int priority = 0, SendDone done = nullptr) = 0;
  /// How long ("4.1 s") the van's thread has just not run, if peers may have taken this node for
  /// dead; otherwise empty. On the van's thread.
  virtual std::string HeldUp() const { return ""; }
  /// Time since a connected peer's last byte was read; nothing if it is not connected.
  virtual std::optional<std::chrono::steady_clock::duration> Silence(NodeId peer) const { return {}; }
  virtual const VanCounters& counters() const = 0;
  /// Says goodbye, sends what is queued (for `linger`, and longer while bytes leave), closes, joins
  /// the thread. Idempotent. \throw interrupt::Interrupted after it has closed
  virtual void Stop(std::chrono::milliseconds linger = std::chrono::milliseconds(2000)) = 0;
  /// Closes without goodbye, so that the peers see a failure; joins the thread. Idempotent. Drops
  /// queued messages, and waits until the peers have read sent ones (done(true)) and closed: for
  /// `linger`, and longer while unacknowledged bytes are in transit to live peers.
  virtual void Abort(std::chrono::milliseconds linger = std::chrono::milliseconds(500)) = 0;
};

/// The default van: TCP, TLS where it is wanted. See docs/reference/transport.md for its handshake.
/// Its last owner in a forked child leaves it alone, because the child has not its thread.
std::shared_ptr<Van> MakeTcpVan(VanOptions options);

}  // namespace hipress
