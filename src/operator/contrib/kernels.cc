#include "operator/contrib/kernels.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/simd.h"

namespace hipress {
namespace {

std::atomic<const Kernels*> active{nullptr};

const Kernels& Choose() {
  const char* name = ChosenSimd();
  if (name != nullptr) return *FindKernels(name);
  throw Error(std::string("HIPRESS_SIMD must be baseline, avx2 or avx512, and within what this CPU "
                          "has, not \"") + std::getenv("HIPRESS_SIMD") + "\"");
}

}  // namespace

const Kernels* FindKernels(const char* name) {
  if (!SupportsSimd(name)) return nullptr;
#if defined(HIPRESS_X86_KERNELS)
  if (std::strcmp(name, "avx2") == 0) return &kAvx2Kernels;
  if (std::strcmp(name, "avx512") == 0) return &kAvx512Kernels;
#endif
  return &kBaselineKernels;
}

const Kernels& ActiveKernels() {
  const Kernels* kernels = active.load(std::memory_order_acquire);
  if (kernels == nullptr) {
    kernels = &Choose();
    active.store(kernels, std::memory_order_release);
  }
  return *kernels;
}

void SetActiveKernels(const Kernels& kernels) { active.store(&kernels, std::memory_order_release); }

}  // namespace hipress
