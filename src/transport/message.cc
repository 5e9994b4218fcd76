#include "transport/message.h"

#include <cstring>
#include <iterator>

#include "transport/checksum.h"

namespace hipress {
namespace {

/// Names of MessageKind's values; null where there is none.
constexpr const char* kKindNames[] = {
    nullptr, "kRegister", "kRoster", "kBarrier", "kRelease", "kHeartbeat", "kGoodbye", "kNodeDown",
    "kArenaOffer", "kArenaAccept", "kArenaRelease", "kTimeline", nullptr, nullptr, nullptr, nullptr,
    "kCodecConfig", "kInitKey", "kInitData", "kData", "kFetch", "kFetched", "kCommand", "kReply",
    "kFailure", "kFused"};
static_assert(std::size(kKindNames) == size_t(MessageKind::kFused) + 1);

const char* KnownKind(MessageKind kind) {
  return size_t(kind) < std::size(kKindNames) ? kKindNames[size_t(kind)] : nullptr;
}

uint32_t HeaderChecksum(const MessageHeader& header) {
  return Checksum(&header, offsetof(MessageHeader, header_checksum));
}

}  // namespace

Message::Message(MessageKind kind, const std::string& text) : Message(kind) {
  payload = AllocateBuffer(text.size());
  if (!text.empty()) std::memcpy(payload.data, text.data(), text.size());
}

std::string TextIn(const Message& message) {
  return std::string(message.payload.as<char>(), message.payload.size);
}

FusedPart FusedPart::From(const MessageHeader& header, size_t payload_bytes) {
  return {header.key,       header.config,    uint32_t(header.elements), uint32_t(payload_bytes),
          header.iteration, header.partition, header.step,               header.dtype,
          header.flags,     0};
}

MessageHeader FusedPart::Header() const {
  MessageHeader header;
  header.kind = MessageKind::kData;
  header.key = key;
  header.config = config;
  header.elements = elements;
  header.payload_bytes = payload_bytes;
  header.iteration = iteration;
  header.partition = partition;
  header.step = step;
  header.dtype = dtype;
  header.flags = flags;
  return header;
}

std::string NameOf(MessageKind kind) {
  const char* name = KnownKind(kind);
  return name != nullptr ? name : "unknown kind " + std::to_string(int(kind));
}

void Seal(Message* message) {
  MessageHeader& header = message->header;
  const Buffer& payload = message->payload;
  if (header.payload_bytes != 0 && header.payload_bytes != payload.size) {
    throw Error("a message announces " + std::to_string(header.payload_bytes) +
                " bytes but its payload has " + std::to_string(payload.size));
  }
  header.magic = kMessageMagic;
  header.version = kMessageVersion;
  header.payload_bytes = payload.size;
  header.placement = kInline;
  if (!message->payload_checksum_known) {
    header.payload_checksum = Checksum(payload.data, payload.size);
  }
  header.header_checksum = HeaderChecksum(header);
}

void SealShared(Message* message, const SharedPayload& shared) {
  message->header.placement = kShared;
  message->header.payload_checksum = Checksum(&shared, sizeof(shared));
  message->header.header_checksum = HeaderChecksum(message->header);
}

void CheckHeader(const MessageHeader& header, uint64_t max_payload_bytes) {
  if (header.magic != kMessageMagic) throw ProtocolError("it does not begin with a message header");
  if (header.header_checksum != HeaderChecksum(header)) {
    throw ProtocolError("its header's checksum is wrong");
  }
  if (header.version != kMessageVersion) {
    throw ProtocolError("its format version is " + std::to_string(header.version) + ", not " +
                        std::to_string(kMessageVersion));
  }
  if (KnownKind(header.kind) == nullptr) {
    throw ProtocolError("its kind " + std::to_string(int(header.kind)) + " is unknown");
  }
  if (header.placement > kShared) throw ProtocolError("its placement is unknown");
  if (header.payload_bytes > max_payload_bytes) {
    throw ProtocolError("its payload of " + std::to_string(header.payload_bytes) +
                        " bytes exceeds the limit of " + std::to_string(max_payload_bytes));
  }
}

void CheckPayload(const MessageHeader& header, uint32_t actual) {
  if (header.payload_checksum == actual) return;
  throw ProtocolError("the payload of this " + NameOf(header.kind) + " message (" +
                      std::to_string(header.payload_bytes) + " bytes) has a wrong checksum");
}

}  // namespace hipress
