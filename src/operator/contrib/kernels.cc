#include "operator/contrib/kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hipress {
namespace {

std::atomic<const Kernels*> active{nullptr};

/// Instruction sets that this build has codecs for, the widest first. cmake/compll.cmake decides.
constexpr std::array kCompiled = {
#if defined(HIPRESS_CODECS_AVX512)
    "avx512",
#endif
#if defined(HIPRESS_CODECS_AVX2)
    "avx2",
#endif
#if defined(HIPRESS_CODECS_BASELINE)
    "baseline",
#endif
};

const Kernels& Choose() {
  const char* wanted = std::getenv("HIPRESS_SIMD");
  if (wanted != nullptr && *wanted != '\0') {
    const Kernels* kernels = FindKernels(wanted);
    if (kernels != nullptr) return *kernels;
    throw Error("HIPRESS_SIMD must be an instruction set that this CPU has and that the library has "
                "codecs for (" + CompiledInstructionSets() + "), not \"" + wanted + "\"");
  }
  for (const char* name : kCompiled) {
    const Kernels* kernels = FindKernels(name);
    if (kernels != nullptr) return *kernels;
  }
  throw Error("this library has codecs for " + CompiledInstructionSets() +
              ", which this CPU lacks; build it with -DHIPRESS_ISAS=all (make ISAS=all)");
}

}  // namespace

const Kernels* FindKernels(const char* name) {
  const auto compiled = [name](const char* isa) { return std::strcmp(name, isa) == 0; };
  if (std::none_of(kCompiled.begin(), kCompiled.end(), compiled)) return nullptr;
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

std::string CompiledInstructionSets() {
  std::string names;
  for (const char* name : kCompiled) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
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
