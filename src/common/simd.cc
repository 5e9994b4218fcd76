#include "common/simd.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace hipress {

bool SupportsSimd(const char* name) {
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
  for (const char* name : {"avx512", "avx2", "baseline"}) {
    if ((any || std::strcmp(name, wanted) == 0) && SupportsSimd(name)) return name;
  }
  return nullptr;
}

}  // namespace hipress
