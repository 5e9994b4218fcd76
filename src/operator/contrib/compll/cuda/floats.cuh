/*!
 * \file floats.cuh
 * \brief Floats with all their bits in fewer bytes, as floats.h, which says how, has them on a CPU.
 *
 * A warp has a block of 1024 elements for itself. How many bytes come of each is known first; the
 * last block of the team sums up what lies before each one.
 */
#pragma once

#include "operator/contrib/compll/cuda/packing.cuh"
#include "operator/contrib/compll/layout.h"

namespace hipress::compll {
namespace {

COMPLL_DEVICE uint32_t LanesBelow() { return (1u << Lane()) - 1; }
COMPLL_DEVICE uint32_t Exponent(uint32_t bits) { return bits >> 23 & 0xff; }

/// An exponent's code, which is all ones if it is not in the window.
COMPLL_DEVICE uint32_t CodeOf(uint32_t exponent, int base, int width) {
  const uint32_t code = exponent - static_cast<uint32_t>(base), top = (1u << width) - 1;
  return code < top ? code : top;
}

// Encoding ------------------------------------------------------------------

/// The elements of a block that are kept, side by side; returns their number.
COMPLL_DEVICE int KeepElements(const uint32_t* from, int n, bool masked, uint32_t* kept) {
  int count = 0;
  for (int first = 0; first < n; first += kWarpSize) {
    const int i = first + Lane();
    const uint32_t bits = i < n ? from[i] : 0;
    const bool keep = i < n && (!masked || bits != 0);
    const uint32_t word = __ballot_sync(kAll, keep);
    if (keep) kept[count + __popc(word & LanesBelow())] = bits;
    count += __popc(word);
  }
  __syncwarp();
  return count;
}

/// The number that says how a block is coded. \param kept in the workspace: gets its elements
COMPLL_DEVICE uint32_t PlanBlock(Shared& shared, const uint32_t* from, int n, uint32_t* kept) {
  int nonzero = 0;
  uint32_t any = 0;
  for (int first = 0; first < n; first += kWarpSize) {
    const int i = first + Lane();
    const uint32_t bits = i < n ? from[i] : 0;
    nonzero += __popc(__ballot_sync(kAll, bits != 0));
    any |= bits;
  }
  if (nonzero == 0) return kZeroBlock;
  const bool brief = __ballot_sync(kAll, (any & 0xffffu) != 0) == 0;
  const bool masked = IsMasked(n, nonzero);
  const int count = KeepElements(from, n, masked, kept);
  uint32_t* const counts = shared.digits[WarpIndex()];
  for (int e = Lane(); e < 256; e += kWarpSize) counts[e] = 0;
  __syncwarp();
  for (int j = Lane(); j < count; j += kWarpSize) {
    if (j % 64 < kSampled) atomicAdd(&counts[Exponent(kept[j])], 1u);
  }
  __syncwarp();
  int low = 0, high = 255;
  while (counts[low] == 0) ++low;
  while (counts[high] == 0) --high;
  const int rest = count % 64;
  const int sample = count / 64 * kSampled + (rest < kSampled ? rest : kSampled);
  const FloatWindow window = CheapestWindow(counts, sample, low, high);
  const uint32_t top = (1u << window.width) - 1;
  int escapes = 0;
  for (int first = 0; first < count; first += kWarpSize) {
    const int j = first + Lane();
    const bool open = j < count && CodeOf(Exponent(kept[j]), window.base, window.width) == top;
    escapes += __popc(__ballot_sync(kAll, open));
  }
  if (escapes > kMostEscapes) return kRawBlock;
  const uint32_t header = FloatHeader(window, brief, escapes, masked ? nonzero : 0);
  FloatLayout layout;
  const bool fits = ReadLayout(header, n, COMPLL_FLOAT32, &layout);
  return fits && layout.bytes < RawBytes(n, COMPLL_FLOAT32) ? header : kRawBlock;
}

/// Writes the table of the blocks' numbers.
/// \param kept in the workspace: gets the elements that are kept of each block
/// \param sizes gets the bytes of each block
template <class Team>
COMPLL_DEVICE void PlanFloats(const Team& team, Shared& shared, const CompllCudaEncode& call,
                              uint32_t* kept, int64_t* sizes) {
  uint32_t* const table = reinterpret_cast<uint32_t*>(call.payload);
  const int64_t blocks = FloatBlocks(call.n);
  if (team.Block() == 0 && threadIdx.x == 0) {
    table[0] = COMPLL_FLOAT32;
    if (blocks % 2 == 0) table[1 + blocks] = 0;
  }
  const uint32_t* const from = reinterpret_cast<const uint32_t*>(call.gradient);
  ForUnits(team, call.n, kFloatBlock, [&](int64_t block, int64_t begin, int64_t end) {
    const int n = static_cast<int>(end - begin);
    const uint32_t header = PlanBlock(shared, from + begin, n, kept + begin);
    FloatLayout layout;
    ReadLayout(header, n, COMPLL_FLOAT32, &layout);
    if (Lane() != 0) return;
    table[1 + block] = header;
    sizes[block] = layout.bytes;
  });
}

/// Writes a block that has codes. \param out aligned to 4 bytes
COMPLL_DEVICE void WriteBlock(const uint32_t* from, const uint32_t* kept, const FloatLayout& layout,
                              uint8_t* out) {
  uint32_t* const words = reinterpret_cast<uint32_t*>(out);
  const int lane = Lane();
  for (int first = 0; layout.masked && first < 64 * WordCount(layout.n); first += kWarpSize) {
    const int i = first + lane;
    const uint32_t word = __ballot_sync(kAll, i < layout.n && from[i] != 0);
    if (lane == 0) words[first / 32] = word;
  }
  const int plane_words = 2 * WordCount(layout.kept);
  const uint32_t top = (1u << layout.width) - 1;
  uint16_t* const lows = reinterpret_cast<uint16_t*>(out + layout.low);
  int escapes = 0;
  for (int first = 0; first < 32 * plane_words; first += kWarpSize) {
    const int j = first + lane;
    const bool there = j < layout.kept;
    const uint32_t bits = there ? kept[j] : 0;
    const uint32_t code = CodeOf(Exponent(bits), layout.base, layout.width);
    for (int p = 0; p < layout.width; ++p) {
      const uint32_t word = __ballot_sync(kAll, there && (code >> p & 1) != 0);
      if (lane == 0) words[layout.planes / 4 + p * plane_words + first / 32] = word;
    }
    if (j < RoundUp8(layout.kept)) {
      out[layout.high + j] = static_cast<uint8_t>((bits >> 24 & 0x80) | (bits >> 16 & 0x7f));
    }
    if (!layout.brief && 2 * j < RoundUp8(2 * layout.kept)) {
      lows[j] = static_cast<uint16_t>(bits & 0xffffu);
    }
    const bool open = there && code == top;
    const uint32_t word = __ballot_sync(kAll, open);
    if (open) {
      out[layout.exponents + escapes + __popc(word & LanesBelow())] =
          static_cast<uint8_t>(Exponent(bits));
    }
    escapes += __popc(word);
  }
  const int64_t pad = layout.exponents + layout.escapes + lane;
  if (pad < layout.bytes) out[pad] = 0;  // at most 7 bytes
}

/// \param before what ScanArray made of the blocks' sizes
template <class Team>
COMPLL_DEVICE void WriteFloats(const Team& team, const CompllCudaEncode& call, const uint32_t* kept,
                               const int64_t* before) {
  const uint32_t* const from = reinterpret_cast<const uint32_t*>(call.gradient);
  const uint32_t* const table = reinterpret_cast<const uint32_t*>(call.payload);
  const int64_t table_bytes = TableBytes(FloatBlocks(call.n));
  ForUnits(team, call.n, kFloatBlock, [&](int64_t block, int64_t begin, int64_t end) {
    const int n = static_cast<int>(end - begin);
    FloatLayout layout;
    ReadLayout(table[1 + block], n, COMPLL_FLOAT32, &layout);
    uint8_t* const out = call.payload + table_bytes + before[block];
    if (layout.width == 0) {
      uint32_t* const words = reinterpret_cast<uint32_t*>(out);
      for (int i = Lane(); i < layout.bytes / 4; i += kWarpSize) words[i] = i < n ? from[begin + i] : 0;
    } else if (layout.width <= kMostWidth) {
      WriteBlock(from + begin, kept + begin, layout, out);
    }
  });
}

// Decoding ------------------------------------------------------------------

COMPLL_DEVICE int FloatType(const CompllCudaDecode& call) {
  const uint32_t type = *reinterpret_cast<const uint32_t*>(call.payload);
  return type > COMPLL_BFLOAT16 ? -1 : static_cast<int>(type);
}

/// work(layout, block, its first element) for all blocks whose numbers are right.
template <class Team, class Work>
COMPLL_DEVICE void ForFloatBlocks(const Team& team, const CompllCudaDecode& call, const Work& work) {
  const uint32_t* const table = reinterpret_cast<const uint32_t*>(call.payload);
  ForUnits(team, call.n, kFloatBlock, [&](int64_t block, int64_t begin, int64_t end) {
    FloatLayout layout;
    ReadLayout(table[1 + block], static_cast<int>(end - begin), FloatType(call), &layout);
    work(layout, block, begin);
  });
}

/// \param sizes gets the bytes of each block
/// \param disorder set if one has an invalid number; otherwise it stays 0
template <class Team>
COMPLL_DEVICE void MeasureFloats(const Team& team, const CompllCudaDecode& call, int64_t* sizes,
                                 uint32_t* disorder) {
  const int64_t blocks = FloatBlocks(call.n);
  const bool there = *call.bytes >= TableBytes(blocks) && FloatType(call) >= 0;
  ForEach(team, blocks, [&](int64_t block) {
    FloatLayout layout;
    layout.bytes = 0;
    const uint32_t* const table = reinterpret_cast<const uint32_t*>(call.payload);
    const int n = static_cast<int>(Least(call.n - block * kFloatBlock, kFloatBlock));
    if (there && !ReadLayout(table[1 + block], n, FloatType(call), &layout)) atomicOr(disorder, 1u);
    sizes[block] = layout.bytes;
  });
}

COMPLL_DEVICE uint32_t Judge(const CompllCudaDecode& call, int64_t trouble, int64_t detail) {
  call.status[0] = trouble;
  call.status[1] = trouble == kFine ? 0 : detail;
  return trouble != kFine;
}

/// Whether a payload cannot be one, and says it. \param found bytes of all blocks
COMPLL_DEVICE uint32_t JudgeFloats(const CompllCudaDecode& call, int64_t found, uint32_t disorder) {
  const int64_t begin = TableBytes(FloatBlocks(call.n));
  if (*call.bytes < begin) return Judge(call, kTooShort, begin);
  if (FloatType(call) < 0) return Judge(call, kBadType, 0);
  if (disorder != 0) return Judge(call, kBadBlocks, 0);
  return Judge(call, begin + found != *call.bytes ? kWrongSize : kFine, begin + found);
}

COMPLL_DEVICE uint32_t JudgeCounts(const CompllCudaDecode& call, uint32_t disorder) {
  return Judge(call, disorder != 0 ? kBadCounts : kFine, 0);
}

/// Bits 32 * w and following of a part of a block.
COMPLL_DEVICE uint32_t PartWord(const uint8_t* data, int64_t part, int w) {
  return reinterpret_cast<const uint32_t*>(data + part)[w];
}
COMPLL_DEVICE uint32_t ValidBits(int left) {
  return left >= 32 ? kAll : left <= 0 ? 0 : (1u << left) - 1;
}

/// Sets `disorder` where a block has other numbers of elements or exponents than it says.
template <class Team>
COMPLL_DEVICE void CheckFloats(const Team& team, const CompllCudaDecode& call, const int64_t* before,
                               uint32_t* disorder) {
  const uint8_t* const blocks = call.payload + TableBytes(FloatBlocks(call.n));
  ForFloatBlocks(team, call, [&](const FloatLayout& layout, int64_t block, int64_t) {
    if (layout.width < 1 || layout.width > kMostWidth) return;
    const uint8_t* const data = blocks + before[block];
    const int w = Lane();  // a block has 32 words of 32 bits
    const int plane_words = 2 * WordCount(layout.kept);
    int kept = layout.masked ? 0 : (w == 0 ? layout.kept : 0), escapes = 0;
    if (layout.masked && w < 2 * WordCount(layout.n)) {
      kept = __popc(PartWord(data, 0, w) & ValidBits(layout.n - 32 * w));
    }
    if (w < plane_words) {
      uint32_t open = ValidBits(layout.kept - 32 * w);
      for (int p = 0; p < layout.width; ++p) {
        open &= PartWord(data, layout.planes, p * plane_words + w);
      }
      escapes = __popc(open);
    }
    for (int by = kWarpSize / 2; by > 0; by /= 2) {
      kept += __shfl_xor_sync(kAll, kept, by);
      escapes += __shfl_xor_sync(kAll, escapes, by);
    }
    if (w == 0 && (kept != layout.kept || escapes != layout.escapes)) atomicOr(disorder, 1u);
  });
}

/// A float of any type, by its bits.
COMPLL_DEVICE float NumberOf(uint32_t bits, int type) {
  if (type == COMPLL_FLOAT16) return ToFloat(Float16{static_cast<uint16_t>(bits)});
  return FromBits(type == COMPLL_BFLOAT16 ? bits << 16 : bits);
}

/// The bits of element j of those that are kept.
COMPLL_DEVICE uint32_t ElementOf(const uint8_t* data, const FloatLayout& layout, int type, int j,
                                 uint32_t exponent) {
  const uint32_t byte = data[layout.high + j];
  if (type == COMPLL_FLOAT16) {
    const int upper_words = 2 * WordCount(layout.kept);
    uint32_t bits = byte | (exponent & 0x1f) << 10;
    for (int p = 0; p < kUpperPlanes; ++p) {
      const uint32_t bit = PartWord(data, layout.upper, p * upper_words + j / 32) >> (j % 32) & 1;
      bits |= bit << (p < 2 ? 8 + p : 15);
    }
    return bits;
  }
  const uint32_t high = (byte & 0x80) << 8 | (exponent & 0xff) << 7 | (byte & 0x7f);
  if (type == COMPLL_BFLOAT16) return high;
  const uint32_t low =
      layout.brief ? 0 : reinterpret_cast<const uint16_t*>(data + layout.low)[j];
  return high << 16 | low;
}

/// put(i, its bits) for all elements of a block that has codes. All lanes of a warp.
template <class Put>
COMPLL_DEVICE void ReadBlock(const uint8_t* data, const FloatLayout& layout, int type,
                             const Put& put) {
  const int plane_words = 2 * WordCount(layout.kept);
  const uint32_t top = (1u << layout.width) - 1;
  int kept = 0, escapes = 0;
  for (int first = 0; first < layout.n; first += kWarpSize) {
    const int i = first + Lane();
    const uint32_t valid = ValidBits(layout.n - first);
    const uint32_t mask = layout.masked ? PartWord(data, 0, first / 32) & valid : valid;
    const bool there = (mask >> Lane() & 1) != 0;
    const int j = kept + __popc(mask & LanesBelow());
    uint32_t code = 0;
    for (int p = 0; there && p < layout.width; ++p) {
      code |= (PartWord(data, layout.planes, p * plane_words + j / 32) >> (j % 32) & 1) << p;
    }
    const bool open = there && code == top;
    const uint32_t word = __ballot_sync(kAll, open);
    uint32_t exponent = code + static_cast<uint32_t>(layout.base);
    if (open) exponent = data[layout.exponents + escapes + __popc(word & LanesBelow())];
    if (i < layout.n) put(i, there ? ElementOf(data, layout, type, j, exponent) : 0);
    kept += __popc(mask);
    escapes += __popc(word);
  }
}

/// After CheckFloats has found nothing.
template <class Team>
COMPLL_DEVICE void UnpackFloats(const Team& team, const CompllCudaDecode& call,
                                const int64_t* before, bool add) {
  const uint8_t* const blocks = call.payload + TableBytes(FloatBlocks(call.n));
  const int type = FloatType(call);
  ForFloatBlocks(team, call, [&](const FloatLayout& layout, int64_t block, int64_t begin) {
    const uint8_t* const data = blocks + before[block];
    float* const out = call.out + begin;
    auto put = [&](int i, uint32_t bits) {
      const float number = NumberOf(bits, type);
      out[i] = add ? out[i] + number : number;
    };
    if (layout.width >= 1 && layout.width <= kMostWidth) return ReadBlock(data, layout, type, put);
    for (int i = Lane(); i < layout.n; i += kWarpSize) {
      const uint32_t bits = layout.width != 0 ? 0
                            : type == COMPLL_FLOAT32
                                ? reinterpret_cast<const uint32_t*>(data)[i]
                                : reinterpret_cast<const uint16_t*>(data)[i];
      put(i, bits);
    }
  });
}

}  // namespace
}  // namespace hipress::compll
