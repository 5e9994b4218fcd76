/*!
 * \file floats_sum.h
 * \brief floats.h's payloads to floats again, and to sums of several of them.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_FLOATS_SUM_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_FLOATS_SUM_H_

#include <atomic>

#include "operator/contrib/compll/floats.h"

namespace hipress {
namespace compll {
namespace {

/// A payload of which is known where its blocks lie.
struct FloatsPart {
  const uint8_t* payload;
  const int64_t* begin;  ///< of each block
  int type;

  uint32_t header(int64_t block) const { return ReadField<uint32_t>(payload + 4 + 4 * block); }
};

inline uint64_t ReadWord(const uint8_t* data, int64_t section, int64_t word) {
  return ReadField<uint64_t>(data + section + 8 * word);
}

/// Elements of a block that have no code: those whose planes are all set.
COMPLL_INLINE uint64_t EscapedWord(const uint8_t* data, const FloatLayout& layout, int w) {
  const int words = WordCount(layout.kept);
  uint64_t escaped = ValidBits(layout.kept - w * kTile);
  for (int p = 0; p < layout.width; ++p) escaped &= ReadWord(data, layout.planes, p * words + w);
  return escaped;
}

/// True if a block has as many elements and exponents as its number says.
inline bool CountsAgree(const uint8_t* data, const FloatLayout& layout) {
  if (layout.width < 1 || layout.width > kMostWidth) return true;
  int64_t kept = 0, escapes = 0;
  for (int w = 0; layout.masked && w < WordCount(layout.n); ++w) {
    kept += __builtin_popcountll(ReadWord(data, 0, w) & ValidBits(layout.n - w * kTile));
  }
  for (int w = 0; w < WordCount(layout.kept); ++w) {
    escapes += __builtin_popcountll(EscapedWord(data, layout, w));
  }
  return (!layout.masked || kept == layout.kept) && escapes == layout.escapes;
}

/// Checks the k-th payload, and finds its blocks. \return 0, or -1 if it is refused
inline int FindFloats(const CompllDecodeCall& call, int64_t k, Arena* arena, FloatsPart* part) {
  const int64_t blocks = FloatBlocks(call.n), bytes = call.bytes[k];
  int64_t end = TableBytes(blocks);
  if (bytes < end) return Fail(call, "must have at least %lld bytes", static_cast<long long>(end));
  part->payload = call.payloads[k];
  const uint32_t type = ReadField<uint32_t>(part->payload);
  if (type > COMPLL_BFLOAT16) return Fail(call, "must be of float32, float16 or bfloat16");
  part->type = static_cast<int>(type);
  int64_t* const begin = arena->Get<int64_t>(blocks);
  part->begin = begin;
  for (int64_t block = 0; block < blocks; ++block) {
    FloatLayout layout;
    const int64_t size = std::min(call.n - block * kFloatBlock, kFloatBlock);
    if (!ReadLayout(part->header(block), static_cast<int>(size), part->type, &layout)) {
      return Fail(call, "must have blocks that can be");
    }
    begin[block] = end;
    end += layout.bytes;
  }
  if (end != bytes) return Fail(call, "must have %lld bytes", static_cast<long long>(end));
  std::atomic<bool> good{true};
  ForBlocks(call, call.n, kFloatBlock, [&](int64_t block, int64_t first, int64_t last, int) {
    FloatLayout layout;
    ReadLayout(part->header(block), static_cast<int>(last - first), part->type, &layout);
    if (!CountsAgree(part->payload + begin[block], layout)) good.store(false, std::memory_order_relaxed);
  });
  return good ? 0 : Fail(call, "must have as many codes as it says");
}

/// Bytes as lanes.
COMPLL_INLINE U LoadBytes(const uint8_t* data) {
  return reinterpret_cast<U>(GetCodes<false>(data, 8, 0));
}

/// The elements of a block that has codes. \param out room for whole tiles
template <class Kind, int kWidth>
inline void ReadCoded(const uint8_t* data, const FloatLayout& layout, typename Kind::Element* out) {
  using Element = typename Kind::Element;
  constexpr auto kMask = static_cast<Element>(Kind::kExponents << Kind::kShift);
  const int words = WordCount(layout.kept);
  const uint8_t* exponents = data + layout.exponents;
  const U base = Set(static_cast<uint32_t>(layout.base));
  const bool lows = Kind::kType == COMPLL_FLOAT32 && !layout.brief;
  for (int w = 0; w < words; ++w) {
    const int left = layout.kept - w * kTile;
    const uint8_t* high = data + layout.high + w * kTile;
    const uint8_t* low = data + layout.low + 2 * w * kTile;
    alignas(64) uint8_t bytes[kTile];
    alignas(64) uint16_t halves[kTile];
    if (left < kTile) {  // what follows may not be the payload's any more
      std::memset(bytes, 0, sizeof(bytes));
      std::memset(halves, 0, sizeof(halves));
      std::memcpy(bytes, high, static_cast<size_t>(left));
      if (lows) std::memcpy(halves, low, sizeof(uint16_t) * left);
      high = bytes;
      low = reinterpret_cast<const uint8_t*>(halves);
    }
    uint64_t planes[kWidth], upper[kUpperPlanes] = {};
    uint64_t escaped = ValidBits(left);
    COMPLL_UNROLL
    for (int p = 0; p < kWidth; ++p) {
      planes[p] = ReadWord(data, layout.planes, p * words + w);
      escaped &= planes[p];
    }
    if constexpr (Kind::kType == COMPLL_FLOAT16) {
      for (int p = 0; p < kUpperPlanes; ++p) {
        upper[p] = ReadWord(data, layout.upper, p * words + w);
      }
    }
    Element* const to = out + w * kTile;
    COMPLL_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      U code = U{};
      COMPLL_UNROLL
      for (int p = 0; p < kWidth; ++p) {
        code = Select(MaskOf(planes[p], v), code | (uint32_t(1) << p), code);
      }
      U bits = ((code + base) & Kind::kExponents) << Kind::kShift;
      bits |= Kind::FromByte(LoadBytes(high + v * kLanes));
      if (lows) {
        bits |= reinterpret_cast<U>(
            Load<false>(reinterpret_cast<const uint16_t*>(low) + v * kLanes, 0, kLanes));
      }
      if constexpr (Kind::kType == COMPLL_FLOAT16) {
        COMPLL_UNROLL
        for (int p = 0; p < kUpperPlanes; ++p) {
          bits = Select(MaskOf(upper[p], v), bits | (uint32_t(1) << kUpperBits[p]), bits);
        }
      }
      StoreElements(to + v * kLanes, bits);
    }
    for (; escaped != 0; escaped &= escaped - 1) {
      Element& element = to[__builtin_ctzll(escaped)];
      const uint32_t exponent = *exponents++ & Kind::kExponents;
      element = static_cast<Element>((element & ~kMask) | exponent << Kind::kShift);
    }
  }
}

/// The elements of a block. \param out room for whole tiles
template <class Kind>
inline void ReadBlock(const uint8_t* data, const FloatLayout& layout, typename Kind::Element* out) {
  using Element = typename Kind::Element;
  if (layout.width == 0) return (void)std::memcpy(out, data, sizeof(Element) * layout.n);
  if (layout.width > kMostWidth) return (void)std::memset(out, 0, sizeof(Element) * layout.n);
  Element scratch[kFloatBlock + kTile];
  Element* const kept = layout.masked ? scratch : out;
  switch (layout.width) {
    case 1: ReadCoded<Kind, 1>(data, layout, kept); break;
    case 2: ReadCoded<Kind, 2>(data, layout, kept); break;
    case 3: ReadCoded<Kind, 3>(data, layout, kept); break;
    case 4: ReadCoded<Kind, 4>(data, layout, kept); break;
    default: ReadCoded<Kind, 5>(data, layout, kept); break;
  }
  if (!layout.masked) return;
  const Element* next = scratch;
  for (int w = 0; w < WordCount(layout.n); ++w, out += kTile) {
    uint64_t word = ReadWord(data, 0, w) & ValidBits(layout.n - w * kTile);
#if defined(COMPLL_AVX512)
    for (int v = 0; v < kVectors; ++v) {
      const M mask = MaskOf(word, v);
      const auto bits = reinterpret_cast<__m512i>(LoadElements(next));
      StoreElements(out + v * kLanes, reinterpret_cast<U>(_mm512_maskz_expand_epi32(mask, bits)));
      next += __builtin_popcount(_cvtmask16_u32(mask));
    }
#else
    for (int i = 0; i < kTile; ++i, word >>= 1) {
      out[i] = static_cast<Element>(*next & (Element(0) - Element(word & 1)));
      next += word & 1;
    }
#endif
  }
}

/// sum[i] = number i, or sum[i] + it.
template <class Number, typename Element>
COMPLL_INLINE void AddNumbers(const Element* bits, int n, bool first, float* sum) {
  const auto* const numbers = reinterpret_cast<const Number*>(bits);
  auto add = [&](auto tail, int i) COMPLL_LAMBDA {
    constexpr bool kTail = decltype(tail)::value;
    const F number = Load<kTail>(numbers, i, n - i);
    Store<kTail>(sum, i, n - i, first ? number : Load<kTail>(sum, i, n - i) + number);
  };
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) add(std::false_type(), i);
  if (i < n) add(std::true_type(), i);
}

/// The sum of a call's payloads, which must all be well-formed. \return 0, or -1 if one is refused
inline int UnpackFloats(const CompllDecodeCall& call) {
  Arena arena;
  FloatsPart few[8];
  FloatsPart* const parts = call.count <= 8 ? few : arena.Get<FloatsPart>(call.count);
  for (int64_t k = 0; k < call.count; ++k) {
    if (FindFloats(call, k, &arena, parts + k) != 0) return -1;
  }
  if (call.check_only) return 0;
  const bool same = call.count == 1 && !call.add && parts[0].type == call.out_type;
  ForBlocks(call, call.n, kFloatBlock, [&](int64_t block, int64_t first, int64_t last, int) {
    const int n = static_cast<int>(last - first);
    alignas(64) float sums[kFloatBlock];
    float* const sum =
        call.out_type == COMPLL_FLOAT32 ? static_cast<float*>(call.out) + first : sums;
    for (int64_t k = 0; k < call.count; ++k) {
      WithFloats(parts[k].type, [&](auto kind) {
        using Kind = decltype(kind);
        using Element = typename Kind::Element;
        alignas(64) Element bits[kFloatBlock + kTile];
        FloatLayout layout;
        ReadLayout(parts[k].header(block), n, Kind::kType, &layout);
        const uint8_t* const data = parts[k].payload + parts[k].begin[block];
        if (same) {  // not by way of a float32, which would make NaNs quiet
          Element* const out = static_cast<Element*>(call.out) + first;
          ReadBlock<Kind>(data, layout, n == kFloatBlock ? out : bits);
          if (n != kFloatBlock) std::memcpy(out, bits, sizeof(Element) * n);
        } else {
          ReadBlock<Kind>(data, layout, bits);
          AddNumbers<typename Kind::Number>(bits, n, k == 0 && !call.add, sum);
        }
      });
    }
    if (same || call.out_type == COMPLL_FLOAT32) return;
    auto narrow = [&](auto* out) {
      for (int i = 0; i < n; i += kLanes) {
        Store<true>(out, first + i, n - i, Load<true>(sums, i, n - i));
      }
    };
    if (call.out_type == COMPLL_FLOAT16) return narrow(static_cast<Float16*>(call.out));
    narrow(static_cast<BFloat16*>(call.out));
  });
  return 0;
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_FLOATS_SUM_H_
