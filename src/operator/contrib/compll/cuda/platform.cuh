/*!
 * \file platform.cuh
 * \brief Kernel launches, and the qualifiers of functions and shared memory.
 *
 * COMPLL_SHARED and COMPLL_UNROLL can be defined by an emulation of CUDA, which has no memory that
 * the threads of a block share.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PLATFORM_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PLATFORM_CUH_

#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

#include <atomic>
#include <limits>
#include <type_traits>

#if !defined(COMPLL_SHARED)
/// The one shared variable of a kernel.
#define COMPLL_SHARED(type, name) __shared__ type name
#define COMPLL_UNROLL _Pragma("unroll")
#endif

#define COMPLL_DEVICE __device__ __forceinline__
/// For what a kernel does once: compiled once, not wherever it is called.
#define COMPLL_OUTLINE static __device__ __noinline__
#define COMPLL_BOTH __host__ __device__ __forceinline__

namespace hipress {
namespace compll {

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
  int processors = 0;
  static std::atomic<int> known[64];
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 1;
  const bool keep = device >= 0 && device < 64;
  processors = keep ? known[device].load(std::memory_order_relaxed) : 0;
  if (processors == 0) {
    if (cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) !=
        cudaSuccess) {
      return 1;
    }
    if (keep) known[device].store(processors, std::memory_order_relaxed);
  }
  int64_t most = static_cast<int64_t>(processors) * 8;
  if (most > kMaxBlocks) most = kMaxBlocks;
  return static_cast<int>(wanted < 1 ? 1 : (wanted < most ? wanted : most));
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PLATFORM_CUH_
