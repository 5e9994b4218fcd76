/*!
 * \file sparse.h
 * \brief Choosing elements: filters, the k largest, order statistics, random indices.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_SPARSE_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_SPARSE_H_

#include <cmath>

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

/// Writes the indices (i + place) of the bits of a tile, ascending, and up to a tile beyond.
COMPLL_INLINE int32_t* AppendIndices(uint64_t bits, int64_t i, int32_t* out) {
#if defined(COMPLL_AVX512)
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const M mask = MaskOf(bits, v);
    const I index = Lanes(i + v * kLanes);
    // Compressed in a register: a compressing store to memory is slow.
    _mm512_storeu_si512(out,
                        _mm512_maskz_compress_epi32(mask, reinterpret_cast<__m512i>(index)));
    out += __builtin_popcount(_cvtmask16_u32(mask));
  }
#else
  for (; bits != 0; bits &= bits - 1) *out++ = static_cast<int32_t>(i + __builtin_ctzll(bits));
#endif
  return out;
}

/// Indices that pass a filter, ascending: workers collect theirs, Join puts them together.
class Filter {
 public:
  Filter(Arena* arena, int64_t n) : out_(arena->Get<int32_t>(n + kMaxWorkers * kTile)) {}
  /// Where a worker goes on that is about to look at the elements from `begin` on.
  int32_t* Begin(int worker, int64_t begin) {
    Part& part = parts_[worker];
    if (part.first == nullptr) part.first = part.end = out_ + begin + worker * kTile;
    return part.end;
  }
  void End(int worker, int32_t* end) { parts_[worker].end = end; }
  /// The number of indices; they lie at data().
  int64_t Join() {
    int64_t found = 0;
    for (const Part& part : parts_) {
      const int64_t count = part.end - part.first;
      if (count > 0) std::memmove(out_ + found, part.first, sizeof(int32_t) * count);
      found += count;
    }
    return found;
  }
  int32_t* data() const { return out_; }

 private:
  struct Part {
    int32_t* first = nullptr;
    int32_t* end = nullptr;
  };
  int32_t* const out_;
  Part parts_[kMaxWorkers];
};

/// Indices of the bits that are set among n, ascending; returns their number.
inline int64_t Compact(const uint8_t* mask, int64_t n, int32_t* out) {
  int32_t* end = out;
  for (int64_t i = 0; i < n; i += kTile) {
    uint64_t word = 0;
    std::memcpy(&word, mask + i / 8, static_cast<size_t>(std::min<int64_t>(8, (n - i + 7) / 8)));
    if (word != 0) end = AppendIndices(word, i, end);
  }
  return end - out;
}

inline int64_t CountBits(const uint8_t* mask, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += 64) {
    uint64_t word = 0;
    std::memcpy(&word, mask + i / 8, static_cast<size_t>(std::min<int64_t>(8, (n - i + 7) / 8)));
    count += __builtin_popcountll(word);
  }
  return count;
}

/*!
 * \brief The rank-th smallest (from 0) of `count` keys, which are reordered.
 *
 * A histogram finds the bucket of 2048 that holds it; only that one is sorted out.
 */
inline uint64_t NthKey(uint64_t* keys, int64_t count, int64_t rank) {
  constexpr int kBuckets = 2048;
  uint64_t low = keys[0], high = keys[0];
  for (int64_t j = 1; j < count; ++j) {
    low = std::min(low, keys[j]);
    high = std::max(high, keys[j]);
  }
  int shift = 0;
  while ((high - low) >> shift >= kBuckets) ++shift;
  int32_t counts[kBuckets] = {};
  for (int64_t j = 0; j < count; ++j) ++counts[(keys[j] - low) >> shift];
  uint64_t bucket = 0;
  while (rank >= counts[bucket]) rank -= counts[bucket++];
  int64_t inside = 0;
  for (int64_t j = 0; j < count; ++j) {
    const uint64_t key = keys[j];
    keys[inside] = key;
    inside += (key - low) >> shift == bucket;
  }
  std::nth_element(keys, keys + rank, keys + inside);
  return keys[rank];
}

/// sorted(values)[rank], the rank clamped into the vector; 0 of an empty one.
inline float NthElement(const float* values, int64_t n, int64_t rank, Arena* arena) {
  if (n == 0) return 0;
  uint64_t* keys = arena->Get<uint64_t>(n);
  for (int64_t j = 0; j < n; ++j) keys[j] = uint64_t(Ordered(values[j])) << 32 | BitsOf(values[j]);
  return FloatOf(static_cast<uint32_t>(
      NthKey(keys, n, std::min(std::max<int64_t>(rank, 0), n - 1))));
}

inline void Sort(const float* values, int64_t n, float* out) {
  std::copy(values, values + n, out);
  std::sort(out, out + n, [](float a, float b) { return Ordered(a) < Ordered(b); });
}

/// Indices of the values whose keys are `floor` or more, ascending; returns their number.
inline int64_t AtLeast(const float* values, int64_t n, uint32_t floor, int32_t* out) {
  int32_t* end = out;
  const U least = Set(floor);
  int64_t i = 0;
  for (; i + kTile <= n; i += kTile) {
    M masks[kVectors];
    COMPLL_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      masks[v] = Ge(Ordered(Load<false>(values, i + v * kLanes, kLanes)), least);
    }
    const uint64_t bits = JoinMasks(masks);
    if (bits != 0) end = AppendIndices(bits, i, end);
  }
  for (; i < n; ++i) {
    if (Ordered(values[i]) >= floor) *end++ = static_cast<int32_t>(i);
  }
  return end - out;
}

/// A key that somewhat more than k of n values reach, if a sample of them does not mislead.
inline uint32_t FloorForTopK(const float* values, int64_t n, int64_t k) {
  constexpr int64_t kSample = 8192;
  if (n < 4 * kSample || k > n / 4) return 0;
  static thread_local uint64_t keys[kSample];
  for (int64_t j = 0; j < kSample; ++j) {
    // Lines of 16 elements, spread evenly.
    const int64_t line = j / 16 * (n / 16) / (kSample / 16);
    keys[j] = Ordered(values[line * 16 + j % 16]);
  }
  const double expected = static_cast<double>(k) / n * kSample;
  const int64_t rank = static_cast<int64_t>(expected + 3 * std::sqrt(expected) + 3);
  return static_cast<uint32_t>(NthKey(keys, kSample, kSample - 1 - rank));
}

/// Indices of the k largest of n values, ascending; of equal ones the first. 0 <= k <= n.
inline void TopK(const float* values, int64_t n, int64_t k, Arena* arena, int32_t* out) {
  if (k == 0) return;
  int32_t* index = arena->Get<int32_t>(n);
  const uint32_t floor = FloorForTopK(values, n, k);
  int64_t count = floor != 0 ? AtLeast(values, n, floor, index) : 0;
  if (count < k) {
    for (int64_t i = 0; i < n; ++i) index[i] = static_cast<int32_t>(i);
    count = n;
  }
  // Of large keys the smallest: ~key, then the index, so that the k-th says who belongs.
  auto place = [&](int64_t j) {
    return uint64_t(~Ordered(values[index[j]])) << 32 | static_cast<uint32_t>(index[j]);
  };
  uint64_t* places = arena->Get<uint64_t>(count);
  for (int64_t j = 0; j < count; ++j) places[j] = place(j);
  const uint64_t last = NthKey(places, count, k - 1);
  int64_t found = 0;
  for (int64_t j = 0; found < k; ++j) {
    out[found] = index[j];
    found += place(j) <= last;
  }
}

inline int64_t Clip(int64_t k, int64_t n) {
  return std::min(std::max<int64_t>(k, 0), std::max<int64_t>(n, 0));
}

/// One random index of each of k parts of range(n): part j is from j * n / k on.
inline void Strata(int64_t n, int64_t k, const PhiloxKey& key, uint32_t site, int32_t* out) {
  RandomSource<uint32_t> source;
  const uint32_t* words = nullptr;
  int64_t low = 0, rest = 0;
  const int64_t step = k > 0 ? n / k : 0, more = k > 0 ? n % k : 0;
  for (int64_t j = 0; j < k; ++j) {
    if (j % kTile == 0) words = source.Tile(key, site, j / kTile, k - j);
    rest += more;
    const int64_t size = step + (rest >= k);
    rest -= rest >= k ? k : 0;
    out[j] = static_cast<int32_t>(low + (static_cast<int64_t>(words[j % kTile]) * size >> 32));
    low += size;
  }
}

template <typename T>
inline T Element(const T* values, int64_t size, int64_t at) {
  if (size == 0) return T(0);
  return values[std::min(std::max<int64_t>(at, 0), size - 1)];
}

/// True if indices ascend and lie in [0, n).
template <typename T>
inline bool ValidIndices(const T* index, int64_t size, int64_t n) {
  int64_t last = -1;
  bool good = true;
  for (int64_t j = 0; j < size; ++j) {
    T value;
    std::memcpy(&value, index + j, sizeof(T));
    const int64_t at = static_cast<int64_t>(value);
    good &= at > last;
    last = at;
  }
  return good && last < n;
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_SPARSE_H_
