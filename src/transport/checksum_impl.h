/*!
 * \file checksum_impl.h
 * \brief Included once per instruction set, with HIPRESS_CHECKSUM_KERNEL naming the result.
 */
#ifndef XXH_INLINE_ALL
// static functions: copies for different instruction sets must not be merged
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include "transport/checksum.h"

namespace hipress {

static_assert(sizeof(XXH3_state_t) <= sizeof(RunningChecksum), "the state fits");

const ChecksumKernel HIPRESS_CHECKSUM_KERNEL = {
    HIPRESS_CHECKSUM_NAME,
    [](const void* data, size_t bytes) -> uint64_t { return XXH3_64bits(data, bytes); },
    [](void* state) {
      // XXH3_64bits_reset assumes initialized memory for two of its fields.
      XXH3_INITSTATE(static_cast<XXH3_state_t*>(state));
      XXH3_64bits_reset(static_cast<XXH3_state_t*>(state));
    },
    [](void* state, const void* data, size_t bytes) {
      XXH3_64bits_update(static_cast<XXH3_state_t*>(state), data, bytes);
    },
    [](const void* state) -> uint64_t {
      return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state));
    },
};

}  // namespace hipress
