#if defined(__x86_64__)
#define HIPRESS_CHECKSUM_KERNEL kChecksumAvx512
#define HIPRESS_CHECKSUM_NAME "avx512"
#include "transport/checksum_impl.h"
#endif
