#include "base/simd.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace hipress {
namespace {

/// The widest first. cmake/compll.cmake defines what this build has codecs for.
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

}  // namespace

bool SupportsSimd(const char* name) {
  const auto compiled = [name](const char* isa) { return std::strcmp(name, isa) == 0; };
  if (std::none_of(kCompiled.begin(), kCompiled.end(), compiled)) return false;
  if (std::strcmp(name, "baseline") == 0) return true;
#if defined(HIPRESS_X86_KERNELS)
  __builtin_cpu_init();
  // These checks include the operating system's support for the wide registers.
  if (std::strcmp(name, "avx2") == 0) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") &&
           __builtin_cpu_supports("bmi2");
  }
  if (std::strcmp(name, "avx512") == 0) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("bmi2");
  }
#endif
  return false;
}

const char* ChosenSimd() {
  const char* wanted = std::getenv("HIPRESS_SIMD");
  const bool any = wanted == nullptr || *wanted == '\0';
  for (const char* name : kCompiled) {
    if ((any || std::strcmp(name, wanted) == 0) && SupportsSimd(name)) return name;
  }
  return nullptr;
}

std::string CompiledSimd() {
  std::string names;
  for (const char* name : kCompiled) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

}  // namespace hipress
