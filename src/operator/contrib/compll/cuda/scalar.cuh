/*!
 * \file scalar.cuh
 * \brief Operations on one element that only a GPU needs: elements in memory of any alignment.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_SCALAR_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_SCALAR_CUH_

#include "operator/contrib/compll/cuda/platform.cuh"
#include "operator/contrib/compll/scalar.h"

namespace hipress {
namespace compll {
namespace {

COMPLL_BOTH float FromOrdered(uint32_t key) {
  return FromBits(key >> 31 ? key & 0x7fffffffu : ~key);
}

COMPLL_BOTH int64_t RoundUp(int64_t bytes) { return (bytes + 15) / 16 * 16; }
COMPLL_BOTH int64_t ClampIndex(int64_t at, int64_t size) {
  return at < 0 ? 0 : (at < size ? at : size - 1);
}

/// The bucket of each of a tile's rows; buckets are multiples of 64, so a row lies in one.
struct Bucket {
  uint32_t index, left, size;
  COMPLL_BOTH Bucket(int64_t first, int64_t bucket)
      : index(static_cast<uint32_t>(first) / static_cast<uint32_t>(bucket)),
        left(static_cast<uint32_t>(bucket) -
             static_cast<uint32_t>(first) % static_cast<uint32_t>(bucket)),
        size(static_cast<uint32_t>(bucket)) {}
  /// `more`: the next row begins before the end; the bucket of the last one stays.
  COMPLL_BOTH void NextRow(bool more) {
    left -= 32;
    if (left == 0 && more) left = size, ++index;
  }
};

/// A field's bytes, the first in the lowest bits.
COMPLL_BOTH uint64_t FieldBits(float x) { return BitsU(x); }
template <typename T>
COMPLL_BOTH uint64_t FieldBits(T x) {
  return static_cast<uint64_t>(x);
}

// Memory whose alignment is only a byte's: fields of payloads --------------------

template <typename T>
COMPLL_BOTH T Read(const void* base, int64_t i) {
  const uint8_t* const at = static_cast<const uint8_t*>(base) + i * static_cast<int64_t>(sizeof(T));
  if (reinterpret_cast<uintptr_t>(base) % sizeof(T) == 0) return *reinterpret_cast<const T*>(at);
  T value;
  uint8_t bytes[sizeof(T)];
  for (size_t b = 0; b < sizeof(T); ++b) bytes[b] = at[b];
  memcpy(&value, bytes, sizeof(value));
  return value;
}
template <typename T>
COMPLL_BOTH void Write(void* base, int64_t i, T value) {
  uint8_t* const at = static_cast<uint8_t*>(base) + i * static_cast<int64_t>(sizeof(T));
  if (reinterpret_cast<uintptr_t>(base) % sizeof(T) == 0) {
    *reinterpret_cast<T*>(at) = value;
    return;
  }
  uint8_t bytes[sizeof(T)];
  memcpy(bytes, &value, sizeof(value));
  for (size_t b = 0; b < sizeof(T); ++b) at[b] = bytes[b];
}

/// How the elements of a vector lie in memory, and as which of the IR's types they are read.
struct AsFloat {
  static COMPLL_BOTH float Get(const void* base, int64_t i) { return Read<float>(base, i); }
  static COMPLL_BOTH void Put(void* base, int64_t i, float x) { Write(base, i, x); }
};
struct AsInt {
  static COMPLL_BOTH int32_t Get(const void* base, int64_t i) { return Read<int32_t>(base, i); }
  static COMPLL_BOTH void Put(void* base, int64_t i, int32_t x) { Write(base, i, x); }
};
struct AsUnsigned {
  static COMPLL_BOTH uint32_t Get(const void* base, int64_t i) { return Read<uint32_t>(base, i); }
  static COMPLL_BOTH void Put(void* base, int64_t i, uint32_t x) { Write(base, i, x); }
};
struct AsShort {
  static COMPLL_BOTH int32_t Get(const void* base, int64_t i) { return Read<uint16_t>(base, i); }
  static COMPLL_BOTH void Put(void* base, int64_t i, int32_t x) {
    Write(base, i, static_cast<uint16_t>(x));
  }
};
template <typename H>
struct AsHalf {
  static COMPLL_BOTH float Get(const void* base, int64_t i) {
    return ToFloat(H{Read<uint16_t>(base, i)});
  }
  static COMPLL_BOTH void Put(void* base, int64_t i, float x) {
    H half;
    FromFloat(x, &half);
    Write(base, i, half.bits);
  }
};

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_SCALAR_CUH_
