/*!
 * \file simd.h
 * \brief The choice of an instruction set, which every function that is compiled for several follows.
 */
#pragma once

namespace hipress {

/// Return whether this build has, and this processor and operating system support, an instruction set.
/// \param name as in HIPRESS_SIMD: "baseline", "avx2" or "avx512"
bool SupportsSimd(const char* name);

/// Return the instruction set that HIPRESS_SIMD names, or the widest one if it is unset or empty.
/// Null if HIPRESS_SIMD names another one than SupportsSimd allows.
const char* ChosenSimd();

}  // namespace hipress
