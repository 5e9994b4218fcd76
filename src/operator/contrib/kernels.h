/*!
 * \file kernels.h
 * \brief Conversions and sums of plain numbers, one table of them per instruction set, and the
 * choice of the instruction set, which generated codecs follow.
 *
 * All tables give the same bits: a table differs in speed only. Kernels run on the calling thread.
 * Pointers may have any alignment.
 */
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "operator/contrib/low_rank.h"
#include "operator/contrib/rans.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "payloads are little-endian memory");

namespace hipress {

struct Kernels {
  const char* name;  ///< as in HIPRESS_SIMD: "baseline", "avx2" or "avx512"

  /// out[i] = in[i], rounded to nearest even if `out_type` is narrower.
  void (*convert)(const void* in, DType in_type, size_t n, void* out, DType out_type);
  /// out[i] = in[i] + residual[i], added in float32.
  void (*add)(const void* in, DType in_type, const float* residual, size_t n, void* out,
              DType out_type);
  /// sum[i] = (in[0][i] + in[1][i]) + ... in float32.
  void (*sum)(const uint8_t* const* in, DType in_type, size_t count, size_t n, float* sum);
  /// out[i] = factor * in[i], multiplied in float32.
  void (*scale)(const void* in, DType in_type, float factor, size_t n, void* out, DType out_type);
  /// out[i] += factor * in[i], multiplied and then added in float32. Returns whether all of `out`
  /// is finite now.
  bool (*accumulate)(const void* in, DType in_type, float factor, size_t n, void* out,
                     DType out_type);
  /// Whether no in[i] is NaN or infinite.
  bool (*finite)(const void* in, DType in_type, size_t n);

  LowRankKernels low_rank;
  RansKernels rans;
};

/// The fastest table that this CPU can run and that this build has codecs for, or the one that
/// HIPRESS_SIMD names. Chosen at the first call.
/// \throw Error if HIPRESS_SIMD names another one, or if this build has codecs for other CPUs only
const Kernels& ActiveKernels();

/// For tests and benchmarks. Null if this CPU (or this build) cannot run that table.
const Kernels* FindKernels(const char* name);
void SetActiveKernels(const Kernels& kernels);

extern const Kernels kBaselineKernels;
#if defined(HIPRESS_X86_KERNELS)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace hipress
