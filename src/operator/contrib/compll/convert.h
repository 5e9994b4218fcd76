/*!
 * \file convert.h
 * \brief A float as an integer, on CPU and GPU: what does not fit saturates, NaN is 0.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CONVERT_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CONVERT_H_

#include <cstdint>

#include "operator/contrib/half.h"

namespace hipress {
namespace compll {
namespace {

HIPRESS_HOST_DEVICE static inline int32_t ToI32(float x) {
  x = x == x ? x : 0;
  x = x < -2147483648.0f ? -2147483648.0f : x;
  return static_cast<int32_t>(x > 2147483520.0f ? 2147483520.0f : x);
}
HIPRESS_HOST_DEVICE static inline uint32_t ToU32(float x) {
  x = x > 0 ? x : 0;
  return static_cast<uint32_t>(x > 4294967040.0f ? 4294967040.0f : x);
}
template <typename T>
HIPRESS_HOST_DEVICE static inline int64_t ToI64(T x) {
  x = x == x ? x : 0;
  x = x < T(-9223372036854775808.0) ? T(-9223372036854775808.0) : x;
  const T high = T(9223372036854775808.0 - 549755813888.0);
  return static_cast<int64_t>(x > high ? high : x);
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CONVERT_H_
