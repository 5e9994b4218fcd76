#include "operator/contrib/kernels.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hipress {
namespace {

std::atomic<const Kernels*> active{nullptr};

const Kernels& Choose() {
  const char* wanted = std::getenv("HIPRESS_SIMD");
  if (wanted != nullptr && *wanted != '\0') {
    const Kernels* kernels = FindKernels(wanted);
    if (kernels != nullptr) return *kernels;
    throw Error(std::string("HIPRESS_SIMD must be baseline, avx2 or avx512, and within what this CPU "
                            "has, not \"") + wanted + "\"");
  }
  for (const char* name : {"avx512", "avx2"}) {
    const Kernels* kernels = FindKernels(name);
    if (kernels != nullptr) return *kernels;
  }
  return kBaselineKernels;
}

}  // namespace

const Kernels* FindKernels(const char* name) {
  if (std::strcmp(name, "baseline") == 0) return &kBaselineKernels;
#if defined(HIPRESS_X86_KERNELS)
  // These checks include the operating system's support for the wide registers.
  if (std::strcmp(name, "avx2") == 0 && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2")) {
    return &kAvx2Kernels;
  }
  if (std::strcmp(name, "avx512") == 0 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2")) {
    return &kAvx512Kernels;
  }
#endif
  return nullptr;
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
