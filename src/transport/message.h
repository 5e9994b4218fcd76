/*!
 * \file message.h
 * \brief The wire format: a fixed 64-byte little-endian header, then the payload.
 *
 * The header says everything a receiver needs to check the payload before it touches it. `config`
 * is the digest of Codec::Config(); the sender announces the text behind a digest (kCodecConfig)
 * on the same connection before its first use, so a payload always meets its own parameters.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "base/buffer.h"
#include "base/types.h"

namespace hipress {

constexpr uint32_t kMessageMagic = 0x53525048;  // "HPRS"
constexpr uint16_t kMessageVersion = 4;

enum class MessageKind : uint16_t {
  // Membership (handled by the postoffice)
  kRegister = 1,   ///< node -> scheduler: role, wanted rank, address
  kRoster = 2,     ///< scheduler -> node: its rank, and the addresses of all nodes
  kBarrier = 3,    ///< node -> scheduler
  kRelease = 4,    ///< scheduler -> node: the barrier is complete
  kHeartbeat = 5,
  kGoodbye = 6,    ///< normal end; what follows is no failure
  kNodeDown = 7,   ///< any node -> its peers: a node is dead; payload: its name and the reason
  /// Node <-> scheduler: clock readings; what a node recorded (timeline_exchange.h)
  kTimeline = 11,
  // Shared-memory transport (handled in the van, see shared_payload.h)
  kArenaOffer = 8,   ///< here is memory that you may read; payload: ArenaOffer
  kArenaAccept = 9,  ///< I can read it
  kArenaRelease = 10,  ///< the payload at offset `key` was read and may be freed
  // Key-value store (handled in src/kvstore)
  kCodecConfig = 16,  ///< payload: Codec::Config() text; `config` its digest
  kInitKey = 17,      ///< worker -> server: size, dtype, program of the key
  kInitData = 18,     ///< rank 0 -> server: initial value of a partition, never compressed
  kData = 19,         ///< an encoded partition traveling along the graph
  kFetch = 20,        ///< worker -> server: send me this key's current value
  kFetched = 21,      ///< server -> worker: one partition of it
  kCommand = 22,      ///< worker -> server: set_optimizer and similar commands
  kReply = 23,        ///< to kInitKey and kCommand; status in `flags`, text or data in the payload
  kFailure = 24,      ///< server or worker -> workers: the job cannot go on; payload: a sentence
  kFused = 25,        ///< several small kData messages in one; `elements` says how many (fused.h)
};

/// Location of a payload.
enum Placement : uint32_t {
  kInline = 0,  ///< it follows the header
  /// In its sender's arena; a SharedPayload follows, which payload_checksum then covers.
  kShared = 1,
};

/// Flag of kData messages: a gradient that went into this has a NaN or Inf. There is no payload.
constexpr uint8_t kNonFiniteFlag = 0x80;

struct MessageHeader {
  uint32_t magic = kMessageMagic;
  uint16_t version = kMessageVersion;
  MessageKind kind{};
  uint64_t key = 0;              ///< key of the store, or request id of a command
  uint64_t config = 0;           ///< digest of the codec's configuration; 0 where there is none
  uint64_t elements = 0;         ///< elements in the partition
  uint64_t payload_bytes = 0;    ///< bytes of the payload, wherever it is
  uint32_t iteration = 0;        ///< counted per key from 1
  uint32_t partition = 0;        ///< index in the key's program
  /// Distinguishes sends of one partition between the same two nodes.
  uint16_t step = 0;
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
  /// Set by a sender who has computed header.payload_checksum with Checksum()
  /// (transport/checksum.h), so that one payload for many peers is read once. False in received
  /// messages.
  bool payload_checksum_known = false;

  Message() = default;
  Message(const MessageHeader& header, Buffer payload) : header(header), payload(std::move(payload)) {}
  /// A message without payload.
  explicit Message(MessageKind kind) { header.kind = kind; }
  /// \param text the payload
  Message(MessageKind kind, const std::string& text);
};

/// The payload as text.
std::string TextIn(const Message& message);

// ---- Several kData messages in one (kFused) ----

/// Header of a kData message inside another message.
struct FusedPart {
  uint64_t key;
  uint64_t config;
  uint32_t elements;
  uint32_t payload_bytes;
  uint32_t iteration;
  uint32_t partition;
  uint16_t step;
  uint8_t dtype;
  uint8_t flags;
  uint32_t reserved;  ///< 0

  /// From a kData message with up to 2^32 - 1 elements.
  static FusedPart From(const MessageHeader& header, size_t payload_bytes);
  MessageHeader Header() const;
};
static_assert(sizeof(FusedPart) == 40, "parts are 40 bytes on the wire");
static_assert(std::is_trivially_copyable<FusedPart>::value, "sent as it lies in memory");

// ---- Payloads in shared memory (shared_payload.h)

/// Payload of kArenaOffer.
struct ArenaOffer {
  uint32_t pid;
  int32_t fd;
  uint64_t size;
  uint64_t reader;  ///< the byte that the mapping process locks, for reading, while it reads
  Arena::Nonce nonce;
};

/// Where in the sender's arena a payload lies; on the wire instead of the payload.
struct SharedPayload {
  uint64_t offset;
};

// ---- Sealing and checking

/// Fills in magic, version, payload size and both checksums.
/// \throw Error if header.payload_bytes contradicts the payload's size
void Seal(Message* message);

/// Makes a sealed message one whose payload is in shared memory.
void SealShared(Message* message, const SharedPayload& shared);

/// \throw ProtocolError that says which field is wrong
void CheckHeader(const MessageHeader& header, uint64_t max_payload_bytes);

/// \throw ProtocolError unless `actual` is what the header announced
void CheckPayload(const MessageHeader& header, uint32_t actual);

/// "kData", or "unknown kind 99".
std::string NameOf(MessageKind kind);

/// True for the kinds counted as gradient traffic.
inline bool IsData(const MessageHeader& header) {
  return header.kind == MessageKind::kData || header.kind == MessageKind::kFused ||
         header.kind == MessageKind::kFetched;
}

}  // namespace hipress
