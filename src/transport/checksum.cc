#define HIPRESS_CHECKSUM_KERNEL kChecksumBaseline
#define HIPRESS_CHECKSUM_NAME "baseline"
#include "transport/checksum_impl.h"

#include <cstring>

#include "base/simd.h"

namespace hipress {
namespace {

const ChecksumKernel& Choose() {
#if defined(__x86_64__)
  // Codecs report a HIPRESS_SIMD that is not supported.
  const char* name = ChosenSimd();
  if (name != nullptr && std::strcmp(name, "avx512") == 0) return kChecksumAvx512;
  if (name != nullptr && std::strcmp(name, "avx2") == 0) return kChecksumAvx2;
#endif
  return kChecksumBaseline;
}

const ChecksumKernel& Kernel() {
  static const ChecksumKernel& kernel = Choose();
  return kernel;
}

}  // namespace

const char* ChecksumSimd() { return Kernel().name; }
uint32_t Checksum(const void* data, size_t bytes) {
  return static_cast<uint32_t>(Kernel().hash(data, bytes));
}
void RunningChecksum::Reset() { Kernel().reset(state_); }
void RunningChecksum::Update(const void* data, size_t bytes) {
  Kernel().update(state_, data, bytes);
}
uint32_t RunningChecksum::Digest() const { return static_cast<uint32_t>(Kernel().digest(state_)); }

}  // namespace hipress
