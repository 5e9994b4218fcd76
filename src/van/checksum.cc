#define HIPRESS_CHECKSUM_KERNEL kChecksumBaseline
#define HIPRESS_CHECKSUM_NAME "baseline"
#include "van/checksum_impl.h"

namespace hipress {
namespace {

const ChecksumKernel& Choose() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return kChecksumAvx512;
  if (__builtin_cpu_supports("avx2")) return kChecksumAvx2;
#endif
  return kChecksumBaseline;
}

const ChecksumKernel& Kernel() {
  static const ChecksumKernel& kernel = Choose();
  return kernel;
}

}  // namespace

uint32_t Checksum(const void* data, size_t bytes) {
  return static_cast<uint32_t>(Kernel().hash(data, bytes));
}
void RunningChecksum::Reset() { Kernel().reset(state_); }
void RunningChecksum::Update(const void* data, size_t bytes) {
  Kernel().update(state_, data, bytes);
}
uint32_t RunningChecksum::Digest() const { return static_cast<uint32_t>(Kernel().digest(state_)); }

}  // namespace hipress
