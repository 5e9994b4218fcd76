/*!
 * \file ascending.cuh
 * \brief Ascending indices in few bytes, as ascending.h, which says how, has them on a CPU.
 *
 * Packing sets bits from anywhere. Unpacking counts the bits of the mask, or of the unary parts, as
 * a filter does: the j-th bit is the j-th index's.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_ASCENDING_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_ASCENDING_CUH_

#include "operator/contrib/compll/cuda/sparse.cuh"

namespace hipress {
namespace compll {
namespace {

/// How `count` indices below n are laid out.
struct Ascending {
  int low;        ///< bits of an index that are packed as they are
  int64_t upper;  ///< bits of the mask, or of the unary parts
  int64_t begin;  ///< bytes before the packed bits
  COMPLL_BOTH Ascending(int64_t count, int64_t n) : low(0) {
    if (count > 0 && 4 * count < n) {
      while (count << (low + 1) <= n) ++low;
    }
    upper = count <= 0 ? 0 : (low == 0 ? n : count + ((n - 1) >> low));
    begin = Blocks(upper, 8);
  }
};

COMPLL_BOTH int64_t AscendingBytes(int64_t count, int64_t n) {
  const Ascending layout(count, n);
  return layout.begin + Blocks(count * layout.low, 8);
}

/// Sets bits of memory that was zero; `value` has at most 32.
COMPLL_DEVICE void SetBits(uint32_t* words, int64_t bit, uint32_t value) {
  const uint64_t shifted = static_cast<uint64_t>(value) << (bit % 32);
  if (const uint32_t first = static_cast<uint32_t>(shifted)) atomicOr(words + bit / 32, first);
  if (const uint32_t next = static_cast<uint32_t>(shifted >> 32)) atomicOr(words + bit / 32 + 1, next);
}

/// \param out in the workspace, zero
template <class Team>
COMPLL_DEVICE void PackAscending(const Team& team, const int32_t* index, int64_t count, int64_t n,
                                 uint8_t* out) {
  const Ascending layout(count, n);
  uint32_t* const words = reinterpret_cast<uint32_t*>(out);
  ForEach(team, count, [&](int64_t j) {
    const int64_t at = index[j];
    if (layout.low == 0) return SetBits(words, at, 1);
    SetBits(words, (at >> layout.low) + j, 1);
    SetBits(words, 8 * layout.begin + j * layout.low,
            static_cast<uint32_t>(at & ((int64_t(1) << layout.low) - 1)));
  });
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

/// Bits from `bit` on of words, at most 31 of them.
COMPLL_DEVICE uint32_t GetBits(const PayloadWords& words, int64_t bit, int bits) {
  const uint64_t pair = words(bit / 32) | static_cast<uint64_t>(words(bit / 32 + 1)) << 32;
  return static_cast<uint32_t>(pair >> (bit % 32) & ((uint64_t(1) << bits) - 1));
}

template <class Team>
COMPLL_DEVICE void CountAscending(const Team& team, Shared& shared, const uint8_t* data,
                                  int64_t count, int64_t n, uint32_t* counts) {
  const Ascending layout(count, n);
  CountBits(team, shared, PayloadWords{data, layout.begin}, 8 * layout.begin, counts);
}

/// After CountAscending has found `count` bits.
template <class Team>
COMPLL_DEVICE void UnpackAscending(const Team& team, Shared& shared, const uint8_t* data,
                                   int64_t count, int64_t n, const uint32_t* before,
                                   int32_t* index) {
  const Ascending layout(count, n);
  const PayloadWords lower = {data + layout.begin, Blocks(count * layout.low, 8)};
  auto put = [&](int64_t j, int64_t bit) {
    if (bit >= layout.upper) {
      bit = n;  // which is refused; shifted it might not fit into 32 bits
    } else if (layout.low > 0) {
      bit = ((bit - j) << layout.low) | GetBits(lower, j * layout.low, layout.low);
    }
    index[j] = static_cast<int32_t>(bit);
  };
  WriteBits(team, shared, PayloadWords{data, layout.begin}, 8 * layout.begin, before, put);
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_ASCENDING_CUH_
