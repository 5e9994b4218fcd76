/*!
 * \file payload.cuh
 * \brief Reading a payload that may be malformed: the first thing wrong is kept, and from then on
 *        everything reads as 0 and nothing is out of bounds.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PAYLOAD_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PAYLOAD_CUH_

#include "operator/contrib/compll/cuda/abi.h"
#include "operator/contrib/compll/cuda/team.cuh"

namespace hipress {
namespace compll {
namespace {

/// Numbers of a status; those of `require` follow.
enum Trouble : int64_t {
  kFine = 0,
  kTooShort = 1,
  kWrongSize = 2,
  kBadIndices = 3,
  kNoMemory = 4,
  kPadding = 5,
  kBadType = 6,
  kBadBlocks = 7,
  kBadCounts = 8,
  kRequire = 16,
};

inline const char* CommonSentence(int64_t status) {
  switch (status) {
    case kTooShort: return "must have at least %lld bytes";
    case kWrongSize: return "must have %lld bytes";
    case kBadIndices: return "must have indices that ascend and are below %lld";
    case kNoMemory: return "is said to have %lld bytes, more than its memory has";
    case kPadding: return "must have zeros where bits pad a byte";
    case kBadType: return "must be of float32, float16 or bfloat16";
    case kBadBlocks: return "must have blocks that can be";
    case kBadCounts: return "must have as many codes as it says";
    default: return nullptr;
  }
}

class Reader {
 public:
  COMPLL_DEVICE explicit Reader(const CompllCudaDecode& call)
      : payload_(call.payload), bytes_(*call.bytes), offset_(0), trouble_(kFine), detail_(0) {
    if (bytes_ < 0 || bytes_ > call.capacity) Fail(kNoMemory, bytes_);
  }

  COMPLL_DEVICE bool Good() const { return trouble_ == kFine; }

  template <typename T>
  COMPLL_DEVICE T Field() {
    const uint8_t* const at = Take(sizeof(T));
    if (at == nullptr) return T(0);
    uint8_t bytes[sizeof(T)];
    for (size_t b = 0; b < sizeof(T); ++b) bytes[b] = at[b];
    T value;
    memcpy(&value, bytes, sizeof(value));
    return value;
  }

  /// Where `size` bytes lie; null, if there are fewer.
  COMPLL_DEVICE const uint8_t* Take(int64_t size) {
    if (!Good()) return nullptr;
    if (size < 0 || size > bytes_ - offset_) {
      Fail(kTooShort, offset_ + size);
      return nullptr;
    }
    const uint8_t* const at = payload_ + offset_;
    offset_ += size;
    return at;
  }

  /// The last byte of `bits` bits must have no more that are set.
  COMPLL_DEVICE void Zeros(const uint8_t* at, int64_t bits) {
    if (Good() && bits % 8 != 0 && at[bits / 8] >> (bits % 8) != 0) Fail(kPadding, 0);
  }

  COMPLL_DEVICE void End() {
    if (Good() && offset_ != bytes_) Fail(kWrongSize, offset_);
  }

  COMPLL_DEVICE void Require(bool condition, int number) {
    if (Good() && !condition) Fail(kRequire + number, 0);
  }

  COMPLL_DEVICE void Report(int64_t* status) const {
    status[0] = trouble_;
    status[1] = detail_;
  }

 private:
  COMPLL_DEVICE void Fail(int64_t trouble, int64_t detail) {
    trouble_ = trouble;
    detail_ = detail;
  }
  const uint8_t* payload_;
  int64_t bytes_, offset_, trouble_, detail_;
};

/// True in a thread that finds indices out of order, or out of [0, n).
template <class Team, typename T>
COMPLL_DEVICE bool BadIndices(const Team& team, const void* index, int64_t size, int64_t n, T) {
  bool bad = false;
  ForEach(team, size, [&](int64_t j) {
    const int64_t at = static_cast<int64_t>(Read<T>(index, j));
    const int64_t last = j > 0 ? static_cast<int64_t>(Read<T>(index, j - 1)) : -1;
    bad = bad || at <= last || at >= n;
  });
  return bad;
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PAYLOAD_CUH_
