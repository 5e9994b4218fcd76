/*!
 * \file half.h
 * \brief float16 and bfloat16 to and from float32, bit for bit as the CPU's own instructions do it:
 *        round to nearest even, NaNs stay NaNs (quiet, upper payload bits kept).
 *
 * Everything here is static: files compiled for different instruction sets include it, and the
 * linker must not choose one file's copy for all.
 */
#pragma once

#include <cstdint>
#include <string.h>

#if defined(__CUDACC__)
#define HIPRESS_HOST_DEVICE __host__ __device__
#else
#define HIPRESS_HOST_DEVICE
#endif

namespace hipress {

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

HIPRESS_HOST_DEVICE static inline uint32_t BitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

HIPRESS_HOST_DEVICE static inline float FloatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

HIPRESS_HOST_DEVICE static inline float ToFloat(float value) { return value; }

HIPRESS_HOST_DEVICE static inline float ToFloat(Float16 half) {
  const uint32_t sign = uint32_t(half.bits & 0x8000) << 16;
  const uint32_t exponent = half.bits >> 10 & 0x1f;
  const uint32_t mantissa = half.bits & 0x3ff;
  if (exponent == 0x1f) {
    return FloatOf(sign | 0x7f800000 | mantissa << 13 | (mantissa != 0 ? 0x400000 : 0));
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // exact
    return FloatOf(sign | BitsOf(magnitude));
  }
  return FloatOf(sign | (exponent + 112) << 23 | mantissa << 13);
}

HIPRESS_HOST_DEVICE static inline float ToFloat(BFloat16 half) { return FloatOf(uint32_t(half.bits) << 16); }

HIPRESS_HOST_DEVICE static inline void FromFloat(float value, float* out) { *out = value; }

HIPRESS_HOST_DEVICE static inline void FromFloat(float value, Float16* out) {
  const uint32_t bits = BitsOf(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00 | (magnitude >> 13 & 0x3ff);
  } else if (magnitude >= 0x477ff000) {  // rounds to 65536 or is beyond
    half = 0x7c00;
  } else if (magnitude >= 0x38800000) {  // normal: 2^-14 and up
    half = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  } else {
    // One unit in the last place of 0.5 is 2^-24, the smallest float16: the addition rounds.
    half = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
  }
  out->bits = static_cast<uint16_t>(sign | half);
}

HIPRESS_HOST_DEVICE static inline void FromFloat(float value, BFloat16* out) {
  const uint32_t bits = BitsOf(value);
  const bool nan = (bits & 0x7fffffff) > 0x7f800000;
  out->bits = static_cast<uint16_t>(
      nan ? (bits >> 16 | 0x40) : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace hipress
