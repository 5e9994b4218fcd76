/*!
 * \file reduce.cuh
 * \brief Reductions in the order that CompLL defines: element i in lane i mod 32 of a warp, lanes
 *        folded in halves after 4096 elements, these blocks joined one after the other.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_REDUCE_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_REDUCE_CUH_

#include "operator/contrib/compll/cuda/team.cuh"

namespace hipress {
namespace compll {
namespace {

/// Lane j takes in lane j + 16, + 8, + 4, + 2, + 1; the result is lane 0's.
template <typename T, class Combine>
COMPLL_DEVICE T FoldLanes(T value, const Combine& combine) {
COMPLL_UNROLL
  for (int width = kWarpSize / 2; width > 0; width /= 2) {
    value = combine(value, __shfl_down_sync(kAll, value, width));
  }
  return value;
}

/// start, then parts in order. All lanes of a warp call it, and get the result.
template <typename T, typename P, class Combine>
COMPLL_DEVICE T JoinInOrder(const P* parts, int64_t size, T start, const Combine& combine) {
  for (int64_t first = 0; first < size; first += kWarpSize) {
    const int64_t at = first + Lane();
    const P mine = at < size ? parts[at] : P(0);
    const int count = static_cast<int>(Least(kWarpSize, size - first));
    for (int j = 0; j < count; ++j) start = combine(start, T(__shfl_sync(kAll, mine, j)));
  }
  return start;
}

/// The sum of the threads' values, in no order.
template <typename T>
COMPLL_DEVICE T SumBlock(Shared& shared, T value) {
  T total = 0;
  ScanBlock(shared, value, &total);
  return total;
}

COMPLL_OUTLINE int64_t JoinCounts(Shared& shared, const int64_t* parts, int64_t size) {
  int64_t sum = 0;
  for (int64_t i = threadIdx.x; i < size; i += kThreads) sum += parts[i];
  return SumBlock(shared, sum);
}

/*!
 * \brief The sum of float32 numbers in order, in double. All threads of a block.
 *
 * If all sums of these numbers, in whatever order, are multiples of one power of two and less than
 * 2^53 of it, no addition rounds: then threads share the work. Else one warp adds them in order.
 */
COMPLL_OUTLINE double JoinSum(Shared& shared, const float* parts, int64_t size) {
  double sum = 0;
  int highest = 0, lowest = 1 << 20;  // exponents of the largest and of the smallest bit
  for (int64_t i = threadIdx.x; i < size; i += kThreads) {
    const uint32_t bits = BitsU(parts[i]) & 0x7fffffffu;
    if (bits == 0) continue;
    const int exponent = bits >> 23 == 0 ? 1 : static_cast<int>(bits >> 23);
    const int zeros = __ffs(static_cast<int>(bits & 0x7fffffu)) - 1;
    if (exponent > highest) highest = exponent;
    const int low = zeros < 0 ? exponent + 23 : exponent + zeros;
    if (low < lowest) lowest = low;
    sum += parts[i];
  }
COMPLL_UNROLL
  for (int by = kWarpSize / 2; by > 0; by /= 2) {
    const int high = __shfl_xor_sync(kAll, highest, by), low = __shfl_xor_sync(kAll, lowest, by);
    if (high > highest) highest = high;
    if (low < lowest) lowest = low;
    sum += __shfl_xor_sync(kAll, sum, by);
  }
  __syncthreads();
  if (Lane() == 0) {
    shared.sums[WarpIndex()] = sum;
    shared.scan[WarpIndex()] = static_cast<uint64_t>(highest) << 32 | static_cast<uint32_t>(lowest);
  }
  __syncthreads();
  int room = 1;
  while ((int64_t(1) << room) < size) ++room;
  sum = 0;
  for (int w = 0; w < kWarps; ++w) {
    sum += shared.sums[w];
    const int high = static_cast<int>(shared.scan[w] >> 32);
    const int low = static_cast<int>(shared.scan[w] & 0xffffffffu);
    if (high > highest) highest = high;
    if (low < lowest) lowest = low;
  }
  // Exponents count from the bit of weight 1: a number below 2^(highest + 24) in units of 2^lowest.
  const bool exact = highest < 255 && (highest == 0 || highest + 24 + room - lowest <= 53);
  __syncthreads();
  if (!exact && WarpIndex() == 0) {
    sum = JoinInOrder(parts, size, 0.0, [](double a, double b) { return a + b; });
    if (Lane() == 0) shared.sums[0] = sum;
  }
  __syncthreads();
  if (!exact) sum = shared.sums[0];
  __syncthreads();
  return sum;
}

struct Larger {
  COMPLL_DEVICE float operator()(float a, float b) const { return a > b ? a : b; }
  static COMPLL_BOTH float Start() { return FromBits(0xff800000u); }
};
struct Smaller {
  COMPLL_DEVICE float operator()(float a, float b) const { return a < b ? a : b; }
  static COMPLL_BOTH float Start() { return FromBits(0x7f800000u); }
};

/// The result of one warp for all threads of the block.
template <typename T, typename P, class Combine>
COMPLL_OUTLINE T JoinByWarp(Shared& shared, const P* parts, int64_t size, T start,
                           const Combine& combine) {
  static_assert(sizeof(T) <= sizeof(shared.scan[0]), "at most 8 bytes");
  __syncthreads();
  if (WarpIndex() == 0) {
    const T joined = JoinInOrder(parts, size, start, combine);
    if (Lane() == 0) memcpy(&shared.scan[0], &joined, sizeof(T));
  }
  __syncthreads();
  T result;
  memcpy(&result, &shared.scan[0], sizeof(T));
  __syncthreads();
  return result;
}

/// The largest or smallest in order. The order matters only for NaN and for zeros' signs.
template <class Combine>
COMPLL_OUTLINE float JoinExtreme(Shared& shared, const float* parts, int64_t size,
                                const Combine& combine) {
  float best = Combine::Start();
  bool nan = false;
  for (int64_t i = threadIdx.x; i < size; i += kThreads) {
    nan = nan || IsNan(parts[i]);
    best = combine(best, parts[i]);
  }
  best = FoldLanes(best, combine);
  if (Lane() == 0) shared.sums[WarpIndex()] = best;
  const bool any_nan = __syncthreads_or(nan) != 0;
  best = Combine::Start();
  for (int w = 0; w < kWarps; ++w) best = combine(best, static_cast<float>(shared.sums[w]));
  if (any_nan || best == 0) return JoinByWarp(shared, parts, size, Combine::Start(), combine);
  __syncthreads();
  return best;
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_REDUCE_CUH_
