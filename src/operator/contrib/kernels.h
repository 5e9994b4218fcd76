/*!
 * \file kernels.h
 * \brief The inner loops of the codecs, one table of them per instruction set.
 *
 * All tables give the same bits: a table differs in speed only. Kernels run on the calling thread.
 * Pointers may have any alignment. Formats are documented in each codec's file.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_KERNELS_H_
#define HIPRESS_OPERATOR_CONTRIB_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "common/types.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "payloads are little-endian memory");

namespace hipress {

/// What `onebit` has to know of x to form its two reconstruction values.
struct PartSums {
  double negative = 0;     ///< sum of the negative elements
  double nonnegative = 0;  ///< sum of the others; NaNs count as negative
  size_t nonnegative_count = 0;
};

struct Kernels {
  const char* name;  ///< as in HIPRESS_SIMD: "baseline", "avx2" or "avx512"

  /// out[i] = in[i], rounded to nearest even if `out_type` is narrower.
  void (*convert)(const void* in, DType in_type, size_t n, void* out, DType out_type);
  /// out[i] = in[i] + residual[i], added in float32.
  void (*add)(const void* in, DType in_type, const float* residual, size_t n, void* out,
              DType out_type);
  /// sum[i] = (in[0][i] + in[1][i]) + ... in float32.
  void (*sum)(const uint8_t* const* in, DType in_type, size_t count, size_t n, float* sum);

  void (*two_bit_encode)(const void* gradient, DType dtype, size_t n, float threshold,
                         float* residual, uint8_t* payload);
  void (*two_bit_decode)(const uint8_t* payload, size_t n, float threshold, void* out, DType dtype);
  void (*two_bit_sum)(const uint8_t* const* payloads, size_t count, size_t n, float threshold,
                      float* sum);

  void (*one_bit_encode)(const void* gradient, DType dtype, size_t n, float threshold, float scale,
                         float* residual, uint8_t* payload);
  void (*one_bit_decode)(const uint8_t* payload, size_t n, float scale, void* out, DType dtype);
  void (*one_bit_sum)(const uint8_t* const* payloads, size_t count, size_t n, float scale,
                      float* sum);

  /// x = gradient + residual, kept in `residual`; one bit per element says that x >= 0.
  /// \param values null if `residual` is plain; else it holds the last x, and the residual is
  ///        x - (x >= 0 ? values[1] : values[0])
  void (*sign_encode)(const void* gradient, DType dtype, size_t n, const float* values,
                      float* residual, uint8_t* bits, PartSums* sums);
  void (*sign_decode)(const uint8_t* bits, size_t n, const float* values, void* out, DType dtype);
  /// \param values two per payload, as in sign_decode
  void (*sign_sum)(const uint8_t* const* bits, const float* values, size_t count, size_t n,
                   float* sum);
};

/// The fastest table this CPU can run, or the one that HIPRESS_SIMD names. Chosen at the first call.
/// \throw Error if HIPRESS_SIMD names one that does not exist or that this CPU cannot run
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

#endif  // HIPRESS_OPERATOR_CONTRIB_KERNELS_H_
