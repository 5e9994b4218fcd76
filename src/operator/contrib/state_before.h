/*!
 * \file state_before.h
 * \brief A CodecState from before a transaction, from which a failed step can be rolled back.
 *
 * The first encode of a transaction saves the state, which shares the memory of its vectors. A
 * codec does not write to shared memory: it reads the old vectors there and writes the new ones to
 * other memory, in its usual single pass. So nothing is copied, and two pieces of memory take
 * turns:
 *
 *              state              saved
 *   save       residual r0 ------ r0        (one memory, A)
 *   encode     r1 (memory B)      r0 (A)
 *   roll back  r0 (A)             empty
 *
 * The saved state is not part of the state: no checkpoint contains it.
 */
#pragma once

#include <utility>

#include "operator/contrib/codec.h"

namespace hipress {

/// Belongs to one CodecState, and is used by one thread at a time, as that is.
class StateBefore {
 public:
  /// Saves `state`, unless this transaction has saved it already.
  /// \param transaction not 0; later ones have higher numbers
  void Save(const CodecState& state, uint64_t transaction) {
    if (transaction_ == transaction) return;
    transaction_ = transaction;
    saved_ = state;
  }
  /// Restores the state, bit for bit, if it was saved in this transaction or a later one. An empty
  /// residual is empty again. \return whether it restored the state
  bool RollBack(CodecState* state, uint64_t transaction) {
    if (transaction_ == 0 || transaction_ < transaction) return false;
    transaction_ = 0;
    *state = std::exchange(saved_, {});
    return true;
  }

 private:
  uint64_t transaction_ = 0;  ///< 0: nothing is saved
  CodecState saved_;
};

}  // namespace hipress
