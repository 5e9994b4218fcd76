/*!
 * \file floats.h
 * \brief Floats in fewer bytes with the same bits: exponents, which are alike, as short codes.
 *
 * A payload is a uint32 that says the elements' type (CompllType), a uint32 for each block of 1024
 * elements, zeros up to a multiple of 8 bytes, and the blocks, each of which is a multiple of 8
 * bytes. A block's number has, from the lowest bit on:
 *
 *   base (8)      the exponent whose code is 0
 *   width (3)     bits of a code: 1 to 5. 0: the block is the elements themselves; 7: all are +0
 *   brief (1)     float32 alone: the lowest 16 bits of all elements are 0, and not in the block
 *   escapes (9)   exponents that are not from base to base + 2^width - 2; their codes are all ones
 *   kept (10)     how many elements are not +0 (then a mask says which, and the rest are not in the
 *                 block); 0: all are in the block, and there is no mask
 *
 * A block has: the mask, in whole 64-bit words; the codes, bit by bit, each bit of all codes in
 * whole words; of float16 bits 8, 9 and 15 of the elements likewise; a byte of each element (the
 * sign and the upper 7 bits of the mantissa, of float16 the lower 8 bits); of float32 the lowest 16
 * bits of each element, if not brief; the exponents of those without a code, a byte each. All these
 * are padded with zeros to 8 bytes. Which base and width a block has follows from a quarter of its
 * elements; if more bytes come of it than the elements have, the block is the elements themselves.
 */
#pragma once

#include <atomic>

#include "operator/contrib/compll/layout.h"
#include "operator/contrib/compll/runtime.h"

namespace hipress::compll {
namespace {

/// After the parameters of a lambda that is part of a loop.
#define COMPLL_LAMBDA __attribute__((always_inline))

// Element types ------------------------------------------------------------------

COMPLL_INLINE U LoadElements(const uint32_t* data) { return LoadAs<false, U>(data, 0, kLanes); }
COMPLL_INLINE U LoadElements(const uint16_t* data) {
  return reinterpret_cast<U>(Load<false>(data, 0, kLanes));
}
COMPLL_INLINE void StoreElements(uint32_t* data, U bits) { Store<false>(data, 0, kLanes, bits); }
COMPLL_INLINE void StoreElements(uint16_t* data, U bits) {
  Store<false>(data, 0, kLanes, reinterpret_cast<I>(bits));
}

/// Sign and upper mantissa of an element, at bits `kAt` and following, as a byte.
template <int kAt, typename V>
COMPLL_INLINE V HighByte(V bits) {
  return (bits >> (kAt + 8) & 0x80u) | (bits >> kAt & 0x7fu);
}

struct Float32Bits {
  using Element = uint32_t;
  using Number = float;
  static constexpr int kType = COMPLL_FLOAT32, kShift = 23;
  static constexpr uint32_t kExponents = 0xff;
  static COMPLL_INLINE U Byte(U bits) { return HighByte<16>(bits); }
  static COMPLL_INLINE U FromByte(U byte) { return (byte & 0x80u) << 24 | (byte & 0x7fu) << 16; }
};

struct BFloat16Bits {
  using Element = uint16_t;
  using Number = BFloat16;
  static constexpr int kType = COMPLL_BFLOAT16, kShift = 7;
  static constexpr uint32_t kExponents = 0xff;
  static COMPLL_INLINE U Byte(U bits) { return HighByte<0>(bits); }
  static COMPLL_INLINE U FromByte(U byte) { return (byte & 0x80u) << 8 | (byte & 0x7fu); }
};

struct Float16Bits {
  using Element = uint16_t;
  using Number = Float16;
  static constexpr int kType = COMPLL_FLOAT16, kShift = 10;
  static constexpr uint32_t kExponents = 0x1f;
  static COMPLL_INLINE U Byte(U bits) { return bits & 0xffu; }
  static COMPLL_INLINE U FromByte(U byte) { return byte; }
};
/// The bits of a float16 that are neither in the exponent nor in the byte.
constexpr int kUpperBits[kUpperPlanes] = {8, 9, 15};

/// Calls f with the description of a type.
template <typename Function>
COMPLL_INLINE auto WithFloats(int type, const Function& f) {
  if (type == COMPLL_FLOAT16) return f(Float16Bits());
  return type == COMPLL_BFLOAT16 ? f(BFloat16Bits()) : f(Float32Bits());
}

COMPLL_INLINE uint64_t ValidBits(int left) {
  return left >= 64 ? ~uint64_t(0) : (uint64_t(1) << (left > 0 ? left : 0)) - 1;
}

/// A plane's word of 64 elements.
template <typename Test>
COMPLL_INLINE uint64_t PlaneWord(const U* lanes, const Test& test) {
  M masks[kVectors];
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) masks[v] = test(lanes[v]);
  return JoinMasks(masks);
}

// Encoding ------------------------------------------------------------------

/// One block on its way into a payload.
template <class Kind>
class FloatPacker {
 public:
  using Element = typename Kind::Element;

  /// \param data n elements, 1 to kFloatBlock of them; they must stay until Write
  void Plan(const Element* data, int n) {
    data_ = data;
    layout_.n = layout_.kept = n;
    if (n < kFloatBlock) {
      std::memset(scratch_, 0, sizeof(scratch_));
      std::memcpy(scratch_, data, sizeof(Element) * n);
      data_ = scratch_;
    }
    const Element* const all = data_;
    U any = U{};
    int nonzero = 0;
    for (int w = 0; w < WordCount(n); ++w) {
      U lanes[kVectors];
      LoadTile(w, lanes);
      COMPLL_UNROLL
      for (int v = 0; v < kVectors; ++v) any |= lanes[v];
      mask_[w] = PlaneWord(lanes, [](U bits) COMPLL_LAMBDA { return Ne(bits, U{}); });
      nonzero += __builtin_popcountll(mask_[w]);
    }
    if (nonzero == 0) return SetHeader(kZeroBlock);
    const bool masked = IsMasked(n, nonzero);
    if (masked) Compact(all, n);
    uint32_t low = 0;
    for (int l = 0; l < kLanes; ++l) low |= any[l] & 0xffffu;
    const bool brief = Kind::kType == COMPLL_FLOAT32 && low == 0;
    const int kept = masked ? nonzero : n;
    const FloatWindow window = ChooseWindow(kept);
    const int escapes = CountEscapes(kept, window);
    uint32_t header = kRawBlock;
    if (escapes <= kMostEscapes) {
      header = FloatHeader(window, brief, escapes, masked ? nonzero : 0);
      if (!ReadLayout(header, n, Kind::kType, &layout_) || layout_.bytes >= RawBytes(n, Kind::kType)) {
        header = kRawBlock;
      }
    }
    SetHeader(header);
  }

  uint32_t header() const { return header_; }
  int64_t bytes() const { return layout_.bytes; }

  void Write(const Element* data, uint8_t* out) {
    if (header_ == kZeroBlock) return;
    if (header_ == kRawBlock) {
      const size_t size = sizeof(Element) * layout_.n;
      std::memcpy(out, data, size);
      std::memset(out + size, 0, static_cast<size_t>(layout_.bytes) - size);
      return;
    }
    switch (layout_.width) {
      case 1: return WriteCoded<1>(out);
      case 2: return WriteCoded<2>(out);
      case 3: return WriteCoded<3>(out);
      case 4: return WriteCoded<4>(out);
      default: return WriteCoded<5>(out);
    }
  }

 private:
  COMPLL_INLINE void LoadTile(int w, U* lanes) const {
    COMPLL_UNROLL
    for (int v = 0; v < kVectors; ++v) lanes[v] = LoadElements(data_ + w * kTile + v * kLanes);
  }
  static COMPLL_INLINE U Codes(U bits, int base) {
    return (bits >> Kind::kShift & Kind::kExponents) - static_cast<uint32_t>(base);
  }
  uint32_t ExponentOf(int i) const {
    return static_cast<uint32_t>(data_[i]) >> Kind::kShift & Kind::kExponents;
  }

  void SetHeader(uint32_t header) {
    header_ = header;
    ReadLayout(header, layout_.n, Kind::kType, &layout_);
  }

  /// The elements that are not +0, side by side, and zeros for a tile.
  void Compact(const Element* all, int n) {
    int at = 0;
#if defined(COMPLL_AVX512)
    for (int i = 0; i < n; i += kLanes) {
      const M mask = MaskOf(mask_[i / kTile], i % kTile / kLanes);
      const auto bits = reinterpret_cast<__m512i>(LoadElements(all + i));
      StoreElements(scratch_ + at, reinterpret_cast<U>(_mm512_maskz_compress_epi32(mask, bits)));
      at += __builtin_popcount(_cvtmask16_u32(mask));
    }
#else
    for (int i = 0; i < n; ++i) {
      const Element element = all[i];
      scratch_[at] = element;
      at += element != 0;
    }
#endif
    std::memset(scratch_ + at, 0, sizeof(Element) * kTile);
    data_ = scratch_;
  }

  FloatWindow ChooseWindow(int kept) const {
    uint16_t counts[256] = {};
    uint32_t low = 255, high = 0;
    int sample = 0;
    for (int first = 0; first < kept; first += kTile) {
      const int end = std::min(first + kSampled, kept);
      for (int i = first; i < end; ++i) {
        const uint32_t exponent = ExponentOf(i);
        ++counts[exponent];
        low = std::min(low, exponent);
        high = std::max(high, exponent);
      }
      sample += end - first;
    }
    return CheapestWindow(counts, sample, static_cast<int>(low), static_cast<int>(high));
  }

  int CountEscapes(int kept, const FloatWindow& window) const {
    const U limit = Set((uint32_t(1) << window.width) - 1);
    int count = 0;
    for (int w = 0; w < WordCount(kept); ++w) {
      U lanes[kVectors];
      LoadTile(w, lanes);
      const uint64_t word = PlaneWord(lanes, [&](U bits) COMPLL_LAMBDA {
        return Ge(Codes(bits, window.base), limit);
      });
      count += __builtin_popcountll(word & ValidBits(kept - w * kTile));
    }
    return count;
  }

  template <int kWidth>
  void WriteCoded(uint8_t* out) const {
    const FloatLayout& layout = layout_;
    const int words = WordCount(layout.kept);
    if (layout.masked) std::memcpy(out, mask_, sizeof(uint64_t) * WordCount(layout.n));
    uint8_t* exponents = out + layout.exponents;
    const U limit = Set((uint32_t(1) << kWidth) - 1);
    for (int w = 0; w < words; ++w) {
      const int left = layout.kept - w * kTile;
      const uint64_t valid = ValidBits(left);
      U lanes[kVectors], codes[kVectors];
      LoadTile(w, lanes);
      COMPLL_UNROLL
      for (int v = 0; v < kVectors; ++v) codes[v] = Smaller(Codes(lanes[v], layout.base), limit);
      uint64_t escaped = valid;
      auto put = [&](int64_t section, int plane, uint64_t word) COMPLL_LAMBDA {
        std::memcpy(out + section + 8 * (plane * words + w), &word, sizeof(word));
      };
      COMPLL_UNROLL
      for (int p = 0; p < kWidth; ++p) {
        const uint64_t word = valid & PlaneWord(codes, [&](U code) COMPLL_LAMBDA {
          return Ne(code & (uint32_t(1) << p), U{});
        });
        escaped &= word;
        put(layout.planes, p, word);
      }
      if constexpr (Kind::kType == COMPLL_FLOAT16) {
        COMPLL_UNROLL
        for (int p = 0; p < kUpperPlanes; ++p) {
          put(layout.upper, p, PlaneWord(lanes, [&](U bits) COMPLL_LAMBDA {
            return Ne(bits & (uint32_t(1) << kUpperBits[p]), U{});
          }));
        }
      }
      alignas(64) uint8_t bytes[kTile];
      alignas(64) uint16_t lows[kTile];
      uint8_t* const high = out + layout.high + w * kTile;
      uint8_t* const low = out + layout.low + 2 * w * kTile;
      const bool whole = left >= kTile;
      I parts[kVectors];
      COMPLL_UNROLL
      for (int v = 0; v < kVectors; ++v) parts[v] = reinterpret_cast<I>(Kind::Byte(lanes[v]));
      PackTile<false, false>(parts, 8, whole ? high : bytes);
      if (!whole) std::memcpy(high, bytes, static_cast<size_t>(RoundUp8(left)));
      if (Kind::kType == COMPLL_FLOAT32 && !layout.brief) {
        COMPLL_UNROLL
        for (int v = 0; v < kVectors; ++v) StoreElements(lows + v * kLanes, lanes[v] & 0xffffu);
        std::memcpy(low, lows, whole ? sizeof(lows) : static_cast<size_t>(RoundUp8(2 * left)));
      }
      for (; escaped != 0; escaped &= escaped - 1) {
        *exponents++ = static_cast<uint8_t>(ExponentOf(w * kTile + __builtin_ctzll(escaped)));
      }
    }
    std::memset(exponents, 0, static_cast<size_t>(out + layout.bytes - exponents));
  }

  const Element* data_ = nullptr;  ///< what is kept, and zeros up to the end of its last tile
  FloatLayout layout_ = {};
  uint32_t header_ = 0;
  uint64_t mask_[kFloatWords];
  Element scratch_[kFloatBlock + kTile];
};

template <class Kind>
inline int64_t PackFloatsAs(const CompllEncodeCall& call) {
  using Element = typename Kind::Element;
  const auto* const data = static_cast<const Element*>(call.gradient);
  const int64_t n = call.n, blocks = FloatBlocks(n);
  uint8_t* const payload = call.payload;
  std::memset(payload, 0, static_cast<size_t>(TableBytes(blocks)));
  WriteField(payload, static_cast<uint32_t>(Kind::kType));
  auto size = [&](int64_t block) { return static_cast<int>(std::min(n - block * kFloatBlock, kFloatBlock)); };
  auto note = [&](int64_t block, uint32_t header) { WriteField(payload + 4 + 4 * block, header); };
  int64_t end = TableBytes(blocks);
  if (call.threads <= 1) {  // a block is planned and written while it is in the cache
    FloatPacker<Kind> packer;
    for (int64_t block = 0; block < blocks; ++block) {
      const Element* const from = data + block * kFloatBlock;
      packer.Plan(from, size(block));
      note(block, packer.header());
      packer.Write(from, payload + end);
      end += packer.bytes();
    }
    return end;
  }
  Arena arena;
  int64_t* const begin = arena.Get<int64_t>(blocks + 1);
  ForBlocks(call, n, kFloatBlock, [&](int64_t block, int64_t first, int64_t, int) {
    FloatPacker<Kind> packer;
    packer.Plan(data + first, size(block));
    note(block, packer.header());
    begin[block] = packer.bytes();
  });
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t bytes = begin[block];
    begin[block] = end;
    end += bytes;
  }
  ForBlocks(call, n, kFloatBlock, [&](int64_t block, int64_t first, int64_t, int) {
    FloatPacker<Kind> packer;
    packer.Plan(data + first, size(block));
    packer.Write(data + first, payload + begin[block]);
  });
  return end;
}

/// The payload of a gradient in its own type; returns its bytes, at most FloatsBytes(n).
inline int64_t PackFloats(const CompllEncodeCall& call) {
  return WithFloats(call.gradient_type, [&](auto kind) { return PackFloatsAs<decltype(kind)>(call); });
}

// Decoding, and sums of several payloads ----------------------------------------------------------

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
}  // namespace hipress::compll
