/*!
 * \file state_before.h
 * \brief What a CodecState was before a transaction, so that a step which failed can be put back.
 *
 * The first encode of a transaction saves the state, in the same thread and right before it reads it: what
 * is copied is in the cache for the codec then. The copy is no part of the state: no checkpoint has it.
 */
#pragma once

#include <cstdint>

#include "operator/contrib/codec.h"

namespace hipress {

/// Of one CodecState; used by one thread at a time, as that is.
class StateBefore {
 public:
  /// Keeps a copy of `state`, unless it has one of this transaction. The copy's memory is used again.
  /// \param transaction not 0; later ones have higher numbers
  void Save(const CodecState& state, uint64_t transaction);
  /// Puts the copy back, bit for bit, if it was saved in this transaction or a later one. A residual that
  /// was none is none again. \return whether it did
  bool RollBack(CodecState* state, uint64_t transaction);

 private:
  uint64_t transaction_ = 0;  ///< 0: there is no copy
  CodecState copy_;
};

}  // namespace hipress
