/*!
 * \file connection.h
 * \brief One authenticated connection: frames messages, queues sends, detects silence, and
 *        continues over new sockets if those between machines break.
 */
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <algorithm>
#include <atomic>
#include <climits>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/checksum.h"
#include "transport/lanes.h"
#include "transport/resumable_stream.h"
#include "transport/shared_payload.h"
#include "transport/socket.h"
#include "transport/stream.h"
#include "transport/van.h"

namespace hipress {

class Connection;

/// Bytes moved before other connections get their turn.
constexpr size_t kTurnBytes = 4 << 20;
/// Headers and small payloads of one batch.
constexpr size_t kStagingBytes = 64 << 10;
/// Priority of messages of the connection itself: they go before everything but heartbeats.
constexpr int kConnectionPriority = INT_MAX - 1;

/// A message on its way out.
struct SendItem {
  size_t end = 0;  ///< offset behind its last byte in the batch in which it is sent
  Message message;
  Van::SendDone done;
  bool share = false;  ///< to go by shared memory, if possible when it leaves
  bool copied = false;  ///< what is shared is a copy: the sender is done as soon as it has left
  SharedPayload shared{};  ///< of a payload that does
};

/// Messages waiting for one peer: highest priority first, first come first served among equals. Not
/// thread-safe. Owns what is in it, and items kept for reuse.
class SendQueue {
 public:
  SendQueue() = default;
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;
  ~SendQueue() {
    while (SendItem* item = Pop()) delete item;
  }

  /// A new or recycled item.
  SendItem* Make() {
    if (free_.empty()) return new SendItem();
    SendItem* item = free_.back().release();
    free_.pop_back();
    return item;
  }
  /// Takes back an item whose payload and callback have been cleared.
  void Recycle(SendItem* item) {
    constexpr size_t kMaxFree = 1024;
    if (free_.size() < kMaxFree) {
      free_.emplace_back(item);
    } else {
      delete item;
    }
  }

  void Push(SendItem* item, int priority) {
    heap_.push_back({priority, sequence_++, item});
    std::push_heap(heap_.begin(), heap_.end());
  }
  /// The next in order, or null.
  SendItem* Pop() {
    if (heap_.empty()) return nullptr;
    std::pop_heap(heap_.begin(), heap_.end());
    SendItem* item = heap_.back().item;
    heap_.pop_back();
    return item;
  }

 private:
  struct Entry {
    int priority;
    uint64_t sequence;
    SendItem* item;
    bool operator<(const Entry& other) const {
      return priority != other.priority ? priority < other.priority : sequence > other.sequence;
    }
  };
  std::vector<Entry> heap_;
  uint64_t sequence_ = 0;
  std::vector<std::unique_ptr<SendItem>> free_;
};

/// Upcalls of a connection to its van; on the van's thread.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  /// This node's name now.
  virtual NodeId self() const = 0;
  virtual Buffer OnHeader(NodeId from, const MessageHeader& header) = 0;
  virtual void OnMessage(NodeId from, Message message) = 0;
  /// Exactly once, after which the connection makes no more calls.
  virtual void OnClosed(const std::shared_ptr<Connection>& connection, bool graceful,
                        const std::string& reason) = 0;
};

/// Methods run on the van's thread unless they say otherwise.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& io, Opened opened, NodeId peer, const VanOptions& options,
             VanCounters* counters, ConnectionOwner* owner);
  ~Connection();

  /// Begins to receive.
  void Start();
  /// Queues a message after sealing it; from any thread. Never blocks.
  void Send(Message message, int priority, Van::SendDone done);
  /// Sends heartbeats, detects silence. `stalled`: how long this process itself was stalled.
  void Tick(SteadyTime now, std::chrono::steady_clock::duration stalled);
  /// Sends goodbye after everything that is queued, then closes the sending direction. It is still
  /// resumed until the peer has acknowledged all bytes.
  void Leave();
  /// After Leave: calls the peer again, in parallel to the old sockets, if it stops acknowledging.
  void ReconnectNow(SteadyTime now);
  /// Leaves without goodbye: fails what is queued, closes the sending direction after the current
  /// batch, and ignores what arrives until the peer also closes.
  void HangUp();
  /// Idempotent; fails what is queued.
  void Close(bool graceful, const std::string& reason);
  /// Runs work in a handler of the event loop: an exception ends this connection, not the process.
  template <typename Work>
  void Guarded(const Work& work) noexcept {
    try {
      work();
    } catch (const std::exception& error) {
      Failed(error.what());
    }
  }
  /// Logs an error of this process, and closes the connection because of it.
  void Failed(const std::string& why) noexcept;

  /// Whether these lanes belong to this connection. \param caller whether this node called for it
  bool Is(const LaneId& id, bool caller) const;
  /// Whether `generation` is a later try to open its lanes than the one they are from.
  bool IsNewer(uint16_t generation) const {
    return static_cast<int16_t>(generation - id_.generation) > 0;
  }
  /// Goes on over other lanes, where the old ones broke.
  void Resume(Opened opened);
  /// The peer says that lanes of this generation have broken.
  void OnProbe(uint16_t generation);

  /// Time since the last byte from the peer.
  std::chrono::steady_clock::duration Silence(SteadyTime now) const { return now - last_received_.load(); }
  /// Sent bytes that the peer's kernel has not acknowledged; 0 if no acknowledgment can arrive. At
  /// least 1 while a leaving node may have to resume the connection.
  int64_t UndeliveredBytes(SteadyTime now);
  bool CanBeResumed() const { return resumable_ != nullptr; }

  NodeId peer() const { return peer_; }
  void set_peer(NodeId peer) { peer_ = peer; }
  const std::string& address() const { return address_; }

 private:
  void OnReadable();
  void WaitReadable();
  /// Takes in `n` bytes that were read to where the pieces of OnReadable point.
  void Accept(size_t n);
  void Parse();
  void BeginMessage();
  void FinishMessage(uint32_t checksum);
  /// The lanes are of no use any more: they have broken, or the peer has ended.
  void Lost(bool graceful, const std::string& reason);
  void Break(const std::string& reason);
  /// Calls the peer again from a thread.
  void CallAgain();
  /// The peer's address refuses connections.
  void Refused();
  void TakeOver(std::vector<Lane> lanes, std::vector<std::unique_ptr<Stream>>* streams);
  void CloseSockets();
  void WriteFailed(ssize_t result);
  /// Reads and drops bytes after HangUp: closing with unread bytes would reset the connection, and
  /// the kernel would drop what it has not sent.
  void Discard();
  void Refuse(const std::string& why);
  /// Memory that the owner wants the payload in; empty if it does not care.
  Buffer Destination();
  /// The payload in the peer's arena, or a copy of it where the owner wants it.
  Buffer ReceiveShared(const SharedPayload& shared);
  /// Takes a message for the connection itself. \return false if it is one for the owner
  bool TakeConnectionMessage();

  void Flush();
  void WaitWritable();
  /// Gathers queued messages into one batch. \return false if there are none
  bool NextBatch();
  void Advance(size_t n);
  void Complete(bool sent, SendItem* item);
  void FailQueued();
  void ScheduleFlush();
  void OfferArena();

  /// A socket under stream_. A wait for it may end after the connection has dropped it.
  struct Socket {
    explicit Socket(asio::io_context& io) : socket(io) {}
    asio::ip::tcp::socket socket;
    bool reading = false, writing = false;  ///< waits until it can be
    bool ended = false;                     ///< after HangUp: the peer has closed it
  };

  asio::io_context& io_;
  std::vector<std::shared_ptr<Socket>> sockets_;  ///< none while it is broken
  std::unique_ptr<Stream> stream_;
  ResumableStream* resumable_ = nullptr;  ///< stream_, if that is one
  LaneId id_;
  const bool caller_;         ///< whether this node called
  const SocketAddress called_;  ///< where to call the peer again (lanes.h)
  const bool same_host_;      ///< as the peer
  std::string broken_;        ///< why, while it is broken
  std::unique_ptr<Redial> redial_;
  bool turn_over_ = false;  ///< OnReadable goes on when other connections have had their turn
  NodeId peer_;
  const std::string address_;
  const VanOptions& options_;
  VanCounters& counters_;
  ConnectionOwner& owner_;
  bool open_ = true;
  bool leaving_ = false;
  bool goodbye_sent_ = false;
  SteadyTime last_check_;     ///< time of the last call of that function
  int64_t unacknowledged_ = 0;   ///< bytes that the peer's kernel had not acknowledged then
  bool hung_up_ = false;
  std::string write_failure_;  ///< why; after it only what the peer had sent before is read

  // Receiving
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0, end_ = 0;  ///< bytes of buffer_ not yet used
  bool in_message_ = false;
  bool large_ = false;  ///< the last message was
  MessageHeader header_;
  Buffer payload_;
  size_t body_ = 0; ///< bytes that follow the header
  size_t got_ = 0;  ///< of these, here already
  std::shared_ptr<PeerArena> peer_arena_;
  RunningChecksum checksum_;
  std::atomic<SteadyTime> last_received_;  ///< also read by debug dumps

  // Sending; the batch belongs to the van's thread
  std::mutex mutex_;
  SendQueue queue_;              ///< guarded by mutex_
  bool flush_scheduled_ = false; ///< guarded by mutex_; true while a Flush or a wait is under way
  bool closed_ = false;          ///< guarded by mutex_
  std::vector<SendItem*> batch_;
  size_t batch_done_ = 0;        ///< items of the batch that are sent
  size_t batch_sent_ = 0;        ///< bytes of the batch that are sent
  std::vector<uint8_t> staging_; ///< headers and small payloads of the batch
  std::vector<iovec> pieces_;
  size_t first_piece_ = 0;
  SteadyTime last_sent_;
  SharedPayloads shared_payloads_;
  const bool long_link_;
  std::atomic<bool> may_offer_;        ///< the peer is on this host and has no offer yet
  std::atomic<bool> peer_maps_arena_{false};   ///< the peer can read our arena
};

}  // namespace hipress
