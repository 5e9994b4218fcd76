/*!
 * \file scalar.h
 * \brief The IR's operations on one number, on CPU and GPU.
 *
 * Results equal the NumPy interpreter's bit for bit. Compile without contracted multiply-adds.
 */
#pragma once

#include <cstdint>
#include <type_traits>

#include "operator/contrib/half.h"

#define COMPLL_SCALAR HIPRESS_HOST_DEVICE inline __attribute__((always_inline))

namespace hipress::compll {
namespace {

COMPLL_SCALAR uint32_t BitsU(float x) { return BitsOf(x); }
COMPLL_SCALAR float FromBits(uint32_t x) { return FloatOf(x); }

template <typename T>
COMPLL_SCALAR T Select(bool mask, T yes, T no) {
  return mask ? yes : no;
}
COMPLL_SCALAR bool Not(bool x) { return !x; }

COMPLL_SCALAR bool IsNan(float x) { return x != x; }
COMPLL_SCALAR bool IsNan(double x) { return x != x; }
COMPLL_SCALAR bool IsFinite(float x) { return (BitsU(x) & 0x7f800000u) != 0x7f800000u; }
COMPLL_SCALAR bool IsFinite(double x) { return x - x == 0; }

// A device has functions instead of these builtins.
#if defined(__CUDA_ARCH__)
#define COMPLL_OF_DEVICE(device, host) device
#else
#define COMPLL_OF_DEVICE(device, host) host
#endif
COMPLL_SCALAR float Abs(float x) { return FromBits(BitsU(x) & 0x7fffffffu); }
COMPLL_SCALAR double Abs(double x) { return COMPLL_OF_DEVICE(fabs, __builtin_fabs)(x); }
COMPLL_SCALAR int32_t Abs(int32_t x) { return x < 0 ? static_cast<int32_t>(0u - x) : x; }
COMPLL_SCALAR int64_t Abs(int64_t x) { return x < 0 ? static_cast<int64_t>(0ull - x) : x; }
COMPLL_SCALAR float Sqrt(float x) { return COMPLL_OF_DEVICE(__fsqrt_rn, __builtin_sqrtf)(x); }
COMPLL_SCALAR double Sqrt(double x) { return COMPLL_OF_DEVICE(__dsqrt_rn, __builtin_sqrt)(x); }
COMPLL_SCALAR float Floor(float x) { return COMPLL_OF_DEVICE(floorf, __builtin_floorf)(x); }
COMPLL_SCALAR double Floor(double x) { return COMPLL_OF_DEVICE(floor, __builtin_floor)(x); }
COMPLL_SCALAR float Ceil(float x) { return -Floor(-x); }
COMPLL_SCALAR double Ceil(double x) { return -Floor(-x); }
#undef COMPLL_OF_DEVICE

// A float as an integer: what does not fit saturates, NaN is 0 ---------------

COMPLL_SCALAR int32_t ToI32(float x) {
  x = x == x ? x : 0;
  x = x < -2147483648.0f ? -2147483648.0f : x;
  return static_cast<int32_t>(x > 2147483520.0f ? 2147483520.0f : x);
}
COMPLL_SCALAR uint32_t ToU32(float x) {
  x = x > 0 ? x : 0;
  return static_cast<uint32_t>(x > 4294967040.0f ? 4294967040.0f : x);
}
template <typename T>
COMPLL_SCALAR int64_t ToI64(T x) {
  x = x == x ? x : 0;
  x = x < T(-9223372036854775808.0) ? T(-9223372036854775808.0) : x;
  const T high = T(9223372036854775808.0 - 549755813888.0);
  return static_cast<int64_t>(x > high ? high : x);
}
/// A float as a code of `bits` bits: clamped to 0 .. 2^bits - 1, then cut off.
COMPLL_SCALAR int32_t Saturate(float x, int bits) {
  const float top = static_cast<float>((1 << bits) - 1);
  x = x > 0 ? x : 0;
  return static_cast<int32_t>(x < top ? x : top);
}

// Integers wrap around; division is to zero, x / 0 is 0; shifts by the low bits of the amount
// ------

template <typename T>
COMPLL_SCALAR T WrapAdd(T a, T b) {
  using U = typename std::make_unsigned<T>::type;
  return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
}
template <typename T>
COMPLL_SCALAR T WrapSub(T a, T b) {
  using U = typename std::make_unsigned<T>::type;
  return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
}
template <typename T>
COMPLL_SCALAR T WrapMul(T a, T b) {
  using U = typename std::make_unsigned<T>::type;
  return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
}
template <typename T>
COMPLL_SCALAR typename std::enable_if<std::is_integral<T>::value, T>::type Div(T a, T b) {
  if (b == 0) return T(0);
  if (std::is_signed<T>::value && b == T(-1)) return WrapSub(T(0), a);
  return a / b;
}
COMPLL_SCALAR float Div(float a, float b) { return a / b; }
COMPLL_SCALAR double Div(double a, double b) { return a / b; }
template <typename T>
COMPLL_SCALAR T Mod(T a, T b) {
  return b == 0 || (std::is_signed<T>::value && b == T(-1)) ? T(0) : a % b;
}
template <typename T, typename B>
COMPLL_SCALAR T Shl(T a, B by) {
  using U = typename std::make_unsigned<T>::type;
  return static_cast<T>(static_cast<U>(a) << (by & B(8 * sizeof(T) - 1)));
}
template <typename T, typename B>
COMPLL_SCALAR T Shr(T a, B by) {
  return a >> (by & B(8 * sizeof(T) - 1));
}

/// The key of random words (philox.h).
struct PhiloxKey {
  uint32_t seed, step, stream;
};

// Order and sizes ----------------------------------------------------------------

/// Order of floats as unsigned numbers: -NaN < -Inf < ... < -0 < +0 < ... < Inf < NaN.
COMPLL_SCALAR uint32_t Ordered(float value) {
  const uint32_t bits = BitsU(value);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

COMPLL_SCALAR int64_t Clip(int64_t k, int64_t n) {
  n = n < 0 ? 0 : n;
  return k < 0 ? 0 : (k < n ? k : n);
}
COMPLL_SCALAR int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }
COMPLL_SCALAR int64_t Blocks(int64_t n, int64_t size) { return (n + size - 1) / size; }
/// Bytes of `count` codes, padded to a multiple of `multiple` codes and to a byte.
COMPLL_SCALAR int64_t PackedBytes(int64_t count, int bits, int64_t multiple) {
  return (Blocks(count, multiple) * multiple * bits + 7) / 8;
}

}  // namespace
}  // namespace hipress::compll
