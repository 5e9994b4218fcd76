/*!
 * \file simd_avx2.h
 * \brief The vector primitives of kernels-inl.h in AVX2; simd_portable.h says what each does.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_SIMD_AVX2_H_
#define HIPRESS_OPERATOR_CONTRIB_SIMD_AVX2_H_

#include <immintrin.h>

#include "operator/contrib/scalar-inl.h"

#define HIPRESS_SIMD_NAME "avx2"
#define HIPRESS_SIMD_TABLE kAvx2Kernels

namespace hipress {
namespace {

using F = __m256;
using M = __m256;  // all ones or all zeros per lane
using B = __m256i;
constexpr size_t kLanes = 8;
constexpr size_t kBytes = 32;
constexpr size_t kVectors = kGroup / kLanes;

inline F Set(float value) { return _mm256_set1_ps(value); }
inline F Zero() { return _mm256_setzero_ps(); }

template <typename T>
F Load(const void* data, size_t i);
template <>
inline F Load<float>(const void* data, size_t i) {
  return _mm256_loadu_ps(static_cast<const float*>(data) + i);
}
inline __m128i LoadHalves(const void* data, size_t i) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const uint16_t*>(data) + i));
}
template <>
inline F Load<Float16>(const void* data, size_t i) {
  return _mm256_cvtph_ps(LoadHalves(data, i));
}
template <>
inline F Load<BFloat16>(const void* data, size_t i) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(LoadHalves(data, i)), 16));
}

template <typename T>
void Store(void* data, size_t i, F value);
template <>
inline void Store<float>(void* data, size_t i, F value) {
  _mm256_storeu_ps(static_cast<float*>(data) + i, value);
}
inline void StoreHalves(void* data, size_t i, __m128i halves) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<uint16_t*>(data) + i), halves);
}
template <>
inline void Store<Float16>(void* data, size_t i, F value) {
  StoreHalves(data, i, _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}
template <>
inline void Store<BFloat16>(void* data, size_t i, F value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256 nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
  const __m256i halves = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan));
  const __m256i packed = _mm256_packus_epi32(halves, halves);  // per 128-bit half
  StoreHalves(data, i, _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

inline F LoadInt8(const int8_t* data) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(data));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

inline M GreaterEqual(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
inline M Greater(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
inline M LessEqual(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
inline F Select(M mask, F yes, F no) { return _mm256_blendv_ps(no, yes, mask); }
inline F AddIf(F sum, M mask, F value) { return sum + _mm256_and_ps(mask, value); }
inline F AddUnless(F sum, M mask, F value) { return sum + _mm256_andnot_ps(mask, value); }

inline F TakeThreshold(F r, M pos, M neg, F threshold) {
  return r - _mm256_or_ps(_mm256_and_ps(pos, threshold), _mm256_and_ps(neg, -threshold));
}

inline uint64_t JoinMasks(const M* masks) {
  uint64_t bits = 0;
#pragma GCC unroll 8
  for (size_t v = 0; v < kVectors; ++v) {
    bits |= uint64_t(static_cast<unsigned>(_mm256_movemask_ps(masks[v]))) << (v * kLanes);
  }
  return bits;
}

struct BitTable {
  F values;  // by the low two bits of an index, of which one counts
  explicit BitTable(const float* values) {
    double pair;
    std::memcpy(&pair, values, sizeof(pair));
    this->values = _mm256_castpd_ps(_mm256_set1_pd(pair));
  }
};

inline F DecodeBits(uint64_t bits, size_t v, const BitTable& table) {
  const int first = static_cast<int>(v % 4 * kLanes);
  const __m256i shifts = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                          _mm256_set1_epi32(first));
  const __m256i word = _mm256_set1_epi32(static_cast<int>(bits >> (v / 4 * 32)));
  return _mm256_permutevar_ps(table.values, _mm256_srlv_epi32(word, shifts));
}

/// Sums of 32 elements' weighted codes, four by four; [first four of each vector | last four].
inline __m256i JoinCodes(const M* pos, const M* neg) {
  __m256i code[4];
#pragma GCC unroll 4
  for (size_t v = 0; v < 4; ++v) {
    code[v] = _mm256_or_si256(
        _mm256_and_si256(_mm256_castps_si256(pos[v]), _mm256_set1_epi32(3)),
        _mm256_and_si256(_mm256_castps_si256(neg[v]), _mm256_set1_epi32(2)));
  }
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(code[0], code[1]),
                                           _mm256_packs_epi32(code[2], code[3]));
  const __m256i pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi32(0x01041040));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

inline void StoreCodes(const M* pos, const M* neg, uint8_t* out) {
  const __m256i joined = _mm256_packs_epi32(JoinCodes(pos, neg), JoinCodes(pos + 4, neg + 4));
  const __m128i first = _mm256_castsi256_si128(joined), last = _mm256_extracti128_si256(joined, 1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm_packus_epi16(_mm_unpacklo_epi16(first, last), _mm_unpackhi_epi16(first, last)));
}

struct CodeTable {
  F values;  // by the low two bits of an index, in each 128-bit half
  explicit CodeTable(float t) : values(_mm256_setr_ps(0, 0, -t, t, 0, 0, -t, t)) {}
};

inline F DecodeCodes(const uint8_t* in, size_t v, const CodeTable& table) {
  const __m256i shifts = _mm256_setr_epi32(6, 4, 2, 0, 14, 12, 10, 8);
  uint16_t word;
  std::memcpy(&word, in + 2 * v, sizeof(word));
  return _mm256_permutevar_ps(table.values, _mm256_srlv_epi32(_mm256_set1_epi32(word), shifts));
}

inline B AddLevels(B counts, const uint8_t* in) {
  const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3,  //
                                          4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7);
  const __m256i field = _mm256_set1_epi32(0x030c30c0);
  long long word;
  std::memcpy(&word, in, sizeof(word));
  const __m256i code =
      _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi64x(word), spread), field);
  counts = _mm256_sub_epi8(counts, _mm256_cmpeq_epi8(code, field));
  return _mm256_add_epi8(counts, _mm256_cmpeq_epi8(code, _mm256_set1_epi32(0x02082080)));
}

inline B AddOnes(B counts, const uint8_t* in) {
  const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                          2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit = _mm256_set1_epi64x(0x0102040810204080);
  int word;
  std::memcpy(&word, in, sizeof(word));
  const __m256i set = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), spread), bit);
  return _mm256_sub_epi8(counts, _mm256_cmpeq_epi8(set, bit));
}

inline void StoreBytes(int8_t* out, B bytes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bytes);
}

}  // namespace
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_SIMD_AVX2_H_
