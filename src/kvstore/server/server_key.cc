#include "kvstore/server/server_key.h"

#include <cstring>

namespace hipress {

ServerKey::ServerKey(uint64_t key, ServerContext* context)
    : StoreHost(context), key_(key), context_(context), name_(std::to_string(key)) {}

// ---- Initialization -----------------------------------------------------------------------------

bool ServerKey::OnInitKey(NodeId from, const Message& message) {
  const MessageHeader& header = message.header;
  if (!flows_.empty()) throw ProtocolError("key '" + name_ + "' is already initialized");
  for (const InitRequest& other : init_requests_) {
    if (other.from == from) throw ProtocolError("a second request to initialize key '" + name_ + "'");
  }
  InitKeyBody body = InitKeyBody::Unpack(message.payload);
  if (from == Worker(0)) {
    name_ = body.name;
    elements_ = int64_t(header.elements);
    dtype_ = DTypeFromFlag(header.dtype);
    program_ = Program::Parse(body.program.data(), int64_t(body.program.size()), elements_);
    published_.resize(program_->local_partitions().size());
    local_index_.assign(program_->partitions().size(), -1);
    for (size_t i = 0; i < published_.size(); ++i) {
      local_index_[program_->local_partitions()[i]] = int32_t(i);
    }
  }
  init_requests_.emplace_back(from, header, std::move(body.name));
  return InitComplete();
}

bool ServerKey::OnInitData(NodeId from, const Message& message) {
  const MessageHeader& header = message.header;
  const int32_t local = program_ && header.partition < local_index_.size()
                            ? local_index_[header.partition]
                            : -1;
  // Later the values belong to the flows' threads.
  if (from != Worker(0) || !flows_.empty() || local < 0 || published_[local].value.codec ||
      message.payload.size !=
          size_t(program_->partitions()[header.partition].count) * SizeOf(dtype_)) {
    throw ProtocolError("an initial value of key '" + name_ + "' that is out of place");
  }
  published_[local].value.codec = context_->configs.Intern(IdentityCodec());
  published_[local].value.data = message.payload;
  ++init_partitions_;
  return InitComplete();
}

bool ServerKey::InitComplete() const {
  return int(init_requests_.size()) == context_->num_workers && program_ &&
         init_partitions_ == published_.size();
}

std::string ServerKey::NeverComplete(const std::set<NodeId>& left) const {
  const bool all_here = !program_ || init_partitions_ == published_.size();
  return all_here && flows_.empty() ? WhoWillNotInit(init_requests_, left) : "";
}

std::string ServerKey::FinishInit() {
  const std::string disagreement = Disagreement(init_requests_);
  if (!disagreement.empty()) return disagreement;
  const int channels = program_->per_worker() ? context_->num_workers : 1;
  applied_.assign(context_->num_workers, 0);
  std::lock_guard<std::mutex> lock(mutex_);
  for (int channel = 0; channel < channels; ++channel) {
    auto program = program_->per_worker() ? program_->WithPeer(Worker(channel)) : program_;
    flows_.push_back(std::make_shared<Flow>(key_, name_, elements_, channel, program, dtype_, this,
                                            context_->executor));
  }
  return "";
}

// ---- Data ---------------------------------------------------------------------------------------

std::shared_ptr<Flow> ServerKey::FlowOf(NodeId from) {
  if (flows_.empty()) throw ProtocolError("data of key '" + name_ + "', which is not initialized");
  if (program_->per_worker() && !context_->has_updater) {
    context_->fail("asynchronous mode needs an optimizer on the servers: call set_optimizer before "
                   "the first push (key '" + name_ + "')");
    return nullptr;
  }
  return flows_[flows_.size() > 1 ? from.rank : 0];
}

Buffer ServerKey::OnDataHeader(NodeId from, const MessageHeader& header) {
  const auto flow = FlowOf(from);
  return flow ? flow->OnHeader(from, header) : Buffer();
}

void ServerKey::OnData(NodeId from, Message message) {
  if (const auto flow = FlowOf(from)) flow->OnMessage(from, std::move(message));
}

CodecPtr ServerKey::CodecToEncode(const Flow& flow, const Task& task, const Value& sum,
                                  bool updated) {
  const bool encode = sum.source && !sum.source->IsIdentity() &&
                      (sum.reply_policy == kReplyEncoded ||
                       (sum.reply_policy == kReplySumsEncoded && !updated));
  if (!encode) return context_->configs.Intern(IdentityCodec());
  // A weight is no sum of N contributions, so it keeps the codec's own scale.
  return updated ? sum.source : context_->configs.ForSumOf(sum.source, task.num_summands);
}

std::vector<std::shared_ptr<Flow>> ServerKey::flows() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return flows_;
}

void ServerKey::Fail(const std::string& sentence) {
  for (auto& flow : flows()) flow->Fail(sentence);
}

// ---- The weight ---------------------------------------------------------------------------------

void ServerKey::MakeWeightLocked() {
  const Partition shard = program_->shard();
  weight_ = AllocateBuffer(shard.count * sizeof(float));
  lease_ = std::make_shared<Buffer>(weight_);
  for (size_t i = 0; i < published_.size(); ++i) {
    const Partition& partition = program_->partitions()[program_->local_partitions()[i]];
    const Value& value = published_[i].value;
    value.codec->Decode({value.data.data, value.data.size}, partition.count, dtype_,
                        weight_.as<float>() + (partition.offset - shard.offset), DType::kFloat32);
  }
}

Buffer ServerKey::Update(const Flow& flow, Buffer sum) {
  std::lock_guard<std::mutex> one_at_a_time(update_mutex_);
  std::shared_ptr<const UpdateFn> updater;
  {
    std::lock_guard<std::mutex> lock(context_->mutex);
    updater = context_->updater;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!weight_) {
      MakeWeightLocked();
    } else if (lease_.use_count() > 1) {
      // Sends of the last value are still reading it: continue with a copy.
      Buffer copy = AllocateBuffer(weight_.size);
      std::memcpy(copy.data, weight_.data, weight_.size);
      weight_ = copy;
      lease_ = std::make_shared<Buffer>(weight_);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    updating_ = true;
  }
  if (updater) {
    (*updater)(key_, name_, sum.as<float>(), weight_.as<float>(), program_->shard().count);
  }
  Buffer result;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    updating_ = false;
    result = {weight_.data, weight_.size, lease_};
    if (program_->per_worker()) {
      ++applied_[flow.channel()];
      for (Published& published : published_) published.value = Value();  // the weight is the value
    }
  }
  ServeWaiters();
  return result;
}

// ---- Fetches ------------------------------------------------------------------------------------

void ServerKey::OnResult(const Flow& flow, int32_t partition, uint64_t iteration,
                         const Value& value) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Published& published = published_[local_index_[partition]];
    published.iteration = iteration;
    const bool is_weight = weight_ && value.data.data >= weight_.data &&
                           value.data.data < weight_.data + weight_.size;
    published.value = is_weight ? Value() : value;
    if (waiters_.empty()) return;
  }
  ServeWaiters();
}

Value ServerKey::CurrentLocked(size_t local) const {
  const Published& published = published_[local];
  if (published.value.codec) return published.value;
  const Partition& partition = program_->partitions()[program_->local_partitions()[local]];
  const int64_t offset = partition.offset - program_->shard().offset;
  const float* weight = weight_.as<float>() + offset;
  Value value;
  value.codec = context_->configs.Intern(IdentityCodec());
  if (dtype_ == DType::kFloat32) {
    value.data = {weight_.data + offset * sizeof(float), partition.count * sizeof(float), lease_};
  } else {
    CodecState state;
    value.data = AllocateBuffer(value.codec->MaxPayloadBytes(partition.count, dtype_));
    value.codec->Encode(weight, DType::kFloat32, partition.count, &state, value.data.data, dtype_);
  }
  return value;
}

void ServerKey::OnFetch(NodeId from, const MessageHeader& header) {
  if (flows_.empty()) throw ProtocolError("a fetch of key '" + name_ + "', which is not initialized");
  {
    std::lock_guard<std::mutex> lock(mutex_);
    waiters_.push_back({from, header.iteration, header.elements,
                        std::vector<bool>(published_.size(), false)});
  }
  ServeWaiters();
}

void ServerKey::ServeWaiters() {
  struct Answer {
    NodeId to;
    CodecPtr codec;
    Message message;
  };
  std::vector<Answer> answers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (updating_) return;  // the update's end serves them
    for (size_t w = 0; w < waiters_.size();) {
      Waiter& waiter = waiters_[w];
      bool complete = true;
      for (size_t i = 0; i < published_.size(); ++i) {
        if (waiter.answered[i]) continue;
        const uint64_t have =
            program_->per_worker() ? applied_[waiter.from.rank] : published_[i].iteration;
        if (have < waiter.version) {
          complete = false;
          continue;
        }
        waiter.answered[i] = true;
        const int32_t partition = program_->local_partitions()[i];
        const Value value = CurrentLocked(i);
        Message answer(MessageKind::kFetched);
        answer.header.key = key_;
        answer.header.elements = uint64_t(program_->partitions()[partition].count);
        answer.header.iteration = waiter.request;
        answer.header.partition = uint32_t(partition);
        answer.header.dtype = uint8_t(dtype_);
        answer.payload = value.data;
        answers.push_back({waiter.from, value.codec, std::move(answer)});
      }
      if (complete) {
        waiters_.erase(waiters_.begin() + w);
      } else {
        ++w;
      }
    }
  }
  for (Answer& answer : answers) {
    answer.message.header.config = context_->Announce(answer.to, answer.codec);
    context_->send(answer.to, std::move(answer.message), 0, nullptr);
  }
}

}  // namespace hipress
