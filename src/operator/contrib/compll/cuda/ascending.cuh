/*!
 * \file ascending.cuh
 * \brief Ascending indices in few bytes, as ascending.h, which says how, has them on a CPU.
 *
 * Packing sets bits from anywhere. Unpacking counts the bits of the mask, or of the unary parts, as
 * a filter does: the j-th bit is the j-th index's.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_ASCENDING_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_ASCENDING_CUH_

#include "operator/contrib/compll/cuda/bits.cuh"

namespace hipress {
namespace compll {
namespace {

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
