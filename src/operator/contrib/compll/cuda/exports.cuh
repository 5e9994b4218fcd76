/*!
 * \file exports.cuh
 * \brief What a library of CUDA algorithms exports once: memory and errors, for callers without
 * CUDA headers, and the count of launches.
 */
#pragma once

#include <stdlib.h>

#include "operator/contrib/compll/cuda/abi.h"
#include "operator/contrib/compll/cuda/team.cuh"

#define COMPLL_EXPORT extern "C" __attribute__((visibility("default")))

/// A sentence's end for what a function of CompllCudaAlgorithm, or of this file, returned.
COMPLL_EXPORT const char* hipress_cuda_error(int error) {
  switch (error) {
    case COMPLL_CUDA_BAD_PARAM: return "a parameter is not allowed";
    case COMPLL_CUDA_NO_ROOM: return "the payload's memory is smaller than max_bytes";
    case COMPLL_CUDA_UNALIGNED:
      return "a pointer is not aligned (gradients, states and payloads to 4 bytes, a workspace to 16)";
    case COMPLL_CUDA_MISSING: return "a pointer is null, or a list is empty";
    case COMPLL_CUDA_MISMATCH: return "the payloads of a sum must share n and out";
    default: return cudaGetErrorString(static_cast<cudaError_t>(error));
  }
}

COMPLL_EXPORT uint64_t hipress_cuda_launches() {
  return hipress::compll::Launches().load(std::memory_order_relaxed);
}

COMPLL_EXPORT int hipress_cuda_devices(int* count) { return cudaGetDeviceCount(count); }
COMPLL_EXPORT int hipress_cuda_alloc(void** at, int64_t bytes) {
  return cudaMalloc(at, static_cast<size_t>(bytes));
}
COMPLL_EXPORT int hipress_cuda_free(void* at) { return cudaFree(at); }
/// Copies within and between host and device memory, in a stream's order.
COMPLL_EXPORT int hipress_cuda_copy(void* to, const void* from, int64_t bytes, void* stream) {
  return cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault,
                         static_cast<cudaStream_t>(stream));
}
COMPLL_EXPORT int hipress_cuda_wait(void* stream) {
  return cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
}
