/*!
 * \file simd_portable.h
 * \brief The vector primitives of kernels-inl.h on any CPU: GCC vectors of four floats.
 *
 * The primitives are the same in simd_avx2.h and simd_avx512.h:
 *   F, M, B                      floats, masks of floats, bytes of one vector register
 *   Load<T>, Store<T>            kLanes elements of type T from or to element i of an array
 *   JoinMasks                    masks of 64 floats as 64 bits, element i in bit i
 *   DecodeBits                   vector v of 64 floats, each one of two by its bit
 *   TakeThreshold                r - t where pos, r + t where neg, else r
 *   StoreCodes, DecodeCodes      2bit codes of 64 elements in 16 bytes, see codec_2bit.cc
 *   AddLevels, AddOnes           int8 counters of kBytes elements += 2bit levels, += 1bit bits
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_SIMD_PORTABLE_H_
#define HIPRESS_OPERATOR_CONTRIB_SIMD_PORTABLE_H_

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "operator/contrib/scalar-inl.h"

#define HIPRESS_SIMD_NAME "baseline"
#define HIPRESS_SIMD_TABLE kBaselineKernels

namespace hipress {
namespace {

using F = float __attribute__((vector_size(16)));
using M = int32_t __attribute__((vector_size(16)));
using B = int8_t __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;
constexpr size_t kBytes = 16;
constexpr size_t kVectors = kGroup / kLanes;

inline F Set(float value) { return F{value, value, value, value}; }
inline F Zero() { return F{}; }

template <typename T>
inline F Load(const void* data, size_t i) {
  return F{Get<T>(data, i), Get<T>(data, i + 1), Get<T>(data, i + 2), Get<T>(data, i + 3)};
}
template <>
inline F Load<float>(const void* data, size_t i) {
  F value;
  std::memcpy(&value, static_cast<const uint8_t*>(data) + 4 * i, sizeof(value));
  return value;
}

template <typename T>
inline void Store(void* data, size_t i, F value) {
  for (size_t j = 0; j < kLanes; ++j) Put<T>(data, i + j, value[j]);
}
template <>
inline void Store<float>(void* data, size_t i, F value) {
  std::memcpy(static_cast<uint8_t*>(data) + 4 * i, &value, sizeof(value));
}

inline F LoadInt8(const int8_t* data) {
  return F{static_cast<float>(data[0]), static_cast<float>(data[1]), static_cast<float>(data[2]),
           static_cast<float>(data[3])};
}

inline M GreaterEqual(F a, F b) { return a >= b; }
inline M Greater(F a, F b) { return a > b; }
inline M LessEqual(F a, F b) { return a <= b; }
inline F Mask(M mask, F value) { return reinterpret_cast<F>(reinterpret_cast<M>(value) & mask); }
inline F Select(M mask, F yes, F no) {
  return reinterpret_cast<F>((reinterpret_cast<M>(yes) & mask) | (reinterpret_cast<M>(no) & ~mask));
}
inline F AddIf(F sum, M mask, F value) { return sum + Mask(mask, value); }
inline F AddUnless(F sum, M mask, F value) { return sum + Mask(~mask, value); }

inline F TakeThreshold(F r, M pos, M neg, F threshold) {
  const M taken = (reinterpret_cast<M>(threshold) & pos) | (reinterpret_cast<M>(-threshold) & neg);
  return r - reinterpret_cast<F>(taken);
}

/// The four lanes of a mask as bits 0 to 3.
inline unsigned MaskBits(M mask) {
#if defined(__SSE2__)
  return static_cast<unsigned>(_mm_movemask_ps(reinterpret_cast<__m128>(mask)));
#else
  return (mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8);
#endif
}

inline uint64_t JoinMasks(const M* masks) {
  uint64_t bits = 0;
  for (size_t v = 0; v < kVectors; ++v) bits |= uint64_t(MaskBits(masks[v])) << (v * kLanes);
  return bits;
}

struct BitTable {
  F zero, one;
  explicit BitTable(const float* values) : zero(Set(values[0])), one(Set(values[1])) {}
};

inline F DecodeBits(uint64_t bits, size_t v, const BitTable& table) {
  const int32_t lanes = static_cast<int32_t>(bits >> (v * kLanes) & 15);
  const M lane_bit = {1, 2, 4, 8};
  return Select((M{lanes, lanes, lanes, lanes} & lane_bit) == lane_bit, table.one, table.zero);
}

inline void StoreCodes(const M* pos, const M* neg, uint8_t* out) {
  // Bit i of the index to bit 6 - 2 * i.
  static constexpr uint8_t kSpread[16] = {0x00, 0x40, 0x10, 0x50, 0x04, 0x44, 0x14, 0x54,
                                          0x01, 0x41, 0x11, 0x51, 0x05, 0x45, 0x15, 0x55};
  for (size_t v = 0; v < kVectors; ++v) {
    out[v] = static_cast<uint8_t>(3 * kSpread[MaskBits(pos[v])] | 2 * kSpread[MaskBits(neg[v])]);
  }
}

struct CodeTable {
  M plus, minus;
  explicit CodeTable(float threshold)
      : plus(reinterpret_cast<M>(Set(threshold))), minus(reinterpret_cast<M>(Set(-threshold))) {}
};

inline F DecodeCodes(const uint8_t* in, size_t v, const CodeTable& table) {
  const M field = {0xc0, 0x30, 0x0c, 0x03}, minus_code = {0x80, 0x20, 0x08, 0x02};
  const int32_t byte = in[v];
  const M code = M{byte, byte, byte, byte} & field;
  return reinterpret_cast<F>(((code == field) & table.plus) | ((code == minus_code) & table.minus));
}

/// Sixteen bytes: the first eight lanes hold `low`, the others `high`, in the order of memory.
inline B FromWords(uint64_t low, uint64_t high) {
  using Words = uint64_t __attribute__((vector_size(16)));
  return reinterpret_cast<B>(Words{low, high});
}

inline B AddLevels(B counts, const uint8_t* in) {
  constexpr uint64_t kField = 0x030c30c0030c30c0, kMinus = 0x0208208002082080;
  const uint64_t low = in[0] * 0x01010101ull | in[1] * 0x0101010100000000ull;
  const uint64_t high = in[2] * 0x01010101ull | in[3] * 0x0101010100000000ull;
  const B field = FromWords(kField, kField);
  const B code = FromWords(low, high) & field;
  return counts - (code == field) + (code == FromWords(kMinus, kMinus));
}

inline B AddOnes(B counts, const uint8_t* in) {
  constexpr uint64_t kEach = 0x0101010101010101, kBit = 0x0102040810204080;
  const B bit = FromWords(kBit, kBit);
  return counts - ((FromWords(in[0] * kEach, in[1] * kEach) & bit) == bit);
}

inline void StoreBytes(int8_t* out, B bytes) { std::memcpy(out, &bytes, sizeof(bytes)); }

}  // namespace
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_SIMD_PORTABLE_H_
