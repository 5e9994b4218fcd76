/*!
 * \file packing.cuh
 * \brief Codes of 1 to 8 bits, of rows of 32 elements, to and from packed bytes.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PACKING_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PACKING_CUH_

#include "operator/contrib/compll/cuda/team.cuh"

namespace hipress {
namespace compll {
namespace {

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
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PACKING_CUH_
