/*!
 * \file philox.h
 * \brief Philox4x32-10: the random words, or 16-bit halves, of tiles of 64 elements.
 *
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Element i takes word
 * (i mod 64) / 16 of counter 16 * (i / 64) + i mod 16: no transpose, and nothing depends on lanes.
 * Of 16-bit numbers it takes half i mod 2 (the lower first) of word (i mod 64) / 16 of counter
 * 8 * (i / 64) + (i mod 16) / 2.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_PHILOX_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_PHILOX_H_

#include "operator/contrib/compll/lanes.h"

namespace hipress {
namespace compll {
namespace {

/// 32-bit words in 64-bit lanes, so that a product needs no widening.
constexpr int kWide = kLanes / 2;
using W = uint64_t __attribute__((vector_size(8 * kWide)));
using HalfU = uint32_t __attribute__((vector_size(4 * kWide)));

COMPLL_INLINE W Multiply(W a, uint64_t b) {
#if defined(COMPLL_AVX512)
  return reinterpret_cast<W>(_mm512_mul_epu32(reinterpret_cast<__m512i>(a), _mm512_set1_epi64(b)));
#elif defined(COMPLL_AVX2)
  return reinterpret_cast<W>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), _mm256_set1_epi64x(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<W>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), _mm_set1_epi64x(b)));
#else
  return (a & 0xffffffffu) * b;
#endif
}

struct PhiloxKey {
  uint32_t seed, step, stream;
};

#if defined(COMPLL_AVX512)
COMPLL_INLINE W Xor(W a, W b, uint32_t c) {
  return reinterpret_cast<W>(_mm512_ternarylogic_epi64(
      reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b), _mm512_set1_epi64(c), 0x96));
}
/// Upper halves of 64-bit lanes; shuffles and shifts share no execution port.
COMPLL_INLINE W High(W x) {
  return reinterpret_cast<W>(
      _mm512_shuffle_epi32(reinterpret_cast<__m512i>(x), static_cast<_MM_PERM_ENUM>(0xf5)));
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

/// Ten rounds on kChains * kWide counters; words[w][c] is word w of vector c.
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
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
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

/// The words of `tiles` tiles from `tile` on, each of 4 * kPer: word w of all kPer counters first.
template <int kPer>
inline __attribute__((noinline)) void RandomTiles(const PhiloxKey& key, uint32_t site,
                                                  int64_t tile, int64_t tiles, uint32_t* out) {
  constexpr int kStep = kChains * kWide;
  const uint64_t first = static_cast<uint64_t>(tile) * kPer;
  for (int64_t done = 0; done < tiles * kPer; done += kStep) {
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
 * \brief Random words (uint32_t) or halves (uint16_t) of the tiles that a loop comes to, made for
 *        some tiles at a time.
 */
template <typename T>
class RandomSource {
 public:
  /// T[64] for the elements from 64 * tile on; the loop goes on for `left` elements.
  COMPLL_INLINE const T* Tile(const PhiloxKey& key, uint32_t site, int64_t tile, int64_t left) {
    if (tile >= end_) {
      const int64_t tiles = (left + kTile - 1) / kTile;
      begin_ = tile;
      end_ = tile + (tiles < kTiles ? tiles : kTiles);
      RandomTiles<kPer>(key, site, begin_, end_ - begin_, words_);
    }
    return reinterpret_cast<const T*>(words_) + (tile - begin_) * kTile;
  }
  /// T[64] of anything, for a loop that does not look at it.
  COMPLL_INLINE const T* Any() const { return reinterpret_cast<const T*>(words_); }

 private:
  /// Counters of a tile: one gives 128 bits.
  static constexpr int kPer = kTile * static_cast<int>(sizeof(T)) / 16;
  static constexpr int64_t kTiles = 8;
  int64_t begin_ = 0, end_ = -1;
  /// Vectors of counters may go beyond the last tile.
  alignas(64) uint32_t words_[kTiles * 4 * kPer + 4 * kChains * kWide + 4 * kPer];
};

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_PHILOX_H_
