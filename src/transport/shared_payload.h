/*!
 * \file shared_payload.h
 * \brief The shared-memory transport of large payloads between processes of one host.
 *
 * Two ends with one address exchange the place of their arenas (base/buffer.h). An end that can
 * open the other's arena maps it for reading. Messages then carry offsets, and the receiver
 * releases each payload. If an arena cannot be opened (another user or pid namespace), the socket
 * carries all bytes.
 *
 * A connection may end while its peer still reads. A process that maps an arena locks a byte of it
 * for each connection, so the sender can test whether the peer still has the mapping.
 */
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "base/buffer.h"
#include "transport/socket.h"
#include "transport/van.h"

namespace hipress {

/// The peer's arena, mapped for reading.
class PeerArena {
 public:
  /// \return null if it cannot be reached from here
  static std::shared_ptr<PeerArena> Open(const ArenaOffer& offer);
  ~PeerArena();
  PeerArena(const PeerArena&) = delete;
  PeerArena& operator=(const PeerArena&) = delete;

  /// \throw ProtocolError if the payload is not inside
  uint8_t* At(const SharedPayload& shared, uint64_t bytes) const;

 private:
  PeerArena(UniqueFd fd, uint8_t* base, uint64_t size);
  const UniqueFd fd_;  ///< has the lock
  uint8_t* const base_;
  const uint64_t size_;
};

/// Payloads of one connection that its peer may still be reading. On the van's thread.
class SharedPayloads {
 public:
  SharedPayloads();
  /// For this connection's ArenaOffer.
  uint64_t reader() const { return reader_; }

  enum class Answer { kNotShared, kInPlace, kCopied };
  /// Copies the payload into the arena unless it is there. Does not wait for room, because the peer
  /// may need another message first: then it returns kNotShared.
  Answer Prepare(Buffer* payload, SharedPayload* shared);
  /// Keeps a payload, and its sender's callback, until the peer releases it.
  void Add(Buffer payload, Van::SendDone done);
  /// \throw ProtocolError if nothing is shared there
  void Release(const SharedPayload& shared);
  /// Ends the connection's use. Memory that the peer still reads is freed later. \param graceful
  /// whether the peer has read all
  void Abandon(bool graceful);
  /// Frees abandoned payloads that are not read any more. To be called regularly.
  static void FreeAbandoned();

 private:
  const uint64_t reader_;
  std::unordered_multimap<uint64_t, std::pair<Buffer, Van::SendDone>> payloads_;
  uint64_t bytes_ = 0;
};

}  // namespace hipress
