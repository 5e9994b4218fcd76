/*!
 * \file sparse.h
 * \brief Vectors of bits, order statistics, and choosing elements: filters, the k largest, random
 *        indices.
 */
#pragma once

#include <cmath>
#include <numeric>

#include "operator/contrib/compll/runtime.h"

namespace hipress::compll {
namespace {

// Vectors of bits, 64 at a time -------------------------------------------------------------------

/// Bits 64 * w and following; kTail: only `left` of them exist, and the rest are 0.
template <bool kTail>
COMPLL_INLINE uint64_t WordOf(const uint8_t* bits, int64_t w, int left) {
  uint64_t word = 0;
  if (!kTail) {
    std::memcpy(&word, bits + 8 * w, sizeof(word));
    return word;
  }
  std::memcpy(&word, bits + 8 * w, static_cast<size_t>(left + 7) / 8);
  return word & ((uint64_t(1) << left) - 1);
}

/// work(is it a tail, w, bits of it) for all words of n bits.
template <typename Work>
COMPLL_INLINE void ForWords(int64_t n, const Work& work) {
  for (int64_t w = 0; w < n / 64; ++w) work(std::false_type(), w, 64);
  if (n % 64 > 0) work(std::true_type(), n / 64, static_cast<int>(n % 64));
}

inline int64_t CountBits(const uint8_t* bits, int64_t n) {
  int64_t count = 0;
  ForWords(n, [&](auto tail, int64_t w, int left) {
    count += __builtin_popcountll(WordOf<decltype(tail)::value>(bits, w, left));
  });
  return count;
}

/// True if the last byte of n bits has more that are set.
COMPLL_INLINE bool HasPadding(const uint8_t* bits, int64_t n) {
  return n % 8 != 0 && bits[n / 8] >> (n % 8) != 0;
}

/// Writes bits one after the other, and nothing after the last byte.
class BitWriter {
 public:
  explicit BitWriter(uint8_t* out) : out_(out), word_(0), filled_(0) {}
  /// \param value below 2^bits, bits <= 64
  COMPLL_INLINE void Put(uint64_t value, int bits) {
    word_ |= value << filled_;
    filled_ += bits;
    if (filled_ < 64) return;
    std::memcpy(out_, &word_, sizeof(word_));
    out_ += sizeof(word_);
    filled_ -= 64;
    word_ = filled_ == 0 ? 0 : value >> (bits - filled_);
  }
  void End() { std::memcpy(out_, &word_, static_cast<size_t>((filled_ + 7) / 8)); }

 private:
  uint8_t* out_;
  uint64_t word_;
  int filled_;
};

/// The bits under a mask, side by side from the lowest on.
COMPLL_INLINE uint64_t Extract(uint64_t bits, uint64_t mask) {
#if defined(__BMI2__)
  return _pext_u64(bits, mask);
#else
  uint64_t joined = 0;
  for (int k = 0; mask != 0; mask &= mask - 1, ++k) {
    joined |= (bits >> __builtin_ctzll(mask) & 1) << k;
  }
  return joined;
#endif
}

/// Their places again; 0 where the mask is.
COMPLL_INLINE uint64_t Deposit(uint64_t joined, uint64_t mask) {
#if defined(__BMI2__)
  return _pdep_u64(joined, mask);
#else
  uint64_t bits = 0;
  for (; mask != 0; mask &= mask - 1, joined >>= 1) bits |= (mask & -mask) * (joined & 1);
  return bits;
#endif
}

/// Writes those of n bits that are under a mask, CountBits(mask, n) of them.
inline void PackWhere(const uint8_t* bits, const uint8_t* mask, int64_t n, uint8_t* out) {
  BitWriter writer(out);
  ForWords(n, [&](auto tail, int64_t w, int left) {
    constexpr bool kTail = decltype(tail)::value;
    const uint64_t word = WordOf<kTail>(mask, w, left);
    writer.Put(Extract(WordOf<kTail>(bits, w, left), word), __builtin_popcountll(word));
  });
  writer.End();
}

/// The next 64 of `count` bits, or as many as there are, from `bit` on.
__attribute__((noinline, cold)) inline uint64_t BitsNearEnd(const uint8_t* packed, uint64_t count,
                                                            uint64_t bit) {
  const uint64_t bytes = (count + 7) / 8, byte = bit / 8, shift = bit % 8;
  uint64_t word = 0;
  std::memcpy(&word, packed + byte, std::min<uint64_t>(bytes - byte, 8));
  const uint64_t next = byte + 8 < bytes ? packed[byte + 8] : 0;
  return word >> shift | next << 1 << (63 - shift);
}

/// Bits under the next word of a mask, at their places; 0 where the mask is.
/// \param count how many bits are packed
/// \param at in, out: how many of them are under the words before
COMPLL_INLINE uint64_t NextBits(const uint8_t* packed, int64_t count, uint64_t mask, int64_t* at) {
  const uint64_t bit = static_cast<uint64_t>(*at), all = static_cast<uint64_t>(count);
  const uint64_t found = static_cast<uint64_t>(__builtin_popcountll(mask)), shift = bit % 8;
  *at = static_cast<int64_t>(bit + found);
  if (__builtin_expect(bit + 64 > all || shift + found > 64, 0)) {
    return Deposit(BitsNearEnd(packed, all, bit), mask);
  }
  uint64_t word;
  std::memcpy(&word, packed + bit / 8, sizeof(word));
  return Deposit(word >> shift, mask);
}

/// n bits again, 0 where the mask is, from those under it; writes whole words.
inline void UnpackWhere(const uint8_t* packed, int64_t count, const uint8_t* mask, int64_t n,
                        uint8_t* bits) {
  int64_t at = 0;
  ForWords(n, [&](auto tail, int64_t w, int left) {
    const uint64_t word = WordOf<decltype(tail)::value>(mask, w, left);
    const uint64_t spread = NextBits(packed, count, word, &at);
    std::memcpy(bits + 8 * w, &spread, sizeof(spread));
  });
}

/// How many of n bits are set before each block of kBlock, and in all.
inline int64_t CountBlocks(const uint8_t* bits, int64_t n, int64_t* before) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    *before++ = count;
    count += CountBits(bits + i / 8, std::min<int64_t>(n - i, kBlock));
  }
  return count;
}

// Order statistics: floats as keys, the rank-th smallest, sorting ---------------------------------

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
 * \brief The rank-th smallest (from 0) of `count` keys, which are reordered; a tile may be read
 * after them.
 *
 * A range that holds it is narrowed, by counting the keys below its next end, until few are in it:
 * only those are read from then on. The next end is where evenly spread keys would have the
 * rank, and somewhat beyond, so that the other end comes close as well; every third is in the
 * middle, which does not depend on how keys are spread.
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

// Choosing elements -------------------------------------------------------------------------------

constexpr int kFewBits = 4;
/// Writes the indices (i + place) of the bits of a tile, ascending, and up to a tile beyond.
COMPLL_INLINE int32_t* AppendIndices(uint64_t bits, int64_t i, int32_t* out) {
#if defined(COMPLL_AVX)
  // Few are written without a branch on how many: one that goes wrong costs more than all of them.
  if (const int count = __builtin_popcountll(bits); __builtin_expect(count <= kFewBits, 1)) {
    COMPLL_UNROLL
    for (int b = 0; b < kFewBits; ++b, bits &= bits - 1) {
      out[b] = static_cast<int32_t>(i + __builtin_ctzll(bits | uint64_t(1) << 63));
    }
    return out + count;
  }
#endif
#if defined(COMPLL_AVX512)
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    out = StoreChosen(out, MaskOf(bits, v), Lanes(i + v * kLanes));
  }
#else
  for (; bits != 0; bits &= bits - 1) *out++ = static_cast<int32_t>(i + __builtin_ctzll(bits));
#endif
  return out;
}

/// Indices that pass a filter, ascending: each worker collects its own, Join concatenates them.
class Filter {
 public:
  Filter(Arena* arena, int64_t n) : out_(arena->Get<int32_t>(n + kMaxWorkers * kTile)) {}
  /// Where a worker appends the indices of the elements from `begin` on.
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
  ForWords(n, [&](auto tail, int64_t w, int left) {
    const uint64_t word = WordOf<decltype(tail)::value>(mask, w, left);
    if (word != 0) end = AppendIndices(word, w * kTile, end);
  });
  return end - out;
}

/// Indices of the values whose keys are `floor` or more, ascending; returns their number.
inline int64_t AtLeast(const float* values, int64_t n, uint32_t floor, int32_t* out) {
  int32_t* end = out;
  const U threshold = Set(floor);
  int64_t i = 0;
  for (; i + kTile <= n; i += kTile) {
    M masks[kVectors];
    COMPLL_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      masks[v] = Ge(Ordered(Load<false>(values, i + v * kLanes, kLanes)), threshold);
    }
    const uint64_t bits = JoinMasks(masks);
    if (bits != 0) end = AppendIndices(bits, i, end);
  }
  for (; i < n; ++i) {
    if (Ordered(values[i]) >= floor) *end++ = static_cast<int32_t>(i);
  }
  return end - out;
}

// The k largest: a sample says a key that somewhat more than k reach; of those the k-th is found.
// ----

constexpr int kLine = 16;

/// Lines of kLine elements to sample before all n are read; 0 if sampling does not pay.
inline int64_t SampleLines(int64_t n, int64_t k) {
  if (n < 2048 || k > n / 4) return 0;
  return std::min<int64_t>(std::max<int64_t>(n / kLine / 64, 16), 512);
}
/// Where a line of the sample starts; a tile from there on is inside of n.
inline int64_t LineStart(int64_t line, int64_t lines, int64_t n) {
  return line * ((n - kTile) / kLine) / lines * kLine;
}
template <typename V>
COMPLL_INLINE void PutKeys(uint32_t* keys, V values) {
  const U ordered = Ordered(values);
  std::memcpy(keys, &ordered, sizeof(ordered));
}
/// A key that somewhat more than k of n reach, if their sample does not mislead; 0 without a
/// sample.
inline uint32_t FloorOf(uint32_t* keys, int64_t lines, int64_t n, int64_t k) {
  if (lines == 0) return 0;
  const int64_t size = lines * kLine;
  const double expected = static_cast<double>(k) / n * size;
  const int64_t rank = static_cast<int64_t>(expected + 3 * std::sqrt(expected) + 3);
  return NthKey(keys, size, std::max<int64_t>(size - 1 - rank, 0));
}

/// Of `count` elements (indices ascend) with these keys, the indices of the k largest, ascending;
/// of equal ones the first. 0 <= k <= count. After each of the three vectors there is room for a
/// tile.
inline void SelectTop(const int32_t* index, const uint32_t* keys, int64_t count, int64_t k,
                      Arena* arena, int32_t* out) {
  if (k == count) {
    std::copy(index, index + k, out);
    return;
  }
  if (k == 0) return;
  uint32_t* copy = arena->Get<uint32_t>(count);
  std::copy(keys, keys + count, copy);
  const uint32_t last = NthKey(copy, count, count - k);
  const U bound = Set(last);
  int64_t equal = k;  // of those with this key as many are chosen
  for (int64_t j = 0; j < count; j += kTile) {
    equal -= __builtin_popcountll(WhichKeys(keys, j, count, [&](U key) { return Gt(key, bound); }));
  }
  for (int64_t j = 0; j < count; j += kTile) {
    uint64_t bits = WhichKeys(keys, j, count, [&](U key) { return Gt(key, bound); });
    uint64_t same = WhichKeys(keys, j, count, [&](U key) { return Eq(key, bound); });
    for (; same != 0 && equal > 0; same &= same - 1, --equal) bits |= same & -same;
#if defined(COMPLL_AVX512)
    COMPLL_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const I part = Load<false>(index, j + v * kLanes, kLanes);
      out = StoreChosen(out, MaskOf(bits, v), part);
    }
#else
    for (; bits != 0; bits &= bits - 1) *out++ = index[j + __builtin_ctzll(bits)];
#endif
  }
}

/// Indices of the k largest of n values, ascending; of equal ones the first. 0 <= k <= n.
inline void TopK(const float* values, int64_t n, int64_t k, Arena* arena, int32_t* out) {
  const int64_t lines = SampleLines(n, k);
  uint32_t* sample = arena->Get<uint32_t>(lines * kLine);
  for (int64_t line = 0; line < lines; ++line) {
    const float* from = values + LineStart(line, lines, n);
    for (int j = 0; j < kLine; ++j) sample[line * kLine + j] = Ordered(from[j]);
  }
  const uint32_t floor = FloorOf(sample, lines, n, k);
  int32_t* index = arena->Get<int32_t>(n);
  int64_t count = floor != 0 ? AtLeast(values, n, floor, index) : 0;
  if (count < k) {
    for (int64_t i = 0; i < n; ++i) index[i] = static_cast<int32_t>(i);
    count = n;
  }
  uint32_t* keys = arena->Get<uint32_t>(count);
  for (int64_t j = 0; j < count; ++j) keys[j] = Ordered(values[index[j]]);
  SelectTop(index, keys, count, k, arena, out);
}

/// Where a worker writes the next element that is a candidate for the k largest.
struct Candidate {
  int32_t* index;
  uint32_t* key;
};
COMPLL_INLINE Candidate AppendCandidates(uint64_t bits, int64_t i, const U* keys, Candidate out) {
#if defined(COMPLL_AVX512)
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const M mask = MaskOf(bits, v);
    out.index = StoreChosen(out.index, mask, Lanes(i + v * kLanes));
    out.key = StoreChosen(out.key, mask, keys[v]);
  }
#else
  uint32_t tile[kTile];
  std::memcpy(tile, keys, sizeof(tile));
  for (; bits != 0; bits &= bits - 1) {
    const int place = __builtin_ctzll(bits);
    *out.index++ = static_cast<int32_t>(i + place);
    *out.key++ = tile[place];
  }
#endif
  return out;
}

/// Candidates for the k largest, indices ascending, as Filter has indices.
class Candidates {
 public:
  Candidates(Arena* arena, int64_t n) : index_(arena, n), key_(arena, n) {}
  Candidate Begin(int worker, int64_t begin) {
    return {index_.Begin(worker, begin),
            reinterpret_cast<uint32_t*>(key_.Begin(worker, begin))};
  }
  void End(int worker, Candidate end) {
    index_.End(worker, end.index);
    key_.End(worker, reinterpret_cast<int32_t*>(end.key));
  }
  int64_t Join() {
    key_.Join();
    return index_.Join();
  }
  const int32_t* index() const { return index_.data(); }
  const uint32_t* keys() const { return reinterpret_cast<const uint32_t*>(key_.data()); }

 private:
  Filter index_, key_;
};

/// One random index of each of k parts of range(n): part j is from j * n / k on.
inline void Strata(int64_t n, int64_t k, const PhiloxKey& key, uint32_t site, int32_t* out) {
  if (k <= 0) return;
  // Lanes go on by kLanes parts: a part has n / k elements, one more where j * (n mod k) wraps.
  const int64_t size = n / k, more = n % k;
  U low, rest;
  for (int64_t l = 0, begin = 0, over = 0; l < kLanes; ++l) {
    low[l] = static_cast<uint32_t>(begin);
    rest[l] = static_cast<uint32_t>(over);
    over += more;
    begin += size + (over >= k);
    over -= over >= k ? k : 0;
  }
  const U parts = Set(static_cast<uint32_t>(k)), left = Set(static_cast<uint32_t>(more));
  const U step = Set(static_cast<uint32_t>(kLanes * size + kLanes * more / k));
  const U over = Set(static_cast<uint32_t>(kLanes * more % k)), one = Set(1u), none = U{};
  RandomSource<kTile> source;
  for (int64_t j = 0; j < k; j += kTile) {
    const uint32_t* const words = source.Tile(key, site, j / kTile, k - j);
    for (int v = 0; v < kVectors && j + v * kLanes < k; ++v) {
      const U count = Set(static_cast<uint32_t>(size)) + Select(Ge(rest + left, parts), one, none);
      const U at = low + MulHigh(RandomWords(words, v), count);
      Store<true>(out, j + v * kLanes, static_cast<int>(std::min<int64_t>(k - j - v * kLanes, kLanes)),
                  reinterpret_cast<I>(at));
      rest += over;
      const M wraps = Ge(rest, parts);
      rest -= Select(wraps, parts, none);
      low += step + Select(wraps, one, none);
    }
  }
}

/// k indices of range(n), k <= n: runs of kRun neighbors, one of each of equal parts.
inline void SampleRuns(int64_t n, int64_t k, const PhiloxKey& key, uint32_t site, Arena* arena,
                       int32_t* out) {
  const int64_t runs = (k + kRun - 1) / kRun;
  int32_t* const run = arena->Get<int32_t>(runs);
  Strata((n + kRun - 1) / kRun, runs, key, site, run);
  const I last = Set(static_cast<int32_t>(n - 1));
  for (int64_t j = 0; j < k; j += kLanes) {
    const I each = __builtin_shuffle(Load<false>(run, j / kRun, kLanes), Lanes(0) / kRun);
    const I at = each * kRun + Lanes(0) % kRun;
    Store<true>(out, j, static_cast<int>(std::min<int64_t>(k - j, kLanes)),
                Select(Gt(at, last), last, at));
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
  auto at = [&](int64_t j) {
    T value;
    std::memcpy(&value, index + j, sizeof(T));
    return value;
  };
  bool good = size <= 0 || (at(0) >= 0 && static_cast<int64_t>(at(size - 1)) < n);
  I wrong = {};
  int64_t j = 1;
  for (; j + kLanes <= size; j += kLanes) {
    wrong |= Ones(Ge(Load<false>(index, j - 1, kLanes), Load<false>(index, j, kLanes)));
  }
  for (int l = 0; l < kLanes; ++l) good &= wrong[l] == 0;
  for (; j < size; ++j) good &= at(j - 1) < at(j);
  return good;
}

}  // namespace
}  // namespace hipress::compll
