#define HIPRESS_SIMD_NAME "baseline"
#define HIPRESS_SIMD_TABLE kBaselineKernels
#include "operator/contrib/kernels-inl.h"
