/*!
 * \file checksum.h
 * \brief XXH3, compiled for several instruction sets. The first call chooses one (base/simd.h).
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace hipress {

/// Low 32 bits of XXH3-64 of `bytes` bytes.
uint32_t Checksum(const void* data, size_t bytes);

/// Return the name of the instruction set in use, as in HIPRESS_SIMD.
const char* ChecksumSimd();

/// The same value, computed piece by piece while the bytes are still in the cache.
class RunningChecksum {
 public:
  void Reset();
  void Update(const void* data, size_t bytes);
  uint32_t Digest() const;

 private:
  alignas(64) unsigned char state_[576];  // an XXH3_state_t, whose header stays out of this one
};

/// One instruction set's functions; see checksum.cc.
struct ChecksumKernel {
  const char* name;
  uint64_t (*hash)(const void* data, size_t bytes);
  void (*reset)(void* state);
  void (*update)(void* state, const void* data, size_t bytes);
  uint64_t (*digest)(const void* state);
};

extern const ChecksumKernel kChecksumBaseline;
#if defined(__x86_64__)
extern const ChecksumKernel kChecksumAvx2;
extern const ChecksumKernel kChecksumAvx512;
#endif

}  // namespace hipress
