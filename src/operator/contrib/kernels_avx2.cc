// Compiled for x86-64 only, with the flags of cmake/simd.cmake.
#if defined(HIPRESS_X86_KERNELS)
#define HIPRESS_SIMD_NAME "avx2"
#define HIPRESS_SIMD_TABLE kAvx2Kernels
#include "operator/contrib/kernels-inl.h"
#endif
