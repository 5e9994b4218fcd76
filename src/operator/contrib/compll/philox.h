/*!
 * \file philox.h
 * \brief Philox4x32-10, sixteen counters at once: the random words of 64 elements.
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

/// Ten rounds on counters first .. first + kWide: words w of all of them at out + stride * w.
COMPLL_INLINE void Philox(const PhiloxKey& key, uint32_t site, uint64_t first, int stride,
                          uint32_t* out) {
  W counter;
  for (int l = 0; l < kWide; ++l) counter[l] = first + l;
  // Upper halves of lanes are garbage until the end: a product looks at the lower ones only.
  W c0 = counter, c1 = counter >> 32, c2 = W{} + site, c3 = W{} + key.stream;
  uint32_t k0 = key.seed, k1 = key.step;
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const W p0 = Multiply(c0, 0xD2511F53u), p1 = Multiply(c2, 0xCD9E8D57u);
    c0 = (p1 >> 32) ^ c1 ^ k0;
    c2 = (p0 >> 32) ^ c3 ^ k1;
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const HalfU words[4] = {__builtin_convertvector(c0, HalfU), __builtin_convertvector(c1, HalfU),
                          __builtin_convertvector(c2, HalfU), __builtin_convertvector(c3, HalfU)};
  for (int w = 0; w < 4; ++w) std::memcpy(out + stride * w, &words[w], sizeof(words[w]));
}

/// words[64] for the elements from 64 * tile on: 16 counters.
COMPLL_INLINE void RandomTile(const PhiloxKey& key, uint32_t site, int64_t tile, uint32_t* words) {
#pragma GCC unroll 8
  for (int first = 0; first < 16; first += kWide) {
    Philox(key, site, static_cast<uint64_t>(tile) * 16 + first, 16, words + first);
  }
}

/// halves[64] for the elements from 64 * tile on, half the work: 8 counters.
COMPLL_INLINE void RandomTile16(const PhiloxKey& key, uint32_t site, int64_t tile,
                                uint16_t* halves) {
  alignas(64) uint32_t words[kTile / 2];
#pragma GCC unroll 4
  for (int first = 0; first < 8; first += kWide) {
    Philox(key, site, static_cast<uint64_t>(tile) * 8 + first, 8, words + first);
  }
  std::memcpy(halves, words, sizeof(words));
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_PHILOX_H_
