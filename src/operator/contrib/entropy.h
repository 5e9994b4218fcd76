/*!
 * \file entropy.h
 * \brief The entropy stage that any codec may be followed by: fewer bytes, the same bits when decoded.
 *
 * A payload is one byte, and behind it
 *
 *   0   the codec's payload as it is
 *   1   the length of the codec's payload, uint32, and what rans.h makes of it
 *
 * The second one where it is shorter; so a payload is at most a byte longer than the codec's own.
 */
#pragma once

#include "operator/contrib/codec.h"

namespace hipress {

/// A parameter of every codec but the identity, which MakeCodec takes: 1 adds the stage.
constexpr char kEntropyParam[] = "entropy";

/// Takes the parameter out of `params`. \throw Error if it is neither 0 nor 1, or there twice
bool TakeEntropy(const std::string& type, ParamList* params);

/// \throw Error if `codec` is the identity, which the engine must be able to look through
CodecPtr WithEntropy(CodecPtr codec);

}  // namespace hipress
