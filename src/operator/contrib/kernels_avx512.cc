// Compiled for x86-64 only, with the flags of cmake/simd.cmake.
#if defined(HIPRESS_X86_KERNELS)
#define HIPRESS_SIMD_NAME "avx512"
#define HIPRESS_SIMD_TABLE kAvx512Kernels
#include "operator/contrib/kernels-inl.h"
#endif
