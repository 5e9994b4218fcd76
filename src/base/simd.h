/*!
 * \file simd.h
 * \brief The choice of an instruction set, for all functions that are compiled for several.
 */
#pragma once

#include <string>

namespace hipress {

/// Return whether this build has codecs for an instruction set, and this processor and operating
/// system support it.
/// \param name as in HIPRESS_SIMD: "baseline", "avx2" or "avx512"
bool SupportsSimd(const char* name);

/// Return the instruction set that HIPRESS_SIMD names, or the widest one if it is unset or empty.
/// Null if HIPRESS_SIMD names another one than SupportsSimd allows.
const char* ChosenSimd();

/// Names of the instruction sets that this build has codecs for, such as "avx512, avx2, baseline".
std::string CompiledSimd();

}  // namespace hipress
