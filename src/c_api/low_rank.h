/*!
 * \file low_rank.h
 * \brief The passes of low_rank.h over the matrices of a bucket, as jobs that may run at the same time.
 */
#pragma once

#include <cstdint>

#include "hipress/c_api.h"
#include "kvstore/bucket.h"

namespace hipress {

/// All but its keys. \param offsets where in the flat tensor each matrix begins
Bucket::LowRank LowRankOf(HipressLowRank* const* matrices, const int64_t* offsets, int64_t num,
                          DType dtype);

}  // namespace hipress
