#if defined(__x86_64__)
#define HIPRESS_CHECKSUM_KERNEL kChecksumAvx512
#define HIPRESS_CHECKSUM_NAME "avx512"
#include "van/checksum_impl.h"
#endif
