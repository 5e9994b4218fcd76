/*!
 * \file flow.cc
 * \brief Iterations of a key: when a task may run, what it does, and what its end starts.
 */
#include "graph/flow.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include "base/batch.h"
#include "base/bytes.h"
#include "base/interrupt.h"
#include "base/lock_for.h"
#include "base/log.h"
#include "base/thread_object.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

/// Iterations of one key in flight; a worker that pushes faster than the network waits its turn.
constexpr size_t kFlowWindow = 4;
/// A peer further ahead than this does not follow the protocol.
constexpr uint64_t kMaxIterationsAhead = 4 * kFlowWindow;
/// Elements that an uncompressed task may process and still be trivial.
constexpr int64_t kTrivialElements = 4096;
/// Trivial tasks that may run within one another: a worker without peers would run all iterations
/// that it has pushed, each within the one before.
constexpr int kMaxTrivialDepth = 32;
/// Tasks of one iteration that a dump lists: debugging a hang needs the first ones, not thousands.
constexpr int kMaxListedTasks = 16;

// A task's kind is recorded by its number.
static_assert(int(Op::kEncode) == int(TimelineOp::kEncode) &&
                  int(Op::kDecode) == int(TimelineOp::kDecode) &&
                  int(Op::kMerge) == int(TimelineOp::kMerge) &&
                  int(Op::kSend) == int(TimelineOp::kSend) &&
                  int(Op::kRecv) == int(TimelineOp::kReceive) &&
                  int(Op::kUpdate) == int(TimelineOp::kUpdate),
              "the recorder and programs number tasks alike");

/// float32 contributions are summed like payloads of the identity codec.
Payload AsPayload(const Value& value) { return {value.data.data, value.data.size}; }

/// Random stream that is the same in every run, and a different one for every node, key and task:
/// otherwise rounding errors would not average out. (The finalizer of MurmurHash3 mixes.)
uint32_t RandomStream(NodeId node, uint64_t key, int channel, int task) {
  uint64_t h = key * 0x9e3779b97f4a7c15u;
  for (const uint64_t part : {uint64_t(node.Packed()), uint64_t(channel), uint64_t(task)}) {
    h = (h ^ part) * 0xff51afd7ed558ccdu;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
    h ^= h >> 33;
  }
  return uint32_t(h);
}

/// The vectors of a state. The last one is a residual that its codec does not keep.
std::vector<Buffer*> VectorsOf(const Codec& codec, CodecState* state) {
  std::vector<Buffer*> vectors = codec.States(state);
  if (!codec.HasResidual()) vectors.push_back(&state->residual);
  return vectors;
}

}  // namespace

void FillWithNaN(uint8_t* out, DType dtype, size_t n) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  uint8_t one[sizeof(float)];
  ActiveKernels().convert(&nan, DType::kFloat32, 1, one, dtype);
  const size_t size = SizeOf(dtype);
  for (size_t i = 0; i < n; ++i) std::memcpy(out + i * size, one, size);
}

void Notify(const Done& done, const std::string& error) noexcept {
  try {
    done(error.empty() ? nullptr : error.c_str());
  } catch (const std::exception& failure) {
    LogWarning(std::string("a callback of an operation failed: ") + failure.what());
  }
}

/// The user's memory while the flow uses it. All code that may access it holds a reference. When
/// the last one is released, the user is notified.
class Flow::External {
 public:
  External(const void* memory, Done done)
      : memory(static_cast<uint8_t*>(const_cast<void*>(memory))), done_(std::move(done)) {}
  ~External() {
    if (done_) Notify(done_, error);
  }
  uint8_t* const memory;
  std::string error;  // under the flow's lock

 private:
  Done done_;
};

/// One iteration. A flow uses it again for a later one, to keep its vectors' memory.
struct Flow::Instance {
  uint64_t iteration;
  int priority = 0;
  bool updates = false;  ///< sums go through the optimizer
  bool pushed = false;   ///< this node's gradient is ready; messages of other nodes may be earlier
  PushMode mode;
  std::shared_ptr<External> input;
  std::shared_ptr<External> output;
  bool output_dropped = false;
  int input_tasks = 0;   ///< tasks still to read the gradient
  int output_tasks = 0;  ///< tasks still to write the output
  int update_tasks = 0;  ///< updates that are ready
  Buffer sum;            ///< of the whole shard, if `updates`
  bool dead = false;
  size_t left = 0;
  std::vector<int32_t> missing_inputs;
  std::vector<int32_t> unread;  ///< consumers that have not finished yet
  enum State : uint8_t { kWaiting, kReceiving, kRunning, kDone };
  std::vector<State> states;
  uint64_t begun = 0;            ///< FlightRecorder::Ticks()
  int64_t pushed_at = 0;         ///< for the timeline, as the next
  std::vector<int64_t> arrived;  ///< per task: when its message's header came
  std::vector<Value> values;

  /// The gradient's memory from this partition on.
  uint8_t* Gradient(const Partition& partition, DType wire) const {
    return input->memory + partition.offset * SizeOf(wire);
  }
  /// Whether a pull has neither come nor been given up.
  bool MayPull() const { return !output && !output_dropped && output_tasks > 0; }
};

/// Actions for when the lock is released: callbacks and other locks lie behind these.
class Flow::Effects {
 public:
  explicit Effects(Flow* flow) : flow_(flow), lists_(TakeLists()) {}
  ~Effects() {
    for (auto& [instance, task] : lists_->ready) flow_->Begin(instance, task);
    for (auto& action : lists_->actions) {
      try {
        action();
      } catch (const std::exception& error) {  // would end the process: this is a destructor
        flow_->OnError(error);
      }
    }
    lists_->ready.clear();
    lists_->actions.clear();
    lists_->garbage.clear();
    Spare().push_back(std::move(lists_));
  }
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  /// Begins a task.
  void Start(const InstancePtr& instance, int task) { lists_->ready.emplace_back(instance, task); }
  void Do(std::function<void()> action) { lists_->actions.push_back(std::move(action)); }
  /// Releases an object, after all else.
  void Drop(std::shared_ptr<void> garbage) {
    if (garbage) lists_->garbage.push_back(std::move(garbage));
  }
  void Drop(Value* value) {
    Drop(std::move(value->data.owner));
    *value = Value();
  }

 private:
  struct Lists {
    std::vector<std::pair<InstancePtr, int>> ready;
    std::vector<std::function<void()>> actions;
    std::vector<std::shared_ptr<void>> garbage;
  };
  using ListsPtr = std::unique_ptr<Lists>;

  /// This thread's unused lists. Releasing one object may make another Effects, so there may be
  /// several.
  static std::vector<ListsPtr>& Spare() { return ThreadObject<std::vector<ListsPtr>>(); }
  static ListsPtr TakeLists() {
    std::vector<ListsPtr>& spare = Spare();
    if (spare.empty()) return std::make_unique<Lists>();
    ListsPtr lists = std::move(spare.back());
    spare.pop_back();
    return lists;
  }

  Flow* const flow_;  ///< whose method makes them
  ListsPtr lists_;
};

Flow::Flow(uint64_t key, std::string name, int64_t elements, int channel,
           std::shared_ptr<const Program> program, DType wire, FlowHost* host, Executor* executor)
    : key_(key),
      name_(std::move(name)),
      elements_(elements),
      channel_(channel),
      program_(std::move(program)),
      wire_(wire),
      host_(host),
      executor_(executor),
      recorder_(host->recorder()),
      timeline_node_(host->timeline_node()),
      last_done_(program_->tasks().size(), 0),
      states_(program_->tasks().size()),
      state_owners_(program_->tasks().size()) {
  timeline::NameKey(key_, name_);
}

Flow::~Flow() = default;

void Flow::StartAt(uint64_t iteration) {
  std::lock_guard<std::mutex> lock(mutex_);
  next_iteration_ = iteration;
  pushed_ = iteration - 1;
  std::fill(last_done_.begin(), last_done_.end(), pushed_);
}

uint64_t Flow::iteration() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return pushed_;
}

bool Flow::EndWithoutPulls() {
  Effects effects(this);
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < live_.size(); ++i) {
    const InstancePtr instance = live_[i];
    if (instance->pushed) DropOutput(instance, &effects);
  }
  return live_.empty() || !live_.front()->pushed;
}

bool Flow::HasHandedOver() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (handing_over_ > 0) return false;
  const auto& tasks = program_->tasks();
  for (const InstancePtr& instance : live_) {
    for (size_t t = 0; instance->pushed && t < tasks.size(); ++t) {
      const bool waits = instance->states[t] == Instance::kWaiting && instance->missing_inputs[t] == 0;
      if (tasks[t].op == Op::kSend && waits) return false;
    }
  }
  return true;
}

// ---- When a task may run ------------------------------------------------------------------------

Flow::InstancePtr Flow::NewInstance() {
  InstancePtr instance;
  if (spare_.empty()) {
    instance = std::make_shared<Instance>();
  } else {
    instance = std::move(spare_.back());
    spare_.pop_back();
  }
  const auto& tasks = program_->tasks();
  instance->iteration = next_iteration_++;
  instance->priority = 0;
  instance->begun = FlightRecorder::Ticks();
  instance->pushed = instance->output_dropped = false;
  instance->update_tasks = 0;
  instance->mode = PushMode();
  instance->updates = program_->num_updates() > 0 && host_->HasUpdater();
  instance->left = tasks.size();
  instance->states.assign(tasks.size(), Instance::kWaiting);
  instance->values.resize(tasks.size());
  if (timeline::kOn) instance->arrived.resize(tasks.size());
  instance->missing_inputs = program_->missing_inputs();
  instance->unread = program_->readers();
  instance->input_tasks = program_->gradient_reads();
  instance->output_tasks = program_->output_writes();
  live_.push_back(instance);
  return instance;
}

Flow::InstancePtr Flow::Find(uint64_t iteration) const {
  if (live_.empty() || iteration < live_.front()->iteration) return nullptr;
  const size_t index = iteration - live_.front()->iteration;
  return index < live_.size() ? live_[index] : nullptr;
}

bool Flow::InWindow(const Instance& instance) const {
  return instance.iteration < live_.front()->iteration + kFlowWindow;
}

void Flow::Push(const void* gradient, int priority, Done done, PushMode mode) {
  auto input = std::make_shared<External>(gradient, std::move(done));
  Effects effects(this);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) {
    input->error = failure_;
    effects.Drop(std::move(input));
    return;
  }
  if (const InstancePtr last = Find(pushed_)) DropOutput(last, &effects);
  ++pushed_;
  if (next_iteration_ == pushed_) NewInstance();  // otherwise a message of it has arrived before
  const InstancePtr instance = Find(pushed_);
  instance->pushed = true;
  instance->mode = mode;
  instance->priority = priority;
  instance->input = std::move(input);
  instance->pushed_at = timeline::Now();
  NoteGradient(FlightState::kPushed, instance->iteration);
  if (InWindow(*instance)) TryStartAll(instance, &effects);
}

bool Flow::Pull(void* out, Done* done) {
  Effects effects(this);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) {
    auto output = std::make_shared<External>(out, std::move(*done));
    output->error = failure_;
    effects.Drop(std::move(output));
    return true;
  }
  const InstancePtr instance = Find(pushed_);
  if (!instance || !instance->MayPull()) return false;
  instance->output = std::make_shared<External>(out, std::move(*done));
  TryStartAll(instance, &effects);
  return true;
}

void Flow::DropOutput(const InstancePtr& instance, Effects* effects) {
  if (!instance->MayPull()) return;
  instance->output_dropped = true;
  TryStartAll(instance, effects);
}

void Flow::TryStartAll(const InstancePtr& instance, Effects* effects) {
  for (size_t t = 0; t < instance->states.size(); ++t) TryStart(instance, int(t), effects);
}

void Flow::TryStart(const InstancePtr& instance, int t, Effects* effects) {
  const Task& task = program_->tasks()[t];
  if (task.op == Op::kRecv || instance->dead) return;
  if (instance->states[t] != Instance::kWaiting || instance->missing_inputs[t] > 0) return;
  if (last_done_[t] + 1 != instance->iteration) return;
  // Only a push has the transaction that an encode is part of.
  if (task.op == Op::kEncode && !instance->pushed && bound()) return;
  if (task.op == Op::kDecode && !instance->output && !instance->output_dropped) return;
  // A gradient outside the window is tried again when an older iteration retires.
  if (!instance->input || !InWindow(*instance)) {
    for (int32_t input : task.inputs) {
      if (input == Program::kGradient) return;
    }
  }
  instance->states[t] = Instance::kRunning;
  if (task.op == Op::kSend) ++handing_over_;
  if (task.op == Op::kUpdate && instance->updates) {
    // The optimizer sees a key's shard as one array, as MXNet's servers do: with the last part.
    if (++instance->update_tasks == program_->num_updates()) {
      effects->Do([self = shared_from_this(), instance] {
        self->executor_->Submit(instance->priority,
                                [self, instance] { self->UpdateShard(instance); });
      });
    }
  } else if (task.op == Op::kUpdate) {
    Value sum = instance->values[task.inputs[0]];
    Complete(instance, t, std::move(sum), effects);
  } else {
    effects->Start(instance, t);
  }
}

void Flow::Begin(const InstancePtr& instance, int t) {
  const Task& task = program_->tasks()[t];
  thread_local int depth = 0;
  try {
    if (task.op == Op::kSend) return SendTask(instance, t);
    if (depth < kMaxTrivialDepth && IsTrivial(*instance, t)) {
      struct Deeper {
        Deeper() { ++depth; }
        ~Deeper() { --depth; }
      } const deeper;
      return Run(instance, t);
    }
    // A sum is encoded while it is in the cache, and other nodes wait for the result.
    const bool of_sum = task.op == Op::kEncode && task.inputs[0] != Program::kGradient;
    Note(FlightState::kReady, task, instance->iteration);
    executor_->Submit(instance->priority,
                      [self = shared_from_this(), instance, t] {
                        self->Note(FlightState::kStarted, self->program_->tasks()[t],
                                   instance->iteration);
                        self->Run(instance, t);
                      },
                      WorkOf(task), of_sum);
  } catch (const std::exception& error) {  // a message that cannot be sent, for example
    OnError(error);
  }
}

bool Flow::IsTrivial(const Instance& instance, int t) const {
  const Task& task = program_->tasks()[t];
  if (WorkOf(task) > kTrivialElements) return false;
  const bool hands_over = task.op == Op::kEncode && task.inputs[0] == Program::kGradient;
  // Messages of a batch leave together, and no other thread may make the user's calls.
  if (!executor_->OnMyThread() && !(hands_over && Batch::Open())) return false;
  try {
    if (task.op == Op::kEncode) return CodecToEncode(instance, t)->IsIdentity();
  } catch (const std::exception&) {
    return false;  // Run gets the same error, and reports it
  }
  return std::all_of(task.inputs.begin(), task.inputs.end(), [&](int32_t input) {
    if (input == Program::kGradient) return true;
    const CodecPtr& codec = instance.values[input].codec;
    return codec == nullptr || codec->IsIdentity();
  });
}

int64_t Flow::WorkOf(const Task& task) const {
  return program_->partitions()[task.partition].count * int64_t(task.inputs.size());
}

void Flow::Finish(const InstancePtr& instance, int t, Value value) {
  Effects effects(this);
  std::lock_guard<std::mutex> lock(mutex_);
  Complete(instance, t, std::move(value), &effects);
}

void Flow::Complete(const InstancePtr& instance, int t, Value value, Effects* effects) {
  if (instance->dead) {
    effects->Drop(&value);
    return;
  }
  const Task& task = program_->tasks()[t];
  Note(FlightState::kDone, task, instance->iteration);
  instance->states[t] = Instance::kDone;
  last_done_[t] = instance->iteration;
  --instance->left;
  for (int32_t input : task.inputs) {
    if (input == Program::kGradient) {
      if (--instance->input_tasks == 0) effects->Drop(std::move(instance->input));
    } else if (--instance->unread[input] == 0) {
      effects->Drop(&instance->values[input]);
    }
  }
  if (task.op == Op::kDecode && --instance->output_tasks == 0) {
    NoteGradient(FlightState::kDone, instance->iteration);
    if (timeline::kOn && instance->output) {
      timeline::Record(TimelineOp::kGradient, key_, 0, uint32_t(instance->iteration), 0,
                       uint64_t(elements_), instance->pushed_at, timeline::kNoPeer, timeline_node_);
    }
    effects->Drop(std::move(instance->output));
    instance->output_dropped = true;  // pulled: another pull fetches
  }
  if (task.consumers.empty()) {
    effects->Drop(&value);
  } else {
    instance->values[t] = std::move(value);
    for (int32_t consumer : task.consumers) {
      --instance->missing_inputs[consumer];
      TryStart(instance, consumer, effects);
    }
  }
  if (const InstancePtr next = Find(instance->iteration + 1)) TryStart(next, t, effects);
  if (instance->left == 0) Retire(effects);
}

void Flow::Retire(Effects* effects) {
  while (!live_.empty() && live_.front()->left == 0) {
    // All its tasks are done, so remaining holders of it do not read it again.
    effects->Drop(std::move(live_.front()->input));
    effects->Drop(std::move(live_.front()->output));
    if (spare_.size() < kFlowWindow) {
      spare_.push_back(std::move(live_.front()));
    } else {
      effects->Drop(std::move(live_.front()));
    }
    live_.pop_front();
    if (live_.size() >= kFlowWindow) TryStartAll(live_[kFlowWindow - 1], effects);
  }
}

void Flow::OnError(const std::exception& error) const {
  host_->OnFailure(*this, "key '" + name_ + "': " + error.what());
}

void Flow::Fail(const std::string& sentence) {
  Effects effects(this);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = sentence;
  for (InstancePtr& instance : live_) {
    instance->dead = true;
    if (instance->input) instance->input->error = sentence;
    if (instance->output) instance->output->error = sentence;
    // Tasks that run now hold the instance, and it holds the user's memory until they are done.
    effects.Drop(std::move(instance));
  }
  live_.clear();
}

// ---- What a task does, on a compute thread and without the lock ---------------------------------

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
    Trace(t, instance->iteration, value.data.size, began);
    return Finish(instance, t, Value());
  }
  Note(FlightState::kStarted, task, instance->iteration);
  host_->SendValue(*this, task, value, instance->iteration, instance->priority,
                   [self = shared_from_this(), weak = std::weak_ptr<Instance>(instance), t, began,
                    bytes = value.data.size](bool sent) {
                     // The death of a peer fails the flow elsewhere, with the peer's name, and
                     // releases the instance, though a shared payload may still be read.
                     const InstancePtr instance = weak.lock();
                     if (!sent || !instance) return;
                     self->Trace(t, instance->iteration, bytes, began);
                     try {
                       self->Finish(instance, t, Value());
                     } catch (const std::exception& error) {
                       self->OnError(error);
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
      size_t bytes = value.data.size;
      if (task.op != Op::kEncode) {
        bytes = 0;
        for (int32_t input : task.inputs) {
          if (input != Program::kGradient) bytes += instance->values[input].data.size;
        }
      }
      Trace(t, instance->iteration, bytes, began);
    }
    Finish(instance, t, std::move(value));
  } catch (const std::exception& error) {
    OnError(error);
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
    if (input != Program::kGradient) {
      non_finite |= instance.values[input].non_finite;
      continue;
    }
    non_finite |= instance.mode.non_finite;
    if (instance.mode.non_finite || !(instance.mode.check_finite || momentum_)) continue;
    const Partition& partition = program_->partitions()[task.partition];
    uint8_t* gradient = instance.Gradient(partition, wire_);
    // A gradient plus its momentum may also be too large.
    const bool finite = momentum_
                            ? momentum_->AddTo(task.partition, gradient)
                            : ActiveKernels().finite(gradient, wire_, size_t(partition.count));
    if (!finite && instance.mode.found_non_finite) *instance.mode.found_non_finite = true;
    non_finite |= !finite;
  }
  return non_finite;
}

Value Flow::Encode(const Instance& instance, int t) {
  const Task& task = program_->tasks()[t];
  const Partition& partition = program_->partitions()[task.partition];
  const bool from_user = task.inputs[0] == Program::kGradient;
  const Value sum = from_user ? Value() : instance.values[task.inputs[0]];
  const DType dtype = from_user ? wire_ : DType::kFloat32;
  const uint8_t* source = from_user ? instance.Gradient(partition, wire_) : sum.data.data;

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
    ++state.step;  // the next encode uses the random numbers of the next step
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

  if (const CodecPtr codec = CommonCodec(instance, task)) {
    std::vector<Payload> payloads;
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
    const bool is_gradient = input == Program::kGradient;
    const uint8_t* source =
        is_gradient ? instance.Gradient(partition, wire_) : instance.values[input].data.data;
    DType dtype = is_gradient ? wire_ : instance.values[input].wire;
    const Codec* codec = is_gradient ? nullptr : instance.values[input].codec.get();
    if (codec != nullptr && !codec->IsIdentity()) {
      if (total != nullptr && !decoded) decoded = AllocateBuffer(n * sizeof(float));
      float* dense = total == nullptr ? target : decoded.as<float>();
      codec->Decode(AsPayload(instance.values[input]), n, dtype, dense, DType::kFloat32);
      source = reinterpret_cast<const uint8_t*>(dense);
      dtype = DType::kFloat32;
    } else if (total == nullptr) {
      kernels.convert(source, dtype, n, target, DType::kFloat32);
    }
    if (total != nullptr) kernels.add(source, dtype, total, n, target, DType::kFloat32);
    total = target;
  }
}

void Flow::Decode(const Instance& instance, int t) {
  if (!instance.output) return;  // no pull in this iteration
  const Task& task = program_->tasks()[t];
  const Partition& partition = program_->partitions()[task.partition];
  const Value& value = instance.values[task.inputs[0]];
  const size_t n = size_t(partition.count);
  uint8_t* out = instance.output->memory + partition.offset * SizeOf(wire_);
  if (value.non_finite) {
    if (instance.mode.found_non_finite) *instance.mode.found_non_finite = true;
    FillWithNaN(out, wire_, n);
  } else if (!value.codec && binding_.output_factor != 1.0f) {
    ActiveKernels().scale(value.data.data, DType::kFloat32, binding_.output_factor, n, out, wire_);
  } else if (value.data.data != out) {  // otherwise it was received in place
    const CodecPtr codec = value.codec ? value.codec : IdentityCodec();
    codec->Decode(AsPayload(value), n, value.wire, out, wire_);
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

// ---- Messages that receive tasks wait for -------------------------------------------------------

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

Flow::InstancePtr Flow::BeginReceive(int t, const MessageHeader& header) {
  const uint64_t iteration = IterationOf(header);
  while (iteration >= next_iteration_ && iteration - next_iteration_ < kMaxIterationsAhead &&
         program_->receives_from_workers()) {
    NewInstance();  // an iteration starts with the first contribution, this node's or another's
  }
  const InstancePtr instance = Find(iteration);
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
  const InstancePtr instance = BeginReceive(t, header);
  Note(FlightState::kArriving, program_->tasks()[t], header.iteration);
  const auto& consumers = program_->tasks()[t].consumers;
  if (header.flags & kNonFiniteFlag) return Buffer();
  if (codec->IsIdentity() && instance->output && header.dtype == uint8_t(wire_) &&
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
  effects.Drop(value.data.owner);  // if the instance is gone, released without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) return;
  const InstancePtr instance = Find(IterationOf(header));
  if (instance == nullptr) return;
  if (timeline::kOn) {
    timeline::Record(TimelineOp::kReceive, key_, header.partition, header.iteration,
                     header.payload_bytes, header.elements, instance->arrived[t], from.Packed(),
                     timeline_node_);
  }
  Complete(instance, t, std::move(value), &effects);
}

// ---- States of encodes --------------------------------------------------------------------------
//
// Layout of saved states: elements (u64), wire type (u8), tasks (u64). Then for each encode task
// that has run: its index (u64), elements (u64), encodes done (u64), its codec's configuration
// (text), the number of vectors (u64) and each of them (text, float32; empty for zeros; see
// VectorsOf).

std::unique_lock<std::mutex> Flow::LockAfterEncodes(Deadline deadline) {
  const auto& tasks = program_->tasks();
  const auto encodes = [&](const InstancePtr& instance) {
    for (size_t t = 0; t < tasks.size(); ++t) {
      if (tasks[t].op != Op::kEncode || instance->states[t] == Instance::kDone) continue;
      if (instance->pushed || instance->states[t] == Instance::kRunning) return true;
    }
    return false;
  };
  interrupt::PolledCheck check_signals;
  while (true) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!failure_.empty()) throw Error(failure_);
    if (std::none_of(live_.begin(), live_.end(), encodes)) return lock;
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error("key '" + name_ + "' is still being pushed: its states cannot be saved or loaded");
    }
    lock.unlock();
    check_signals();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

bool Flow::HasEncoded(uint64_t iteration) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) throw Error(failure_);
  for (size_t t = 0; t < last_done_.size(); ++t) {
    if (program_->tasks()[t].op == Op::kEncode && last_done_[t] < iteration) return false;
  }
  return true;
}

std::string Flow::SaveStates(Deadline deadline) {
  const auto lock = LockAfterEncodes(deadline);
  ByteWriter out;
  out.Number<uint64_t>(uint64_t(elements_));
  out.Number<uint8_t>(uint8_t(wire_));
  out.Number<uint64_t>(program_->tasks().size());
  for (size_t t = 0; t < states_.size(); ++t) {
    if (!state_owners_[t]) continue;
    const Codec& codec = *state_owners_[t];
    CodecState& state = states_[t];
    const int64_t count = program_->partitions()[program_->tasks()[t].partition].count;
    codec.SettleResidual(&state, size_t(count));
    const std::vector<Buffer*> vectors = VectorsOf(codec, &state);
    const auto empty = [](const Buffer* vector) { return !*vector; };
    if (state.step == 0 && std::all_of(vectors.begin(), vectors.end(), empty)) continue;
    out.Number<uint64_t>(t);
    out.Number<uint64_t>(uint64_t(count));
    out.Number<uint64_t>(state.step);
    out.Text(codec.Config());
    out.Number<uint64_t>(vectors.size());
    for (const Buffer* vector : vectors) out.Text(vector->data, *vector ? vector->size : 0);
  }
  return out.Take();
}

std::vector<Flow::EncodeState> Flow::CheckStates(const std::string& bytes) const {
  ByteReader in(bytes);
  const uint64_t elements = in.Number<uint64_t>();
  const uint8_t wire = in.Number<uint8_t>();
  if (elements != uint64_t(elements_) || wire != uint8_t(wire_)) {
    throw Error("key '" + name_ + "' had " + std::to_string(elements) + " elements of type " +
                std::to_string(wire) + " when states were saved, and has " +
                std::to_string(elements_) + " of type " + std::to_string(int(wire_)));
  }
  const auto& tasks = program_->tasks();
  const std::string differs = "key '" + name_ +
                                "' traveled differently when states were saved: with other numbers of "
                                "workers or servers, another topology, or cut into other pieces";
  if (in.Number<uint64_t>() != tasks.size()) throw Error(differs);
  std::vector<EncodeState> all;
  while (!in.AtEnd()) {
    const uint64_t t = in.Number<uint64_t>();
    const uint64_t count = in.Number<uint64_t>();
    if (t >= tasks.size() || tasks[t].op != Op::kEncode ||
        uint64_t(program_->partitions()[tasks[t].partition].count) != count) {
      throw Error(differs);
    }
    EncodeState saved{int(t), nullptr, {}};
    saved.state.step = in.Number<uint64_t>();
    saved.codec = MakeCodec(in.Text());
    const std::vector<Buffer*> vectors = VectorsOf(*saved.codec, &saved.state);
    if (in.Number<uint64_t>() != vectors.size()) {
      throw Error("saved states of key '" + name_ + "' are those of another " +
                  saved.codec->Name());
    }
    for (Buffer* vector : vectors) {
      const std::string values = in.Text();
      if (values.empty()) continue;
      if (values.size() != count * sizeof(float)) {
        throw Error("saved states of key '" + name_ + "' have another number of elements than it");
      }
      *vector = AllocateState(values.size());
      std::memcpy(vector->data, values.data(), values.size());
    }
    all.push_back(std::move(saved));
  }
  return all;
}

double Flow::SquareOfStates(Deadline deadline) {
  double square = 0;
  for (EncodeState& saved : CheckStates(SaveStates(deadline))) {
    for (const Buffer* vector : VectorsOf(*saved.codec, &saved.state)) {
      const auto* values = vector->as<float>();
      for (size_t i = 0; *vector && i < vector->size / sizeof(float); ++i) {
        square += double(values[i]) * values[i];
      }
    }
  }
  return square;
}

void Flow::LoadStates(std::vector<EncodeState> states, Deadline deadline) {
  const auto lock = LockAfterEncodes(deadline);
  std::fill(states_.begin(), states_.end(), CodecState());
  std::fill(state_owners_.begin(), state_owners_.end(), nullptr);
  for (EncodeState& saved : states) {
    states_[saved.task] = std::move(saved.state);
    state_owners_[saved.task] = std::move(saved.codec);
  }
}

// ---- Records, dumps, and what an iteration waits for --------------------------------------------

void Flow::Trace(int t, uint64_t iteration, size_t bytes, int64_t began) const {
  if (!timeline::kOn) return;
  const Task& task = program_->tasks()[t];
  timeline::Record(TimelineOp(task.op), key_, uint32_t(task.partition), uint32_t(iteration), bytes,
                   uint64_t(program_->partitions()[task.partition].count), began,
                   task.op == Op::kSend ? task.peer.Packed() : timeline::kNoPeer, timeline_node_);
}

void Flow::Note(FlightState state, const Task& task, uint64_t iteration) const {
  if (!recorder_) return;
  const bool travels = task.op == Op::kSend || task.op == Op::kRecv;
  // Where all takes microseconds, only messages are worth what their events cost. If something
  // hangs, Describe shows it.
  if (!travels && WorkOf(task) <= kTrivialElements) return;
  recorder_->Record(state, TimelineOp(task.op), key_, uint32_t(iteration), uint32_t(task.partition),
                    travels ? task.peer.Packed() : timeline::kNoPeer);
}

void Flow::NoteGradient(FlightState state, uint64_t iteration) const {
  if (!recorder_ || elements_ <= kTrivialElements) return;
  recorder_->Record(state, TimelineOp::kGradient, key_, uint32_t(iteration), 0);
}

Flow::Wait Flow::WaitingFor() const {
  const bool pushes = program_->num_updates() == 0;  // servers do not
  std::lock_guard<std::mutex> lock(mutex_);
  for (const InstancePtr& instance : live_) {
    Wait wait;
    std::set<NodeId> peers, first_hand;
    for (size_t t = 0; t < instance->states.size(); ++t) {
      const Task& task = program_->tasks()[t];
      // Data that are being received are in transit: their sender may even have left since.
      if (task.op != Op::kRecv || instance->states[t] == Instance::kDone ||
          instance->states[t] == Instance::kReceiving) {
        continue;
      }
      peers.insert(task.peer);
      if (task.num_summands == Program::kNoUpstream) first_hand.insert(task.peer);
    }
    wait.unpushed = pushes && !instance->pushed;
    // Tasks of an optimizer begin when a key's whole shard is ready (UpdateShard).
    const bool begun = instance->updates && instance->update_tasks == program_->num_updates();
    for (size_t t = 0; begun && peers.empty() && t < instance->states.size(); ++t) {
      const bool runs = instance->states[t] == Instance::kRunning;
      wait.updating |= program_->tasks()[t].op == Op::kUpdate && runs;
    }
    if (peers.empty() && !wait.unpushed && !wait.updating) continue;  // replies are to be read
    wait.iteration = instance->iteration;
    wait.peers.assign(peers.begin(), peers.end());
    wait.first_hand.assign(first_hand.begin(), first_hand.end());
    return wait;
  }
  return Wait();
}

void Flow::Describe(JsonWriter* json) const {
  const bool pushes = program_->num_updates() == 0;  // servers do not
  json->Object().Name("key").Unsigned(key_).Name("name").Text(name_);
  json->Name("channel").Number(channel_).Name("elements").Number(elements_);
  json->Name("pushes").Bool(pushes);
  const auto lock = LockFor(&mutex_);
  json->Name("locked").Bool(!lock);  // then some thread hangs in the flow itself
  if (lock) {
    json->Name("pushed").Unsigned(pushed_);
    if (!live_.empty()) {
      json->Name("iterations").Array();
      for (const InstancePtr& instance : live_) DescribeInstance(*instance, pushes, json);
      json->EndArray();
    }
  }
  json->EndObject();
}

void Flow::DescribeInstance(const Instance& instance, bool pushes, JsonWriter* json) const {
  struct Messages {
    int count = 0;
    bool first_hand = false;  ///< the peer needs no other node to send them
  };
  std::map<NodeId, Messages> waits_for, arriving_from, sending_to;
  std::vector<const Task*> running;
  for (size_t t = 0; t < instance.states.size(); ++t) {
    const Task& task = program_->tasks()[t];
    const Instance::State state = instance.states[t];
    if (state == Instance::kDone) continue;
    if (task.op == Op::kRecv) {
      Messages& messages = (state == Instance::kReceiving ? arriving_from : waits_for)[task.peer];
      ++messages.count;
      messages.first_hand |= task.num_summands == Program::kNoUpstream;
    } else if (state == Instance::kRunning && task.op == Op::kSend) {
      ++sending_to[task.peer].count;
    } else if (state == Instance::kRunning) {
      running.push_back(&task);
    }
  }
  json->Object().Name("iteration").Unsigned(instance.iteration);
  json->Name("seconds").Seconds(recorder_ ? recorder_->Since(instance.begun) : 0.0);
  if (pushes) {
    json->Name("pushed").Bool(instance.pushed);
    json->Name("pulled").Bool(instance.output || instance.output_dropped);
    // Pushed by a user who is far ahead: it starts when an older one has ended.
    json->Name("queued").Bool(instance.pushed && instance.input && !InWindow(instance));
  }
  for (const auto& [name, peers] : {std::pair("waits_for", &waits_for),
                                    {"arriving_from", &arriving_from},
                                    {"sending_to", &sending_to}}) {
    if (peers->empty()) continue;
    json->Name(name).Array();
    for (const auto& [peer, messages] : *peers) {
      json->Object().Name("node").Text(peer.ToString()).Name("messages").Number(messages.count);
      json->Name("first_hand").Bool(messages.first_hand).EndObject();
    }
    json->EndArray();
  }
  if (!running.empty()) {
    json->Name("running_tasks").Unsigned(running.size()).Name("running").Array();
    for (size_t i = 0; i < std::min<size_t>(running.size(), kMaxListedTasks); ++i) {
      json->Object().Name("op").Text(NameOf(TimelineOp(running[i]->op)));
      json->Name("partition").Number(running[i]->partition).EndObject();
    }
    json->EndArray();
  }
  json->EndObject();
}

}  // namespace hipress
