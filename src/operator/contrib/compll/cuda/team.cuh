/*!
 * \file team.cuh
 * \brief The base of all CUDA code of algorithms: qualifiers, launches, elements in memory, teams
 * of threads, and reductions.
 *
 * A step of an algorithm is written once, for a team: all blocks of a grid, or one block that has a
 * gradient for itself. On a grid each step is a kernel. A block runs all steps of a small gradient
 * in one kernel, with a barrier between them. What must follow the work of all blocks, such as
 * joining a reduction, is done by the last block that ends.
 *
 * COMPLL_SHARED and COMPLL_UNROLL can be defined by an emulation of CUDA, which has no memory that
 * the threads of a block share.
 */
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

#include <atomic>
#include <limits>
#include <type_traits>

#include "operator/contrib/compll/scalar.h"

#if !defined(COMPLL_SHARED)
/// The one shared variable of a kernel.
#define COMPLL_SHARED(type, name) __shared__ type name
#define COMPLL_UNROLL _Pragma("unroll")
#endif

#define COMPLL_DEVICE __device__ __forceinline__
/// For what a kernel does once: compiled once, not wherever it is called.
#define COMPLL_OUTLINE static __device__ __noinline__
#define COMPLL_BOTH __host__ __device__ __forceinline__

namespace hipress::compll {

/// Kernels launched by this library, for tests and benchmarks.
inline std::atomic<uint64_t>& Launches() {
  static std::atomic<uint64_t> launches{0};
  return launches;
}

namespace {

constexpr int kThreads = 256;  ///< of every block
constexpr int kWarpSize = 32;
constexpr int kWarps = kThreads / kWarpSize;
constexpr unsigned kAll = 0xffffffffu;
/// Blocks of a grid, at most: each has a counter in the workspace.
constexpr int kMaxBlocks = 2048;

COMPLL_DEVICE int Lane() { return static_cast<int>(threadIdx.x % kWarpSize); }
COMPLL_DEVICE int WarpIndex() { return static_cast<int>(threadIdx.x / kWarpSize); }

template <typename... Params>
inline cudaError_t Launch(void (*kernel)(Params...), int blocks, cudaStream_t stream,
                          Params... args) {
  Launches().fetch_add(1, std::memory_order_relaxed);
  void* pointers[] = {static_cast<void*>(&args)...};
  return cudaLaunchKernel(kernel, dim3(blocks), dim3(kThreads), pointers, 0, stream);
}

/// Blocks that fill the GPU, and at most `wanted`: kernels stride over what is left.
inline int GridSize(int64_t wanted) {
  static std::atomic<int> known[64];  // multiprocessors of each device
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 1;
  const bool keep = device >= 0 && device < 64;
  int processors = keep ? known[device].load(std::memory_order_relaxed) : 0;
  if (processors == 0) {
    const auto attribute = cudaDevAttrMultiProcessorCount;
    if (cudaDeviceGetAttribute(&processors, attribute, device) != cudaSuccess) return 1;
    if (keep) known[device].store(processors, std::memory_order_relaxed);
  }
  const int64_t most = Least(static_cast<int64_t>(processors) * 8, kMaxBlocks);
  return static_cast<int>(wanted < 1 ? 1 : Least(wanted, most));
}

// One element, in memory of any alignment ---------------------------------------------------------

COMPLL_BOTH float FromOrdered(uint32_t key) {
  return FromBits(key >> 31 ? key & 0x7fffffffu : ~key);
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
template <typename Stored, typename Value>
struct As {
  static COMPLL_BOTH Value Get(const void* base, int64_t i) { return Read<Stored>(base, i); }
  static COMPLL_BOTH void Put(void* base, int64_t i, Value x) {
    Write(base, i, static_cast<Stored>(x));
  }
};
using AsFloat = As<float, float>;
using AsInt = As<int32_t, int32_t>;
using AsUnsigned = As<uint32_t, uint32_t>;
using AsShort = As<uint16_t, int32_t>;
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

// Teams -------------------------------------------------------------------------------------------

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

// Reductions --------------------------------------------------------------------------------------

// In the order that CompLL defines: element i is in lane i mod 32 of a warp, lanes are folded in
// halves after 4096 elements, and these blocks are joined one after the other.

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
}  // namespace hipress::compll
