/*!
 * \file lending.h
 * \brief Payloads between processes of one host: lent, not sent.
 *
 * The two ends of a connection whose addresses are the same tell each other where their arena
 * (common/arena.h) is: process id, descriptor, and the random bytes that it begins with. Whoever can
 * open the other's maps it for reading and says so. Large payloads then stay in the sender's arena;
 * the message carries their offset, and the receiver returns it when it no longer reads there. If
 * the arena cannot be opened (another user or pid namespace), everything goes through the socket.
 */
#ifndef HIPRESS_VAN_LENDING_H_
#define HIPRESS_VAN_LENDING_H_

#include <memory>
#include <unordered_map>
#include <utility>

#include "common/arena.h"
#include "van/van.h"

namespace hipress {

/// What kOffer carries.
struct ArenaOffer {
  uint32_t pid;
  int32_t fd;
  uint64_t size;
  Arena::Nonce nonce;
};

/// Where a lent payload lies; travels in the payload's place.
struct LentPlace {
  uint64_t offset;
};

/// The peer's arena, mapped for reading.
class PeerArena {
 public:
  /// \return null if it cannot be reached from here
  static std::shared_ptr<PeerArena> Open(const ArenaOffer& offer);
  ~PeerArena();
  PeerArena(const PeerArena&) = delete;
  PeerArena& operator=(const PeerArena&) = delete;

  /// \throw ProtocolError if the place is outside
  uint8_t* At(const LentPlace& place, uint64_t bytes) const;

 private:
  PeerArena(uint8_t* base, uint64_t size) : base_(base), size_(size) {}
  uint8_t* const base_;
  const uint64_t size_;
};

/// What one connection has lent and not got back. On the van's thread.
class Lender {
 public:
  enum class Answer { kNo, kAsItLies, kCopied };
  /// Makes sure that the payload lies in the arena, copying it there if need be.
  /// \return kNo if it is to be sent after all: too much is out already, or the arena is full.
  ///         (Waiting instead could be for ever: a receiver may need another message first.)
  Answer Prepare(Buffer* payload, LentPlace* place);
  /// Keeps a payload, and its sender's callback, until it comes back.
  void Lend(Buffer payload, Van::SendDone done);
  /// \throw ProtocolError if nothing is lent there
  void Return(const LentPlace& place);
  /// The connection is gone, and the peer may still be reading: what is lent is never used again.
  /// `graceful`: the peer has it all.
  void Abandon(bool graceful);

 private:
  std::unordered_multimap<uint64_t, std::pair<Buffer, Van::SendDone>> lent_;
  uint64_t bytes_ = 0;
};

}  // namespace hipress

#endif  // HIPRESS_VAN_LENDING_H_
