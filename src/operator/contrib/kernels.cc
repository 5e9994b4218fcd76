#include "operator/contrib/kernels.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/simd.h"

namespace hipress {
namespace {

std::atomic<const Kernels*> active{nullptr};

const Kernels& Choose() {
  const char* name = ChosenSimd();
  if (name != nullptr) return *FindKernels(name);
  const char* wanted = std::getenv("HIPRESS_SIMD");
  if (wanted != nullptr && *wanted != '\0') {
    throw Error("HIPRESS_SIMD must be an instruction set that this CPU has and that the library has "
                "codecs for (" + CompiledSimd() + "), not \"" + wanted + "\"");
  }
  throw Error("this library has codecs for " + CompiledSimd() +
              ", which this CPU lacks; build it with -DHIPRESS_ISAS=all (make ISAS=all)");
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
