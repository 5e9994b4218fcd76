/*!
 * \file levels.h
 * \brief Sums of small integer levels as bytes: what a merge of 1- and 2-bit codes adds.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_LEVELS_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_LEVELS_H_

#include "operator/contrib/compll/packing.h"

namespace hipress {
namespace compll {
namespace {

#if defined(COMPLL_AVX512) || defined(COMPLL_AVX2)
constexpr bool kByteLevels = true;
/// A code of two bits is looked up where it lies in its half byte: in bits 0 and 1, or 2 and 3.
COMPLL_INLINE __m128i LevelBytes(I table) {
  alignas(16) int8_t bytes[16] = {};
  for (int code = 0; code < 4; ++code) {
    bytes[code] = bytes[4 * code] = static_cast<int8_t>(table[code]);
  }
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}
/// True if a sum of `count` levels always fits into a byte.
COMPLL_INLINE bool FitBytes(I table, int bits, int64_t count) {
  for (int code = 0; code < 1 << bits; ++code) {
    if (table[code] > 127 / count || table[code] < -127 / count) return false;
  }
  return true;
}
#endif

#if defined(COMPLL_AVX512)
using Levels = __m512i;
/// For ByteLevels: the levels of codes of one or two bits, from table[code].
COMPLL_INLINE Levels LevelTable(I table) { return _mm512_broadcast_i32x4(LevelBytes(table)); }
/// The levels of a whole tile of codes, in order.
template <int kBits, bool kMsb>
COMPLL_INLINE Levels ByteLevels(const uint8_t* tile, Levels table) {
  if (kBits == 1) {
    uint64_t word;
    std::memcpy(&word, tile, sizeof(word));
    const __m512i code = _mm512_maskz_set1_epi8(kMsb ? ReverseInBytes(word) : word, 1);
    return _mm512_shuffle_epi8(table, code);
  }
  const __m512i fours = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tile)));
  const __m512i each = _mm512_shuffle_epi8(
      fours, _mm512_setr_epi32(0x00000000, 0x01010101, 0x02020202, 0x03030303, 0x04040404,
                               0x05050505, 0x06060606, 0x07070707, 0x08080808, 0x09090909,
                               0x0a0a0a0a, 0x0b0b0b0b, 0x0c0c0c0c, 0x0d0d0d0d, 0x0e0e0e0e,
                               0x0f0f0f0f));
  const __m512i own = _mm512_and_si512(
      each, _mm512_set1_epi32(static_cast<int>(kMsb ? 0x030c30c0u : 0xc0300c03u)));
  const __m512i low = _mm512_and_si512(_mm512_or_si512(own, _mm512_srli_epi16(own, 4)),
                                       _mm512_set1_epi8(15));
  return _mm512_shuffle_epi8(table, low);
}
COMPLL_INLINE Levels Add(Levels a, Levels b) { return _mm512_add_epi8(a, b); }
COMPLL_INLINE void Widen(Levels levels, I* total) {
  alignas(64) int8_t bytes[kTile];
  _mm512_store_si512(bytes, levels);
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const auto part = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes + v * kLanes));
    total[v] = reinterpret_cast<I>(_mm512_cvtepi8_epi32(part));
  }
}
#elif defined(COMPLL_AVX2)
struct Levels {
  __m256i half[2];
};
COMPLL_INLINE Levels LevelTable(I table) {
  const __m256i both = _mm256_broadcastsi128_si256(LevelBytes(table));
  return {{both, both}};
}
template <int kBits, bool kMsb>
COMPLL_INLINE Levels ByteLevels(const uint8_t* tile, Levels table) {
  Levels levels;
  COMPLL_UNROLL
  for (int h = 0; h < 2; ++h) {
    __m256i code;
    if (kBits == 1) {
      int word;
      std::memcpy(&word, tile + 4 * h, sizeof(word));
      const __m256i each = _mm256_shuffle_epi8(
          _mm256_set1_epi32(word), _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                                      0x0303030303030303));
      const __m256i bit = _mm256_set1_epi64x(
          static_cast<long long>(kMsb ? 0x0102040810204080u : 0x8040201008040201u));
      code = _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(each, bit), bit),
                              _mm256_set1_epi8(1));
    } else {
      long long word;
      std::memcpy(&word, tile + 8 * h, sizeof(word));
      const __m256i each = _mm256_shuffle_epi8(
          _mm256_set1_epi64x(word), _mm256_setr_epi32(0x00000000, 0x01010101, 0x02020202, 0x03030303,
                                                      0x04040404, 0x05050505, 0x06060606, 0x07070707));
      const __m256i own = _mm256_and_si256(
          each, _mm256_set1_epi32(static_cast<int>(kMsb ? 0x030c30c0u : 0xc0300c03u)));
      code = _mm256_and_si256(_mm256_or_si256(own, _mm256_srli_epi16(own, 4)), _mm256_set1_epi8(15));
    }
    levels.half[h] = _mm256_shuffle_epi8(table.half[h], code);
  }
  return levels;
}
COMPLL_INLINE Levels Add(Levels a, Levels b) {
  return {{_mm256_add_epi8(a.half[0], b.half[0]), _mm256_add_epi8(a.half[1], b.half[1])}};
}
COMPLL_INLINE void Widen(Levels levels, I* total) {
  alignas(32) int8_t bytes[kTile];
  _mm256_store_si256(reinterpret_cast<__m256i*>(bytes), levels.half[0]);
  _mm256_store_si256(reinterpret_cast<__m256i*>(bytes + 32), levels.half[1]);
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const auto part = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + v * kLanes));
    total[v] = reinterpret_cast<I>(_mm256_cvtepi8_epi32(part));
  }
}
#else
constexpr bool kByteLevels = false;
struct Levels {};
COMPLL_INLINE Levels LevelTable(I) { return {}; }
template <int kBits, bool kMsb>
COMPLL_INLINE Levels ByteLevels(const uint8_t*, Levels table) {
  return table;
}
COMPLL_INLINE Levels Add(Levels a, Levels) { return a; }
COMPLL_INLINE void Widen(Levels, I*) {}
COMPLL_INLINE bool FitBytes(I, int, int64_t) { return false; }
#endif

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_LEVELS_H_
