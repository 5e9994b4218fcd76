/*!
 * \file indices.cuh
 * \brief Ascending indices in few bytes, in the formats of indices.h.
 *
 * Packing sets bits from anywhere. Unpacking counts the bits of the mask, or of the unary parts, as
 * a filter does: the j-th bit is the j-th index's. A warp has a block of gaps: packing chooses
 * first, and sums up what lies before each block. Unpacking sums up the blocks' lowest bits, and
 * then the gaps.
 */
#pragma once

#include "operator/contrib/compll/cuda/sparse.cuh"
#include "operator/contrib/compll/layout.h"

namespace hipress::compll {
namespace {

// Ascending ---------------------------------------------------------------------------------------

/// \param out in the workspace, zero
template <class Team>
COMPLL_DEVICE void PackAscending(const Team& team, const int32_t* index, int64_t count, int64_t n,
                                 uint8_t* out) {
  const Ascending layout(count, n);
  uint32_t* const words = reinterpret_cast<uint32_t*>(out);
  ForEach(team, count, [&](int64_t j) {
    const int64_t at = index[j];
    if (layout.low == 0) return SetBits(words, at, 1);
    SetBits(words, (at >> layout.low) + j, 1);
    SetBits(words, 8 * layout.begin + j * layout.low,
            static_cast<uint32_t>(at & ((int64_t(1) << layout.low) - 1)));
  });
}

template <class Team>
COMPLL_DEVICE void CountAscending(const Team& team, Shared& shared, const uint8_t* data,
                                  int64_t count, int64_t n, uint32_t* counts) {
  const Ascending layout(count, n);
  CountBits(team, shared, PayloadWords{data, layout.begin}, 8 * layout.begin, counts);
}

/// After CountAscending has found `count` bits.
template <class Team>
COMPLL_DEVICE void UnpackAscending(const Team& team, Shared& shared, const uint8_t* data,
                                   int64_t count, int64_t n, const uint32_t* before,
                                   int32_t* index) {
  const Ascending layout(count, n);
  const PayloadWords lower = {data + layout.begin, Blocks(count * layout.low, 8)};
  auto put = [&](int64_t j, int64_t bit) {
    if (bit >= layout.upper) {
      bit = n;  // which is refused; shifted it might not fit into 32 bits
    } else if (layout.low > 0) {
      bit = ((bit - j) << layout.low) | GetBits(lower, j * layout.low, layout.low);
    }
    index[j] = static_cast<int32_t>(bit);
  };
  WriteBits(team, shared, PayloadWords{data, layout.begin}, 8 * layout.begin, before, put);
}

// Gaps --------------------------------------------------------------------------------------------

COMPLL_BOTH int LowOf(int most, int choice) { return most > choice ? most - choice : 0; }

/// Of a warp's values, the sum of those of this lane and of the ones before.
COMPLL_DEVICE uint32_t ScanWarp(uint32_t sum) {
COMPLL_UNROLL
  for (int by = 1; by < kWarpSize; by *= 2) {
    const uint32_t other = __shfl_up_sync(kAll, sum, by);
    if (Lane() >= by) sum += other;
  }
  return sum;
}
COMPLL_DEVICE uint32_t SumWarp(uint32_t sum) {
COMPLL_UNROLL
  for (int by = kWarpSize / 2; by > 0; by /= 2) sum += __shfl_xor_sync(kAll, sum, by);
  return sum;
}

/// \param choices of each block, which get the shortest
/// \param lows, zeros of each block: its lowest bits, and the zeros of its unary parts
template <class Team>
COMPLL_DEVICE void ChooseGaps(const Team& team, const int32_t* index, int64_t count, int64_t n,
                              uint8_t* choices, uint32_t* lows, uint32_t* zeros) {
  const int most = MostLow(count, n);
  ForUnits(team, count, kGapBlock, [&](int64_t block, int64_t begin, int64_t end) {
    const int64_t j = begin + Lane();
    const uint32_t gap = j < end ? GapOf(index, j) : 0;
    int best = 0;
    int64_t fewest = 0;
    uint32_t parts = 0;
    for (int c = 0; c < kGapChoices; ++c) {
      const uint32_t sum = SumWarp(gap >> LowOf(most, c));
      const int64_t cost = static_cast<int64_t>(sum) - (end - begin) * c;
      if (c > most || (c > 0 && cost >= fewest)) continue;
      best = c, fewest = cost, parts = sum;
    }
    if (Lane() != 0) return;
    choices[block] = static_cast<uint8_t>(best);
    lows[block] = static_cast<uint32_t>(end - begin) * static_cast<uint32_t>(most - best);
    zeros[block] = parts;
  });
}

/// After ChooseGaps, in the last block: bytes of the indices, packed. Sums up what lies before.
COMPLL_DEVICE int64_t GapsBytes(Shared& shared, int64_t count, uint32_t* lows, uint32_t* zeros) {
  const int64_t bits = ScanArray(shared, lows, GapBlocks(count));
  const int64_t unary = ScanArray(shared, zeros, GapBlocks(count)) + count;
  return ChoiceBytes(count) + Blocks(bits, 8) + Blocks(unary, 8);
}

/// \param out in the workspace, zero
template <class Team>
COMPLL_DEVICE void PackGaps(const Team& team, const int32_t* index, int64_t count, int64_t n,
                            const uint8_t* choices, const uint32_t* lows, const uint32_t* zeros,
                            uint8_t* out) {
  if (count == 0) return;
  uint32_t* const words = reinterpret_cast<uint32_t*>(out);
  const int most = MostLow(count, n);
  const int64_t last = GapBlocks(count) - 1;
  const int64_t lowest = 8 * ChoiceBytes(count);
  const int64_t bits = lows[last] + (count - last * kGapBlock) * (most - choices[last]);
  const int64_t unary = lowest + 8 * Blocks(bits, 8);
  ForUnits(team, count, kGapBlock, [&](int64_t block, int64_t begin, int64_t end) {
    const int64_t j = begin + Lane();
    const int low = most - choices[block];
    const uint32_t gap = j < end ? GapOf(index, j) : 0;
    const int64_t before = static_cast<int64_t>(zeros[block]) + ScanWarp(gap >> low);
    if (Lane() == 0) SetBits(words, 2 * block, choices[block]);
    if (j >= end) return;
    SetBits(words, unary + before + j, 1);
    SetBits(words, lowest + lows[block] + Lane() * low, gap & ((1u << low) - 1));
  });
}

/// A payload's parts, once it is known how many lowest bits there are.
struct GapParts {
  const uint8_t* data;
  int64_t choices, lowest, unary;  ///< bytes
  int most;
  COMPLL_DEVICE GapParts(const uint8_t* data, int64_t bytes, int64_t count, int64_t n, int64_t bits)
      : data(data), choices(ChoiceBytes(count)), lowest(Blocks(bits, 8)),
        unary(bytes - choices - lowest), most(MostLow(count, n)) {}
  COMPLL_DEVICE int Low(int64_t block) const {
    return LowOf(most, data[block / 4] >> (2 * (block % 4)) & 3);
  }
  COMPLL_DEVICE PayloadWords Lowest() const { return {data + choices, lowest}; }
  COMPLL_DEVICE PayloadWords Unary() const { return {data + choices + lowest, unary}; }
};

/// \param lows of each block: its lowest bits
template <class Team>
COMPLL_DEVICE void SumLows(const Team& team, const uint8_t* data, int64_t bytes, int64_t count,
                           int64_t n, uint32_t* lows) {
  const GapParts parts(data, bytes, count, n, 0);
  if (bytes <= parts.choices) return;
  ForEach(team, GapBlocks(count), [&](int64_t block) {
    const int64_t many = Least(kGapBlock, count - block * kGapBlock);
    lows[block] = static_cast<uint32_t>(many * parts.Low(block));
  });
}

/// After SumLows, in the last block: how many lowest bits there are. Sums up what lies before.
COMPLL_DEVICE int64_t LowestBits(Shared& shared, int64_t bytes, int64_t count, uint32_t* lows) {
  return bytes <= ChoiceBytes(count) ? 0 : ScanArray(shared, lows, GapBlocks(count));
}

/// False if no indices have these bytes, whatever the gaps are.
COMPLL_DEVICE bool GoodParts(const uint8_t* data, int64_t bytes, int64_t count, int64_t n,
                             int64_t bits) {
  if (count == 0) return bytes == 0;
  const GapParts parts(data, bytes, count, n, bits);
  if (bytes <= parts.choices || parts.unary <= 0) return false;
  const int choices = static_cast<int>(2 * GapBlocks(count) % 8), lowest = static_cast<int>(bits % 8);
  if (choices != 0 && data[parts.choices - 1] >> choices != 0) return false;
  if (lowest != 0 && data[parts.choices + parts.lowest - 1] >> lowest != 0) return false;
  int last = 0;
  while (data[bytes - 1] >> last != 0) ++last;
  return last > 0 && 8 * (parts.unary - 1) + last - count <= n;
}

template <class Team>
COMPLL_DEVICE void CountGaps(const Team& team, Shared& shared, const uint8_t* data, int64_t bytes,
                             int64_t count, int64_t n, int64_t bits, uint32_t* counts) {
  const GapParts parts(data, bytes, count, n, bits);
  CountBits(team, shared, parts.Unary(), 8 * parts.unary, counts);
}

/// The place of each gap's one.
template <class Team>
COMPLL_DEVICE void FindGaps(const Team& team, Shared& shared, const uint8_t* data, int64_t bytes,
                            int64_t count, int64_t n, int64_t bits, const uint32_t* counts,
                            uint32_t* stops) {
  const GapParts parts(data, bytes, count, n, bits);
  WriteBits(team, shared, parts.Unary(), 8 * parts.unary, counts,
            [&](int64_t j, int64_t bit) { stops[j] = static_cast<uint32_t>(bit); });
}

/// Gap j, and one for the index itself.
COMPLL_DEVICE uint64_t StepOf(const GapParts& parts, const uint32_t* lows, const uint32_t* stops,
                              int64_t j) {
  const int64_t block = j / kGapBlock;
  const int low = parts.Low(block);
  const uint32_t zeros = j == 0 ? stops[0] : stops[j] - stops[j - 1] - 1;
  const int64_t bit = static_cast<int64_t>(lows[block]) + j % kGapBlock * low;
  return (static_cast<uint64_t>(zeros) << low) + GetBits(parts.Lowest(), bit, low) + 1;
}

/// \param sums of the blocks' parts of all indices
template <class Team>
COMPLL_DEVICE void SumGaps(const Team& team, Shared& shared, const uint8_t* data, int64_t bytes,
                           int64_t count, int64_t n, int64_t bits, const uint32_t* lows,
                           const uint32_t* stops, int64_t* sums) {
  const GapParts parts(data, bytes, count, n, bits);
  const Part part(team, count);
  uint64_t sum = 0;
  for (int64_t j = part.begin + threadIdx.x; j < part.end; j += kThreads) {
    sum += StepOf(parts, lows, stops, j);
  }
  sum = SumBlock(shared, sum);
  if (threadIdx.x == 0) sums[team.Block()] = static_cast<int64_t>(sum);
}

/// The indices; `sums` are what lies before each block's part.
template <class Team>
COMPLL_DEVICE void UnpackGaps(const Team& team, Shared& shared, const uint8_t* data, int64_t bytes,
                              int64_t count, int64_t n, int64_t bits, const uint32_t* lows,
                              const uint32_t* stops, const int64_t* sums, int32_t* index) {
  const GapParts parts(data, bytes, count, n, bits);
  const Part part(team, count);
  uint64_t at = static_cast<uint64_t>(sums[team.Block()]);
  for (int64_t first = part.begin; first < part.end; first += kThreads) {
    const int64_t j = first + threadIdx.x;
    const uint64_t step = j < part.end ? StepOf(parts, lows, stops, j) : 0;
    uint64_t total = 0;
    const uint64_t sum = at + ScanBlock(shared, step, &total) + step;
    if (j < part.end) index[j] = static_cast<int32_t>(sum - 1);
    at += total;
  }
}

}  // namespace
}  // namespace hipress::compll
