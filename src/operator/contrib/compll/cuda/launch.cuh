/*!
 * \file launch.cuh
 * \brief The kernels around a coder's steps, and how they are launched. What generated code
 * includes.
 *
 * A coder has Call, Job (a call and its parameters), Control (what begins the workspace), Memory
 * (its parts, and how many blocks are of use in each step), kSteps and Step<k>(team, shared, job).
 */
#pragma once

#include <utility>

#include "operator/contrib/compll/cuda/abi.h"
#include "operator/contrib/compll/cuda/floats.cuh"
#include "operator/contrib/compll/cuda/indices.cuh"

namespace hipress::compll {
namespace {

/// The parameters' values, by value in each kernel's arguments.
template <int kCount>
struct Params {
  double of[kCount];
};

/// Gradients of at most this many elements are one block's work: one launch instead of several.
constexpr int64_t kOneBlock = 8192;

/// How payloads are merged: each added to the sum; all in one pass, as floats or as integer levels.
enum Merge { kOneByOne, kFloats, kLevels };

/// Payloads that are merged in one launch.
constexpr int kMany = 16;
template <class Values>
struct ManyJob {
  CompllCudaDecode calls[kMany];
  Values params;
  int count;
  bool add;   ///< out is a sum of earlier ones: of levels, if there are levels
  bool more;  ///< others follow: levels stay levels
};

/// Whether a call is not to be made after all, which only the device knows: all threads agree.
COMPLL_DEVICE bool Skipped(const CompllCudaEncode& call) {
  return call.skip != nullptr && *call.skip != 0;
}
COMPLL_DEVICE bool Skipped(const CompllCudaDecode&) { return false; }

template <class Coder>
__global__ void __launch_bounds__(kThreads, 4) SumKernel(typename Coder::SumJob job) {
  Coder::Sum(GridTeam(), job);
}

template <class Coder, int kStep>
__global__ void __launch_bounds__(kThreads, 4) StepKernel(typename Coder::Job job) {
  COMPLL_SHARED(Shared, shared);
  if (Skipped(job.call)) return;
  Coder::template Step<kStep>(GridTeam(), shared, job);
}

template <class Coder, int... kStep>
COMPLL_DEVICE void AllSteps(Shared& shared, const typename Coder::Job& job,
                            std::integer_sequence<int, kStep...>) {
  if (Coder::kControl) {
    uint32_t* const words = static_cast<uint32_t*>(job.call.workspace);
    for (size_t w = threadIdx.x; w < sizeof(typename Coder::Control) / 4; w += kThreads) {
      words[w] = 0;
    }
    __syncthreads();
  }
  ((Coder::template Step<kStep>(BlockTeam(), shared, job), __syncthreads()), ...);
}

COMPLL_DEVICE void AddStep(CompllCudaEncode* call, uint64_t step) { call->step += step; }
COMPLL_DEVICE void AddStep(CompllCudaDecode*, uint64_t) {}

/// One block for each call; `one` stands for all if there is no list.
template <class Coder, class Values>
__global__ void __launch_bounds__(kThreads)
    BlockKernel(const typename Coder::Call* calls, typename Coder::Call one, int count,
                Values params, bool add, uint64_t step) {
  COMPLL_SHARED(Shared, shared);
  for (int c = static_cast<int>(blockIdx.x); c < count; c += static_cast<int>(gridDim.x)) {
    typename Coder::Job job;
    job.call = calls != nullptr ? calls[c] : one;
    job.params = params;
    job.add = add;
    if (Skipped(job.call)) continue;
    AddStep(&job.call, step);
    AllSteps<Coder>(shared, job, std::make_integer_sequence<int, Coder::kSteps>());
  }
}

/// Launches the steps in order, up to the first error.
template <class Coder, int... kStep>
inline cudaError_t LaunchSteps(const typename Coder::Job& job,
                               const typename Coder::Memory& memory, cudaStream_t stream,
                               std::integer_sequence<int, kStep...>) {
  cudaError_t error = cudaSuccess;
  static_cast<void>(
      (((error = Launch<typename Coder::Job>(StepKernel<Coder, kStep>,
                                             GridSize(memory.blocks[kStep]), stream, job)) ==
        cudaSuccess) && ...));
  return error;
}

template <class Coder>
inline cudaError_t LaunchBlocks(const typename Coder::Call* calls, int count,
                                const typename Coder::Job& job, uint64_t step,
                                cudaStream_t stream) {
  using Values = decltype(job.params);
  return Launch<const typename Coder::Call*, typename Coder::Call, int, Values, bool, uint64_t>(
      BlockKernel<Coder, Values>, GridSize(count), stream, calls, job.call, count, job.params,
      job.add, step);
}

template <class Coder>
inline typename Coder::Job MakeJob(const typename Coder::Call& call, const double* params,
                                   bool add) {
  typename Coder::Job job = {};
  job.call = call;
  job.add = add;
  memcpy(&job.params, params, sizeof(job.params));
  return job;
}

template <class Coder>
inline int64_t WorkspaceBytes(int64_t n, const double* params) {
  typename Coder::Call call = {};
  call.n = n;
  return typename Coder::Memory(MakeJob<Coder>(call, params, false)).bytes;
}

inline bool Aligned(const void* at, uintptr_t to) {
  return reinterpret_cast<uintptr_t>(at) % to == 0;
}
inline int CheckCall(const CompllCudaEncode& call, int64_t most) {
  if (call.capacity < most) return COMPLL_CUDA_NO_ROOM;
  if (call.bytes == nullptr || call.workspace == nullptr) return COMPLL_CUDA_MISSING;
  for (const float* state : call.states) {
    if (!Aligned(state, 4)) return COMPLL_CUDA_UNALIGNED;
  }
  if (!Aligned(call.gradient, 4) || !Aligned(call.payload, 4)) return COMPLL_CUDA_UNALIGNED;
  return Aligned(call.workspace, 16) && Aligned(call.bytes, 8) ? 0 : COMPLL_CUDA_UNALIGNED;
}
inline int CheckCall(const CompllCudaDecode& call, int64_t) {
  if (call.bytes == nullptr || call.status == nullptr || call.workspace == nullptr) {
    return COMPLL_CUDA_MISSING;
  }
  if (!Aligned(call.out, 4) || !Aligned(call.payload, 4)) return COMPLL_CUDA_UNALIGNED;
  return Aligned(call.workspace, 16) && Aligned(call.bytes, 8) ? 0 : COMPLL_CUDA_UNALIGNED;
}

/// Encodes or decodes one gradient.
template <class Coder>
inline int Run(const typename Coder::Call& call, const double* params, bool add, int shape,
               void* where, int64_t most = 0) {
  if (const int wrong = CheckCall(call, most)) return wrong;
  const cudaStream_t stream = static_cast<cudaStream_t>(where);
  const typename Coder::Job job = MakeJob<Coder>(call, params, add);
  if (shape == COMPLL_CUDA_BLOCK || (shape == COMPLL_CUDA_AUTO && call.n <= kOneBlock)) {
    return LaunchBlocks<Coder>(nullptr, 1, job, 0, stream);
  }
  if (Coder::kControl) {
    const cudaError_t error =
        cudaMemsetAsync(call.workspace, 0, sizeof(typename Coder::Control), stream);
    if (error != cudaSuccess) return error;
  }
  return LaunchSteps<Coder>(job, typename Coder::Memory(job), stream,
                            std::make_integer_sequence<int, Coder::kSteps>());
}

/// Many small gradients, whose calls lie in device memory, in one launch.
template <class Coder>
inline int RunBatch(const typename Coder::Call* calls, int count, const double* params, bool add,
                    uint64_t step, void* stream) {
  if (count <= 0) return 0;
  if (calls == nullptr) return COMPLL_CUDA_MISSING;
  const typename Coder::Job job = MakeJob<Coder>({}, params, add);
  return LaunchBlocks<Coder>(calls, count, job, step, static_cast<cudaStream_t>(stream));
}

/// The sum of the payloads of several calls, which lie in host memory.
template <class Coder>
inline int RunSum(const CompllCudaDecode* calls, int count, const double* params, int shape,
                  void* where) {
  if (calls == nullptr || count <= 0) return COMPLL_CUDA_MISSING;
  for (int c = 0; c < count; ++c) {
    if (const int wrong = CheckCall(calls[c], 0)) return wrong;
    if (calls[c].n != calls[0].n || calls[c].out != calls[0].out) return COMPLL_CUDA_MISMATCH;
  }
  if constexpr (Coder::kMerge == kOneByOne) {
    for (int c = 0; c < count; ++c) {
      if (const int wrong = Run<Coder>(calls[c], params, c > 0, shape, where)) return wrong;
    }
  } else {
    typename Coder::SumJob job = {};
    memcpy(&job.params, params, sizeof(job.params));
    for (int first = 0; first < count; first += kMany) {
      job.count = count - first < kMany ? count - first : kMany;
      job.add = first > 0;
      job.more = first + kMany < count;
      for (int c = 0; c < job.count; ++c) job.calls[c] = calls[first + c];
      const cudaError_t error = Launch<typename Coder::SumJob>(
          SumKernel<Coder>, GridSize(Blocks(calls[0].n, 8192)), static_cast<cudaStream_t>(where),
          job);
      if (error != cudaSuccess) return error;
    }
  }
  return 0;
}

}  // namespace
}  // namespace hipress::compll
