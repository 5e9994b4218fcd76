/*!
 * \file shared_payload.h
 * \brief The shared-memory transport: large payloads between processes of one host stay where they are.
 *
 * The two ends of a connection whose addresses are the same exchange the place of their arena (common/arena.h):
 * process id, descriptor, and the random bytes at its start. An end that can open the other's maps it for
 * reading and reports that. Large payloads then stay in the sender's arena. The message carries their offset,
 * and the receiver releases the payload when it has read it. If the arena cannot be opened (another user or pid
 * namespace), everything goes through the socket.
 *
 * A connection may end while its peer still reads. Only the kernel can then tell when it has finished: a
 * process that maps an arena for a connection locks a byte of it, and the sender tests that lock.
 */
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "common/buffer.h"
#include "van/socket.h"
#include "van/van.h"

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
  /// Makes sure that the payload lies in the arena, copying it there if need be.
  /// \return kNotShared if it is to be sent after all: too much is shared already, or the arena is full.
  ///         (Waiting instead could be for ever: a receiver may need another message first.)
  Answer Prepare(Buffer* payload, SharedPayload* shared);
  /// Keeps a payload, and its sender's callback, until the peer releases it.
  void Add(Buffer payload, Van::SendDone done);
  /// \throw ProtocolError if nothing is shared there
  void Release(const SharedPayload& shared);
  /// The connection is gone, and the peer may still be reading: this memory is not used before it has
  /// stopped, or ended. `graceful`: the peer has it all.
  void Abandon(bool graceful);
  /// Frees abandoned payloads that are not read any more. To be called regularly.
  static void FreeAbandoned();

 private:
  const uint64_t reader_;
  std::unordered_multimap<uint64_t, std::pair<Buffer, Van::SendDone>> payloads_;
  uint64_t bytes_ = 0;
};

}  // namespace hipress
