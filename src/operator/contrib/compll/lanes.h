/*!
 * \file lanes.h
 * \brief Vectors of floats and ints as generated code uses them, in GCC's vector extension, as wide
 *        as the instruction set that the file is compiled for.
 *
 * A vector has kLanes elements of 32 bits: F of floats, I of int32_t, U of uint32_t. M is a bool in
 * each lane: a mask register with AVX-512, otherwise an I of 0 or -1. Every function has a scalar
 * overload of the same meaning, here or in scalar.h, so that a generated combiner works on both.
 * Results equal the NumPy interpreter's bit for bit.
 *
 * Google Highway is not used: its AVX-512 code is 36% slower in the cache, it lacks the operations
 * of packing.h, and a package would have to install 2 MB of its headers, because users compile
 * algorithms where they run them (docs/measurements/compll.md).
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "operator/contrib/compll/scalar.h"
#include "operator/contrib/half.h"

namespace hipress::compll {
namespace {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define COMPLL_AVX512 1
#define COMPLL_X86(function) _mm512_##function
using Raw = __m512i;
using HalfRaw = __m256i;
constexpr int kLanes = 16;
#elif defined(__AVX2__)
#define COMPLL_AVX2 1
#define COMPLL_X86(function) _mm256_##function
using Raw = __m256i;
using HalfRaw = __m128i;
constexpr int kLanes = 8;
#else
#if defined(__SSE2__)
#define COMPLL_X86(function) _mm_##function
using Raw = __m128i;
#endif
constexpr int kLanes = 4;
#endif
// COMPLL_X86(max_ps) is the intrinsic of that name for whole vectors, Raw a vector of integers as
// intrinsics take them, and HalfRaw one of half the bytes.
#if defined(COMPLL_AVX512) || defined(COMPLL_AVX2)
#define COMPLL_AVX 1
#endif
#define COMPLL_INLINE inline __attribute__((always_inline))

using F = float __attribute__((vector_size(4 * kLanes)));
using I = int32_t __attribute__((vector_size(4 * kLanes)));
using U = uint32_t __attribute__((vector_size(4 * kLanes)));
using Bytes = uint8_t __attribute__((vector_size(kLanes)));

/// Elements that generated loops handle at once, and lanes that define the order of a reduction.
constexpr int kTile = 64;
constexpr int kVectors = kTile / kLanes;
constexpr int kSumLanes = 32;
constexpr int kSums = kSumLanes / kLanes;
constexpr int64_t kBlock = 4096;

/// Before loops over the vectors of a tile: unrolled, small arrays of vectors become registers.
/// With the many narrow vectors of a baseline CPU there are no such registers, only more to
/// compile.
#if defined(COMPLL_AVX)
#define COMPLL_UNROLL _Pragma("GCC unroll 16")
#else
#define COMPLL_UNROLL
#endif

COMPLL_INLINE F Set(float value) { return F{} + value; }
COMPLL_INLINE I Set(int32_t value) { return I{} + value; }
COMPLL_INLINE U Set(uint32_t value) { return U{} + value; }

/// A constant for combiners: lanes of it where the first argument is lanes, else itself.
template <typename A, typename T>
COMPLL_INLINE auto Like(A, T value) {
  if constexpr (std::is_arithmetic<A>::value) {
    return value;
  } else {
    return Set(value);
  }
}

/// The bits of one type of 32-bit integers as the other's, of lanes or a scalar.
COMPLL_INLINE I AsI32(U x) { return reinterpret_cast<I>(x); }
COMPLL_INLINE U AsU32(I x) { return reinterpret_cast<U>(x); }
COMPLL_INLINE int32_t AsI32(uint32_t x) { return static_cast<int32_t>(x); }
COMPLL_INLINE uint32_t AsU32(int32_t x) { return static_cast<uint32_t>(x); }

COMPLL_INLINE I BitsI(F x) { return reinterpret_cast<I>(x); }
COMPLL_INLINE U BitsU(F x) { return reinterpret_cast<U>(x); }
COMPLL_INLINE F FromBits(U x) { return reinterpret_cast<F>(x); }
#if defined(COMPLL_X86)
template <typename V>
COMPLL_INLINE Raw AsRaw(V x) {
  return reinterpret_cast<Raw>(x);
}
#endif

// Masks -------------------------------------------------------------------------------------------

#if defined(COMPLL_AVX512)
using M = __mmask16;
#define COMPLL_COMPARE_LANES(Name, symbol, floats, ints)                                      \
  COMPLL_INLINE M Name(F a, F b) { return _mm512_cmp_ps_mask(a, b, floats); }                 \
  COMPLL_INLINE M Name(I a, I b) { return _mm512_cmp_epi32_mask(AsRaw(a), AsRaw(b), ints); }      \
  COMPLL_INLINE M Name(U a, U b) { return _mm512_cmp_epu32_mask(AsRaw(a), AsRaw(b), ints); }
#else
using M = I;
#define COMPLL_COMPARE_LANES(Name, symbol, floats, ints)                                      \
  COMPLL_INLINE M Name(F a, F b) { return a symbol b; }                                       \
  COMPLL_INLINE M Name(I a, I b) { return a symbol b; }                                       \
  COMPLL_INLINE M Name(U a, U b) { return a symbol b; }
#endif
#define COMPLL_COMPARE(Name, symbol, floats, ints)                                            \
  COMPLL_COMPARE_LANES(Name, symbol, floats, ints)                                            \
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>                 \
  COMPLL_INLINE bool Name(T a, T b) {                                                         \
    return a symbol b;                                                                        \
  }
COMPLL_COMPARE(Lt, <, _CMP_LT_OQ, _MM_CMPINT_LT)
COMPLL_COMPARE(Le, <=, _CMP_LE_OQ, _MM_CMPINT_LE)
COMPLL_COMPARE(Gt, >, _CMP_GT_OQ, _MM_CMPINT_NLE)
COMPLL_COMPARE(Ge, >=, _CMP_GE_OQ, _MM_CMPINT_NLT)
COMPLL_COMPARE(Eq, ==, _CMP_EQ_OQ, _MM_CMPINT_EQ)
COMPLL_COMPARE(Ne, !=, _CMP_NEQ_UQ, _MM_CMPINT_NE)
#undef COMPLL_COMPARE
#undef COMPLL_COMPARE_LANES

#if defined(COMPLL_AVX512)
COMPLL_INLINE M Set(bool value) { return static_cast<M>(value ? 0xffff : 0); }
COMPLL_INLINE F Select(M mask, F yes, F no) { return _mm512_mask_blend_ps(mask, no, yes); }
COMPLL_INLINE I Select(M mask, I yes, I no) {
  return reinterpret_cast<I>(_mm512_mask_blend_epi32(mask, AsRaw(no), AsRaw(yes)));
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
#if defined(COMPLL_X86)
    const uint64_t part = static_cast<uint32_t>(COMPLL_X86(movemask_ps)(reinterpret_cast<F>(masks[v])));
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

// Arithmetic --------------------------------------------------------------------------------------

/// The first if it is larger (smaller), else the second: what max (min) instructions do.
COMPLL_INLINE F Larger(F a, F b) {
#if defined(COMPLL_AVX)
  return COMPLL_X86(max_ps)(a, b);
#else
  return Select(a > b, a, b);
#endif
}
COMPLL_INLINE F Smaller(F a, F b) {
#if defined(COMPLL_AVX)
  return COMPLL_X86(min_ps)(a, b);
#else
  return Select(a < b, a, b);
#endif
}
COMPLL_INLINE U Larger(U a, U b) {
#if defined(COMPLL_AVX512)
  return reinterpret_cast<U>(_mm512_max_epu32(AsRaw(a), AsRaw(b)));
#else
  return Select(Gt(a, b), a, b);
#endif
}
COMPLL_INLINE U Smaller(U a, U b) {
#if defined(COMPLL_AVX512)
  return reinterpret_cast<U>(_mm512_min_epu32(AsRaw(a), AsRaw(b)));
#else
  return Select(Lt(a, b), a, b);
#endif
}
COMPLL_INLINE float Larger(float a, float b) { return a > b ? a : b; }
COMPLL_INLINE float Smaller(float a, float b) { return a < b ? a : b; }

/// x, but `other` where x is NaN.
COMPLL_INLINE F NanTo(F x, F other) {
#if defined(COMPLL_AVX512)
  // One operation: of the classes of numbers the two of NaN keep the first operand.
  return _mm512_fixupimm_ps(other, x, _mm512_set1_epi32(0x11111100), 0);
#else
  return Select(IsNan(x), other, x);
#endif
}

COMPLL_INLINE F Abs(F x) { return FromBits(BitsU(x) & 0x7fffffffu); }
COMPLL_INLINE I Abs(I x) { return x < 0 ? -x : x; }

COMPLL_INLINE F Sqrt(F x) {
#if defined(COMPLL_AVX)
  return COMPLL_X86(sqrt_ps)(x);
#else
  for (int l = 0; l < kLanes; ++l) x[l] = __builtin_sqrtf(x[l]);
  return x;
#endif
}

COMPLL_INLINE F Floor(F x) {
#if defined(COMPLL_AVX512)
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif defined(COMPLL_AVX2)
  return _mm256_floor_ps(x);
#else
  // From 2^23 on every float is whole. The sign is x's own: floor(-0.0) is -0.0.
  const M small = Abs(x) < 8388608.0f;
  F whole = __builtin_convertvector(__builtin_convertvector(Select(small, x, F{}), I), F);
  whole -= Select(whole > x, Set(1.0f), F{});
  whole = FromBits((BitsU(whole) & 0x7fffffffu) | (BitsU(x) & 0x80000000u));
  return Select(small, whole, x);
#endif
}
COMPLL_INLINE F Ceil(F x) { return -Floor(-x); }

// Conversions: what does not fit saturates, NaN is 0 --------------------

COMPLL_INLINE I ToI32(F x) {
  const F high = Set(2147483520.0f);
#if defined(COMPLL_AVX512)
  const M number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
  // What is below the least int converts to it.
  return reinterpret_cast<I>(_mm512_cvttps_epi32(_mm512_maskz_min_ps(number, x, high)));
#else
  const F low = Set(-2147483648.0f);
  x = Select(x == x, x, F{});
  x = Select(x < low, low, x);
  return __builtin_convertvector(Select(x > high, high, x), I);
#endif
}
/// ToI32 of what is below 2^31, or NaN.
COMPLL_INLINE I ToI32Below(F x) {
#if defined(COMPLL_AVX512)
  return reinterpret_cast<I>(_mm512_maskz_cvttps_epi32(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x));
#elif defined(__SSE2__)
  // What is below the least int converts to it.
  return __builtin_convertvector(Select(x == x, x, F{}), I);
#else
  return ToI32(x);
#endif
}
/// The same but for bit 31 of what NaN becomes.
COMPLL_INLINE I ToI32Low(F x) {
#if defined(__SSE2__)
  // A dedicated instruction would make 0 of NaN; this one makes the least int.
  return __builtin_convertvector(x, I);
#else
  return ToI32(x);
#endif
}
COMPLL_INLINE U ToU32(F x) {
  const F high = Set(4294967040.0f);
  x = Select(Gt(x, F{}), x, F{});
  return __builtin_convertvector(Select(Gt(x, high), high, x), U);
}
COMPLL_INLINE F ToF32(I x) { return __builtin_convertvector(x, F); }
COMPLL_INLINE F ToF32(U x) { return __builtin_convertvector(x, F); }
template <typename T>
COMPLL_INLINE float ToF32(T x) {
  return static_cast<float>(x);
}

/// A float as a code of `bits` bits: clamped to 0 .. 2^bits - 1, then cut off.
COMPLL_INLINE I Saturate(F x, int bits) {
  const F top = Set(static_cast<float>((1 << bits) - 1));
#if defined(COMPLL_AVX512)
  // The second operand is the result if one is NaN.
  return reinterpret_cast<I>(_mm512_cvttps_epi32(_mm512_min_ps(_mm512_max_ps(x, F{}), top)));
#else
  x = Select(x > 0.0f, x, F{});
  return __builtin_convertvector(Select(x < top, x, top), I);
#endif
}
/// The same for what is not above the largest code, or NaN.
COMPLL_INLINE I SaturateBelow(F x) {
#if defined(COMPLL_AVX512)
  return reinterpret_cast<I>(_mm512_cvttps_epi32(_mm512_max_ps(x, F{})));
#else
  return __builtin_convertvector(Select(x > 0.0f, x, F{}), I);
#endif
}

// Integers, as in scalar.h --------------------

template <typename V>
COMPLL_INLINE V DivEach(V a, V b) {
  for (int l = 0; l < kLanes; ++l) a[l] = Div(a[l], b[l]);
  return a;
}
template <typename V>
COMPLL_INLINE V ModEach(V a, V b) {
  for (int l = 0; l < kLanes; ++l) a[l] = Mod(a[l], b[l]);
  return a;
}
COMPLL_INLINE I Div(I a, I b) { return DivEach(a, b); }
COMPLL_INLINE U Div(U a, U b) { return DivEach(a, b); }
COMPLL_INLINE F Div(F a, F b) { return a / b; }
COMPLL_INLINE I Mod(I a, I b) { return ModEach(a, b); }
COMPLL_INLINE U Mod(U a, U b) { return ModEach(a, b); }

/// The upper halves of the products' 64 bits.
COMPLL_INLINE U MulHigh(U a, U b) {
#if defined(COMPLL_AVX)
  const Raw x = AsRaw(a), y = AsRaw(b);
  const Raw even = COMPLL_X86(srli_epi64)(COMPLL_X86(mul_epu32)(x, y), 32);
  const Raw odd = COMPLL_X86(mul_epu32)(COMPLL_X86(srli_epi64)(x, 32), COMPLL_X86(srli_epi64)(y, 32));
#if defined(COMPLL_AVX512)
  return reinterpret_cast<U>(_mm512_mask_blend_epi32(0xaaaa, even, odd));
#else
  return reinterpret_cast<U>(_mm256_blend_epi32(even, odd, 0xaa));
#endif
#else
  for (int l = 0; l < kLanes; ++l) a[l] = static_cast<uint32_t>(uint64_t(a[l]) * b[l] >> 32);
  return a;
#endif
}

COMPLL_INLINE I Shl(I a, I b) { return a << (b & 31); }
COMPLL_INLINE U Shl(U a, U b) { return a << (b & 31u); }
COMPLL_INLINE I Shr(I a, I b) { return a >> (b & 31); }
COMPLL_INLINE U Shr(U a, U b) { return a >> (b & 31u); }

// Memory ------------------------------------------------------------------------------------------

COMPLL_INLINE I Lanes(int64_t first) {
  I lane;
  for (int l = 0; l < kLanes; ++l) lane[l] = l;
  return lane + static_cast<int32_t>(first);
}

/// Lanes that exist.
template <bool kTail>
COMPLL_INLINE size_t Count(int left) {
  return static_cast<size_t>(kTail && left < kLanes ? (left > 0 ? left : 0) : kLanes);
}

#if defined(COMPLL_AVX512)
/// The mask of the lanes that exist; `left` may be 0 or less, other than in Valid().
COMPLL_INLINE M Existing(int left) { return static_cast<M>(_bzhi_u32(0xffff, left > 0 ? left : 0)); }
#endif

/// V of T[i .. i + kLanes). A tail has only `left` of them, and the rest are 0.
template <bool kTail, typename V, typename T>
COMPLL_INLINE V LoadAs(const T* data, int64_t i, int left) {
  V value = V{};
  if (kTail && left < kLanes) {
#if defined(COMPLL_AVX512)
    if constexpr (sizeof(T) == 4) {
      return reinterpret_cast<V>(_mm512_maskz_loadu_epi32(Existing(left), data + i));
    }
#endif
    std::memcpy(&value, data + i, sizeof(T) * (left > 0 ? left : 0));
  } else {
    std::memcpy(&value, data + i, sizeof(T) * kLanes);
  }
  return value;
}
template <bool kTail>
COMPLL_INLINE F Load(const float* data, int64_t i, int left) {
  return LoadAs<kTail, F>(data, i, left);
}
template <bool kTail>
COMPLL_INLINE I Load(const int32_t* data, int64_t i, int left) {
  return LoadAs<kTail, I>(data, i, left);
}
template <bool kTail>
COMPLL_INLINE U Load(const uint32_t* data, int64_t i, int left) {
  return LoadAs<kTail, U>(data, i, left);
}
using HalfBits = uint16_t __attribute__((vector_size(2 * kLanes)));
COMPLL_INLINE F Widen(HalfBits halves, Float16) {
#if defined(COMPLL_AVX)
  return COMPLL_X86(cvtph_ps)(reinterpret_cast<HalfRaw>(halves));
#else
  F value;
  for (int l = 0; l < kLanes; ++l) value[l] = ToFloat(Float16{halves[l]});
  return value;
#endif
}
COMPLL_INLINE U WidenBits(HalfBits halves) {
#if defined(COMPLL_AVX)
  return reinterpret_cast<U>(COMPLL_X86(cvtepu16_epi32)(reinterpret_cast<HalfRaw>(halves)));
#else
  return __builtin_convertvector(halves, U);
#endif
}
COMPLL_INLINE F Widen(HalfBits halves, BFloat16) { return FromBits(WidenBits(halves) << 16); }
COMPLL_INLINE HalfBits Narrow(F value, Float16) {
#if defined(COMPLL_AVX)
  return reinterpret_cast<HalfBits>(COMPLL_X86(cvtps_ph)(value, _MM_FROUND_TO_NEAREST_INT));
#else
  HalfBits halves;
  for (int l = 0; l < kLanes; ++l) {
    Float16 half;
    FromFloat(value[l], &half);
    std::memcpy(reinterpret_cast<uint16_t*>(&halves) + l, &half, sizeof(half));
  }
  return halves;
#endif
}
COMPLL_INLINE HalfBits Narrow(F value, BFloat16) {
  const U bits = BitsU(value), high = bits >> 16;
  const U rounded = (bits + 0x7fffu + (high & 1u)) >> 16;
  return __builtin_convertvector(Select(IsNan(value), high | 0x40u, rounded), HalfBits);
}

template <bool kTail, typename H>
COMPLL_INLINE F LoadHalf(const H* data, int64_t i, int left) {
  HalfBits halves = {};
  std::memcpy(&halves, data + i, sizeof(H) * Count<kTail>(left));
  return Widen(halves, H());
}
template <bool kTail>
COMPLL_INLINE F Load(const Float16* data, int64_t i, int left) {
  return LoadHalf<kTail>(data, i, left);
}
template <bool kTail>
COMPLL_INLINE F Load(const BFloat16* data, int64_t i, int left) {
  return LoadHalf<kTail>(data, i, left);
}
template <bool kTail>
COMPLL_INLINE I Load(const uint16_t* data, int64_t i, int left) {
  HalfBits halves = {};
  std::memcpy(&halves, data + i, sizeof(uint16_t) * Count<kTail>(left));
  return reinterpret_cast<I>(WidenBits(halves));
}

template <bool kTail, typename T, typename V>
COMPLL_INLINE void Put(T* data, int64_t i, int left, V value) {
  if (kTail && left < kLanes) {
#if defined(COMPLL_AVX512)
    if constexpr (sizeof(V) == 64) {
      return _mm512_mask_storeu_epi32(data + i, Existing(left), reinterpret_cast<__m512i>(value));
    }
#endif
    if (left > 0) std::memcpy(data + i, &value, sizeof(T) * left);
  } else {
    std::memcpy(data + i, &value, sizeof(T) * kLanes);
  }
}
template <bool kTail>
COMPLL_INLINE void Store(float* data, int64_t i, int left, F value) {
  Put<kTail>(data, i, left, value);
}
template <bool kTail>
COMPLL_INLINE void Store(int32_t* data, int64_t i, int left, I value) {
  Put<kTail>(data, i, left, value);
}
template <bool kTail>
COMPLL_INLINE void Store(uint32_t* data, int64_t i, int left, U value) {
  Put<kTail>(data, i, left, value);
}
/// Whether n elements of a state that is not read again in this call are written past the cache: if
/// they go to other memory than they came from, its lines would be read first for nothing. Few stay
/// in the cache for the next call.
COMPLL_INLINE bool IsSeparate(const float* before, const float* state, int64_t n) {
  return state != before && n >= 65536 && reinterpret_cast<uintptr_t>(state) % 64 == 0;
}
template <bool kTail>
COMPLL_INLINE void Store(float* data, int64_t i, int left, F value, bool separate) {
#if defined(COMPLL_X86)
  if (!kTail && separate) return COMPLL_X86(stream_ps)(data + i, value);
#endif
  Store<kTail>(data, i, left, value);
}
/// Lives as long as such stores of a block. Afterwards they are visible to threads that wait for
/// this one.
struct SeparateStores {
  const bool separate;
  ~SeparateStores() {
#if defined(__SSE2__)
    if (separate) _mm_sfence();
#endif
  }
};
template <bool kTail, typename H>
COMPLL_INLINE void StoreHalf(H* data, int64_t i, int left, F value) {
  Put<kTail>(data, i, left, Narrow(value, H()));
}
template <bool kTail>
COMPLL_INLINE void Store(Float16* data, int64_t i, int left, F value) {
  StoreHalf<kTail>(data, i, left, value);
}
template <bool kTail>
COMPLL_INLINE void Store(BFloat16* data, int64_t i, int left, F value) {
  StoreHalf<kTail>(data, i, left, value);
}
template <bool kTail>
COMPLL_INLINE void Store(uint16_t* data, int64_t i, int left, I value) {
  Put<kTail>(data, i, left, __builtin_convertvector(value, HalfBits));
}

#if defined(COMPLL_AVX512)
/// Stores the lanes of a mask at `out`, and undefined values up to a vector's length. Returns their
/// end.
template <typename T, typename V>
COMPLL_INLINE T* StoreChosen(T* out, M mask, V value) {
  // Compressed in a register: a compressing store to memory is slow.
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(mask, AsRaw(value)));
  return out + __builtin_popcount(_cvtmask16_u32(mask));
}
#endif

/// data[index[l]] for each lane, clamped into the vector; 0 from an empty one.
template <typename V, typename T>
COMPLL_INLINE V Gather(const T* data, int64_t size, I index) {
  V value = V{};
  if (size <= 0) return value;
  const I last = Set(static_cast<int32_t>(size > INT32_MAX ? INT32_MAX : size - 1));
  index = Select(Lt(index, I{}), I{}, Select(Gt(index, last), last, index));
#if defined(COMPLL_AVX512)
  return reinterpret_cast<V>(_mm512_i32gather_epi32(AsRaw(index), data, 4));
#elif defined(COMPLL_AVX2)
  return reinterpret_cast<V>(
      _mm256_i32gather_epi32(reinterpret_cast<const int*>(data), AsRaw(index), 4));
#else
  for (int l = 0; l < kLanes; ++l) value[l] = data[index[l]];
  return value;
#endif
}

/// Consecutive elements in one run of a sample: 16 bytes.
constexpr int kRun = 4;
/// The same for the indices at `at`, which come in runs of neighbors, but for the last of all.
template <bool kTail, typename V, typename T>
COMPLL_INLINE V GatherRuns(const T* data, int64_t size, const int32_t* at, I index) {
  if (kTail || at[kLanes - kRun] + kRun > size) return Gather<V>(data, size, index);
#if defined(COMPLL_AVX512)
  const auto run = [&](int r) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + at[r * kRun]));
  };
  const __m512i first = _mm512_inserti32x4(_mm512_castsi128_si512(run(0)), run(1), 1);
  return reinterpret_cast<V>(
      _mm512_inserti32x4(_mm512_inserti32x4(first, run(2), 2), run(3), 3));
#else
  V value;
  for (int r = 0; r < kLanes / kRun; ++r) {
    std::memcpy(reinterpret_cast<T*>(&value) + r * kRun, data + at[r * kRun], kRun * sizeof(T));
  }
  return value;
#endif
}

/// Lane l of the result is lane l + width (mod kLanes).
template <typename V>
COMPLL_INLINE V TurnLanes(V value, int width) {
  return __builtin_shuffle(value, (Lanes(0) + width) & (kLanes - 1));
}

/// lane j takes in lane j + 16, + 8, + 4, + 2, + 1.
template <typename T, typename V, typename Combine>
COMPLL_INLINE T FoldLanes(const V* sums, Combine combine) {
  V left[kSums];
  COMPLL_UNROLL
  for (int s = 0; s < kSums; ++s) left[s] = sums[s];
  COMPLL_UNROLL
  for (int width = kSums / 2; width > 0; width /= 2) {
    COMPLL_UNROLL
    for (int s = 0; s < width; ++s) left[s] = combine(left[s], left[s + width]);
  }
  V all = left[0];
  COMPLL_UNROLL
  for (int width = kLanes / 2; width > 0; width /= 2) all = combine(all, TurnLanes(all, width));
  return all[0];
}

}  // namespace
}  // namespace hipress::compll
