/*!
 * \file order.h
 * \brief Order statistics: floats as keys, the rank-th smallest, sorting.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_ORDER_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_ORDER_H_

#include "operator/contrib/compll/runtime.h"

namespace hipress {
namespace compll {
namespace {

/// Order of floats as unsigned numbers: -NaN < -Inf < ... < -0 < +0 < ... < Inf < NaN.
inline uint32_t Ordered(float value) {
  const uint32_t bits = BitsOf(value);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
COMPLL_INLINE U Ordered(F value) {
  const U bits = BitsU(value);
  return bits ^ (reinterpret_cast<U>(BitsI(value) >> 31) | 0x80000000u);
}

/// The lanes of keys[j .. j + 64) in which test is true, j + 64 being cut off at `count`.
template <typename Test>
COMPLL_INLINE uint64_t WhichKeys(const uint32_t* keys, int64_t j, int64_t count, const Test& test) {
  M masks[kVectors];
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) masks[v] = test(Load<false>(keys, j + v * kLanes, kLanes));
  const uint64_t bits = JoinMasks(masks);
  return count - j < kTile ? bits & ((uint64_t(1) << (count - j)) - 1) : bits;
}

/// How many of the keys, after which a tile may be read, are below `bound`.
inline int64_t CountBelow(const uint32_t* keys, int64_t count, uint32_t bound) {
  const U limit = Set(bound);
  I found[4] = {};
  int64_t j = 0;
  for (; j + 4 * kLanes <= count; j += 4 * kLanes) {
    COMPLL_UNROLL
    for (int c = 0; c < 4; ++c) found[c] += Ones(Lt(Load<false>(keys, j + c * kLanes, kLanes), limit));
  }
  int64_t below = 0;
  for (; j < count; ++j) below += keys[j] < bound;
  found[0] += found[1] + found[2] + found[3];
  for (int l = 0; l < kLanes; ++l) below += found[0][l];
  return below;
}

/// Moves the keys of [low, high] to the front; returns their number.
inline int64_t KeepBetween(uint32_t* keys, int64_t count, uint32_t low, uint32_t high) {
  int64_t inside = 0, j = 0;
#if defined(COMPLL_AVX512)
  for (; j + kLanes <= count; j += kLanes) {
    const U key = Load<false>(keys, j, kLanes);
    const M mask = Le(key - low, Set(high - low));
    _mm512_storeu_si512(keys + inside,
                        _mm512_maskz_compress_epi32(mask, reinterpret_cast<__m512i>(key)));
    inside += __builtin_popcount(_cvtmask16_u32(mask));
  }
#endif
  for (; j < count; ++j) {
    const uint32_t key = keys[j];
    keys[inside] = key;
    inside += key - low <= high - low;
  }
  return inside;
}

/// Of many keys those of the histogram's bucket that holds the rank-th; makes it the rank among them.
inline int64_t KeepBucket(uint32_t* keys, int64_t count, int64_t* rank) {
  constexpr uint32_t kBuckets = 2048;
  uint32_t low = keys[0], high = keys[0];
  for (int64_t j = 1; j < count; ++j) {
    low = std::min(low, keys[j]);
    high = std::max(high, keys[j]);
  }
  int shift = 0;
  while ((high - low) >> shift >= kBuckets) ++shift;
  int64_t counts[kBuckets] = {};
  for (int64_t j = 0; j < count; ++j) ++counts[(keys[j] - low) >> shift];
  uint32_t bucket = 0;
  while (*rank >= counts[bucket]) *rank -= counts[bucket++];
  const uint32_t first = low + (bucket << shift);
  return KeepBetween(keys, count, first, first + ((uint32_t(1) << shift) - 1));
}

/*!
 * \brief The rank-th smallest (from 0) of `count` keys, which are reordered; a tile may be read after
 *        them.
 *
 * The range that holds it is halved, by counting, until few keys are in it.
 */
inline uint32_t NthKey(uint32_t* keys, int64_t count, int64_t rank) {
  constexpr int64_t kFew = 64, kMany = 32768;
  uint32_t low = 0, high = ~uint32_t(0);
  if (count > kMany) count = KeepBucket(keys, count, &rank);
  int64_t before = 0, inside = count;  // keys below low, and in [low, high]
  while (inside > kFew && low < high) {
    const uint32_t middle = low + (high - low) / 2 + 1;
    const int64_t below = CountBelow(keys, count, middle);
    if (rank < below) {
      high = middle - 1;
      inside = below - before;
    } else {
      low = middle;
      inside -= below - before;
      before = below;
    }
  }
  if (low == high) return low;
  if (inside < count) KeepBetween(keys, count, low, high);
  std::nth_element(keys, keys + rank - before, keys + inside);
  return keys[rank - before];
}

/// sorted(values)[rank], the rank clamped into the vector; 0 of an empty one.
inline float NthElement(const float* values, int64_t n, int64_t rank, Arena* arena) {
  if (n == 0) return 0;
  uint32_t* keys = arena->Get<uint32_t>(n);
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    const U ordered = Ordered(Load<false>(values, j, kLanes));
    std::memcpy(keys + j, &ordered, sizeof(ordered));
  }
  for (; j < n; ++j) keys[j] = Ordered(values[j]);
  const uint32_t key = NthKey(keys, n, std::min(std::max<int64_t>(rank, 0), n - 1));
  return FloatOf(key >> 31 ? key ^ 0x80000000u : ~key);
}

inline void Sort(const float* values, int64_t n, float* out) {
  std::copy(values, values + n, out);
  std::sort(out, out + n, [](float a, float b) { return Ordered(a) < Ordered(b); });
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_ORDER_H_
