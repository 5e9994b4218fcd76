/*!
 * \file flow-inl.h
 * \brief State of a flow's iterations; shared by flow.cc (when a task may run), flow_tasks.cc (what it
 *        does) and flow_messages.cc (what it receives).
 */
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "casync/flow.h"
#include "common/thread_object.h"

namespace hipress {

/// Iterations of one key in flight; a worker that pushes faster than the network waits its turn.
constexpr size_t kFlowWindow = 4;
/// Elements that an uncompressed task may go through and still be trivial.
constexpr int64_t kTrivialElements = 4096;

/// The user's memory while the flow uses it. All code that may access it holds a reference. When the last one
/// is released, the user is notified.
class Flow::External {
 public:
  External(uint8_t* memory, DType dtype, Done done)
      : memory(memory), dtype(dtype), done_(std::move(done)) {}
  ~External() {
    if (done_) Notify(done_, error);
  }
  uint8_t* const memory;
  const DType dtype;
  std::string error;  // under the flow's lock

 private:
  Done done_;
};

/// One iteration. A flow uses it again for a later one: its vectors' memory is worth more than they
/// hold when gradients are small.
struct Flow::Instance {
  uint64_t iteration;
  int priority = 0;
  bool updates = false;  ///< sums go through the optimizer
  bool pushed = false;   ///< this node's gradient is ready; it may arrive after those of other nodes
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
      } catch (const std::exception& error) {  // which would end the process: this is a destructor
        flow_->host_->OnFailure(*flow_, "key '" + flow_->name_ + "': " + error.what());
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
  /// Lets go of something, after all else.
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

  /// This thread's, for the next one; what one lets go of may lead to another.
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

}  // namespace hipress
