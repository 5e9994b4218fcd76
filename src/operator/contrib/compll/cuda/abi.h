/*!
 * \file abi.h
 * \brief What a CompLL algorithm looks like on a GPU: plain C structs, device pointers, a stream.
 *
 * Nothing here waits for the device, allocates memory, or reads device memory on the host. All
 * pointers of a call are device pointers. Memory of a call must stay until the stream has run it.
 */
#pragma once

#include <stdint.h>

#define COMPLL_CUDA_ABI_VERSION 2u
#define COMPLL_CUDA_STATES 4

extern "C" {

/// How a call is spread over the GPU. The result does not depend on it.
enum CompllCudaShape {
  COMPLL_CUDA_AUTO = 0,
  COMPLL_CUDA_GRID = 1,   ///< one kernel for each step, on the whole GPU
  COMPLL_CUDA_BLOCK = 2,  ///< one kernel of one block
};

struct CompllCudaEncode {
  const float* gradient;              ///< float32[n]
  int64_t n;
  float* states[COMPLL_CUDA_STATES];  ///< float32[n] for each state in use (CompllAlgorithm), zeros
                                      ///< at first, updated
  uint64_t step;                      ///< encodes of these states so far
  uint32_t stream;                    ///< random numbers: distinguishes encoders that share a seed
  uint8_t* payload;                   ///< aligned to 4 bytes
  int64_t capacity;                   ///< of payload; at least max_bytes(n, params)
  int64_t* bytes;                     ///< the payload's size is written here
  void* workspace;                    ///< encode_workspace(n, params) bytes, aligned to 16
  const int64_t* skip;                ///< null, or: if the number there is not 0, nothing happens
};

struct CompllCudaDecode {
  const uint8_t* payload;  ///< aligned to 4 bytes
  const int64_t* bytes;    ///< its size
  int64_t capacity;        ///< what may be read of it; a larger *bytes is an error
  int64_t n;
  float* out;              ///< float32[n]
  int64_t* status;         ///< int64[2]: {0, 0}, or {number for sentence(), a number to print}
  void* workspace;         ///< decode_workspace(n, params) bytes, aligned to 16
};

struct CompllCudaAlgorithm {
  uint32_t abi_version;  ///< COMPLL_CUDA_ABI_VERSION
  const char* name;
  const char* spec;      ///< digest of the algorithm's meaning, as in CompllAlgorithm
  int num_params;
  int num_states;
  int fixed_size;        ///< every payload of n elements has max_bytes(n) bytes
  int64_t (*max_bytes)(int64_t n, const double* params);
  int64_t (*encode_workspace)(int64_t n, const double* params);
  int64_t (*decode_workspace)(int64_t n, const double* params);
  /// Each returns 0, or an error for hipress_cuda_error(). `call` is in host memory.
  int (*encode)(const CompllCudaEncode* call, const double* params, int shape, void* stream);
  /// out = decoded, or with `add` out += decoded. A malformed payload changes nothing but status.
  int (*decode)(const CompllCudaDecode* call, const double* params, int add, int shape,
                void* stream);
  /// One kernel for `count` calls that lie in *device* memory, a block for each; the host cannot
  /// check them. `step` is added to each one's own.
  int (*encode_batch)(const CompllCudaEncode* calls, int count, const double* params, uint64_t step,
                      void* stream);
  int (*decode_batch)(const CompllCudaDecode* calls, int count, const double* params, int add,
                      void* stream);
  /// The sum of `count` payloads, as CompLL defines their merge (passes/analyses.py): the calls lie
  /// in *host* memory and have the same n and out. If any status is not 0, out holds no sum. A
  /// decoder of one dense pass reads kMany payloads in a launch, and writes the sum once.
  int (*decode_sum)(const CompllCudaDecode* calls, int count, const double* params, int shape,
                    void* stream);
  /// Of a status: a text with at most one %lld; null for an unknown number.
  const char* (*sentence)(int64_t status);
};

typedef const CompllCudaAlgorithm* (*CompllCudaEntry)(void);
#define COMPLL_CUDA_ENTRY_NAME "hipress_compll_cuda_algorithm"

/// Errors of calls that are not CUDA's own.
enum {
  COMPLL_CUDA_BAD_PARAM = -1,
  COMPLL_CUDA_NO_ROOM = -2,
  COMPLL_CUDA_UNALIGNED = -3,
  COMPLL_CUDA_MISSING = -4,
  COMPLL_CUDA_MISMATCH = -5,
};

}  // extern "C"
