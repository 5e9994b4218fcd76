/*!
 * \file gaps.h
 * \brief Ascending indices in as few bytes as their gaps need: Rice, "Some practical universal
 *        noiseless coding techniques", JPL Publication 79-22, 1979.
 *
 * Between index j and the one before lie d indices. Of each block of 32 gaps, the lowest l bits of d
 * are packed as they are, and what is above them is in unary: (d >> l) zeros, and a one. l is what is
 * shortest for the block, of log2(n / k) and the three below it. Three parts lie one after the other,
 * each padded to a byte: by how much l is below log2(n / k), in two bits for each block; the lowest
 * bits; the unary parts. So a block's lowest bits begin with a word, the j-th one of the unary parts
 * ends gap j, and many threads can look at once.
 *
 * A random index takes about a tenth of a bit more than the best code of random ones needs. Where
 * they are denser in places, as those of large weights are, it takes less.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_GAPS_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_GAPS_H_

#include "operator/contrib/compll/ascending.h"

namespace hipress {
namespace compll {
namespace {

/// What is shortest for the gaps from `begin` to `end`, and the zeros of their unary parts.
inline int ChooseLow(const int32_t* index, int64_t begin, int64_t end, int most, uint32_t* zeros) {
  uint32_t sums[kGapChoices] = {};
  for (int64_t j = begin; j < end; ++j) {
    const uint32_t gap = GapOf(index, j);
    COMPLL_UNROLL
    for (int c = 0; c < kGapChoices; ++c) sums[c] += gap >> std::max(most - c, 0);
  }
  int best = 0;
  for (int c = 1; c < kGapChoices && c <= most; ++c) {
    const int64_t saved = (end - begin) * (c - best);
    if (static_cast<int64_t>(sums[c]) - saved < static_cast<int64_t>(sums[best])) best = c;
  }
  *zeros = sums[best];
  return best;
}

/// work(block's number, its begin, its end) for all blocks of gaps.
template <typename Work>
COMPLL_INLINE void ForGapBlocks(int64_t count, const Work& work) {
  for (int64_t begin = 0; begin < count; begin += kGapBlock) {
    work(begin / kGapBlock, begin, std::min(begin + kGapBlock, count));
  }
}

/// Bytes of these indices, packed.
inline int64_t GapsBytes(const int32_t* index, int64_t count, int64_t n) {
  const int most = MostLow(count, n);
  int64_t lows = 0, unary = count;
  ForGapBlocks(count, [&](int64_t, int64_t begin, int64_t end) {
    uint32_t zeros;
    lows += (end - begin) * (most - ChooseLow(index, begin, end, most, &zeros));
    unary += zeros;
  });
  return ChoiceBytes(count) + (lows + 7) / 8 + (unary + 7) / 8;
}

/// Ascending indices below n to GapsBytes(index, count, n) bytes.
inline void PackGaps(const int32_t* index, int64_t count, int64_t n, int64_t bytes, uint8_t* out) {
  if (count == 0) return;
  const int most = MostLow(count, n);
  BitWriter choices(out), lowest(out + ChoiceBytes(count));
  int64_t lows = 0;
  ForGapBlocks(count, [&](int64_t, int64_t begin, int64_t end) {
    uint32_t zeros;
    const int choice = ChooseLow(index, begin, end, most, &zeros), low = most - choice;
    const uint64_t mask = (uint64_t(1) << low) - 1;
    choices.Put(static_cast<uint64_t>(choice), 2);
    for (int64_t j = begin; j < end; ++j) lowest.Put(GapOf(index, j) & mask, low);
    lows += (end - begin) * low;
  });
  choices.End();
  lowest.End();
  const uint8_t* const read = out;
  const int64_t before = ChoiceBytes(count) + (lows + 7) / 8;
  int64_t bit = -1;
  PackUpper(count, bytes - before, out + before, [&](int64_t j) {
    const int64_t block = j / kGapBlock;
    const int low = most - (read[block / 4] >> (2 * (block % 4)) & 3);
    return static_cast<uint64_t>(bit += 1 + (GapOf(index, j) >> low));
  });
}

/// Their indices again, with room for a tile after them; false if no indices have these bytes.
inline bool UnpackGaps(const uint8_t* data, int64_t bytes, int64_t count, int64_t n, int32_t* index) {
  if (count == 0) return bytes == 0;
  const int most = MostLow(count, n);
  const int64_t choices = ChoiceBytes(count), blocks = GapBlocks(count);
  if (bytes <= choices || HasPadding(data, 2 * blocks)) return false;
  int lows[kGapChoices];
  for (int c = 0; c < kGapChoices; ++c) lows[c] = std::max(most - c, 0);
  auto low_of = [&](int64_t block) { return lows[data[block / 4] >> (2 * (block % 4)) & 3]; };
  int64_t bits = 0;
  ForGapBlocks(count, [&](int64_t block, int64_t begin, int64_t end) {
    bits += (end - begin) * low_of(block);
  });
  const int64_t lowest = (bits + 7) / 8, unary = bytes - choices - lowest;
  const uint8_t* const words = data + choices;
  const uint8_t* const upper = words + lowest;
  // The last byte has the last one, so a payload with these choices is the only one.
  if (unary <= 0 || upper[unary - 1] == 0 || HasPadding(words, bits)) return false;
  const int64_t zeros = 8 * unary - (__builtin_clz(upper[unary - 1]) - 24) - count;
  if (zeros > n || CountBits(upper, 8 * unary) != count) return false;
  Compact(upper, 8 * unary, index);
  int64_t at = 0, last = -1;  // the next bit, the index before
  uint32_t one = ~uint32_t(0);
  auto set = [&](int64_t j, int low, size_t left) __attribute__((always_inline)) {
    uint64_t word = 0;
    std::memcpy(&word, words + at / 8, left);
    const uint64_t next = word >> (at % 8) & ((uint64_t(1) << low) - 1);
    const uint32_t place = static_cast<uint32_t>(index[j]);
    last += 1 + static_cast<int64_t>((uint64_t(place - one - 1) << low) + next);
    index[j] = static_cast<int32_t>(last);
    one = place;
    at += low;
  };
  ForGapBlocks(count, [&](int64_t block, int64_t begin, int64_t end) {
    const int low = low_of(block);
    // Whole words are faster; the last ones may have less than eight bytes.
    if ((at + (end - begin) * low) / 8 + 8 <= lowest) {
      for (int64_t j = begin; j < end; ++j) set(j, low, 8);
    } else {
      for (int64_t j = begin; j < end; ++j) {
        set(j, low, static_cast<size_t>(std::min<int64_t>(lowest - at / 8, 8)));
      }
    }
  });
  return last < n;
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_GAPS_H_
