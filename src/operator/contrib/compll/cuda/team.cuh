/*!
 * \file team.cuh
 * \brief Team that runs a step: all blocks of a grid, or one block that has a gradient for itself.
 *
 * A step is written once, for a team. On a grid each step is a kernel; a block runs all steps of a
 * small gradient in one kernel, with a barrier between them. What must follow the work of all
 * blocks, such as joining a reduction, is done by the last block that ends.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_TEAM_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_TEAM_CUH_

#include "operator/contrib/compll/cuda/scalar.cuh"

namespace hipress {
namespace compll {
namespace {

constexpr int kBins = 2048;    ///< of a histogram
constexpr int kDigits = 256;   ///< of a radix sort
constexpr int kRows = 8;       ///< rows of 32 elements that a warp handles at once
constexpr int kTile = kRows * kWarpSize;
constexpr int kTransformed = 1024;  ///< elements that a block transforms at once
constexpr int64_t kBlock = 4096;  ///< elements that a reduction folds before blocks are joined

/// Scratch of a block.
struct Shared {
  union {
    uint32_t histogram[kBins];
    uint64_t codes[kWarps][kTile / 8];
    uint32_t digits[kWarps][kDigits];
    float rows[2][kTransformed];
  };
  uint32_t base[kDigits];
  uint64_t scan[kWarps];
  double sums[kWarps];
  int64_t number;
  uint32_t word;
  int flag;
};

struct GridTeam {
  COMPLL_DEVICE int Block() const { return static_cast<int>(blockIdx.x); }
  COMPLL_DEVICE int Blocks() const { return static_cast<int>(gridDim.x); }
  /// True in the last block to call it, which then sees what all others wrote. Zeroes the ticket.
  COMPLL_DEVICE bool Last(Shared& shared, uint32_t* ticket) const {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) shared.flag = atomicAdd(ticket, 1u) == gridDim.x - 1;
    __syncthreads();
    const bool last = shared.flag != 0;
    if (last) {
      __threadfence();
      if (threadIdx.x == 0) *ticket = 0;
    }
    return last;
  }
};

struct BlockTeam {
  COMPLL_DEVICE int Block() const { return 0; }
  COMPLL_DEVICE int Blocks() const { return 1; }
  COMPLL_DEVICE bool Last(Shared&, uint32_t*) const {
    __syncthreads();
    return true;
  }
};

/// work(unit, begin, end) for all units of `size` elements in [0, n): one warp for each.
template <class Team, class Work>
COMPLL_DEVICE void ForUnits(const Team& team, int64_t n, int64_t size, const Work& work) {
  const int64_t units = Blocks(n, size);
  const int64_t step = static_cast<int64_t>(team.Blocks()) * kWarps;
  for (int64_t unit = static_cast<int64_t>(team.Block()) * kWarps + WarpIndex(); unit < units;
       unit += step) {
    work(unit, unit * size, Least(n, (unit + 1) * size));
  }
}

/// work(i) for each i in [0, n), in no order.
template <class Team, class Work>
COMPLL_DEVICE void ForEach(const Team& team, int64_t n, const Work& work) {
  const int64_t step = static_cast<int64_t>(team.Blocks()) * kThreads;
  for (int64_t i = static_cast<int64_t>(team.Block()) * kThreads + threadIdx.x; i < n; i += step) {
    work(i);
  }
}

/// The part of [0, n) that a block takes in order: a multiple of kThreads, all parts ascending.
struct Part {
  int64_t begin, end;
  template <class Team>
  COMPLL_DEVICE Part(const Team& team, int64_t n) {
    const int64_t size = Blocks(Blocks(n, kThreads), team.Blocks()) * kThreads;
    begin = Least(team.Block() * size, n);
    end = Least(begin + size, n);
  }
};

/// Sum of the values of the threads before this one; `total` of all. All threads of the block.
template <typename T>
COMPLL_DEVICE T ScanBlock(Shared& shared, T value, T* total) {
  static_assert(sizeof(T) <= sizeof(shared.scan[0]), "a scan's values have at most 8 bytes");
  T sum = value;
COMPLL_UNROLL
  for (int by = 1; by < kWarpSize; by *= 2) {
    const T other = __shfl_up_sync(kAll, sum, by);
    if (Lane() >= by) sum += other;
  }
  __syncthreads();  // the previous scan's values have been read
  if (Lane() == kWarpSize - 1) shared.scan[WarpIndex()] = static_cast<uint64_t>(sum);
  __syncthreads();
  T before = 0, all = 0;
COMPLL_UNROLL
  for (int w = 0; w < kWarps; ++w) {
    const T part = static_cast<T>(shared.scan[w]);
    if (w < WarpIndex()) before += part;
    all += part;
  }
  *total = all;
  return before + sum - value;
}

/// Turns counts[size] into the sums of what lies before each; returns the sum of all. All threads.
template <typename T>
COMPLL_OUTLINE int64_t ScanArray(Shared& shared, T* counts, int64_t size) {
  const int64_t each = Blocks(size, kThreads);
  const int64_t begin = Least(each * threadIdx.x, size), end = Least(begin + each, size);
  int64_t sum = 0, total = 0;
  for (int64_t i = begin; i < end; ++i) sum += counts[i];
  int64_t before = ScanBlock(shared, sum, &total);
  for (int64_t i = begin; i < end; ++i) {
    const T count = counts[i];
    counts[i] = static_cast<T>(before);
    before += count;
  }
  __syncthreads();
  return total;
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_TEAM_CUH_
