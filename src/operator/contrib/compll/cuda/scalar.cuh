/*!
 * \file scalar.cuh
 * \brief The IR's operations on one element, on host and device; results equal the NumPy
 *        interpreter's bit for bit. Compile with -fmad=false; signed integers wrap around.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_SCALAR_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_SCALAR_CUH_

#include "operator/contrib/compll/convert.h"
#include "operator/contrib/compll/cuda/platform.cuh"
#include "operator/contrib/half.h"

namespace hipress {
namespace compll {
namespace {

COMPLL_BOTH uint32_t BitsU(float x) { return BitsOf(x); }
COMPLL_BOTH float FromBits(uint32_t x) { return FloatOf(x); }

template <typename T>
COMPLL_BOTH T Select(bool mask, T yes, T no) {
  return mask ? yes : no;
}
COMPLL_BOTH bool Not(bool x) { return !x; }

COMPLL_BOTH float Abs(float x) { return FromBits(BitsU(x) & 0x7fffffffu); }
COMPLL_BOTH double Abs(double x) { return x < 0 ? -x : (x == 0 ? 0 : x); }
COMPLL_BOTH int32_t Abs(int32_t x) { return x < 0 ? static_cast<int32_t>(0u - x) : x; }
COMPLL_BOTH int64_t Abs(int64_t x) { return x < 0 ? static_cast<int64_t>(0ull - x) : x; }
COMPLL_BOTH float Sqrt(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}
COMPLL_BOTH double Sqrt(double x) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(x);
#else
  return __builtin_sqrt(x);
#endif
}
COMPLL_BOTH float Floor(float x) {
#if defined(__CUDA_ARCH__)
  return floorf(x);
#else
  return __builtin_floorf(x);
#endif
}
COMPLL_BOTH double Floor(double x) {
#if defined(__CUDA_ARCH__)
  return floor(x);
#else
  return __builtin_floor(x);
#endif
}
COMPLL_BOTH float Ceil(float x) { return -Floor(-x); }
COMPLL_BOTH double Ceil(double x) { return -Floor(-x); }
COMPLL_BOTH bool IsNan(float x) { return x != x; }
COMPLL_BOTH bool IsNan(double x) { return x != x; }
COMPLL_BOTH bool IsFinite(float x) { return (BitsU(x) & 0x7f800000u) != 0x7f800000u; }
COMPLL_BOTH bool IsFinite(double x) { return x - x == 0; }

/// A float as a code of `bits` bits: clamped to 0 .. 2^bits - 1, then cut off.
COMPLL_BOTH int32_t Saturate(float x, int bits) {
  const float top = static_cast<float>((1 << bits) - 1);
  x = x > 0 ? x : 0;
  return static_cast<int32_t>(x < top ? x : top);
}

// Integers wrap around; division is to zero, x / 0 is 0; shifts by the low bits of the amount ------

template <typename T>
COMPLL_BOTH T WrapAdd(T a, T b) {
  using U = typename std::make_unsigned<T>::type;
  return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
}
template <typename T>
COMPLL_BOTH T WrapSub(T a, T b) {
  using U = typename std::make_unsigned<T>::type;
  return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
}
template <typename T>
COMPLL_BOTH T WrapMul(T a, T b) {
  using U = typename std::make_unsigned<T>::type;
  return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
}
template <typename T>
COMPLL_BOTH typename std::enable_if<std::is_integral<T>::value, T>::type Div(T a, T b) {
  if (b == 0) return T(0);
  if (std::is_signed<T>::value && b == T(-1)) return WrapSub(T(0), a);
  return a / b;
}
COMPLL_BOTH float Div(float a, float b) { return a / b; }
COMPLL_BOTH double Div(double a, double b) { return a / b; }
template <typename T>
COMPLL_BOTH T Mod(T a, T b) {
  return b == 0 || (std::is_signed<T>::value && b == T(-1)) ? T(0) : a % b;
}
template <typename T, typename B>
COMPLL_BOTH T Shl(T a, B by) {
  using U = typename std::make_unsigned<T>::type;
  return static_cast<T>(static_cast<U>(a) << (by & B(8 * sizeof(T) - 1)));
}
template <typename T, typename B>
COMPLL_BOTH T Shr(T a, B by) {
  return a >> (by & B(8 * sizeof(T) - 1));
}

/// Order of floats as unsigned numbers: -NaN < -Inf < ... < -0 < +0 < ... < Inf < NaN.
COMPLL_BOTH uint32_t Ordered(float value) {
  const uint32_t bits = BitsU(value);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
COMPLL_BOTH float FromOrdered(uint32_t key) {
  return FromBits(key >> 31 ? key & 0x7fffffffu : ~key);
}

COMPLL_BOTH int64_t Clip(int64_t k, int64_t n) {
  n = n < 0 ? 0 : n;
  return k < 0 ? 0 : (k < n ? k : n);
}
COMPLL_BOTH int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }
COMPLL_BOTH int64_t Blocks(int64_t n, int64_t size) { return (n + size - 1) / size; }
COMPLL_BOTH int64_t PackedBytes(int64_t count, int bits, int64_t multiple) {
  return (Blocks(count, multiple) * multiple * bits + 7) / 8;
}

COMPLL_BOTH int64_t RoundUp(int64_t bytes) { return (bytes + 15) / 16 * 16; }
COMPLL_BOTH int64_t ClampIndex(int64_t at, int64_t size) {
  return at < 0 ? 0 : (at < size ? at : size - 1);
}

/// The bucket of each of a tile's rows; buckets are multiples of 64, so a row lies in one.
struct Bucket {
  uint32_t index, left, size;
  COMPLL_BOTH Bucket(int64_t first, int64_t bucket)
      : index(static_cast<uint32_t>(first) / static_cast<uint32_t>(bucket)),
        left(static_cast<uint32_t>(bucket) -
             static_cast<uint32_t>(first) % static_cast<uint32_t>(bucket)),
        size(static_cast<uint32_t>(bucket)) {}
  /// `more`: the next row begins before the end; the bucket of the last one stays.
  COMPLL_BOTH void NextRow(bool more) {
    left -= 32;
    if (left == 0 && more) left = size, ++index;
  }
};

/// A field's bytes, the first in the lowest bits.
COMPLL_BOTH uint64_t FieldBits(float x) { return BitsU(x); }
template <typename T>
COMPLL_BOTH uint64_t FieldBits(T x) {
  return static_cast<uint64_t>(x);
}

// Memory whose alignment is only a byte's: fields of payloads --------------------

template <typename T>
COMPLL_BOTH T Read(const void* base, int64_t i) {
  const uint8_t* const at = static_cast<const uint8_t*>(base) + i * static_cast<int64_t>(sizeof(T));
  if (reinterpret_cast<uintptr_t>(base) % sizeof(T) == 0) return *reinterpret_cast<const T*>(at);
  T value;
  uint8_t bytes[sizeof(T)];
  for (size_t b = 0; b < sizeof(T); ++b) bytes[b] = at[b];
  memcpy(&value, bytes, sizeof(value));
  return value;
}
template <typename T>
COMPLL_BOTH void Write(void* base, int64_t i, T value) {
  uint8_t* const at = static_cast<uint8_t*>(base) + i * static_cast<int64_t>(sizeof(T));
  if (reinterpret_cast<uintptr_t>(base) % sizeof(T) == 0) {
    *reinterpret_cast<T*>(at) = value;
    return;
  }
  uint8_t bytes[sizeof(T)];
  memcpy(bytes, &value, sizeof(value));
  for (size_t b = 0; b < sizeof(T); ++b) at[b] = bytes[b];
}

/// How the elements of a vector lie in memory, and as which of the IR's types they are read.
struct AsFloat {
  static COMPLL_BOTH float Get(const void* base, int64_t i) { return Read<float>(base, i); }
  static COMPLL_BOTH void Put(void* base, int64_t i, float x) { Write(base, i, x); }
};
struct AsInt {
  static COMPLL_BOTH int32_t Get(const void* base, int64_t i) { return Read<int32_t>(base, i); }
  static COMPLL_BOTH void Put(void* base, int64_t i, int32_t x) { Write(base, i, x); }
};
struct AsUnsigned {
  static COMPLL_BOTH uint32_t Get(const void* base, int64_t i) { return Read<uint32_t>(base, i); }
  static COMPLL_BOTH void Put(void* base, int64_t i, uint32_t x) { Write(base, i, x); }
};
struct AsShort {
  static COMPLL_BOTH int32_t Get(const void* base, int64_t i) { return Read<uint16_t>(base, i); }
  static COMPLL_BOTH void Put(void* base, int64_t i, int32_t x) {
    Write(base, i, static_cast<uint16_t>(x));
  }
};
template <typename H>
struct AsHalf {
  static COMPLL_BOTH float Get(const void* base, int64_t i) {
    return ToFloat(H{Read<uint16_t>(base, i)});
  }
  static COMPLL_BOTH void Put(void* base, int64_t i, float x) {
    H half;
    FromFloat(x, &half);
    Write(base, i, half.bits);
  }
};

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_SCALAR_CUH_
