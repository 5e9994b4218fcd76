#include "base/batch.h"

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/thread_object.h"

namespace hipress {
namespace {

struct State {
  int depth = 0;
  bool ending = false;  ///< the actions of a batch are being done
  std::vector<std::function<void()>> actions, last;
};

State& Mine() { return ThreadObject<State>(); }

/// An exception would end the process, as a destructor calls this.
void DoAll(const std::vector<std::function<void()>>& actions) {
  for (const auto& action : actions) {
    try {
      action();
    } catch (const std::exception& error) {
      LogWarning(std::string("an action at the end of a batch failed: ") + error.what());
    }
  }
}

}  // namespace

Batch::Batch() { ++Mine().depth; }

Batch::~Batch() {
  State& state = Mine();
  if (--state.depth > 0) return;
  const bool outermost = !std::exchange(state.ending, true);
  // By index: an action may, outside any batch now, open another batch.
  std::vector<std::function<void()>> actions = std::exchange(state.actions, {});
  DoAll(actions);
  actions.clear();
  if (state.actions.empty()) state.actions = std::move(actions);  // keeps the memory
  if (!outermost) return;  // what is to come last comes after the other actions of that one
  state.ending = false;
  actions = std::exchange(state.last, {});
  DoAll(actions);
  actions.clear();
  if (state.last.empty()) state.last = std::move(actions);
}

void Batch::AtEnd(std::function<void()> action) {
  State& state = Mine();
  if (state.depth == 0) return action();
  state.actions.push_back(std::move(action));
}

void Batch::AfterAll(std::function<void()> action) {
  State& state = Mine();
  if (state.depth == 0 && !state.ending) return action();
  state.last.push_back(std::move(action));
}

bool Batch::Open() { return Mine().depth > 0; }

}  // namespace hipress
