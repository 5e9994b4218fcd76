/*!
 * \file floats_layout.h
 * \brief Where the parts of floats.h's blocks lie, and what their numbers may be, on CPU and GPU.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_FLOATS_LAYOUT_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_FLOATS_LAYOUT_H_

#include <cstdint>

#include "operator/contrib/compll/abi.h"
#include "operator/contrib/half.h"

namespace hipress {
namespace compll {
namespace {

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
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_FLOATS_LAYOUT_H_
