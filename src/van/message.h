/*!
 * \file message.h
 * \brief What travels between nodes: a fixed 64-byte little-endian header, then the payload.
 *
 * The header says everything a receiver needs to check the payload before it touches it. `config`
 * is the digest of Codec::Config(); the sender announces the text behind a digest (kCodecConfig)
 * on the same connection before its first use, so a payload always meets its own parameters.
 */
#ifndef HIPRESS_VAN_MESSAGE_H_
#define HIPRESS_VAN_MESSAGE_H_

#include <cstdint>
#include <type_traits>

#include "common/buffer.h"
#include "common/types.h"

namespace hipress {

constexpr uint32_t kMessageMagic = 0x53525048;  // "HPRS"
constexpr uint16_t kMessageVersion = 2;

enum class MessageKind : uint16_t {
  // Membership (handled inside src/van)
  kRegister = 1,   ///< node -> scheduler: role, wanted rank, address
  kRoster = 2,     ///< scheduler -> node: its rank, and everybody's address
  kBarrier = 3,    ///< node -> scheduler
  kRelease = 4,    ///< scheduler -> node: the barrier is complete
  kHeartbeat = 5,
  kGoodbye = 6,    ///< leaving in peace; what follows is no failure
  kNodeDown = 7,   ///< whoever knows -> its peers: a node is dead; payload: its name and why
  kTimeline = 11,  ///< node <-> scheduler: clock readings; what a node recorded (timeline_exchange.h)
  // Memory shared on one host (handled in the van, see van/lending.h)
  kArenaOffer = 8,   ///< here is memory that you may read; payload: ArenaOffer
  kArenaAccept = 9,  ///< I can read it
  kLentReturn = 10,  ///< what you lent at offset `key` is no longer needed here
  // Key-value store (handled in src/kvstore)
  kCodecConfig = 16,  ///< payload: Codec::Config() text; `config` its digest
  kInitKey = 17,      ///< worker -> server: size, dtype, program of the key
  kInitData = 18,     ///< rank 0 -> server: initial value of a partition, never compressed
  kData = 19,         ///< an encoded partition travelling along the graph
  kFetch = 20,        ///< worker -> server: send me this key's current value
  kFetched = 21,      ///< server -> worker: one partition of it
  kCommand = 22,      ///< worker -> server: set_optimizer and the like
  kReply = 23,        ///< to kInitKey and kCommand; status in `flags`, text or data in the payload
  kFailure = 24,      ///< server or worker -> workers: the job cannot go on; payload: a sentence
  kFused = 25,        ///< several small kData messages in one; `elements` says how many (fused.h)
};

/// Where a payload is.
enum Placement : uint32_t {
  kInline = 0,  ///< it follows the header
  kLent = 1,    ///< in its sender's arena; a LentPlace follows, which payload_checksum then covers
};

/// In MessageHeader::flags of kData: instead of a payload there is the mark that a gradient which went
/// into it has a NaN or Inf.
constexpr uint8_t kSpoiltFlag = 0x80;

struct MessageHeader {
  uint32_t magic = kMessageMagic;
  uint16_t version = kMessageVersion;
  uint16_t kind = 0;             ///< MessageKind
  uint64_t key = 0;              ///< key of the store, or request id of a command
  uint64_t config = 0;           ///< digest of the codec's configuration; 0 where there is none
  uint64_t elements = 0;         ///< elements in the partition
  uint64_t payload_bytes = 0;    ///< bytes of the payload, wherever it is
  uint32_t iteration = 0;        ///< counted per key from 1
  uint32_t partition = 0;        ///< index in the key's program
  uint16_t step = 0;             ///< distinguishes sends of one partition between the same two nodes
  uint8_t dtype = 0;             ///< DType on the wire
  uint8_t flags = 0;             ///< meaning depends on kind
  uint32_t payload_checksum = 0; ///< low 32 bits of XXH3-64 of the payload; filled in by the van
  uint32_t placement = 0;        ///< Placement; by the van
  uint32_t header_checksum = 0;  ///< low 32 bits of XXH3-64 of the 60 bytes before; by the van
};
static_assert(sizeof(MessageHeader) == 64, "the header is 64 bytes on the wire");
static_assert(std::is_trivially_copyable<MessageHeader>::value, "sent as it lies in memory");

/// A message to send or as received. The payload's owner keeps it alive until it is sent.
struct Message {
  MessageHeader header;
  Buffer payload;
  /// Set by a sender who has computed header.payload_checksum with Checksum() (van/checksum.h), so
  /// that one payload for many peers is read once. False in received messages.
  bool payload_checksum_known = false;
};

}  // namespace hipress

#endif  // HIPRESS_VAN_MESSAGE_H_
