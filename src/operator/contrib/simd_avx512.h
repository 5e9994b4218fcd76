/*!
 * \file simd_avx512.h
 * \brief The vector primitives of kernels-inl.h in AVX-512 F, BW, DQ, VL; simd_portable.h says what
 *        each does.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_SIMD_AVX512_H_
#define HIPRESS_OPERATOR_CONTRIB_SIMD_AVX512_H_

#include <immintrin.h>

#include "operator/contrib/scalar-inl.h"

#define HIPRESS_SIMD_NAME "avx512"
#define HIPRESS_SIMD_TABLE kAvx512Kernels

namespace hipress {
namespace {

using F = __m512;
using M = __mmask16;
using B = __m512i;
constexpr size_t kLanes = 16;
constexpr size_t kBytes = 64;
constexpr size_t kVectors = kGroup / kLanes;

inline F Set(float value) { return _mm512_set1_ps(value); }
inline F Zero() { return _mm512_setzero_ps(); }

template <typename T>
F Load(const void* data, size_t i);
template <>
inline F Load<float>(const void* data, size_t i) {
  return _mm512_loadu_ps(static_cast<const float*>(data) + i);
}
inline __m256i LoadHalves(const void* data, size_t i) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const uint16_t*>(data) + i));
}
template <>
inline F Load<Float16>(const void* data, size_t i) {
  return _mm512_cvtph_ps(LoadHalves(data, i));
}
template <>
inline F Load<BFloat16>(const void* data, size_t i) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(LoadHalves(data, i)), 16));
}

template <typename T>
void Store(void* data, size_t i, F value);
template <>
inline void Store<float>(void* data, size_t i, F value) {
  _mm512_storeu_ps(static_cast<float*>(data) + i, value);
}
inline void StoreHalves(void* data, size_t i, __m256i halves) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(static_cast<uint16_t*>(data) + i), halves);
}
template <>
inline void Store<Float16>(void* data, size_t i, F value) {
  StoreHalves(data, i, _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}
template <>
inline void Store<BFloat16>(void* data, size_t i, F value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(
      _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i halves = _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
  StoreHalves(data, i, _mm512_cvtepi32_epi16(halves));
}

inline F LoadInt8(const int8_t* data) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

inline M GreaterEqual(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
inline M Greater(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
inline M LessEqual(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
inline F Select(M mask, F yes, F no) { return _mm512_mask_blend_ps(mask, no, yes); }
inline F AddIf(F sum, M mask, F value) { return _mm512_mask_add_ps(sum, mask, sum, value); }
inline F AddUnless(F sum, M mask, F value) {
  return _mm512_mask_add_ps(sum, _knot_mask16(mask), sum, value);
}

inline F TakeThreshold(F r, M pos, M neg, F threshold) {
  r = _mm512_mask_sub_ps(r, pos, r, threshold);
  return _mm512_mask_add_ps(r, neg, r, threshold);
}

inline __mmask64 Join64(const M* masks) {
  return _mm512_kunpackd(_mm512_kunpackw(masks[3], masks[2]), _mm512_kunpackw(masks[1], masks[0]));
}
inline uint64_t JoinMasks(const M* masks) { return _cvtmask64_u64(Join64(masks)); }

struct BitTable {
  F zero, one;
  explicit BitTable(const float* values) : zero(Set(values[0])), one(Set(values[1])) {}
};

inline F DecodeBits(uint64_t bits, size_t v, const BitTable& table) {
  return Select(static_cast<M>(bits >> (v * kLanes)), table.one, table.zero);
}

inline void StoreCodes(const M* pos, const M* neg, uint8_t* out) {
  const __m512i code = _mm512_mask_blend_epi8(
      Join64(pos), _mm512_maskz_mov_epi8(Join64(neg), _mm512_set1_epi8(2)), _mm512_set1_epi8(3));
  const __m512i pairs = _mm512_maddubs_epi16(code, _mm512_set1_epi32(0x01041040));
  const __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(fours));
}

struct CodeTable {
  F values;  // by the low four bits of an index, of which two count
  explicit CodeTable(float t) : values(_mm512_broadcast_f32x4(_mm_setr_ps(0, 0, -t, t))) {}
};

inline F DecodeCodes(const uint8_t* in, size_t v, const CodeTable& table) {
  const __m512i shifts =
      _mm512_setr_epi32(6, 4, 2, 0, 14, 12, 10, 8, 22, 20, 18, 16, 30, 28, 26, 24);
  int word;
  std::memcpy(&word, in + 4 * v, sizeof(word));
  return _mm512_permutexvar_ps(_mm512_srlv_epi32(_mm512_set1_epi32(word), shifts), table.values);
}

inline B AddLevels(B counts, const uint8_t* in) {
  const __m512i spread = _mm512_set_epi32(0x0f0f0f0f, 0x0e0e0e0e, 0x0d0d0d0d, 0x0c0c0c0c,  //
                                          0x0b0b0b0b, 0x0a0a0a0a, 0x09090909, 0x08080808,  //
                                          0x07070707, 0x06060606, 0x05050505, 0x04040404,  //
                                          0x03030303, 0x02020202, 0x01010101, 0x00000000);
  const __m512i field = _mm512_set1_epi32(0x030c30c0), one = _mm512_set1_epi8(1);
  const __m512i bytes = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
  const __m512i code = _mm512_and_si512(_mm512_shuffle_epi8(bytes, spread), field);
  counts = _mm512_mask_add_epi8(counts, _mm512_cmpeq_epi8_mask(code, field), counts, one);
  return _mm512_mask_sub_epi8(
      counts, _mm512_cmpeq_epi8_mask(code, _mm512_set1_epi32(0x02082080)), counts, one);
}

inline B AddOnes(B counts, const uint8_t* in) {
  const __m512i spread = _mm512_set_epi64(0x0707070707070707, 0x0606060606060606,  //
                                          0x0505050505050505, 0x0404040404040404,  //
                                          0x0303030303030303, 0x0202020202020202,  //
                                          0x0101010101010101, 0x0000000000000000);
  const __m512i bit = _mm512_set1_epi64(0x0102040810204080);
  long long word;
  std::memcpy(&word, in, sizeof(word));
  const __mmask64 set = _mm512_test_epi8_mask(
      _mm512_shuffle_epi8(_mm512_set1_epi64(word), spread), bit);
  return _mm512_mask_add_epi8(counts, set, counts, _mm512_set1_epi8(1));
}

inline void StoreBytes(int8_t* out, B bytes) { _mm512_storeu_si512(out, bytes); }

}  // namespace
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_SIMD_AVX512_H_
