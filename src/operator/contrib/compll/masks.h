/*!
 * \file masks.h
 * \brief A bool in each lane, M: a mask register with AVX-512, else an I of 0 or -1. Part of lanes.h.
 *
 * The same names for scalars, so that generated combiners work on both.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_MASKS_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_MASKS_H_

namespace hipress {
namespace compll {
namespace {

#if defined(COMPLL_AVX512)
using M = __mmask16;
#define COMPLL_COMPARE(Name, symbol, floats, ints)                                            \
  COMPLL_INLINE M Name(F a, F b) { return _mm512_cmp_ps_mask(a, b, floats); }                 \
  COMPLL_INLINE M Name(I a, I b) {                                                            \
    return _mm512_cmp_epi32_mask(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b),  \
                                 ints);                                                       \
  }                                                                                           \
  COMPLL_INLINE M Name(U a, U b) {                                                            \
    return _mm512_cmp_epu32_mask(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b),  \
                                 ints);                                                       \
  }                                                                                           \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type> \
  COMPLL_INLINE bool Name(T a, T b) {                                                         \
    return a symbol b;                                                                        \
  }
#else
using M = I;
#define COMPLL_COMPARE(Name, symbol, floats, ints)                                            \
  COMPLL_INLINE M Name(F a, F b) { return a symbol b; }                                       \
  COMPLL_INLINE M Name(I a, I b) { return a symbol b; }                                       \
  COMPLL_INLINE M Name(U a, U b) { return a symbol b; }                                       \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type> \
  COMPLL_INLINE bool Name(T a, T b) {                                                         \
    return a symbol b;                                                                        \
  }
#endif
COMPLL_COMPARE(Lt, <, _CMP_LT_OQ, _MM_CMPINT_LT)
COMPLL_COMPARE(Le, <=, _CMP_LE_OQ, _MM_CMPINT_LE)
COMPLL_COMPARE(Gt, >, _CMP_GT_OQ, _MM_CMPINT_NLE)
COMPLL_COMPARE(Ge, >=, _CMP_GE_OQ, _MM_CMPINT_NLT)
COMPLL_COMPARE(Eq, ==, _CMP_EQ_OQ, _MM_CMPINT_EQ)
COMPLL_COMPARE(Ne, !=, _CMP_NEQ_UQ, _MM_CMPINT_NE)
#undef COMPLL_COMPARE

#if defined(COMPLL_AVX512)
COMPLL_INLINE M Set(bool value) { return static_cast<M>(value ? 0xffff : 0); }
COMPLL_INLINE F Select(M mask, F yes, F no) { return _mm512_mask_blend_ps(mask, no, yes); }
COMPLL_INLINE I Select(M mask, I yes, I no) {
  return reinterpret_cast<I>(_mm512_mask_blend_epi32(mask, reinterpret_cast<__m512i>(no),
                                                     reinterpret_cast<__m512i>(yes)));
}
COMPLL_INLINE M Select(M mask, M yes, M no) {
  return static_cast<M>((mask & yes) | (static_cast<M>(~mask) & no));
}
COMPLL_INLINE M Not(M mask) { return _knot_mask16(mask); }
COMPLL_INLINE M And(M a, M b) { return _kand_mask16(a, b); }
COMPLL_INLINE M Or(M a, M b) { return _kor_mask16(a, b); }
/// 1 where the mask is set, else 0.
COMPLL_INLINE I Ones(M mask) { return reinterpret_cast<I>(_mm512_maskz_set1_epi32(mask, 1)); }
COMPLL_INLINE M IsFinite(F x) { return _knot_mask16(_mm512_fpclass_ps_mask(x, 0x99)); }
COMPLL_INLINE M IsNan(F x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }
/// The lanes below `left`, which is 1 or more.
COMPLL_INLINE M Valid(int left) { return _cvtu32_mask16(_bzhi_u32(0xffff, left)); }

/// Masks of a tile as 64 bits, the first lane lowest.
COMPLL_INLINE uint64_t JoinMasks(const M* masks) {
  return _cvtmask64_u64(_mm512_kunpackd(_mm512_kunpackw(masks[3], masks[2]),
                                        _mm512_kunpackw(masks[1], masks[0])));
}
COMPLL_INLINE M MaskOf(uint64_t bits, int v) { return static_cast<M>(bits >> (v * kLanes)); }
/// Bits of a tile that choose between two values, which are each the same in all lanes.
template <typename V>
COMPLL_INLINE V SelectByBits(uint64_t bits, int v, V yes, V no) {
  return Select(MaskOf(bits, v), yes, no);
}
#else
COMPLL_INLINE M Set(bool value) { return I{} - static_cast<int32_t>(value); }
COMPLL_INLINE F Select(M mask, F yes, F no) { return mask ? yes : no; }
COMPLL_INLINE I Select(M mask, I yes, I no) { return mask ? yes : no; }
COMPLL_INLINE M Not(M mask) { return ~mask; }
COMPLL_INLINE M And(M a, M b) { return a & b; }
COMPLL_INLINE M Or(M a, M b) { return a | b; }
COMPLL_INLINE I Ones(M mask) { return mask & 1; }
COMPLL_INLINE M IsFinite(F x) { return (BitsI(x) & 0x7f800000) != 0x7f800000; }
COMPLL_INLINE M IsNan(F x) { return x != x; }
COMPLL_INLINE M Valid(int left) {
  I lane;
  for (int l = 0; l < kLanes; ++l) lane[l] = l;
  return lane < left;
}
COMPLL_INLINE uint64_t JoinMasks(const M* masks) {
  uint64_t bits = 0;
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) {
#if defined(COMPLL_AVX2)
    const uint64_t part = static_cast<uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(masks[v])));
#elif defined(__SSE2__)
    const uint64_t part = static_cast<uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(masks[v])));
#else
    uint64_t part = 0;
    for (int l = 0; l < kLanes; ++l) part |= uint64_t(masks[v][l] & 1) << l;
#endif
    bits |= part << (v * kLanes);
  }
  return bits;
}
COMPLL_INLINE M MaskOf(uint64_t bits, int v) {
  I one;
  for (int l = 0; l < kLanes; ++l) one[l] = 1 << l;
  return (Set(static_cast<int32_t>(bits >> (v * kLanes))) & one) != 0;
}
template <typename V>
COMPLL_INLINE V SelectByBits(uint64_t bits, int v, V yes, V no) {
#if defined(COMPLL_AVX2)
  // Each lane looks up its lowest two bits, of which the second is a neighbor's.
  const __m256 values = _mm256_unpacklo_ps(reinterpret_cast<__m256>(no), reinterpret_cast<__m256>(yes));
  const __m256i word = _mm256_set1_epi32(static_cast<int>(bits >> (v / 4 * 32)));
  I bit;
  for (int l = 0; l < kLanes; ++l) bit[l] = v % 4 * kLanes + l;
  const __m256i place = _mm256_srlv_epi32(word, reinterpret_cast<__m256i>(bit));
  return reinterpret_cast<V>(_mm256_permutevar_ps(values, place));
#else
  return Select(MaskOf(bits, v), yes, no);
#endif
}
#endif
COMPLL_INLINE U Select(M mask, U yes, U no) {
  return reinterpret_cast<U>(Select(mask, reinterpret_cast<I>(yes), reinterpret_cast<I>(no)));
}

COMPLL_INLINE bool And(bool a, bool b) { return a && b; }
COMPLL_INLINE bool Or(bool a, bool b) { return a || b; }

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_MASKS_H_
