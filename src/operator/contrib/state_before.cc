#include "operator/contrib/state_before.h"

#include <utility>

namespace hipress {

void StateBefore::Save(const CodecState& state, uint64_t transaction) {
  if (transaction_ == transaction) return;
  transaction_ = transaction;
  before_ = state;
}

bool StateBefore::RollBack(CodecState* state, uint64_t transaction) {
  if (transaction_ == 0 || transaction_ < transaction) return false;
  transaction_ = 0;
  *state = std::exchange(before_, {});
  return true;
}

}  // namespace hipress
