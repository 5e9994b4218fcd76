/*!
 * \file flow_messages.cc
 * \brief Checks and takes in the messages that a flow's receive tasks wait for.
 */
#include "casync/flow-inl.h"

namespace hipress {
namespace {

/// A peer further ahead than this is not following the protocol.
constexpr uint64_t kMaxIterationsAhead = 4 * kFlowWindow;

}  // namespace

int Flow::CheckedRecv(NodeId from, const MessageHeader& header) const {
  const int t = program_->FindRecv(from, int32_t(header.partition), header.step);
  if (t < 0) {
    throw ProtocolError("data of key '" + name_ + "' that no task of its program expects");
  }
  const Partition& partition = program_->partitions()[header.partition];
  // Partial sums of 16-bit gradients that a front end has bound are sent unrounded.
  const bool known_type = header.dtype == uint8_t(wire_) ||
                          (bound() && header.dtype == uint8_t(DType::kFloat32));
  if (header.elements != uint64_t(partition.count) || !known_type) {
    throw ProtocolError("a partition of key '" + name_ + "' with " +
                        std::to_string(header.elements) + " elements, not " +
                        std::to_string(partition.count) + ", or another dtype");
  }
  return t;
}

CodecPtr Flow::CheckedCodec(NodeId from, const MessageHeader& header) const {
  CodecPtr codec = host_->CodecOf(from, header);
  if (header.flags & kNonFiniteFlag) {
    if (!bound() || header.payload_bytes != 0) {
      throw ProtocolError("a NaN of key '" + name_ + "' that is out of place");
    }
    return codec;
  }
  const size_t bytes = codec->MaxPayloadBytes(header.elements, DType(header.dtype));
  if (codec->FixedSize() ? header.payload_bytes != bytes : header.payload_bytes > bytes) {
    throw ProtocolError("a " + codec->Name() + " payload of " +
                        std::to_string(header.payload_bytes) + " bytes for " +
                        std::to_string(header.elements) + " elements of key '" + name_ + "'");
  }
  return codec;
}

Value Flow::CheckedValue(const MessageHeader& header, CodecPtr codec, Buffer payload) const {
  Value value;
  value.wire = DType(header.dtype);
  value.non_finite = (header.flags & kNonFiniteFlag) != 0;
  if (!value.non_finite) codec->Check({payload.data, payload.size}, header.elements, value.wire);
  value.codec = std::move(codec);
  value.data = std::move(payload);
  value.reply_policy = header.flags & ~kNonFiniteFlag;
  return value;
}

uint64_t Flow::IterationOf(const MessageHeader& header) const {
  const auto distance = static_cast<int32_t>(header.iteration - static_cast<uint32_t>(next_iteration_));
  return next_iteration_ + static_cast<uint64_t>(static_cast<int64_t>(distance));
}

Flow::Instance* Flow::BeginReceive(int t, const MessageHeader& header) {
  const uint64_t iteration = IterationOf(header);
  while (iteration >= next_iteration_ && iteration - next_iteration_ < kMaxIterationsAhead &&
         program_->receives_from_workers()) {
    NewInstance();  // an iteration starts with the first contribution, this node's or another's
  }
  Instance* instance = Find(iteration);
  if (instance == nullptr || instance->states[t] != Instance::kWaiting) {
    throw ProtocolError("iteration " + std::to_string(header.iteration) + " of key '" + name_ +
                        "', which is not expected now");
  }
  instance->states[t] = Instance::kReceiving;
  if (timeline::kOn) instance->arrived[t] = timeline::Now();
  return instance;
}

Buffer Flow::OnHeader(NodeId from, const MessageHeader& header) {
  const int t = CheckedRecv(from, header);
  const CodecPtr codec = CheckedCodec(from, header);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) return Buffer();
  const Instance* instance = BeginReceive(t, header);
  Note(FlightState::kArriving, program_->tasks()[t], header.iteration);
  const auto& consumers = program_->tasks()[t].consumers;
  if (header.flags & kNonFiniteFlag) return Buffer();
  if (codec->IsIdentity() && instance->output && header.dtype == uint8_t(wire_) &&
      instance->output->dtype == wire_ &&
      consumers.size() == 1 && program_->tasks()[consumers[0]].op == Op::kDecode) {
    const int64_t offset = program_->partitions()[header.partition].offset;
    return {instance->output->memory + offset * SizeOf(wire_), header.payload_bytes,
            instance->output};
  }
  // Uncompressed values are read wherever the transport has them. Payloads are checked before they
  // are decoded, so they must lie where no peer can change them in between.
  return codec->IsIdentity() ? Buffer() : AllocateBuffer(header.payload_bytes);
}

void Flow::OnMessage(NodeId from, Message message) {
  const MessageHeader& header = message.header;
  Arrive(from, header,
         CheckedValue(header, host_->CodecOf(from, header), std::move(message.payload)));
}

Value Flow::Expect(NodeId from, const MessageHeader& header, Buffer payload) {
  const int t = CheckedRecv(from, header);
  Value value = CheckedValue(header, CheckedCodec(from, header), std::move(payload));
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.empty()) BeginReceive(t, header);
  return value;
}

void Flow::Arrive(NodeId from, const MessageHeader& header, Value value) {
  const int t = CheckedRecv(from, header);
  Effects effects(this);
  effects.Drop(value.data.owner);  // if the instance is gone, let go without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) return;
  const Instance* const instance = Find(IterationOf(header));
  if (instance == nullptr) return;
  InstancePtr held = live_[instance->iteration - live_.front()->iteration];
  if (timeline::kOn) {
    timeline::Record(TimelineOp::kReceive, key_, header.partition, header.iteration,
                     header.payload_bytes, header.elements, instance->arrived[t], from.Packed(),
                     timeline_node_);
  }
  Complete(held, t, std::move(value), &effects);
}

}  // namespace hipress
