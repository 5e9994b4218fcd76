/*!
 * \file flow.cc
 * \brief When a task may run, and what its end sets off.
 */
#include <algorithm>

#include "casync/flow-inl.h"
#include "common/batch.h"
#include "common/log.h"

namespace hipress {
namespace {

/// Trivial tasks that may run within one another: a worker without peers would go through all
/// iterations that it has pushed, each within the one before.
constexpr int kMaxTrivialDepth = 32;

}  // namespace

void Notify(const Done& done, const std::string& error) noexcept {
  try {
    done(error.empty() ? nullptr : error.c_str());
  } catch (const std::exception& failure) {
    LogWarning(std::string("a callback of an operation failed: ") + failure.what());
  }
}

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

bool Flow::Drain() {
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

// ---- Instances ----------------------------------------------------------------------------------

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

Flow::Instance* Flow::Find(uint64_t iteration) const {
  if (live_.empty() || iteration < live_.front()->iteration) return nullptr;
  const size_t at = iteration - live_.front()->iteration;
  return at < live_.size() ? live_[at].get() : nullptr;
}

void Flow::Push(const void* gradient, DType dtype, int priority, Done done, PushMode mode) {
  auto input = std::make_shared<External>(
      static_cast<uint8_t*>(const_cast<void*>(gradient)), dtype, std::move(done));
  Effects effects(this);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) {
    input->error = failure_;
    effects.Drop(std::move(input));
    return;
  }
  if (Instance* last = Find(pushed_)) {
    DropOutput(live_[last->iteration - live_.front()->iteration], &effects);
  }
  ++pushed_;
  if (next_iteration_ == pushed_) NewInstance();  // otherwise a message of this iteration arrived before
  const size_t at = pushed_ - live_.front()->iteration;
  const InstancePtr instance = live_[at];
  instance->pushed = true;
  instance->mode = mode;
  instance->priority = priority;
  instance->input = std::move(input);
  instance->pushed_at = timeline::Now();
  NoteGradient(FlightState::kPushed, instance->iteration);
  if (at < kFlowWindow) TryStartAll(instance, &effects);
}

bool Flow::Pull(void* out, DType dtype, int priority, Done* done) {
  Effects effects(this);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) {
    auto output = std::make_shared<External>(static_cast<uint8_t*>(out), dtype, std::move(*done));
    output->error = failure_;
    effects.Drop(std::move(output));
    return true;
  }
  if (Find(pushed_) == nullptr) return false;
  const InstancePtr instance = live_[pushed_ - live_.front()->iteration];
  if (instance->output || instance->output_dropped || instance->output_tasks == 0) return false;
  instance->output =
      std::make_shared<External>(static_cast<uint8_t*>(out), dtype, std::move(*done));
  const auto& tasks = program_->tasks();
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].op == Op::kDecode) TryStart(instance, int(t), &effects);
  }
  return true;
}

void Flow::DropOutput(const InstancePtr& instance, Effects* effects) {
  if (instance->output || instance->output_dropped || instance->output_tasks == 0) return;
  instance->output_dropped = true;
  const auto& tasks = program_->tasks();
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].op == Op::kDecode) TryStart(instance, int(t), effects);
  }
}

void Flow::TryStartAll(const InstancePtr& instance, Effects* effects) {
  for (size_t t = 0; t < instance->states.size(); ++t) TryStart(instance, int(t), effects);
}

void Flow::TryStart(const InstancePtr& instance, int t, Effects* effects) {
  const Task& task = program_->tasks()[t];
  if (task.op == Op::kRecv || instance->dead) return;
  if (instance->states[t] != Instance::kWaiting || instance->missing_inputs[t] > 0) return;
  if (last_done_[t] + 1 != instance->iteration) return;
  // Only a push says which transaction an encode is part of.
  if (task.op == Op::kEncode && !instance->pushed && bound()) return;
  if (task.op == Op::kDecode && !instance->output && !instance->output_dropped) return;
  // A gradient's turn may come when an older iteration retires.
  if (!instance->input || instance->iteration >= live_.front()->iteration + kFlowWindow) {
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
  try {
    BeginTask(instance, t, task);
  } catch (const std::exception& error) {  // a message that cannot be sent, for example
    host_->OnFailure(*this, "key '" + name_ + "': " + error.what());
  }
}

void Flow::BeginTask(const InstancePtr& instance, int t, const Task& task) {
  if (task.op == Op::kSend) return SendTask(instance, t);
  thread_local int depth = 0;
  if (depth < kMaxTrivialDepth && IsTrivial(*instance, task)) {
    struct Deeper {
      Deeper() { ++depth; }
      ~Deeper() { --depth; }
    } const deeper;
    return Run(instance, t);
  }
  // A sum is encoded while it is in the cache, and others wait for the result.
  const bool of_sum = task.op == Op::kEncode && task.inputs[0] != Program::kGradient;
  Note(FlightState::kReady, task, instance->iteration);
  executor_->Submit(instance->priority,
                    [self = shared_from_this(), instance, t] {
                      self->Note(FlightState::kStarted, self->program_->tasks()[t],
                                 instance->iteration);
                      self->Run(instance, t);
                    },
                    WorkOf(task), of_sum);
}

bool Flow::IsTrivial(const Instance& instance, const Task& task) const {
  if (WorkOf(task) > kTrivialElements) return false;
  const bool hands_over = task.op == Op::kEncode && task.inputs[0] == Program::kGradient;
  // What a batch leads to leaves together, and no other thread may make the user's calls.
  if (!executor_->OnMyThread() && !(hands_over && Batch::Open())) return false;
  try {
    if (task.op == Op::kEncode) {
      const auto t = int(&task - program_->tasks().data());
      return CodecToEncode(instance, t)->IsIdentity();
    }
  } catch (const std::exception&) {
    return false;  // Run meets it again, and says so
  }
  return std::all_of(task.inputs.begin(), task.inputs.end(), [&](int32_t input) {
    if (input == Program::kGradient) return true;
    const CodecPtr& codec = instance.values[input].codec;
    return codec == nullptr || codec->IsIdentity();
  });
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
      timeline::Record(TimelineOp::kGradient, key_, 0, uint32_t(instance->iteration),
                       0, uint64_t(elements_), instance->pushed_at, timeline::kNoPeer, timeline_node_);
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
  const size_t next = instance->iteration + 1 - live_.front()->iteration;
  if (next < live_.size()) TryStart(live_[next], t, effects);
  if (instance->left == 0) Retire(effects);
}

/// Elements that a task goes through: of its partition, by each input.
int64_t Flow::WorkOf(const Task& task) const {
  return program_->partitions()[task.partition].count * int64_t(task.inputs.size());
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

}  // namespace hipress
