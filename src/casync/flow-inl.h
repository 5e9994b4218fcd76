/*!
 * \file flow-inl.h
 * \brief What a flow keeps of each iteration; shared by flow.cc (when a task may run) and
 *        flow_tasks.cc (what it does).
 */
#ifndef HIPRESS_CASYNC_FLOW_INL_H_
#define HIPRESS_CASYNC_FLOW_INL_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "casync/flow.h"

namespace hipress {

/// The user's memory while we use it. Whoever may touch it holds a reference; when the last one lets
/// go, the user is told.
class Flow::External {
 public:
  External(uint8_t* memory, DType dtype, Done done)
      : memory(memory), dtype(dtype), done_(std::move(done)) {}
  ~External() {
    if (done_) done_(error.empty() ? nullptr : error.c_str());
  }
  uint8_t* const memory;
  const DType dtype;
  std::string error;  // under the flow's lock

 private:
  Done done_;
};

struct Flow::Instance {
  uint32_t iteration;
  int priority = 0;
  bool updates = false;  ///< sums go through the optimizer
  bool pushed = false;   ///< this node's gradient is there; it may come after others'
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
  int64_t pushed_at = 0;         ///< for the timeline, as the next
  std::vector<int64_t> arrived;  ///< per task: when its message's header came
  std::vector<Value> values;
};

/// What to do once the lock is released: callbacks and other locks lie behind these.
struct Flow::Effects {
  explicit Effects(Flow* flow) : flow(flow) {}
  Flow* const flow;  ///< whose method makes them
  std::vector<std::pair<InstancePtr, int>> ready;  ///< tasks to begin
  std::vector<std::function<void()>> actions;
  std::vector<std::shared_ptr<void>> garbage;

  ~Effects() {
    for (auto& [instance, task] : ready) flow->Begin(instance, task);
    for (auto& action : actions) action();
  }
  void Start(const InstancePtr& instance, int task) {
    if (ready.empty()) ready.reserve(4);
    ready.emplace_back(instance, task);
  }
  void Drop(Value* value) {
    if (value->data.owner) garbage.push_back(std::move(value->data.owner));
    *value = Value();
  }
};

}  // namespace hipress

#endif  // HIPRESS_CASYNC_FLOW_INL_H_
