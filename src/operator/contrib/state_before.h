/*!
 * \file state_before.h
 * \brief A CodecState from before a transaction, by which a failed step can be rolled back.
 *
 * The first encode of a transaction saves the state, which shares the memory of its vectors. A codec does not
 * write to shared memory: it reads the old vectors there and writes the new ones to other memory, in its usual
 * single pass. So nothing is copied, and two pieces of memory take turns. The saved state is not part of the
 * state: no checkpoint contains it.
 */
#pragma once

#include <cstdint>

#include "operator/contrib/codec.h"

namespace hipress {

/// Of one CodecState; used by one thread at a time, as that is.
class StateBefore {
 public:
  /// Keeps what `state` is, unless that is done in this transaction.
  /// \param transaction not 0; later ones have higher numbers
  void Save(const CodecState& state, uint64_t transaction);
  /// Puts it back, bit for bit, if it was saved in this transaction or a later one. A residual that
  /// was none is none again. \return whether it did
  bool RollBack(CodecState* state, uint64_t transaction);

 private:
  uint64_t transaction_ = 0;  ///< 0: nothing is kept
  CodecState before_;
};

}  // namespace hipress
