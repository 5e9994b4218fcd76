/*!
 * \file flow_tasks.cc
 * \brief What each task does, on a compute thread and without the flow's lock.
 */
#include <algorithm>
#include <cstring>
#include <limits>

#include "casync/flow-inl.h"
#include "operator/contrib/kernels.h"

namespace hipress {

void FillWithNaN(uint8_t* out, DType dtype, size_t n) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  uint8_t one[sizeof(float)];
  ActiveKernels().convert(&nan, DType::kFloat32, 1, one, dtype);
  const size_t size = SizeOf(dtype);
  for (size_t i = 0; i < n; ++i) std::memcpy(out + i * size, one, size);
}

namespace {

/// float32 contributions are summed like payloads of the identity codec.
Payload AsPayload(const Value& value) { return {value.data.data, value.data.size}; }

/// Random stream that is the same in every run, and another for every node, key and task: rounding errors
/// that all workers make together would not average out. (The finaliser of MurmurHash3 mixes.)
uint32_t RandomStream(NodeId node, uint64_t key, int channel, int task) {
  uint64_t h = key * 0x9e3779b97f4a7c15u;
  for (const uint64_t part : {uint64_t(node.Packed()), uint64_t(channel), uint64_t(task)}) {
    h = (h ^ part) * 0xff51afd7ed558ccdu;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
    h ^= h >> 33;
  }
  return uint32_t(h);
}

/// Bytes of all that a task reads but the gradient.
size_t PayloadBytes(const std::vector<Value>& values, const Task& task) {
  size_t bytes = 0;
  for (int32_t input : task.inputs) {
    if (input != Program::kGradient) bytes += values[input].data.size;
  }
  return bytes;
}

}  // namespace

void Flow::Finish(const InstancePtr& instance, int t, Value value) {
  Effects effects(this);
  std::lock_guard<std::mutex> lock(mutex_);
  Complete(instance, t, std::move(value), &effects);
}

void Flow::Trace(TimelineOp op, int t, uint64_t iteration, size_t bytes, int64_t began) const {
  const Task& task = program_->tasks()[t];
  timeline::Record(op, key_, uint32_t(task.partition), uint32_t(iteration), bytes,
                   uint64_t(program_->partitions()[task.partition].count), began,
                   task.op == Op::kSend ? task.peer.Packed() : timeline::kNoPeer, timeline_node_);
}

MessageHeader Flow::HeaderOf(const Task& task, const Value& value, uint64_t iteration) const {
  MessageHeader header;
  header.kind = MessageKind::kData;
  header.key = key_;
  header.elements = uint64_t(program_->partitions()[task.partition].count);
  header.iteration = uint32_t(iteration);
  header.partition = uint32_t(task.partition);
  header.step = uint16_t(task.step);
  header.dtype = uint8_t(value.wire);
  header.flags = value.non_finite ? kNonFiniteFlag : 0;
  return header;
}

void Flow::SendTask(const InstancePtr& instance, int t) {
  struct HandedOver {
    std::atomic<int>* sends;
    ~HandedOver() { --*sends; }
  } handed_over{&handing_over_};
  const Task& task = program_->tasks()[t];
  const int64_t began = timeline::Now();
  const Value value = instance->values[task.inputs[0]];
  if (host_->SendSmall(*this, task, value, instance->iteration, instance->priority)) {
    if (timeline::kOn) Trace(TimelineOp::kSend, t, instance->iteration, value.data.size, began);
    return Finish(instance, t, Value());
  }
  auto self = shared_from_this();
  Note(FlightState::kStarted, task, instance->iteration);
  host_->SendValue(*this, task, value, instance->iteration, instance->priority,
                   [self, weak = std::weak_ptr<Instance>(instance), t, began,
                    bytes = value.data.size](bool sent) {
                     // A peer that went down fails the whole flow elsewhere, with its name; the
                     // instance is let go of then, though a shared payload may still be read.
                     const InstancePtr instance = weak.lock();
                     if (timeline::kOn && sent && instance) {
                       self->Trace(TimelineOp::kSend, t, instance->iteration, bytes, began);
                     }
                     if (!sent || !instance) return;
                     try {
                       self->Finish(instance, t, Value());
                     } catch (const std::exception& error) {
                       self->host_->OnFailure(*self, "key '" + self->name_ + "': " + error.what());
                     }
                   });
}

void Flow::Run(const InstancePtr& instance, int t) {
  const Task& task = program_->tasks()[t];
  const int64_t began = timeline::Now();
  try {
    Value value;
    switch (task.op) {
      case Op::kEncode:
        value = Encode(*instance, t);
        if (!value.data.owner && value.data.data != nullptr) {
          throw Error("internal error: an encoded value without an owner");
        }
        host_->OnResult(*this, task.partition, instance->iteration, value);
        break;
      case Op::kMerge: value = Merge(*instance, t); break;
      case Op::kDecode:
        Decode(*instance, t);
        host_->OnOutput(*this, task.partition, instance->iteration,
                        instance->values[task.inputs[0]], instance->mode.keep);
        break;
      default: throw Error("internal error: a task that does not compute was scheduled");
    }
    if (timeline::kOn) {
      const size_t bytes =
          task.op == Op::kEncode ? value.data.size : PayloadBytes(instance->values, task);
      Trace(task.op == Op::kEncode  ? TimelineOp::kEncode
            : task.op == Op::kMerge ? TimelineOp::kMerge
                                    : TimelineOp::kDecode,
            t, instance->iteration, bytes, began);
    }
    Finish(instance, t, std::move(value));
  } catch (const std::exception& error) {
    host_->OnFailure(*this, "key '" + name_ + "': " + error.what());
  }
}

CodecPtr Flow::CodecToEncode(const Instance& instance, int t) const {
  if (bound()) return binding_.encodes[t].codec;
  const Task& task = program_->tasks()[t];
  if (instance.mode.plain || task.num_summands == Program::kPlain) return IdentityCodec();
  static const Value gradient;
  const int32_t input = task.inputs[0];
  return host_->CodecToEncode(*this, task,
                              input == Program::kGradient ? gradient : instance.values[input],
                              instance.updates);
}

bool Flow::IsNonFinite(const Instance& instance, const Task& task) const {
  bool non_finite = false;
  for (int32_t input : task.inputs) {
    const bool bad = input == Program::kGradient ? GradientIsNonFinite(instance, task)
                                                 : instance.values[input].non_finite;
    non_finite = non_finite || bad;
  }
  return non_finite;
}

bool Flow::GradientIsNonFinite(const Instance& instance, const Task& task) const {
  if (instance.mode.non_finite || !(instance.mode.check_finite || momentum_)) return instance.mode.non_finite;
  const Partition& partition = program_->partitions()[task.partition];
  const DType dtype = instance.input->dtype;
  uint8_t* gradient = instance.input->memory + partition.offset * SizeOf(dtype);
  // A gradient plus its momentum may also be too large.
  const bool finite = momentum_ ? momentum_->AddTo(task.partition, gradient)
                                : ActiveKernels().finite(gradient, dtype, size_t(partition.count));
  if (!finite && instance.mode.found_non_finite) *instance.mode.found_non_finite = true;
  return !finite;
}

Value Flow::Encode(const Instance& instance, int t) {
  const Task& task = program_->tasks()[t];
  const Partition& partition = program_->partitions()[task.partition];
  const bool from_user = task.inputs[0] == Program::kGradient;
  const Value sum = from_user ? Value() : instance.values[task.inputs[0]];
  const DType dtype = from_user ? instance.input->dtype : DType::kFloat32;
  const uint8_t* source =
      from_user ? instance.input->memory + partition.offset * SizeOf(dtype) : sum.data.data;

  Value value;
  value.codec = CodecToEncode(instance, t);
  value.wire = bound() ? binding_.encodes[t].wire : wire_;
  CodecState& state = bound() ? *binding_.encodes[t].state : states_[t];
  const bool non_finite = IsNonFinite(instance, task);
  if (instance.mode.transaction != 0 && bound() && binding_.encodes[t].before) {
    binding_.encodes[t].before->Save(state, instance.mode.transaction);
  }
  if (non_finite) {
    value.non_finite = true;
    ++state.step;  // the next one's random numbers are another step's
    return value;
  }
  if (bound()) {
    const float factor = binding_.encodes[t].factor;
    if (!from_user && factor != 1.0f) {
      ActiveKernels().scale(source, dtype, factor, partition.count, sum.data.data, dtype);
    }
  } else {
    state.stream = RandomStream(host_->Self(), key_, channel_, t);
    CodecPtr& owner = state_owners_[t];
    if (owner && owner != value.codec) owner->SettleResidual(&state, partition.count);
    owner = value.codec;
  }
  // A lone worker's result must not hold on to the gradient until it is pulled.
  const bool is_result =
      from_user && std::any_of(task.consumers.begin(), task.consumers.end(), [this](int32_t t) {
        return program_->tasks()[t].op == Op::kDecode;
      });
  if (value.codec->IsIdentity() && dtype == value.wire && !state.residual && !is_result) {
    value.data = {const_cast<uint8_t*>(source), size_t(partition.count) * SizeOf(dtype),
                  from_user ? std::shared_ptr<void>(instance.input) : sum.data.owner};
    if (bound()) ++state.step;  // as if it had been encoded
    return value;
  }
  value.data = AllocateBuffer(value.codec->MaxPayloadBytes(partition.count, value.wire));
  value.data.size =
      value.codec->Encode(source, dtype, partition.count, &state, value.data.data, value.wire);
  return value;
}

Value Flow::Merge(Instance& instance, int t) {
  const Task& task = program_->tasks()[t];
  const Partition& partition = program_->partitions()[task.partition];
  const size_t n = partition.count;
  Value out;
  if (IsNonFinite(instance, task)) {
    out.non_finite = true;
    return out;
  }
  if (instance.updates) {
    Buffer shard;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!instance.sum) instance.sum = AllocateBuffer(program_->shard().count * sizeof(float));
      shard = instance.sum;
    }
    const int64_t offset = partition.offset - program_->shard().offset;
    out.data = shard.Slice(offset * sizeof(float), n * sizeof(float));
  } else {
    out.data = AllocateBuffer(n * sizeof(float));
  }
  float* sum = out.data.as<float>();

  std::vector<Payload> payloads;
  const CodecPtr codec = CommonCodec(instance, task);
  if (codec) {
    for (int32_t input : task.inputs) payloads.push_back(AsPayload(instance.values[input]));
    const DType wire = instance.values[task.inputs.front()].wire;
    codec->DecodeSum(payloads.data(), payloads.size(), n, wire, sum);
  } else {
    AddOneByOne(instance, task, sum);
  }
  for (int32_t input : task.inputs) {
    if (input == Program::kGradient) continue;
    const Value& first = instance.values[input];
    out.source = first.codec ? first.codec : first.source;
    out.reply_policy = first.reply_policy;
    break;
  }
  return out;
}

/// The codec of all inputs of a merge; null if they are a mixture (of scales, with a gradient, or
/// after a change of compression in mid-training).
CodecPtr Flow::CommonCodec(const Instance& instance, const Task& task) const {
  const Value* first = nullptr;
  for (int32_t input : task.inputs) {
    const Value* value = input == Program::kGradient ? nullptr : &instance.values[input];
    if (!value || !value->codec) return nullptr;
    if (first && (value->codec != first->codec || value->wire != first->wire)) return nullptr;
    first = value;
  }
  return first->codec;
}

/// Decodes and adds a merge's inputs in their order, in float32.
void Flow::AddOneByOne(const Instance& instance, const Task& task, float* out) const {
  const Partition& partition = program_->partitions()[task.partition];
  const size_t n = partition.count;
  const Kernels& kernels = ActiveKernels();
  // The sum so far moves between two buffers so that it ends in `out`.
  Buffer other = AllocateBuffer(n * sizeof(float)), decoded;
  float* targets[] = {out, other.as<float>()};
  size_t next = (task.inputs.size() - 1) % 2;
  const float* total = nullptr;
  for (int32_t input : task.inputs) {
    float* target = targets[next];
    next = 1 - next;
    if (input == Program::kGradient) {
      const uint8_t* gradient =
          instance.input->memory + partition.offset * SizeOf(instance.input->dtype);
      if (total != nullptr) {
        kernels.add(gradient, instance.input->dtype, total, n, target, DType::kFloat32);
      } else {
        kernels.convert(gradient, instance.input->dtype, n, target, DType::kFloat32);
      }
      total = target;
      continue;
    }
    const Value& value = instance.values[input];
    const CodecPtr codec = value.codec ? value.codec : IdentityCodec();
    const DType wire = value.wire;
    if (codec->IsIdentity() && total != nullptr) {
      kernels.add(value.data.data, wire, total, n, target, DType::kFloat32);
    } else if (total == nullptr) {
      codec->Decode(AsPayload(value), n, wire, target, DType::kFloat32);
    } else {
      if (!decoded) decoded = AllocateBuffer(n * sizeof(float));
      codec->Decode(AsPayload(value), n, wire, decoded.data, DType::kFloat32);
      kernels.add(decoded.data, DType::kFloat32, total, n, target, DType::kFloat32);
    }
    total = target;
  }
}

void Flow::Decode(const Instance& instance, int t) {
  if (!instance.output) return;  // no pull in this iteration
  const Task& task = program_->tasks()[t];
  const Partition& partition = program_->partitions()[task.partition];
  const Value& value = instance.values[task.inputs[0]];
  const DType dtype = instance.output->dtype;
  const size_t n = size_t(partition.count);
  uint8_t* out = instance.output->memory + partition.offset * SizeOf(dtype);
  if (value.non_finite) {
    if (instance.mode.found_non_finite) *instance.mode.found_non_finite = true;
    FillWithNaN(out, dtype, n);
  } else if (!value.codec && binding_.output_factor != 1.0f) {
    ActiveKernels().scale(value.data.data, DType::kFloat32, binding_.output_factor, n, out, dtype);
  } else if (value.data.data != out) {  // otherwise it was received in place
    const CodecPtr codec = value.codec ? value.codec : IdentityCodec();
    codec->Decode(AsPayload(value), n, value.wire, out, dtype);
  }
  if (momentum_) momentum_->Keep(task.partition, value, out);
}

void Flow::UpdateShard(const InstancePtr& instance) {
  Buffer weight;
  const int64_t began = timeline::Now();
  try {
    weight = host_->Update(*this, instance->sum);
  } catch (const std::exception& error) {
    host_->OnFailure(*this, "the optimizer failed on key '" + name_ + "': " + error.what());
    return;
  }
  timeline::Record(TimelineOp::kUpdate, key_, 0, uint32_t(instance->iteration), weight.size,
                   weight.size / sizeof(float), began, timeline::kNoPeer, timeline_node_);
  Effects effects(this);
  std::lock_guard<std::mutex> lock(mutex_);
  if (instance->dead) return;
  effects.Drop(std::move(instance->sum.owner));
  instance->sum = Buffer();
  const auto& tasks = program_->tasks();
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].op != Op::kUpdate) continue;
    const Partition& partition = program_->partitions()[tasks[t].partition];
    Value value;
    value.data = weight.Slice((partition.offset - program_->shard().offset) * sizeof(float),
                              partition.count * sizeof(float));
    value.source = instance->values[tasks[t].inputs[0]].source;
    value.reply_policy = instance->values[tasks[t].inputs[0]].reply_policy;
    Complete(instance, int(t), std::move(value), &effects);
  }
}

}  // namespace hipress
