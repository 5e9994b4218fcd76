#include "operator/contrib/error_feedback.h"

#include <cmath>
#include <cstring>

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
    state->lazy = false;
  }
  CheckSize(*state, n);
  return state->residual.as<float>();
}

void Settle(CodecState* state, size_t n) {
  if (!state->residual || !state->lazy) return;
  CheckSize(*state, n);
  float* x = state->residual.as<float>();
  const float negative = state->lazy_values[0], nonnegative = state->lazy_values[1];
  if (std::isfinite(negative) && std::isfinite(nonnegative)) {
    for (size_t i = 0; i < n; ++i) x[i] -= x[i] >= 0 ? nonnegative : negative;
  } else {
    for (size_t i = 0; i < n; ++i) x[i] = std::isfinite(x[i]) ? x[i] : 0;
  }
  state->lazy = false;
}

}  // namespace hipress
