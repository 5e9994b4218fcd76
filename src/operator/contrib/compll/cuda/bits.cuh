/*!
 * \file bits.cuh
 * \brief Vectors of bits, 32 at a time: packing the bits under a mask, as bits.h has it on a CPU.
 *
 * Which bits of the packed ones are a word's follows from counting the mask first, as a filter does.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_BITS_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_BITS_CUH_

#include "operator/contrib/compll/cuda/sparse.cuh"
#include "operator/contrib/compll/index_layout.h"

namespace hipress {
namespace compll {
namespace {

/// Sets bits of memory that was zero; `value` has at most 32.
COMPLL_DEVICE void SetBits(uint32_t* words, int64_t bit, uint32_t value) {
  const uint64_t shifted = static_cast<uint64_t>(value) << (bit % 32);
  if (const uint32_t first = static_cast<uint32_t>(shifted)) atomicOr(words + bit / 32, first);
  if (const uint32_t next = static_cast<uint32_t>(shifted >> 32)) atomicOr(words + bit / 32 + 1, next);
}

/// Bytes of a payload as words; what is after them reads as 0.
struct PayloadWords {
  const uint8_t* data;
  int64_t bytes;
  COMPLL_DEVICE uint32_t operator()(int64_t w) const {
    uint32_t word = 0;
    for (int b = 0; b < 4 && 4 * w + b < bytes; ++b) {
      word |= static_cast<uint32_t>(data[4 * w + b]) << (8 * b);
    }
    return word;
  }
};

/// Bits from `bit` on of words, at most 32 of them.
COMPLL_DEVICE uint32_t GetBits(const PayloadWords& words, int64_t bit, int bits) {
  const uint64_t pair = words(bit / 32) | static_cast<uint64_t>(words(bit / 32 + 1)) << 32;
  return static_cast<uint32_t>(pair >> (bit % 32) & ((uint64_t(1) << bits) - 1));
}

/// \param before what ScanArray made of CountBits of the mask, which has n bits
/// \param out in the workspace, zero
template <class Team, class Bits, class Mask>
COMPLL_DEVICE void PackWhere(const Team& team, Shared& shared, const Bits& bits, const Mask& mask,
                             int64_t n, const uint32_t* before, uint8_t* out) {
  ForWords(team, shared, mask, n, before, [&](int64_t w, uint32_t word, int64_t at) {
    const uint32_t from = bits(w);
    uint32_t joined = 0;
    for (int k = 0; word != 0; word &= word - 1, ++k) {
      joined |= (from >> (__ffs(static_cast<int>(word)) - 1) & 1u) << k;
    }
    SetBits(reinterpret_cast<uint32_t*>(out), at, joined);
  });
}

/// The n bits again, 0 where the mask is, in the workspace.
template <class Team, class Mask>
COMPLL_DEVICE void UnpackWhere(const Team& team, Shared& shared, const PayloadWords& packed,
                               const Mask& mask, int64_t n, const uint32_t* before, uint8_t* out) {
  ForWords(team, shared, mask, n, before, [&](int64_t w, uint32_t word, int64_t at) {
    uint32_t joined = GetBits(packed, at, __popc(word)), bits = 0;
    for (; word != 0; word &= word - 1, joined >>= 1) {
      if (joined & 1u) bits |= word & (~word + 1);
    }
    reinterpret_cast<uint32_t*>(out)[w] = bits;
  });
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_BITS_CUH_
