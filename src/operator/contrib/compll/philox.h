/*!
 * \file philox.h
 * \brief Philox4x32-7: the random words, or 16 random bits, of the elements of tiles of 64.
 *
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011: seven rounds are the
 * fewest that pass BigCrush. Element i takes word (i mod 64) / 16 of counter 16 * (i / 64) + i mod
 * 16: no transpose, and nothing depends on lanes. Of 16-bit numbers it takes bits 8 * b to 8 * b +
 * 15, round the end, of word 2 * (i / 64 mod 2) + (i mod 16) / 8 of counter 8 * (i / 128) + i mod
 * 8, where b is (i mod 64) / 16: four elements share a word, and each is uniform
 * (docs/reference/compll-language.md says how little they have to do with each other).
 */
#pragma once

#include "operator/contrib/compll/lanes.h"

namespace hipress::compll {
namespace {

/// 32-bit words in 64-bit lanes, so that a product needs no widening.
constexpr int kWide = kLanes / 2;
using W = uint64_t __attribute__((vector_size(8 * kWide)));
using HalfU = uint32_t __attribute__((vector_size(4 * kWide)));

COMPLL_INLINE W Multiply(W a, uint64_t b) {
#if defined(COMPLL_X86)
  return reinterpret_cast<W>(COMPLL_X86(mul_epu32)(AsRaw(a), AsRaw(W{} + b)));
#else
  return (a & 0xffffffffu) * b;
#endif
}

#if defined(COMPLL_AVX512)
COMPLL_INLINE W Xor(W a, W b, uint32_t c) {
  return reinterpret_cast<W>(
      _mm512_ternarylogic_epi64(AsRaw(a), AsRaw(b), _mm512_set1_epi64(c), 0x96));
}
/// Upper halves of 64-bit lanes; shuffles and shifts share no execution port.
COMPLL_INLINE W High(W x) {
  return reinterpret_cast<W>(_mm512_shuffle_epi32(AsRaw(x), static_cast<_MM_PERM_ENUM>(0xf5)));
}
#else
COMPLL_INLINE W Xor(W a, W b, uint32_t c) { return a ^ b ^ c; }
COMPLL_INLINE W High(W x) { return x >> 32; }
#endif

/// Vectors of counters at once: one alone waits for its products.
#if defined(COMPLL_AVX512)
constexpr int kChains = 4;
#else
constexpr int kChains = 2;
#endif

/// Seven rounds on kChains * kWide counters; words[w][c] is word w of vector c.
COMPLL_INLINE void Philox(const PhiloxKey& key, uint32_t site, uint64_t first, HalfU (*words)[kChains]) {
  W lanes;
  for (int l = 0; l < kWide; ++l) lanes[l] = l;
  W c0[kChains], c1[kChains], c2[kChains], c3[kChains];
#pragma GCC unroll 4
  for (int c = 0; c < kChains; ++c) {
    const W counter = lanes + (first + c * kWide);
    c0[c] = counter;
    c1[c] = counter >> 32;
    c2[c] = W{} + site;
    c3[c] = W{} + key.stream;
  }
  uint32_t k0 = key.seed, k1 = key.step;
  // Upper halves of lanes are garbage until the end: a product looks at the lower ones only.
#pragma GCC unroll 7
  for (int round = 0; round < 7; ++round) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      const W p0 = Multiply(c0[c], 0xD2511F53u), p1 = Multiply(c2[c], 0xCD9E8D57u);
      c0[c] = Xor(High(p1), c1[c], k0);
      c2[c] = Xor(High(p0), c3[c], k1);
      c1[c] = p1;
      c3[c] = p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
#pragma GCC unroll 4
  for (int c = 0; c < kChains; ++c) {
    words[0][c] = __builtin_convertvector(c0[c], HalfU);
    words[1][c] = __builtin_convertvector(c1[c], HalfU);
    words[2][c] = __builtin_convertvector(c2[c], HalfU);
    words[3][c] = __builtin_convertvector(c3[c], HalfU);
  }
}

/// The words of `groups` groups of kPer counters from `group` on: word w of all kPer counters
/// first.
template <int kPer>
inline __attribute__((noinline)) void RandomGroups(const PhiloxKey& key, uint32_t site,
                                                   int64_t group, int64_t groups, uint32_t* out) {
  constexpr int kStep = kChains * kWide;
  const uint64_t first = static_cast<uint64_t>(group) * kPer;
  for (int64_t done = 0; done < groups * kPer; done += kStep) {
    HalfU words[4][kChains];
    Philox(key, site, first + done, words);
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      const int64_t counter = done + c * kWide;
      uint32_t* place = out + counter / kPer * 4 * kPer + counter % kPer;
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) std::memcpy(place + w * kPer, &words[w][c], sizeof(HalfU));
    }
  }
}

/*!
 * \brief Random numbers of the tiles that a loop comes to, made for some tiles at a time.
 *
 * \tparam kTileWords words of a tile of 64 elements: 64, or 16 for numbers of 16 bits
 */
template <int kTileWords>
class RandomSource {
 public:
  /// The words for the elements from 64 * tile on; the loop goes on for `left` elements.
  COMPLL_INLINE const uint32_t* Tile(const PhiloxKey& key, uint32_t site, int64_t tile,
                                     int64_t left) {
    if (tile >= end_) {
      const int64_t last = tile + (left + kTile - 1) / kTile;
      begin_ = tile / kGroupTiles * kGroupTiles;
      end_ = last < begin_ + kTiles ? last : begin_ + kTiles;
      RandomGroups<kCounters>(key, site, begin_ / kGroupTiles,
                              (end_ - begin_ + kGroupTiles - 1) / kGroupTiles, words_);
    }
    return words_ + (tile - begin_) * kTileWords;
  }
  /// Words of anything, for a loop that does not look at them.
  COMPLL_INLINE const uint32_t* Any() const { return words_; }

 private:
  static constexpr int kGroupTiles = kTileWords == 64 ? 1 : 2;
  static constexpr int kCounters = kTileWords * kGroupTiles / 4;
  static constexpr int64_t kTiles = kTileWords == 64 ? 8 : 16;
  int64_t begin_ = 0, end_ = -1;
  /// Vectors of counters may go beyond the last tile.
  alignas(64) uint32_t words_[kTiles * kTileWords + 4 * kChains * kWide + 4 * kCounters];
};

/// The random words of vector v of a tile.
COMPLL_INLINE U RandomWords(const uint32_t* tile, int v) {
  return Load<false>(tile, v * kLanes, kLanes);
}
/// Likewise 16 random bits of each element.
COMPLL_INLINE I RandomHalves(const uint32_t* tile, int v) {
  const U words = Load<false>(tile, v * kLanes % 16, kLanes);
  const int shift = v * kLanes / 16 * 8;
  if (shift == 16) return reinterpret_cast<I>(words >> 16);
  if (shift < 16) return reinterpret_cast<I>((shift == 0 ? words : words >> 8) & 0xffffu);
#if defined(COMPLL_AVX512)
  const U turned = reinterpret_cast<U>(_mm512_ror_epi32(AsRaw(words), 24));
#else
  const U turned = words >> 24 | words << 8;
#endif
  return reinterpret_cast<I>(turned & 0xffffu);
}

}  // namespace
}  // namespace hipress::compll
