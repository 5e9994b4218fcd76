#if defined(__x86_64__)
#define HIPRESS_CHECKSUM_KERNEL kChecksumAvx2
#define HIPRESS_CHECKSUM_NAME "avx2"
#include "transport/checksum_impl.h"
#endif
