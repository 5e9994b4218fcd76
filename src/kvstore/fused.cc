#include "kvstore/fused.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/batch.h"
#include "base/thread_object.h"
#include "kvstore/protocol.h"

namespace hipress {
namespace {

constexpr size_t Padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

/// A part on its way to its flow.
struct Arrival {
  std::shared_ptr<Flow> flow;
  MessageHeader header;
  Value value;
};

}  // namespace

// ---- Sending ------------------------------------------------------------------------------------

bool Outbox::MayTake(const Buffer& payload) {
  return payload.size <= kMaxFusedPayloadBytes && Batch::Open();
}

bool Outbox::Take(NodeId to, const MessageHeader& header, const Buffer& payload, int priority) {
  if (!MayTake(payload) || header.elements > UINT32_MAX) return false;
  Held& held = ThreadObject<Held>();
  if (held.owner == nullptr) {
    held.owner = this;
    ++held_;
    Batch::AtEnd([this] { Release(); });
  } else if (held.owner != this) {
    return false;  // another store of this process has the batch
  }
  const size_t size = sizeof(FusedPart) + Padded(payload.size);
  auto fused = std::find_if(held.messages.begin(), held.messages.end(),
                             [to](const FusedMessage& other) { return other.to == to; });
  if (fused == held.messages.end()) {
    fused = held.messages.insert(fused, {to, priority, 0, Buffer(), 0});
  } else if (fused->size + size > kMaxFusedMessageBytes) {
    Send(std::move(*fused));
    *fused = {to, priority, 0, Buffer(), 0};
  }
  if (!fused->data) fused->data = AllocateBuffer(kMaxFusedMessageBytes);
  const FusedPart part = FusedPart::From(header, payload.size);
  uint8_t* at = fused->data.data + fused->size;
  std::memcpy(at, &part, sizeof(part));
  at += sizeof(part);
  if (payload.size % 8 != 0) std::memset(at + payload.size / 8 * 8, 0, 8);
  if (payload.size > 0) std::memcpy(at, payload.data, payload.size);
  fused->size += size;
  fused->priority = std::max(fused->priority, priority);
  ++fused->parts;
  return true;
}

void Outbox::Release() {
  Held& held = ThreadObject<Held>();
  // The connection's own work for a batch was also deferred, to one more batch.
  Batch batch;
  for (FusedMessage& fused : held.messages) Send(std::move(fused));
  held.messages.clear();
  held.owner = nullptr;
  --held_;
}

void Outbox::Send(FusedMessage fused) {
  Message message;
  if (fused.parts == 1) {  // nothing to share with: as it would go without a batch
    FusedPart part;
    std::memcpy(&part, fused.data.data, sizeof(part));
    message.header = part.Header();
    message.payload = fused.data.Slice(sizeof(part), part.payload_bytes);
  } else {
    message.header.kind = MessageKind::kFused;
    message.header.elements = fused.parts;
    message.payload = fused.data.Slice(0, fused.size);
  }
  send_(fused.to, std::move(message), fused.priority);
}

// ---- Receiving ----------------------------------------------------------------------------------

Buffer BufferForFused(const MessageHeader& header) {
  if (header.payload_bytes > kMaxFusedMessageBytes) {
    throw ProtocolError("a fused message of " + std::to_string(header.payload_bytes) + " bytes");
  }
  return AllocateBuffer(header.payload_bytes);
}

void Unfuse(NodeId from, const Message& fused, const FlowOfPart& flow_of, Executor* executor) {
  const Buffer& payload = fused.payload;
  std::vector<Arrival> arrivals;
  arrivals.reserve(std::min<size_t>(fused.header.elements, payload.size / sizeof(FusedPart)));
  int64_t elements = 0;
  size_t at = 0;
  while (at < payload.size) {
    FusedPart part;
    const size_t left = payload.size - at;
    if (left >= sizeof(part)) std::memcpy(&part, payload.data + at, sizeof(part));
    if (left < sizeof(part) || part.payload_bytes > kMaxFusedPayloadBytes ||
        left - sizeof(part) < Padded(part.payload_bytes) || part.reserved != 0) {
      throw ProtocolError("a fused message whose part " + std::to_string(arrivals.size()) +
                          " is malformed");
    }
    at += sizeof(part);
    arrivals.push_back({nullptr, part.Header(), Value()});
    arrivals.back().value.data = payload.Slice(at, part.payload_bytes);
    at += Padded(part.payload_bytes);
    elements += part.elements;
  }
  if (arrivals.size() != fused.header.elements) {
    throw ProtocolError("a fused message of " + std::to_string(arrivals.size()) +
                        " parts that announces " + std::to_string(fused.header.elements));
  }
  for (Arrival& arrival : arrivals) {
    arrival.flow = flow_of(arrival.header);
    if (!arrival.flow) continue;
    arrival.value = arrival.flow->Expect(from, arrival.header, std::move(arrival.value.data));
  }
  executor->Submit(
      kControlPriority,
      [from, arrivals = std::make_shared<std::vector<Arrival>>(std::move(arrivals))] {
        for (Arrival& arrival : *arrivals) {
          if (arrival.flow) arrival.flow->Arrive(from, arrival.header, std::move(arrival.value));
        }
      },
      elements);
}

}  // namespace hipress
