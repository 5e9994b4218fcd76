/*!
 * \file lanes.h
 * \brief Vectors of floats and ints as generated code uses them, in GCC's vector extension, as wide
 *        as the instruction set that the file is compiled for.
 *
 * A bool in lanes is an M, see masks.h. Every function has a scalar overload of the same meaning, here or
 * in scalar.h, so that a combiner works on both. Results equal the NumPy interpreter's bit for bit.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_LANES_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_LANES_H_

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

namespace hipress {
namespace compll {
namespace {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define COMPLL_AVX512 1
constexpr int kLanes = 16;
#elif defined(__AVX2__)
#define COMPLL_AVX2 1
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

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

#define COMPLL_INLINE inline __attribute__((always_inline))
/// Before loops over the vectors of a tile: unrolled, small arrays of vectors become registers. With
/// the many narrow vectors of a baseline CPU there are no such registers, only more to compile.
#if defined(COMPLL_AVX512) || defined(COMPLL_AVX2)
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

}  // namespace
}  // namespace compll
}  // namespace hipress

#include "operator/contrib/compll/masks.h"

namespace hipress {
namespace compll {
namespace {

/// The first if it is larger (smaller), else the second: what max (min) instructions do.
COMPLL_INLINE F Larger(F a, F b) {
#if defined(COMPLL_AVX512)
  return _mm512_max_ps(a, b);
#elif defined(COMPLL_AVX2)
  return _mm256_max_ps(a, b);
#else
  return Select(a > b, a, b);
#endif
}
COMPLL_INLINE F Smaller(F a, F b) {
#if defined(COMPLL_AVX512)
  return _mm512_min_ps(a, b);
#elif defined(COMPLL_AVX2)
  return _mm256_min_ps(a, b);
#else
  return Select(a < b, a, b);
#endif
}
COMPLL_INLINE U Larger(U a, U b) {
#if defined(COMPLL_AVX512)
  return reinterpret_cast<U>(
      _mm512_max_epu32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#else
  return Select(Gt(a, b), a, b);
#endif
}
COMPLL_INLINE U Smaller(U a, U b) {
#if defined(COMPLL_AVX512)
  return reinterpret_cast<U>(
      _mm512_min_epu32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
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
#if defined(COMPLL_AVX512)
  return _mm512_sqrt_ps(x);
#elif defined(COMPLL_AVX2)
  return _mm256_sqrt_ps(x);
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
#if defined(COMPLL_AVX512)
  const auto x = reinterpret_cast<__m512i>(a), y = reinterpret_cast<__m512i>(b);
  const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(x, y), 32);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), _mm512_srli_epi64(y, 32));
  return reinterpret_cast<U>(_mm512_mask_blend_epi32(0xaaaa, even, odd));
#elif defined(COMPLL_AVX2)
  const auto x = reinterpret_cast<__m256i>(a), y = reinterpret_cast<__m256i>(b);
  const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(x, y), 32);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(y, 32));
  return reinterpret_cast<U>(_mm256_blend_epi32(even, odd, 0xaa));
#else
  for (int l = 0; l < kLanes; ++l) a[l] = static_cast<uint32_t>(uint64_t(a[l]) * b[l] >> 32);
  return a;
#endif
}

COMPLL_INLINE I Shl(I a, I b) { return a << (b & 31); }
COMPLL_INLINE U Shl(U a, U b) { return a << (b & 31u); }
COMPLL_INLINE I Shr(I a, I b) { return a >> (b & 31); }
COMPLL_INLINE U Shr(U a, U b) { return a >> (b & 31u); }

}  // namespace
}  // namespace compll
}  // namespace hipress

#include "operator/contrib/compll/memory.h"

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_LANES_H_
