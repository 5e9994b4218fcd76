/*!
 * \file indices.h
 * \brief Ascending indices in few bytes.
 *
 * Two formats. Both pack `count` indices below n:
 *
 * - Ascending (Elias, "Efficient storage and retrieval by content and address of static files", J.
 *   ACM 1974, and Fano, 1971). The lowest l = log2(n / count) bits of each index (rounded down) are
 *   packed without a change. The bits above them are in unary before that: bit (index >> l) + j is
 *   set for index j. So an index takes l + 1 + n / (count * 2^l) bits, about half a bit more than
 *   the best code for random indices. From count = n / 4 on, a mask of n bits is smaller and takes
 *   its place (l = 0).
 *
 * - Gaps (Rice, "Some practical universal noiseless coding techniques", JPL Publication 79-22,
 *   1979). Between index j and the index before it lie d other positions. For each block of 32
 *   gaps, the lowest l bits of d are packed without a change, and the bits above them are in unary:
 *   (d >> l) zeros and a one. A block uses the shortest l among log2(n / count) and the three
 *   values below it. Three parts follow each other, each padded to a byte:
 *
 *     choices   how far l is below log2(n / count), two bits for each block
 *     lowest    the lowest bits; those of a block begin with a word
 *     unary     the zeros and ones; the j-th one ends gap j, so many threads can search at once
 *
 *   A random index takes about a tenth of a bit more than the best code. Indices that are denser in
 *   places, as those of large weights are, take less.
 */
#pragma once

#include "operator/contrib/compll/layout.h"
#include "operator/contrib/compll/sparse.h"

namespace hipress::compll {
namespace {

// Ascending ---------------------------------------------------------------------------------------

/// The lowest bits of numbers, packed.
/// \param at at(j): the j-th number
template <typename At>
COMPLL_INLINE void PackLow(int64_t count, int low, uint8_t* out, const At& at) {
  BitWriter writer(out);
  const uint64_t mask = (uint64_t(1) << low) - 1;
  const int64_t each = low < 16 ? 4 : 2;  // joined before they are written
  int64_t j = 0;
  for (; j + each <= count; j += each) {
    uint64_t joined = (at(j) & mask) | (at(j + 1) & mask) << low;
    if (each == 4) joined |= ((at(j + 2) & mask) | (at(j + 3) & mask) << low) << 2 * low;
    writer.Put(joined, static_cast<int>(each) * low);
  }
  for (; j < count; ++j) writer.Put(at(j) & mask, low);
  writer.End();
}

/// Replaces position j of the unary parts' j-th bit by the index.
inline void AddLow(const uint8_t* data, int64_t count, int low, int32_t* index) {
  const int64_t bytes = (count * low + 7) / 8;
  int64_t j = 0;
  if constexpr (kLanes >= 8) {  // so that a vector's bits begin with a byte
    const I first = Lanes(0) * low / 32;
    const U shift = reinterpret_cast<U>(Lanes(0) * low % 32), mask = Set((uint32_t(1) << low) - 1);
    for (; j * low / 8 + int64_t(sizeof(U)) <= bytes && j + kLanes <= count; j += kLanes) {
      U words;
      std::memcpy(&words, data + j * low / 8, sizeof(words));
      const U next = __builtin_shuffle(words, reinterpret_cast<U>(first + 1));
      const U bits = __builtin_shuffle(words, reinterpret_cast<U>(first)) >> shift |
                     (next << 1) << (31 - shift);
      const I high = (Load<false>(index, j, kLanes) - Lanes(j)) << low;
      Store<false>(index, j, kLanes, high | reinterpret_cast<I>(bits & mask));
    }
  }
  for (; j < count; ++j) {
    const int64_t bit = j * low, left = bytes - bit / 8;
    uint64_t word = 0;
    std::memcpy(&word, data + bit / 8, left >= 8 ? 8 : static_cast<size_t>(left));
    const uint64_t high = static_cast<uint64_t>(index[j] - j) << low;
    index[j] = static_cast<int32_t>(high | (word >> (bit % 8) & ((uint64_t(1) << low) - 1)));
  }
}

/// Writes bits of which some are set.
/// \param bit bit(j): the j-th of those `count`, ascending; called once for each j in order
template <typename Bit>
COMPLL_INLINE void PackUpper(int64_t count, int64_t bytes, uint8_t* out, const Bit& bit) {
  uint64_t word = 0;
  int64_t at = 0;  // of `word` among the words
  auto store = [&](int64_t next) {
    for (; at < next; ++at, word = 0) std::memcpy(out + 8 * at, &word, sizeof(word));
  };
  for (int64_t j = 0; j < count; ++j) {
    const uint64_t place = bit(j);
    const int64_t next = static_cast<int64_t>(place >> 6);
    if (next != at) store(next);
    word |= uint64_t(1) << (place & 63);
  }
  store(bytes / 8);
  std::memcpy(out + 8 * at, &word, static_cast<size_t>(bytes % 8));
}

/// Ascending indices to AscendingBytes(count, n) bytes. They must be below n.
inline void PackAscending(const int32_t* index, int64_t count, int64_t n, uint8_t* out) {
  const Ascending layout(count, n);
  auto at = [&](int64_t j) { return static_cast<uint32_t>(index[j]); };
  if (layout.low == 0) return PackUpper(count, layout.begin, out, at);
  PackUpper(count, layout.begin, out,
            [&](int64_t j) { return (at(j) >> layout.low) + static_cast<uint64_t>(j); });
  PackLow(count, layout.low, out + layout.begin, at);
}

/// Their indices again, with room for a tile after them; false if no indices have these bytes.
inline bool UnpackAscending(const uint8_t* data, int64_t count, int64_t n, int32_t* index) {
  const Ascending layout(count, n);
  // What pads the last byte could otherwise be a part that is too large for 32 bits.
  if (HasPadding(data, layout.upper)) return false;
  if (CountBits(data, layout.upper) != count) return false;
  Compact(data, layout.upper, index);
  if (layout.low > 0) AddLow(data + layout.begin, count, layout.low, index);
  return ValidIndices(index, count, n);
}

// Gaps --------------------------------------------------------------------------------------------

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
}  // namespace hipress::compll
