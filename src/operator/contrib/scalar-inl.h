/*!
 * \file scalar-inl.h
 * \brief The kernels one element at a time: the tails of the vector loops, and their definition.
 *
 * Each function handles elements [begin, n), where begin is a multiple of 64 (so of whole payload
 * bytes and of onebit's lanes). Included once per instruction set, hence the unnamed namespace.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_SCALAR_INL_H_
#define HIPRESS_OPERATOR_CONTRIB_SCALAR_INL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "operator/contrib/half.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

/// Elements of a payload group; vector loops work in whole groups.
constexpr size_t kGroup = 64;
/// onebit's summation order: lanes, and elements of a block.
constexpr size_t kLanesOfSum = 32;
constexpr size_t kBlockOfSum = 4096;

template <typename T>
inline float Get(const void* data, size_t i) {
  T value;
  std::memcpy(&value, static_cast<const uint8_t*>(data) + i * sizeof(T), sizeof(T));
  return ToFloat(value);
}

template <typename T>
inline void Put(void* data, size_t i, float value) {
  T narrow;
  FromFloat(value, &narrow);
  std::memcpy(static_cast<uint8_t*>(data) + i * sizeof(T), &narrow, sizeof(T));
}

template <typename In, typename Out>
void ScalarConvert(const void* in, size_t begin, size_t n, void* out) {
  for (size_t i = begin; i < n; ++i) Put<Out>(out, i, Get<In>(in, i));
}

template <typename In, typename Out>
void ScalarAdd(const void* in, const float* residual, size_t begin, size_t n, void* out) {
  for (size_t i = begin; i < n; ++i) Put<Out>(out, i, Get<In>(in, i) + Get<float>(residual, i));
}

template <typename In>
void ScalarSum(const uint8_t* const* in, size_t count, size_t begin, size_t n, float* sum) {
  for (size_t i = begin; i < n; ++i) {
    float total = Get<In>(in[0], i);
    for (size_t k = 1; k < count; ++k) total += Get<In>(in[k], i);
    Put<float>(sum, i, total);
  }
}

// 2bit ---------------------------------------------------------------------------------------------

template <typename T>
void ScalarTwoBitEncode(const void* gradient, size_t begin, size_t n, float threshold,
                        float* residual, uint8_t* payload) {
  std::memset(payload + begin / 4, 0, (n + 15) / 16 * 4 - begin / 4);
  for (size_t i = begin; i < n; ++i) {
    float r = Get<float>(residual, i) + Get<T>(gradient, i);
    unsigned code = 0;
    if (r >= threshold) {
      code = 3;
      r -= threshold;
    } else if (r <= -threshold) {
      code = 2;
      r += threshold;
    }
    Put<float>(residual, i, r);
    payload[i / 4] |= static_cast<uint8_t>(code << (6 - 2 * (i % 4)));
  }
}

/// +1, -1 or 0.
inline int TwoBitLevel(const uint8_t* payload, size_t i) {
  const unsigned code = payload[i / 4] >> (6 - 2 * (i % 4)) & 3;
  return (code == 3) - (code == 2);
}

template <typename T>
void ScalarTwoBitDecode(const uint8_t* payload, size_t begin, size_t n, float threshold, void* out) {
  for (size_t i = begin; i < n; ++i) {
    Put<T>(out, i, static_cast<float>(TwoBitLevel(payload, i)) * threshold);
  }
}

inline void ScalarTwoBitSum(const uint8_t* const* payloads, size_t count, size_t begin, size_t n,
                            float threshold, float* sum) {
  for (size_t i = begin; i < n; ++i) {
    int level = 0;
    for (size_t k = 0; k < count; ++k) level += TwoBitLevel(payloads[k], i);
    Put<float>(sum, i, static_cast<float>(level) * threshold);
  }
}

// 1bit ---------------------------------------------------------------------------------------------

template <typename T>
void ScalarOneBitEncode(const void* gradient, size_t begin, size_t n, float threshold, float scale,
                        float* residual, uint8_t* payload) {
  std::memset(payload + begin / 8, 0, (n + 31) / 32 * 4 - begin / 8);
  for (size_t i = begin; i < n; ++i) {
    const float r = Get<float>(residual, i) + Get<T>(gradient, i);
    const bool bit = r > threshold;
    Put<float>(residual, i, bit ? r - scale : r + scale);
    payload[i / 8] |= static_cast<uint8_t>(unsigned(bit) << (7 - i % 8));
  }
}

inline bool OneBitAt(const uint8_t* payload, size_t i) { return payload[i / 8] >> (7 - i % 8) & 1; }

template <typename T>
void ScalarOneBitDecode(const uint8_t* payload, size_t begin, size_t n, float scale, void* out) {
  for (size_t i = begin; i < n; ++i) Put<T>(out, i, OneBitAt(payload, i) ? scale : -scale);
}

inline void ScalarOneBitSum(const uint8_t* const* payloads, size_t count, size_t begin, size_t n,
                            float scale, float* sum) {
  for (size_t i = begin; i < n; ++i) {
    int64_t ones = 0;
    for (size_t k = 0; k < count; ++k) ones += OneBitAt(payloads[k], i);
    const int64_t level = 2 * ones - static_cast<int64_t>(count);
    Put<float>(sum, i, static_cast<float>(level) * scale);
  }
}

// onebit -------------------------------------------------------------------------------------------

/// Running sums of one block of onebit's means.
struct BlockSums {
  float negative[kLanesOfSum] = {};
  float nonnegative[kLanesOfSum] = {};

  static float Fold(float* lanes) {
    for (size_t half = kLanesOfSum / 2; half > 0; half /= 2) {
      for (size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
    }
    return lanes[0];
  }
  void AddTo(PartSums* sums) {
    sums->negative += Fold(negative);
    sums->nonnegative += Fold(nonnegative);
  }
};

inline bool SignAt(const uint8_t* bits, size_t i) { return bits[i / 8] >> (i % 8) & 1; }

/// Handles elements [begin, n) of one block, on top of what `block` holds already.
template <typename T>
void ScalarSignEncode(const void* gradient, size_t begin, size_t n, const float* values,
                      float* residual, uint8_t* bits, BlockSums* block, size_t* nonnegative_count) {
  std::memset(bits + begin / 8, 0, (n + 31) / 32 * 4 - begin / 8);
  for (size_t i = begin; i < n; ++i) {
    float r = Get<float>(residual, i);
    if (values != nullptr) r -= r >= 0 ? values[1] : values[0];
    const float x = r + Get<T>(gradient, i);
    Put<float>(residual, i, x);
    const bool bit = x >= 0;
    float* lanes = bit ? block->nonnegative : block->negative;
    lanes[i % kLanesOfSum] += x;
    *nonnegative_count += bit;
    bits[i / 8] |= static_cast<uint8_t>(unsigned(bit) << (i % 8));
  }
}

template <typename T>
void ScalarSignDecode(const uint8_t* bits, size_t begin, size_t n, const float* values, void* out) {
  for (size_t i = begin; i < n; ++i) Put<T>(out, i, values[SignAt(bits, i)]);
}

inline void ScalarSignSum(const uint8_t* const* bits, const float* values, size_t count,
                          size_t begin, size_t n, float* sum) {
  for (size_t i = begin; i < n; ++i) {
    float total = values[SignAt(bits[0], i)];
    for (size_t k = 1; k < count; ++k) total += values[2 * k + SignAt(bits[k], i)];
    Put<float>(sum, i, total);
  }
}

}  // namespace
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_SCALAR_INL_H_
