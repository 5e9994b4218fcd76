// Compiled for x86-64 only, with the flags of cmake/simd.cmake.
#if defined(HIPRESS_X86_KERNELS)
#include "operator/contrib/simd_avx512.h"
// The primitives above must come first.
#include "operator/contrib/kernels-inl.h"
#endif
