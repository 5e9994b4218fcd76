/*!
 * \file packing.h
 * \brief Codes of 1 to 8 bits: tiles of 64, in lanes, to and from 8 * bits bytes; and sums of the
 *        levels that codes of one and two bits stand for, as bytes.
 *
 * kMsb: the first code is in the highest bits of a byte, not in the lowest.
 */
#pragma once

#include <algorithm>

#include "operator/contrib/compll/lanes.h"

namespace hipress::compll {
namespace {

/// Join eight bytes, each below 2^bits, to 8 * bits bits: neighbors to pairs, pairs to fours, fours
/// to one word. kMsb: the first byte has the highest of these bits, otherwise the lowest.
template <bool kMsb>
COMPLL_INLINE uint64_t Join(uint64_t codes, int bits) {
  // Not by PEXT: some processors take hundreds of cycles for it, and others have none.
  if (kMsb) codes = __builtin_bswap64(codes);
  codes = (codes & 0x00ff00ff00ff00ffu) | (codes & 0xff00ff00ff00ff00u) >> (8 - bits);
  codes = (codes & 0x0000ffff0000ffffu) | (codes & 0xffff0000ffff0000u) >> (16 - 2 * bits);
  return (codes & 0x00000000ffffffffu) | codes >> 32 << (4 * bits);
}

/// Split 8 * bits bits to eight bytes: the inverse of Join.
template <bool kMsb>
COMPLL_INLINE uint64_t Split(uint64_t joined, int bits) {
  const uint64_t four = (uint64_t(1) << 4 * bits) - 1;
  const uint64_t two = ((uint64_t(1) << 2 * bits) - 1) * 0x0000000100000001u;
  const uint64_t one = ((uint64_t(1) << bits) - 1) * 0x0001000100010001u;
  joined = (joined & four) | (joined >> (4 * bits) & four) << 32;
  joined = (joined & two) | (joined >> (2 * bits) & two) << 16;
  joined = (joined & one) | (joined >> bits & one) << 8;
  return kMsb ? __builtin_bswap64(joined) : joined;
}

/// Join eight bytes to the first `bits` bytes of a word in memory.
template <bool kMsb>
COMPLL_INLINE uint64_t JoinGroup(uint64_t codes, int bits) {
  const uint64_t joined = Join<kMsb>(codes, bits);
  return kMsb ? __builtin_bswap64(joined << (64 - 8 * bits)) : joined;
}
/// Split the first `bits` bytes of a word in memory to eight bytes.
template <bool kMsb>
COMPLL_INLINE uint64_t SplitGroup(uint64_t joined, int bits) {
  return Split<kMsb>(kMsb ? __builtin_bswap64(joined) >> (64 - 8 * bits) : joined, bits);
}

/// Mirrors each byte.
COMPLL_INLINE uint64_t ReverseInBytes(uint64_t bits) {
  bits = (bits >> 1 & 0x5555555555555555u) | (bits & 0x5555555555555555u) << 1;
  bits = (bits >> 2 & 0x3333333333333333u) | (bits & 0x3333333333333333u) << 2;
  return (bits >> 4 & 0x0f0f0f0f0f0f0f0fu) | (bits & 0x0f0f0f0f0f0f0f0fu) << 4;
}

#if defined(COMPLL_AVX)
/// Bytes and 64-bit words of a vector as wide as I.
using Octets = uint8_t __attribute__((vector_size(4 * kLanes)));
using Longs = uint64_t __attribute__((vector_size(4 * kLanes)));

/// Sums of neighboring products: unsigned bytes times signed bytes, as signed 16-bit numbers.
COMPLL_INLINE I MultiplyAddBytes(I a, I b) {
  return reinterpret_cast<I>(COMPLL_X86(maddubs_epi16)(AsRaw(a), AsRaw(b)));
}
/// Sums of neighboring products: signed 16-bit numbers, as signed 32-bit numbers.
COMPLL_INLINE I MultiplyAddWords(I a, I b) {
  return reinterpret_cast<I>(COMPLL_X86(madd_epi16)(AsRaw(a), AsRaw(b)));
}
/// Byte place[j] of the same 16 bytes for each byte j, or 0 where place[j] is 128 or more.
COMPLL_INLINE I ShuffleBytes(I bytes, I place) {
  return reinterpret_cast<I>(COMPLL_X86(shuffle_epi8)(AsRaw(bytes), AsRaw(place)));
}
/// kLanes bytes, repeated to the width of I.
COMPLL_INLINE I RepeatBytes(const uint8_t* data) {
#if defined(COMPLL_AVX512)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
  return reinterpret_cast<I>(_mm512_broadcast_i32x4(bytes));
#else
  long long bytes;
  std::memcpy(&bytes, data, sizeof(bytes));
  return reinterpret_cast<I>(_mm256_set1_epi64x(bytes));
#endif
}
#endif

// Packing ------------------------------------------------------------------

#if defined(COMPLL_AVX)
/// Join bytes below 2^bits in eights, as Join does for one: `bits` bytes for each eight, those of
/// two eights side by side at the beginning of each 16 bytes. bits: 3 to 7.
template <bool kMsb>
COMPLL_INLINE I JoinEights(I codes, int bits) {
  // The codes are the signed factors: the other one may be 128.
  const I pairs = MultiplyAddBytes(
      Set(static_cast<int>((kMsb ? 0x0100 | 1 << bits : 1 | 0x0100 << bits) * 0x00010001u)), codes);
  I fours = MultiplyAddWords(
      Set(kMsb ? 0x00010000 | 1 << 2 * bits : 1 | 0x00010000 << 2 * bits), pairs);
  if (kMsb) fours = __builtin_shuffle(fours, Lanes(0) ^ 1);
  const I gap = (1 - (Lanes(0) & 1)) * (32 - 4 * bits);
  const Longs eights = reinterpret_cast<Longs>(fours << gap) >> (32 - 4 * bits);
  Octets place;
  for (int j = 0; j < 4 * kLanes; ++j) {
    const int at = j % 16, byte = at % bits;
    place[j] = static_cast<uint8_t>(at >= 2 * bits ? 0x80 : at / bits * 8 + (kMsb ? bits - 1 - byte : byte));
  }
  return ShuffleBytes(reinterpret_cast<I>(eights), reinterpret_cast<I>(place));
}
/// Write quarter `q` of a tile: the first 2 * bits bytes of `quarter`. Bytes after it may change
/// too, but none after the tile.
COMPLL_INLINE void StoreQuarter(__m128i quarter, int bits, int q, uint8_t* tile) {
  uint8_t* const out = tile + 2 * bits * q;
  const int room = 2 * bits * (4 - q);
  if (room >= 16) return _mm_storeu_si128(reinterpret_cast<__m128i*>(out), quarter);
  const long long low = _mm_cvtsi128_si64(quarter), high = _mm_extract_epi64(quarter, 1);
  std::memcpy(out, &low, room < 8 ? room : 8);
  if (2 * bits > 8) std::memcpy(out + 8, &high, 2 * bits - 8);
}
#endif

#if defined(COMPLL_AVX512)
using Words = uint16_t __attribute__((vector_size(64)));
COMPLL_INLINE Words OddWords() {
  Words place;
  for (int w = 0; w < 32; ++w) place[w] = static_cast<uint16_t>(2 * w + 1);
  return place;
}
/// The low bytes of 64 lanes, in order.
COMPLL_INLINE __m512i TileBytes(const I* codes) {
  const Raw pairs[2] = {_mm512_packs_epi32(AsRaw(codes[0]), AsRaw(codes[1])),
                        _mm512_packs_epi32(AsRaw(codes[2]), AsRaw(codes[3]))};
  return _mm512_permutexvar_epi32(
      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
      _mm512_packus_epi16(pairs[0], pairs[1]));
}
/// The low `bits` bits of the upper halves of 64 lanes, as bytes in order.
COMPLL_INLINE __m512i HighTileBytes(const I* codes, int bits) {
  const auto mask = static_cast<uint16_t>((1 << bits) - 1);
  auto upper = [&](int v) __attribute__((always_inline)) {
    const auto lanes = __builtin_shuffle(reinterpret_cast<Words>(codes[v]),
                                         reinterpret_cast<Words>(codes[v + 1]), OddWords());
    return reinterpret_cast<__m512i>(lanes & mask);
  };
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                                  _mm512_packus_epi16(upper(0), upper(2)));
}
#elif defined(COMPLL_AVX2)
COMPLL_INLINE __m256i TileBytes(const I* codes) {
  const Raw pairs[2] = {_mm256_packs_epi32(AsRaw(codes[0]), AsRaw(codes[1])),
                        _mm256_packs_epi32(AsRaw(codes[2]), AsRaw(codes[3]))};
  return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(pairs[0], pairs[1]),
                                     _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
/// The lowest byte of each 32-bit lane.
COMPLL_INLINE uint64_t LowBytes(__m256i lanes) {
  const __m256i first = _mm256_shuffle_epi8(lanes, _mm256_set1_epi32(0x0c080400));
  return static_cast<uint32_t>(_mm256_extract_epi32(first, 0)) |
         static_cast<uint64_t>(static_cast<uint32_t>(_mm256_extract_epi32(first, 4))) << 32;
}
#endif

/// Writes 64 codes, each below 2^bits, as 8 * bits bytes. kHigh: they begin at bit 16 of their
/// lanes, and other bits may be set.
template <bool kMsb, bool kHigh>
COMPLL_INLINE void PackTile(const I* codes, int bits, uint8_t* out) {
#if !defined(COMPLL_AVX512)
  if constexpr (kHigh) {
    I low[kVectors];
    COMPLL_UNROLL
    for (int v = 0; v < kVectors; ++v) low[v] = codes[v] >> 16 & ((1 << bits) - 1);
    return PackTile<kMsb, false>(low, bits, out);
  }
#endif
  if (bits == 1) {
    M masks[kVectors];
    COMPLL_UNROLL
    for (int v = 0; v < kVectors; ++v) masks[v] = Ne(kHigh ? codes[v] & 0x10000 : codes[v], I{});
    uint64_t word = JoinMasks(masks);
    if (kMsb) word = ReverseInBytes(word);
    std::memcpy(out, &word, sizeof(word));
    return;
  }
#if defined(COMPLL_AVX512)
  const __m512i tile = kHigh ? HighTileBytes(codes, bits) : TileBytes(codes);
  if (bits == 2) {
    const __m512i pairs = _mm512_maddubs_epi16(tile, _mm512_set1_epi32(kMsb ? 0x01041040 : 0x40100401));
    const __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(fours));
    return;
  }
  if (bits == 4) {
    const __m512i pairs = _mm512_maddubs_epi16(tile, _mm512_set1_epi16(kMsb ? 0x0110 : 0x1001));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtepi16_epi8(pairs));
    return;
  }
  if (bits == 8) return _mm512_storeu_si512(out, tile);
  const auto eights = reinterpret_cast<__m512i>(JoinEights<kMsb>(reinterpret_cast<I>(tile), bits));
  StoreQuarter(_mm512_castsi512_si128(eights), bits, 0, out);
  StoreQuarter(_mm512_extracti32x4_epi32(eights, 1), bits, 1, out);
  StoreQuarter(_mm512_extracti32x4_epi32(eights, 2), bits, 2, out);
  StoreQuarter(_mm512_extracti32x4_epi32(eights, 3), bits, 3, out);
#elif defined(COMPLL_AVX2)
  COMPLL_UNROLL
  for (int half = 0; half < 2; ++half) {
    const __m256i tile = TileBytes(codes + 4 * half);
    if (bits == 2) {
      const __m256i pairs = _mm256_maddubs_epi16(tile, _mm256_set1_epi32(kMsb ? 0x01041040 : 0x40100401));
      const uint64_t word = LowBytes(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
      std::memcpy(out + 8 * half, &word, sizeof(word));
    } else if (bits == 4) {
      const __m256i pairs = _mm256_maddubs_epi16(tile, _mm256_set1_epi16(kMsb ? 0x0110 : 0x1001));
      const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0x08);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16 * half), _mm256_castsi256_si128(packed));
    } else if (bits == 8) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32 * half), tile);
    } else {
      const auto eights = reinterpret_cast<__m256i>(JoinEights<kMsb>(reinterpret_cast<I>(tile), bits));
      StoreQuarter(_mm256_castsi256_si128(eights), bits, 2 * half, out);
      StoreQuarter(_mm256_extracti128_si256(eights, 1), bits, 2 * half + 1, out);
    }
  }
#else
  alignas(64) uint8_t bytes[kTile];
  for (int v = 0; v < kVectors; ++v) {
    const Bytes part = __builtin_convertvector(codes[v], Bytes);
    std::memcpy((bits == 8 ? out : bytes) + v * kLanes, &part, sizeof(part));
  }
  if (bits == 8) return;
  for (int g = 0; g < 8; ++g) {
    uint64_t word;
    std::memcpy(&word, bytes + 8 * g, 8);
    word = JoinGroup<kMsb>(word, bits);
    // Whole words as long as they stay in the tile: the next one overwrites what is too much.
    std::memcpy(out + bits * g, &word, bits * g + 8 <= 8 * bits ? 8 : bits);
  }
#endif
}

/// Writes tile `i` of a packed vector; a tail's codes beyond the vector must be 0. kHigh: see
/// PackTile.
template <bool kTail, bool kMsb, bool kHigh = false>
COMPLL_INLINE void StoreTile(const I* codes, int bits, uint8_t* vector, int64_t i, int64_t bytes) {
  const int64_t at = i / 8 * bits;
  if (!kTail) {
    PackTile<kMsb, kHigh>(codes, bits, vector + at);
  } else {
    uint8_t packed[kTile];
    PackTile<kMsb, kHigh>(codes, bits, packed);
    const int64_t left = bytes - at;
    std::memcpy(vector + at, packed, left < 8 * bits ? left : 8 * bits);
  }
}

/// The same for codes of one bit that are masks.
template <bool kTail, bool kMsb>
COMPLL_INLINE void StoreMasks(const M* masks, uint8_t* vector, int64_t i, int64_t bytes) {
  uint64_t word = JoinMasks(masks);
  if (kMsb) word = ReverseInBytes(word);
  const int64_t left = kTail ? bytes - i / 8 : 8;
  std::memcpy(vector + i / 8, &word, left < 8 ? left : 8);
}

// Unpacking ------------------------------------------------------------------

/// Where GetCodes finds the codes of tile `i`: in the vector itself, or in `scratch`.
template <bool kTail, bool kMsb>
COMPLL_INLINE const uint8_t* FindTile(const uint8_t* vector, int bits, int64_t i, int64_t bytes,
                                      uint8_t* scratch) {
  const uint8_t* packed = vector + i / 8 * bits;
#if !defined(COMPLL_AVX)
  uint8_t whole[kTile];
#else
  uint8_t* const whole = scratch;
#endif
  if (kTail) {
    const int64_t left = bytes - i / 8 * bits;
    std::memset(whole, 0, kTile);
    std::memcpy(whole, packed, left < 8 * bits ? left : 8 * bits);
    packed = whole;
  }
#if !defined(COMPLL_AVX)
  if (bits == 8) {
    std::memcpy(scratch, packed, kTile);
    return scratch;
  }
  for (int g = 0; g < 8; ++g) {
    // Whole words that end with the tile: loading as many bytes as there are is many times slower.
    const int first = bits * g, at = std::min(first, 8 * bits - 8);
    uint64_t word;
    std::memcpy(&word, packed + at, sizeof(word));
    word = SplitGroup<kMsb>(word >> 8 * (first - at), bits);
    std::memcpy(scratch + 8 * g, &word, sizeof(word));
  }
  return scratch;
#else
  return packed;
#endif
}

#if defined(COMPLL_AVX)
/// Codes v * kLanes and following of a tile, of any width below 8 whose tile has kLanes bytes or
/// more.
template <bool kMsb>
COMPLL_INLINE I SplitLanes(const uint8_t* tile, int bits, int v) {
  // Whole loads that end with the tile: `skip` bytes belong to codes before.
  const int first = v * kLanes / 8 * bits, last = 8 * bits - kLanes;
  const int at = std::min(first, last), skip = first - at;
  // Each lane gets the byte in which its code begins, and the next one.
  const I bit = Lanes(0) * bits, byte = (bit >> 3) + skip, next = byte + 1;
  const I place = (kMsb ? byte << 8 | next : next << 8 | byte) | static_cast<int32_t>(0x80800000u);
  const I shift = kMsb ? 16 - bits - (bit & 7) : bit & 7;
  return ShuffleBytes(RepeatBytes(tile + at), place) >> shift & ((1 << bits) - 1);
}
#endif

/// Codes v * kLanes on of a tile.
template <bool kMsb>
COMPLL_INLINE I GetCodes(const uint8_t* tile, int bits, int v) {
#if defined(COMPLL_AVX512)
  __m128i bytes;
  if (bits == 1) {
    uint16_t word;
    std::memcpy(&word, tile + 2 * v, sizeof(word));
    return Ones(static_cast<M>(kMsb ? ReverseInBytes(word) : word));
  }
  if (bits == 2) {
    int word;
    std::memcpy(&word, tile + 4 * v, sizeof(word));
    const __m512i shifts =
        kMsb ? _mm512_setr_epi32(6, 4, 2, 0, 14, 12, 10, 8, 22, 20, 18, 16, 30, 28, 26, 24)
             : _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return reinterpret_cast<I>(_mm512_srlv_epi32(_mm512_set1_epi32(word), shifts)) & 3;
  }
  if (bits == 4) {
    bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(tile + 8 * v));
    const __m512i twice = _mm512_cvtepu8_epi32(_mm_unpacklo_epi8(bytes, bytes));
    const __m512i shifts = _mm512_set1_epi64(kMsb ? 4 : int64_t(4) << 32);
    return reinterpret_cast<I>(_mm512_srlv_epi32(twice, shifts)) & 15;
  }
  if (bits == 8) {
    bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tile + 16 * v));
    return reinterpret_cast<I>(_mm512_cvtepu8_epi32(bytes));
  }
  return SplitLanes<kMsb>(tile, bits, v);
#elif defined(COMPLL_AVX2)
  if (bits == 2) {
    uint16_t word;
    std::memcpy(&word, tile + 2 * v, sizeof(word));
    const __m256i shifts = kMsb ? _mm256_setr_epi32(6, 4, 2, 0, 14, 12, 10, 8)
                                : _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    return reinterpret_cast<I>(_mm256_srlv_epi32(_mm256_set1_epi32(word), shifts)) & 3;
  }
  if (bits == 4) {
    int word;
    std::memcpy(&word, tile + 4 * v, sizeof(word));
    const __m256i shifts = kMsb ? _mm256_setr_epi32(4, 0, 12, 8, 20, 16, 28, 24)
                                : _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    return reinterpret_cast<I>(_mm256_srlv_epi32(_mm256_set1_epi32(word), shifts)) & 15;
  }
  if (bits == 8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(tile + 8 * v));
    return reinterpret_cast<I>(_mm256_cvtepu8_epi32(bytes));
  }
  return SplitLanes<kMsb>(tile, bits, v);
#else
  Bytes part;
  std::memcpy(&part, tile + v * kLanes, sizeof(part));
  return __builtin_convertvector(part, I);
#endif
}

/// Codes of one bit as masks: 64 of them, the first lowest, for MaskOf.
template <bool kTail, bool kMsb>
COMPLL_INLINE uint64_t LoadBits(const uint8_t* vector, int64_t i, int64_t bytes) {
  uint64_t word = 0;
  const int64_t left = kTail ? bytes - i / 8 : 8;
  std::memcpy(&word, vector + i / 8, left < 8 ? left : 8);
  return kMsb ? ReverseInBytes(word) : word;
}

/// The lowest 32 bits, each followed by a 0 (or, kUpper, after one).
template <bool kUpper>
COMPLL_INLINE uint64_t Spaced(uint64_t bits) {
#if defined(COMPLL_AVX512)
  return _pdep_u64(bits, 0x5555555555555555u << kUpper);
#else
  // Not by PDEP: some processors without AVX-512 take hundreds of cycles for it.
  bits &= 0xffffffffu;
  bits = (bits | bits << 16) & 0x0000ffff0000ffffu;
  bits = (bits | bits << 8) & 0x00ff00ff00ff00ffu;
  bits = (bits | bits << 4) & 0x0f0f0f0f0f0f0f0fu;
  bits = (bits | bits << 2) & 0x3333333333333333u;
  return ((bits | bits << 1) & 0x5555555555555555u) << kUpper;
#endif
}

/// A tile of 64 codes of two bits, of their lower and their upper bits.
struct PairTile {
  uint64_t words[2];
  COMPLL_INLINE PairTile(uint64_t lower, uint64_t upper)
      : words{Spaced<false>(lower) | Spaced<true>(upper),
              Spaced<false>(lower >> 32) | Spaced<true>(upper >> 32)} {
    asm volatile("" : "+m"(words));  // lanes are filled from memory faster than from registers
  }
  COMPLL_INLINE const uint8_t* Find(uint8_t* scratch) const {
    return FindTile<false, false>(reinterpret_cast<const uint8_t*>(words), 2, 0, 16, scratch);
  }
};

// Small functions of a code as tables ------------------------------------------------------------

/// Codes of up to this many bits index a table of one vector.
#if defined(COMPLL_AVX512)
constexpr int kTableBits = 4;
COMPLL_INLINE F Lookup(F table, I code) {
  return _mm512_permutexvar_ps(AsRaw(code), table);
}
COMPLL_INLINE I Lookup(I table, I code) {
  return reinterpret_cast<I>(_mm512_permutexvar_epi32(AsRaw(code), AsRaw(table)));
}
#elif defined(COMPLL_AVX2)
constexpr int kTableBits = 3;
COMPLL_INLINE F Lookup(F table, I code) {
  return _mm256_permutevar8x32_ps(table, AsRaw(code));
}
COMPLL_INLINE I Lookup(I table, I code) {
  return reinterpret_cast<I>(_mm256_permutevar8x32_epi32(AsRaw(table), AsRaw(code)));
}
#else
constexpr int kTableBits = 0;
template <typename V>
COMPLL_INLINE V Lookup(V table, I) {
  return table;
}
#endif

// Sums of levels, for merges of codes of one and two bits -----------------------------------------

#if defined(COMPLL_AVX)
constexpr bool kByteLevels = true;
/// A code of two bits is looked up where it lies in its half byte: in bits 0 and 1, or 2 and 3.
COMPLL_INLINE __m128i LevelBytes(I table) {
  alignas(16) int8_t bytes[16] = {};
  for (int code = 0; code < 4; ++code) {
    bytes[code] = bytes[4 * code] = static_cast<int8_t>(table[code]);
  }
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}
/// True if a sum of `count` levels always fits into a byte.
COMPLL_INLINE bool FitBytes(I table, int bits, int64_t count) {
  for (int code = 0; code < 1 << bits; ++code) {
    if (table[code] > 127 / count || table[code] < -127 / count) return false;
  }
  return true;
}
#endif

#if defined(COMPLL_AVX512)
using Levels = __m512i;
/// For ByteLevels: the levels of codes of one or two bits, from table[code].
COMPLL_INLINE Levels LevelTable(I table) { return _mm512_broadcast_i32x4(LevelBytes(table)); }
/// The levels of a whole tile of codes, in order.
template <int kBits, bool kMsb>
COMPLL_INLINE Levels ByteLevels(const uint8_t* tile, Levels table) {
  if (kBits == 1) {
    uint64_t word;
    std::memcpy(&word, tile, sizeof(word));
    const __m512i code = _mm512_maskz_set1_epi8(kMsb ? ReverseInBytes(word) : word, 1);
    return _mm512_shuffle_epi8(table, code);
  }
  const __m512i fours = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tile)));
  const __m512i each = _mm512_shuffle_epi8(
      fours, _mm512_setr_epi32(0x00000000, 0x01010101, 0x02020202, 0x03030303, 0x04040404,
                               0x05050505, 0x06060606, 0x07070707, 0x08080808, 0x09090909,
                               0x0a0a0a0a, 0x0b0b0b0b, 0x0c0c0c0c, 0x0d0d0d0d, 0x0e0e0e0e,
                               0x0f0f0f0f));
  const __m512i own = _mm512_and_si512(
      each, _mm512_set1_epi32(static_cast<int>(kMsb ? 0x030c30c0u : 0xc0300c03u)));
  const __m512i low = _mm512_and_si512(_mm512_or_si512(own, _mm512_srli_epi16(own, 4)),
                                       _mm512_set1_epi8(15));
  return _mm512_shuffle_epi8(table, low);
}
COMPLL_INLINE Levels Add(Levels a, Levels b) { return _mm512_add_epi8(a, b); }
COMPLL_INLINE void Widen(Levels levels, I* total) {
  alignas(64) int8_t bytes[kTile];
  _mm512_store_si512(bytes, levels);
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const auto part = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes + v * kLanes));
    total[v] = reinterpret_cast<I>(_mm512_cvtepi8_epi32(part));
  }
}
#elif defined(COMPLL_AVX2)
struct Levels {
  __m256i half[2];
};
COMPLL_INLINE Levels LevelTable(I table) {
  const __m256i both = _mm256_broadcastsi128_si256(LevelBytes(table));
  return {{both, both}};
}
template <int kBits, bool kMsb>
COMPLL_INLINE Levels ByteLevels(const uint8_t* tile, Levels table) {
  Levels levels;
  COMPLL_UNROLL
  for (int h = 0; h < 2; ++h) {
    __m256i code;
    if (kBits == 1) {
      int word;
      std::memcpy(&word, tile + 4 * h, sizeof(word));
      const __m256i each = _mm256_shuffle_epi8(
          _mm256_set1_epi32(word), _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                                      0x0303030303030303));
      const __m256i bit = _mm256_set1_epi64x(
          static_cast<long long>(kMsb ? 0x0102040810204080u : 0x8040201008040201u));
      code = _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(each, bit), bit),
                              _mm256_set1_epi8(1));
    } else {
      long long word;
      std::memcpy(&word, tile + 8 * h, sizeof(word));
      const __m256i each = _mm256_shuffle_epi8(
          _mm256_set1_epi64x(word), _mm256_setr_epi32(0x00000000, 0x01010101, 0x02020202, 0x03030303,
                                                      0x04040404, 0x05050505, 0x06060606, 0x07070707));
      const __m256i own = _mm256_and_si256(
          each, _mm256_set1_epi32(static_cast<int>(kMsb ? 0x030c30c0u : 0xc0300c03u)));
      code = _mm256_and_si256(_mm256_or_si256(own, _mm256_srli_epi16(own, 4)), _mm256_set1_epi8(15));
    }
    levels.half[h] = _mm256_shuffle_epi8(table.half[h], code);
  }
  return levels;
}
COMPLL_INLINE Levels Add(Levels a, Levels b) {
  return {{_mm256_add_epi8(a.half[0], b.half[0]), _mm256_add_epi8(a.half[1], b.half[1])}};
}
COMPLL_INLINE void Widen(Levels levels, I* total) {
  alignas(32) int8_t bytes[kTile];
  _mm256_store_si256(reinterpret_cast<__m256i*>(bytes), levels.half[0]);
  _mm256_store_si256(reinterpret_cast<__m256i*>(bytes + 32), levels.half[1]);
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const auto part = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + v * kLanes));
    total[v] = reinterpret_cast<I>(_mm256_cvtepi8_epi32(part));
  }
}
#else
constexpr bool kByteLevels = false;
struct Levels {};
COMPLL_INLINE Levels LevelTable(I) { return {}; }
template <int kBits, bool kMsb>
COMPLL_INLINE Levels ByteLevels(const uint8_t*, Levels table) {
  return table;
}
COMPLL_INLINE Levels Add(Levels a, Levels) { return a; }
COMPLL_INLINE void Widen(Levels, I*) {}
COMPLL_INLINE bool FitBytes(I, int, int64_t) { return false; }
#endif

}  // namespace
}  // namespace hipress::compll
