/*!
 * \file layout.h
 * \brief Where the parts of packed indices (indices.h) and packed floats (floats.h) lie, and which
 *        numbers are valid in them; on CPU and GPU.
 */
#pragma once

#include "operator/contrib/compll/abi.h"
#include "operator/contrib/compll/scalar.h"

namespace hipress::compll {
namespace {

// Ascending indices -------------------------------------------------------------------------------

/// log2(n / count), rounded down: the most bits of an index, or of a gap, that are packed as they
/// are.
COMPLL_SCALAR int MostLow(int64_t count, int64_t n) {
  int low = 0;
  if (count > 0) {
    while (count << (low + 1) <= n) ++low;
  }
  return low;
}

/// How `count` indices below n are laid out.
struct Ascending {
  int low;        ///< bits of an index that are packed as they are
  int64_t upper;  ///< bits of the mask, or of the unary parts
  int64_t begin;  ///< bytes before the packed bits
  COMPLL_SCALAR Ascending(int64_t count, int64_t n)
      : low(4 * count < n ? MostLow(count, n) : 0),
        upper(count <= 0 ? 0 : low == 0 ? n : count + ((n - 1) >> low)),
        begin(Blocks(upper, 8)) {}
};
COMPLL_SCALAR int64_t AscendingBytes(int64_t count, int64_t n) {
  const Ascending layout(count, n);
  return layout.begin + Blocks(count * layout.low, 8);
}

constexpr int64_t kGapBlock = 32;
constexpr int kGapChoices = 4;

COMPLL_SCALAR int64_t GapBlocks(int64_t count) { return Blocks(count, kGapBlock); }
/// Bytes of the choices.
COMPLL_SCALAR int64_t ChoiceBytes(int64_t count) { return Blocks(2 * GapBlocks(count), 8); }
/// The most bytes of `count` or fewer indices below n.
COMPLL_SCALAR int64_t GapsMost(int64_t count, int64_t n) {
  if (count <= 0) return 0;
  int64_t bits = n;
  for (int low = 1; low < 32; ++low) bits = Least(bits, count * (low + 1) + ((n - count) >> low));
  return ChoiceBytes(count) + Blocks(bits, 8) + 1;  // two parts are rounded up
}
COMPLL_SCALAR uint32_t GapOf(const int32_t* index, int64_t j) {
  return static_cast<uint32_t>(j == 0 ? index[0] : index[j] - index[j - 1] - 1);
}

// Floats ------------------------------------------------------------------------------------------

constexpr int64_t kFloatBlock = 1024;  ///< elements
constexpr int kFloatWords = 16;        ///< of 64 elements each
constexpr int kMostEscapes = 511;
constexpr int kMostWidth = 5;    ///< bits of a code
constexpr int kSampled = 16;     ///< of 64 elements that are kept, these say how all are coded
constexpr int kUpperPlanes = 3;  ///< of float16
constexpr uint32_t kRawBlock = 0, kZeroBlock = 7u << 8;

HIPRESS_HOST_DEVICE static inline int64_t RoundUp8(int64_t bytes) { return (bytes + 7) / 8 * 8; }
HIPRESS_HOST_DEVICE static inline int WordCount(int elements) { return (elements + 63) / 64; }
HIPRESS_HOST_DEVICE static inline int64_t FloatBlocks(int64_t n) {
  return (n + kFloatBlock - 1) / kFloatBlock;
}
/// Bytes before the blocks.
HIPRESS_HOST_DEVICE static inline int64_t TableBytes(int64_t blocks) {
  return RoundUp8(4 + 4 * blocks);
}
HIPRESS_HOST_DEVICE static inline int64_t RawBytes(int n, int type) {
  return RoundUp8((type == COMPLL_FLOAT32 ? 4 : 2) * static_cast<int64_t>(n));
}
/// The most bytes that n float32 take. Elements of two bytes take at least 2 * n less.
HIPRESS_HOST_DEVICE static inline int64_t FloatsBytes(int64_t n) {
  return TableBytes(FloatBlocks(n)) + 4 * n + 7;
}

/// Whether elements that are +0 are left out: a bit for each element is less than they have.
HIPRESS_HOST_DEVICE static inline bool IsMasked(int n, int nonzero) {
  return 16 * (n - nonzero) >= n;
}

/// Exponents from base to base + 2^width - 2 have codes.
struct FloatWindow {
  int base, width;
};

/// The cheapest window of a sample of exponents: the least width, and of these the least base.
/// \param counts how many of the sample have each exponent
/// \param low, high the least and the largest of them
template <typename Count>
HIPRESS_HOST_DEVICE static inline FloatWindow CheapestWindow(const Count* counts, int sample,
                                                             int low, int high) {
  FloatWindow best = {low, 0};
  int cost = 0x7fffffff;
  for (int width = 1; width <= kMostWidth; ++width) {
    const int size = (1 << width) - 1;
    int within = 0, most = 0, base = low;
    for (int e = low; e < low + size && e <= high; ++e) within += static_cast<int>(counts[e]);
    most = within;
    for (int e = low + size; e <= high; ++e) {
      within += static_cast<int>(counts[e]) - static_cast<int>(counts[e - size]);
      if (within > most) {
        most = within;
        base = e - size + 1;
      }
    }
    const int bits = width * sample + 8 * (sample - most);
    if (bits < cost) {
      cost = bits;
      best = {base, width};
    }
    if (most == sample) break;
  }
  return best;
}

/// A block's number; `kept` is 0 if there is no mask.
HIPRESS_HOST_DEVICE static inline uint32_t FloatHeader(const FloatWindow& window, bool brief,
                                                       int escapes, int kept) {
  return static_cast<uint32_t>(window.base) | static_cast<uint32_t>(window.width) << 8 |
         static_cast<uint32_t>(brief) << 11 | static_cast<uint32_t>(escapes) << 12 |
         static_cast<uint32_t>(kept) << 21;
}

/// Where the parts of a block begin, in bytes.
struct FloatLayout {
  int n, kept, escapes, base, width;  ///< width 0: raw, 7: all +0
  bool masked, brief;
  int64_t planes, upper, high, low, exponents, bytes;
};

/// \param n elements of the block, at least 1
/// \return false if no block of n elements has this number
HIPRESS_HOST_DEVICE static inline bool ReadLayout(uint32_t header, int n, int type,
                                                  FloatLayout* layout) {
  FloatLayout& l = *layout;
  const int kept = static_cast<int>(header >> 21 & 0x3ff);
  l.n = n;
  l.base = static_cast<int>(header & 0xff);
  l.width = static_cast<int>(header >> 8 & 7);
  l.brief = (header >> 11 & 1) != 0;
  l.escapes = static_cast<int>(header >> 12 & 0x1ff);
  l.masked = kept != 0;
  l.kept = l.masked ? kept : n;
  l.planes = l.upper = l.high = l.low = l.exponents = 0;
  l.bytes = header == kRawBlock ? RawBytes(n, type) : 0;
  if (header == kRawBlock || header == kZeroBlock) return true;
  if (l.width < 1 || l.width > kMostWidth || header >> 31 != 0) return false;
  if (kept >= n || l.escapes > l.kept || (l.brief && type != COMPLL_FLOAT32)) return false;
  const int64_t words = WordCount(l.kept);
  l.planes = l.masked ? 8 * WordCount(n) : 0;
  l.upper = l.planes + 8 * words * l.width;
  l.high = l.upper + (type == COMPLL_FLOAT16 ? 8 * words * kUpperPlanes : 0);
  l.low = l.high + RoundUp8(l.kept);
  l.exponents = l.low + (type == COMPLL_FLOAT32 && !l.brief ? RoundUp8(2 * int64_t(l.kept)) : 0);
  l.bytes = l.exponents + RoundUp8(l.escapes);
  return true;
}

}  // namespace
}  // namespace hipress::compll
