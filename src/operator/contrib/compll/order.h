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

/// Ordered() of each lane.
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

/// The smallest and the largest of the keys, of which there is at least one.
inline void Extremes(const uint32_t* keys, int64_t count, uint32_t* low, uint32_t* high) {
  U smallest[2], largest[2];
  for (int c = 0; c < 2; ++c) smallest[c] = largest[c] = Set(keys[0]);
  int64_t j = 0;
  for (; j + 2 * kLanes <= count; j += 2 * kLanes) {
    COMPLL_UNROLL
    for (int c = 0; c < 2; ++c) {
      const U key = Load<false>(keys, j + c * kLanes, kLanes);
      smallest[c] = Smaller(key, smallest[c]);
      largest[c] = Larger(key, largest[c]);
    }
  }
  smallest[0] = Smaller(smallest[0], smallest[1]);
  largest[0] = Larger(largest[0], largest[1]);
  *low = keys[0], *high = keys[0];
  for (int l = 0; l < kLanes; ++l) {
    *low = std::min(*low, smallest[0][l]);
    *high = std::max(*high, largest[0][l]);
  }
  for (; j < count; ++j) {
    *low = std::min(*low, keys[j]);
    *high = std::max(*high, keys[j]);
  }
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

/// The rank-th smallest of a few keys: each of them is compared with all.
inline uint32_t NthOfFew(const uint32_t* keys, int64_t count, int64_t rank) {
  for (int64_t j = 0;; ++j) {
    const uint32_t key = keys[j];
    int64_t below = 0, equal = 0;
    for (int64_t i = 0; i < count; i += kTile) {
      below += __builtin_popcountll(WhichKeys(keys, i, count, [&](U k) { return Lt(k, Set(key)); }));
      equal += __builtin_popcountll(WhichKeys(keys, i, count, [&](U k) { return Eq(k, Set(key)); }));
    }
    if (below <= rank && rank < below + equal) return key;
  }
}

/*!
 * \brief The rank-th smallest (from 0) of `count` keys, which are reordered; a tile may be read after
 *        them.
 *
 * A range that holds it is narrowed, by counting the keys below its next end, until few are in it:
 * only those are read from then on. The next end is where evenly spread keys would have the
 * rank, and somewhat beyond, so that the other end comes close as well; every third is in the middle,
 * which does not depend on how keys are spread.
 */
inline uint32_t NthKey(uint32_t* keys, int64_t count, int64_t rank) {
  constexpr int64_t kFew = kTile, kBeyond = 16;
  uint32_t low, high;
  Extremes(keys, count, &low, &high);
  int64_t side = rank < count / 2 ? 1 : -1;
  while (count > kFew && low < high) {
    int64_t before = 0, inside = count;  // keys below low, and in [low, high]
    for (int turn = 1; inside > std::max(kFew, count / 8) && low < high; ++turn) {
      const int64_t here = rank - before;
      const int64_t beyond = std::max(kBeyond, std::min(here, inside - here) / 2);
      const int64_t aim = std::min(std::max<int64_t>(here + side * beyond, 1), inside - 1);
      const double share = turn % 3 == 0 ? 0.5 : static_cast<double>(aim) / inside;
      const uint32_t middle = low + 1 + static_cast<uint32_t>((high - low) * share);
      const int64_t below = CountBelow(keys, count, middle);
      if (rank < below) {
        high = middle - 1;
        inside = below - before;
        side = -1;
      } else {
        low = middle;
        inside -= below - before;
        before = below;
        side = 1;
      }
    }
    count = KeepBetween(keys, count, low, high);
    rank -= before;
  }
  return low == high ? low : NthOfFew(keys, count, rank);
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
