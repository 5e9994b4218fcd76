/*!
 * \file packing.h
 * \brief Codes of 1 to 8 bits: 64 of them at once, as bytes, to and from 8 * bits bytes.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_PACKING_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_PACKING_H_

#include "operator/contrib/compll/lanes.h"

namespace hipress {
namespace compll {
namespace {

COMPLL_INLINE uint64_t LowBits(int bits) {
  return ((uint64_t(1) << bits) - 1) * 0x0101010101010101u;
}

/// Eight bytes, each below 2^bits, joined: the first in the lowest bits.
COMPLL_INLINE uint64_t Join(uint64_t codes, int bits) {
#if defined(__BMI2__)
  return _pext_u64(codes, LowBits(bits));
#else
  uint64_t joined = 0;
  for (int k = 0; k < 8; ++k) joined |= (codes >> (8 * k) & 0xff) << (bits * k);
  return joined;
#endif
}

COMPLL_INLINE uint64_t Split(uint64_t joined, int bits) {
#if defined(__BMI2__)
  return _pdep_u64(joined, LowBits(bits));
#else
  uint64_t codes = 0;
  const uint64_t mask = (uint64_t(1) << bits) - 1;
  for (int k = 0; k < 8; ++k) codes |= (joined >> (bits * k) & mask) << (8 * k);
  return codes;
#endif
}

/// Writes 8 * kBits bytes. kMsb: the first code is in the highest bits of the first byte.
template <bool kMsb>
COMPLL_INLINE void PackTile(const uint8_t* codes, int bits, uint8_t* out) {
  if (bits == 8) {
    std::memcpy(out, codes, kTile);
    return;
  }
  for (int g = 0; g < 8; ++g) {
    uint64_t word;
    std::memcpy(&word, codes + 8 * g, 8);
    if (kMsb) {
      word = __builtin_bswap64(Join(__builtin_bswap64(word), bits) << (64 - 8 * bits));
    } else {
      word = Join(word, bits);
    }
    std::memcpy(out + bits * g, &word, bits);
  }
}

/// Reads 8 * bits bytes.
template <bool kMsb>
COMPLL_INLINE void UnpackTile(const uint8_t* in, int bits, uint8_t* codes) {
  if (bits == 8) {
    std::memcpy(codes, in, kTile);
    return;
  }
  for (int g = 0; g < 8; ++g) {
    uint64_t word = 0;
    std::memcpy(&word, in + bits * g, bits);
    if (kMsb) {
      word = __builtin_bswap64(Split(__builtin_bswap64(word) >> (64 - 8 * bits), bits));
    } else {
      word = Split(word, bits);
    }
    std::memcpy(codes + 8 * g, &word, 8);
  }
}

/// Bytes of `count` codes, padded to a multiple of `multiple` codes and to a byte.
COMPLL_INLINE int64_t PackedBytes(int64_t count, int bits, int64_t multiple) {
  const int64_t padded = (count + multiple - 1) / multiple * multiple;
  return (padded * bits + 7) / 8;
}

/// Writes tile `i` of a packed vector; a tail's codes beyond the vector must be 0.
template <bool kTail, bool kMsb>
COMPLL_INLINE void StoreTile(const uint8_t* codes, int bits, uint8_t* vector, int64_t i,
                             int64_t bytes) {
  const int64_t at = i / 8 * bits;
  if (!kTail) {
    PackTile<kMsb>(codes, bits, vector + at);
  } else {
    uint8_t packed[kTile];
    PackTile<kMsb>(codes, bits, packed);
    const int64_t left = bytes - at;
    std::memcpy(vector + at, packed, left < kTile ? left : kTile);
  }
}

template <bool kTail, bool kMsb>
COMPLL_INLINE void LoadTile(const uint8_t* vector, int bits, int64_t i, int64_t bytes,
                            uint8_t* codes) {
  const int64_t at = i / 8 * bits;
  if (!kTail) {
    UnpackTile<kMsb>(vector + at, bits, codes);
  } else {
    uint8_t packed[kTile] = {};
    const int64_t left = bytes - at;
    std::memcpy(packed, vector + at, left < kTile ? left : kTile);
    UnpackTile<kMsb>(packed, bits, codes);
  }
}

/// Codes of one vector of lanes into, and out of, a tile's bytes.
COMPLL_INLINE void PutCodes(uint8_t* codes, int v, I value) {
  const Bytes bytes = __builtin_convertvector(value, Bytes);
  std::memcpy(codes + v * kLanes, &bytes, sizeof(bytes));
}
COMPLL_INLINE I GetCodes(const uint8_t* codes, int v) {
  Bytes bytes;
  std::memcpy(&bytes, codes + v * kLanes, sizeof(bytes));
  return __builtin_convertvector(bytes, I);
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_PACKING_H_
