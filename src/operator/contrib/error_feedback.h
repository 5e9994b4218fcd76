/*!
 * \file error_feedback.h
 * \brief The residual that codecs with error feedback keep in a CodecState.
 */
#pragma once

#include "operator/contrib/codec.h"

namespace hipress {

/// float32[n] zeros, for a CodecState.
Buffer ZeroState(size_t n);

/// The state's float32[n] residual, made of zeros if there is none yet. It may be lazy.
/// \throw Error if the state belongs to a partition of another size
float* ResidualOf(CodecState* state, size_t n);

/// If a vector's memory is shared, gives the vector other memory, of undefined content.
/// \return the shared memory, or an empty Buffer
Buffer TakeApart(Buffer* vector);

/// Makes a lazy residual plain, as the algorithm says that left it so.
void Settle(CodecState* state, size_t n);

}  // namespace hipress
