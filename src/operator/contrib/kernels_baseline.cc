#include "operator/contrib/simd_portable.h"
// The primitives above must come first.
#include "operator/contrib/kernels-inl.h"
