/*!
 * \file packing.cuh
 * \brief Reading payloads that may be malformed, and codes of 1 to 8 bits, of rows of 32 elements,
 * to and from packed bytes.
 *
 * The first error in a payload is kept. From then on everything reads as 0, and nothing is out of
 * bounds.
 */
#pragma once

#include "operator/contrib/compll/cuda/abi.h"
#include "operator/contrib/compll/cuda/team.cuh"

namespace hipress::compll {
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

// Packed codes ------------------------------------------------------------------------------------

COMPLL_DEVICE uint64_t SwapBytes(uint64_t x) {
  x = (x & 0x00ff00ff00ff00ffull) << 8 | (x >> 8 & 0x00ff00ff00ff00ffull);
  x = (x & 0x0000ffff0000ffffull) << 16 | (x >> 16 & 0x0000ffff0000ffffull);
  return x << 32 | x >> 32;
}

/// Eight bytes, each below 2^kBits, joined in three steps: the first in the lowest bits.
template <int kBits>
COMPLL_DEVICE uint64_t JoinCodes(uint64_t x) {
  constexpr uint64_t kTwo = ((uint64_t(1) << kBits) - 1) * 0x0001000100010001ull;
  x = (x & kTwo) | ((x >> 8 & kTwo) << kBits);
  constexpr uint64_t kFour = ((uint64_t(1) << 2 * kBits) - 1) * 0x0000000100000001ull;
  x = (x & kFour) | ((x >> 16 & kFour) << (2 * kBits));
  return (x & 0xffffffffull) | (x >> 32) << (4 * kBits);
}

template <int kBytes>
COMPLL_DEVICE void WriteBytes(uint8_t* at, uint64_t value, int64_t left) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(at);
  if (kBytes == 8 && left >= 8 && place % 8 == 0) {
    *reinterpret_cast<uint64_t*>(at) = value;
  } else if (kBytes == 4 && left >= 4 && place % 4 == 0) {
    *reinterpret_cast<uint32_t*>(at) = static_cast<uint32_t>(value);
  } else if (kBytes == 2 && left >= 2 && place % 2 == 0) {
    *reinterpret_cast<uint16_t*>(at) = static_cast<uint16_t>(value);
  } else {
COMPLL_UNROLL
    for (int b = 0; b < kBytes; ++b) {
      if (b < left) at[b] = static_cast<uint8_t>(value >> (8 * b));
    }
  }
}

template <int kBits, bool kMsb>
COMPLL_DEVICE void PackRowsOf(Shared& shared, const int32_t* codes, uint8_t* vector, int64_t first,
                            int64_t bytes) {
  const int lane = Lane();
  if (kBits == 1) {
    uint32_t word = 0;
COMPLL_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const uint32_t row = __ballot_sync(kAll, codes[r]);
      if (lane == r) word = row;
    }
    if (kMsb) {  // reversed within each byte
      word = (word & 0x0f0f0f0fu) << 4 | (word >> 4 & 0x0f0f0f0fu);
      word = (word & 0x33333333u) << 2 | (word >> 2 & 0x33333333u);
      word = (word & 0x55555555u) << 1 | (word >> 1 & 0x55555555u);
    }
    const int64_t at = first / 8 + 4 * lane;
    if (lane < kRows) WriteBytes<4>(vector + at, word, bytes - at);
    return;
  }
  uint8_t* const staged = reinterpret_cast<uint8_t*>(shared.codes[WarpIndex()]);
COMPLL_UNROLL
  for (int r = 0; r < kRows; ++r) staged[32 * r + lane] = static_cast<uint8_t>(codes[r]);
  __syncwarp();
  uint64_t word = shared.codes[WarpIndex()][lane];
  if (kMsb) {
    word = SwapBytes(JoinCodes<kBits>(SwapBytes(word)) << (64 - 8 * kBits));
  } else if (kBits < 8) {
    word = JoinCodes<kBits>(word);
  }
  const int64_t at = (first / 8 + lane) * kBits;
  WriteBytes<kBits>(vector + at, word, bytes - at);
  __syncwarp();
}

/*!
 * \brief Writes a tile of a packed vector.
 * \param bits of a code; all lanes branch alike, so that one kernel serves every width
 * \param codes of the elements first + 32 * r + lane; 0 beyond the vector
 * \param bytes of the whole vector: nothing is written beyond
 */
template <bool kMsb>
COMPLL_DEVICE void PackRows(Shared& shared, int bits, const int32_t* codes, uint8_t* vector,
                            int64_t first, int64_t bytes) {
  switch (bits) {
    case 1: return PackRowsOf<1, kMsb>(shared, codes, vector, first, bytes);
    case 2: return PackRowsOf<2, kMsb>(shared, codes, vector, first, bytes);
    case 3: return PackRowsOf<3, kMsb>(shared, codes, vector, first, bytes);
    case 4: return PackRowsOf<4, kMsb>(shared, codes, vector, first, bytes);
    case 5: return PackRowsOf<5, kMsb>(shared, codes, vector, first, bytes);
    case 6: return PackRowsOf<6, kMsb>(shared, codes, vector, first, bytes);
    case 7: return PackRowsOf<7, kMsb>(shared, codes, vector, first, bytes);
    default: return PackRowsOf<8, kMsb>(shared, codes, vector, first, bytes);
  }
}

/// The codes of a tile of a packed vector that has `bytes`; `first` is a multiple of 64.
struct Codes {
  const uint8_t* data;
  int last;  ///< byte of the vector that may be read
  COMPLL_DEVICE Codes(const uint8_t* vector, int bits, int64_t first, int64_t bytes)
      : data(vector + first / 8 * bits),
        last(static_cast<int>(Least(bytes - first / 8 * bits - 1, kTile))) {}
  COMPLL_DEVICE Codes(const uint8_t* at, int more) : data(at), last(more) {}

  /// Code i of the tile.
  template <bool kMsb>
  COMPLL_DEVICE int32_t Get(int bits, int i) const {
    return At<kMsb>(bits, i * bits);
  }
  template <bool kMsb>
  COMPLL_DEVICE int32_t At(int bits, int bit) const {
    const int at = bit >> 3, shift = bit & 7;
    uint32_t value = data[at], next = 0;
    constexpr int kWithinBytes = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8;
    if (!(kWithinBytes >> bits & 1)) next = data[at < last ? at + 1 : last];
    value = kMsb ? value << 8 | next : value | next << 8;
    return static_cast<int32_t>(value >> (kMsb ? 16 - bits - shift : shift) & ((1u << bits) - 1));
  }
};

/// Code i of a packed vector, wherever it is.
template <bool kMsb>
COMPLL_DEVICE int32_t UnpackOne(int bits, const uint8_t* vector, int64_t i) {
  const int64_t bit = i * bits;
  const int shift = static_cast<int>(bit & 7);
  return Codes(vector + (bit >> 3), shift + bits > 8 ? 1 : 0).template At<kMsb>(bits, shift);
}

}  // namespace
}  // namespace hipress::compll
