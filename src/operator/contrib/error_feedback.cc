#include "operator/contrib/error_feedback.h"

#include <cstring>
#include <utility>
#include <vector>

#include "operator/contrib/compll/abi.h"

namespace hipress {
namespace {

void CheckSize(const CodecState& state, size_t n) {
  if (state.residual.size != n * sizeof(float)) {
    throw Error("the residual belongs to a gradient of " +
                std::to_string(state.residual.size / sizeof(float)) + " elements, not " +
                std::to_string(n));
  }
}

}  // namespace

Buffer ZeroState(size_t n) {
  Buffer state = AllocateState(n * sizeof(float));
  std::memset(state.data, 0, state.size);
  return state;
}

float* ResidualOf(CodecState* state, size_t n) {
  if (!state->residual) {
    state->residual = ZeroState(n);
    state->lazy = nullptr;
  }
  CheckSize(*state, n);
  return state->residual.as<float>();
}

Buffer TakeApart(Buffer* vector) {
  if (vector->owner.use_count() < 2) return {};
  return std::exchange(*vector, AllocateState(vector->size));
}

void Settle(CodecState* state, size_t n) {
  if (!state->residual || state->lazy == nullptr) return;
  CheckSize(*state, n);
  if (const Buffer shared = TakeApart(&state->residual)) {
    std::memcpy(state->residual.data, shared.data, shared.size);
  }
  std::vector<float*> states(static_cast<size_t>(state->lazy->num_states));
  states[static_cast<size_t>(state->lazy->residual)] = state->residual.as<float>();
  CompllSettleCall call = {};
  call.states = states.data();
  call.lazy_values = state->lazy_values;
  call.n = static_cast<int64_t>(n);
  call.threads = 1;
  state->lazy->settle(&call);
  state->lazy = nullptr;
}

}  // namespace hipress
