// Part of kernels-inl.h: the passes of rans.h over bytes.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "operator/contrib/rans.h"

namespace hipress {
namespace {

void CountBytes(const uint8_t* in, size_t n, uint32_t counts[2][256]) {
  // Neighbors are often alike: two increments of one counter would wait for each other.
  uint32_t more[2][256] = {};
  size_t i = 0;
  for (; n - i >= 8; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, in + i, 8);
    for (int k = 0; k < 8; k += 4, eight >>= 32) {
      ++counts[0][eight & 0xff];
      ++counts[1][eight >> 8 & 0xff];
      ++more[0][eight >> 16 & 0xff];
      ++more[1][eight >> 24 & 0xff];
    }
  }
  for (; i < n; ++i) ++counts[i & 1][in[i]];
  for (int s = 0; s < 512; ++s) counts[s / 256][s % 256] += more[s / 256][s % 256];
}

#if defined(__AVX2__)
using Lanes = __m256i;

/// For each set of 8 coders: the place of each of them among the words of all, counted from the
/// first word that is read, or to the last one that is written.
struct WordPlaces {
  uint8_t read[256][8] = {}, written[256][8] = {};
  constexpr WordPlaces() {
    for (int set = 0; set < 256; ++set) {
      int count = 0;
      for (int lane = 0; lane < 8; ++lane) {
        read[set][lane] = uint8_t(count);
        count += set >> lane & 1;
      }
      for (int lane = 7, at = 7; lane >= 0; --lane) {
        if (set >> lane & 1) written[set][at--] = uint8_t(lane);
      }
    }
  }
};
constexpr WordPlaces kPlaces;

Lanes Load8(const void* from) { return _mm256_loadu_si256(static_cast<const Lanes*>(from)); }
Lanes Bytes8(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
Lanes All8(uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }
int Set8(Lanes truth) { return _mm256_movemask_ps(_mm256_castsi256_ps(truth)); }
/// Where the tables of 8 neighbors begin.
Lanes Tables8(size_t odd) {
  const int second = static_cast<int>(odd);
  return _mm256_setr_epi32(0, second, 0, second, 0, second, 0, second);
}

/// The symbols of 4 neighbors: their reciprocals, and behind those the other halves. (Gathering
/// these takes twice as long on some processors.)
__attribute__((always_inline)) inline void Symbols4(const RansSymbol* symbols, size_t odd,
                                                    const uint8_t* in, __m128i* reciprocals,
                                                    __m128i* others) {
  auto one = [=](int k) __attribute__((always_inline)) {
    const RansSymbol* const at = symbols + (k & 1 ? odd : 0) + in[k];
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
  };
  const __m128i first = _mm_unpacklo_epi32(one(0), one(1));
  const __m128i second = _mm_unpacklo_epi32(one(2), one(3));
  *reciprocals = _mm_unpacklo_epi64(first, second);
  *others = _mm_unpackhi_epi64(first, second);
}

/// Encodes 8 bytes. Returns where the words that this writes begin.
__attribute__((always_inline)) inline uint8_t* Encode8(const RansSymbol* symbols, size_t odd,
                                                       const uint8_t* in, Lanes* state,
                                                       uint8_t* end) {
  __m128i halves[2][2];
  Symbols4(symbols, odd, in, &halves[0][0], &halves[1][0]);
  Symbols4(symbols, odd, in + 4, &halves[0][1], &halves[1][1]);
  const Lanes reciprocal = _mm256_set_m128i(halves[0][1], halves[0][0]);
  const Lanes packed = _mm256_set_m128i(halves[1][1], halves[1][0]);
  const Lanes f = _mm256_add_epi32(_mm256_and_si256(_mm256_srli_epi32(packed, 13), All8(4095)),
                                   All8(1));
  Lanes x = *state;
  const Lanes limit = _mm256_sub_epi32(_mm256_slli_epi32(f, 19), All8(1));
  const Lanes full = _mm256_cmpgt_epi32(x, limit);
  const int set = Set8(full);
  const Lanes low = _mm256_permutevar8x32_epi32(_mm256_and_si256(x, All8(0xffff)),
                                                Bytes8(kPlaces.written[set]));
  const __m128i eight = _mm_packus_epi32(_mm256_castsi256_si128(low),
                                         _mm256_extracti128_si256(low, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(end - 16), eight);
  end -= 2 * __builtin_popcount(static_cast<unsigned>(set));
  x = _mm256_blendv_epi8(x, _mm256_srli_epi32(x, 16), full);
  const Lanes even = _mm256_srli_epi64(_mm256_mul_epu32(x, reciprocal), 32);
  const Lanes uneven = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(reciprocal, 32));
  const Lanes quotient = _mm256_srlv_epi32(_mm256_blend_epi32(even, uneven, 0xaa),
                                           _mm256_srli_epi32(packed, 25));
  const Lanes rest = _mm256_sub_epi32(All8(kRansTotal), f);
  *state = _mm256_add_epi32(_mm256_add_epi32(x, _mm256_and_si256(packed, All8(8191))),
                            _mm256_mullo_epi32(quotient, rest));
  return end;
}

/// The states that have become too small read a word each. Returns where the next words begin.
__attribute__((always_inline)) inline const uint8_t* ReadWords8(Lanes* state, const uint8_t* words) {
  const Lanes x = *state;
  const Lanes low = _mm256_cmpgt_epi32(All8(kRansLeast), x);
  const int set = Set8(low);
  const Lanes next = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
  const Lanes mine = _mm256_permutevar8x32_epi32(next, Bytes8(kPlaces.read[set]));
  *state = _mm256_blendv_epi8(x, _mm256_or_si256(_mm256_slli_epi32(x, 16), mine), low);
  return words + 2 * __builtin_popcount(static_cast<unsigned>(set));
}
#endif

uint8_t* RansEncode(const RansSymbol* symbols, size_t odd, const uint8_t* in, size_t n,
                    uint32_t* states, uint8_t* end) {
  auto one = [&](int lane, size_t i) __attribute__((always_inline)) {
    uint32_t x = states[lane];
    const RansSymbol symbol = symbols[(lane & 1 ? odd : 0) + in[i]];
    const uint32_t less = symbol.less;
    const auto word = static_cast<uint16_t>(x);
    std::memcpy(end - 2, &word, 2);
    const uint32_t full = (less - (x >> 19)) >> 31;  // 1 if x >= f << 19; no branch could be predicted
    end -= 2 * full;
    x >>= 16 * full;
    const auto quotient =
        static_cast<uint32_t>(uint64_t(x) * symbol.reciprocal >> 32 >> symbol.shift);
    states[lane] = x + symbol.bias + quotient * (kRansTotal - 1 - less);
  };
  size_t i = n;
  for (; i % kRansCoders != 0; --i) one(static_cast<int>((i - 1) % kRansCoders), i - 1);
#if defined(__AVX2__)
  Lanes x[4];
  for (int v = 0; v < 4; ++v) x[v] = Load8(states + 8 * v);
  for (; i != 0; i -= kRansCoders) {
    for (int v = 3; v >= 0; --v) {
      end = Encode8(symbols, odd, in + i - kRansCoders + 8 * v, &x[v], end);
    }
  }
  std::memcpy(states, x, sizeof(x));
#endif
  for (; i != 0; i -= kRansCoders) {
    for (int lane = kRansCoders - 1; lane > 0; lane -= 2) {
      one(lane, i - kRansCoders + lane);
      one(lane - 1, i - kRansCoders + lane - 1);
    }
  }
  return end;
}

const uint8_t* RansDecode(const uint32_t* table, size_t odd, const uint8_t* words,
                          const uint8_t* end, size_t n, uint32_t* states, uint8_t* out) {
  constexpr ptrdiff_t kMost = 2 * kRansCoders;  // bytes that a round reads
  size_t i = 0;
#if defined(__AVX2__)
  const Lanes tables = Tables8(odd), place = All8(kRansTotal - 1);
  Lanes x[4], entry[4];
  for (int v = 0; v < 4; ++v) x[v] = Load8(states + 8 * v);
  for (; n - i >= kRansCoders && end - words >= kMost; i += kRansCoders) {
    for (int v = 0; v < 4; ++v) {
      const Lanes at = _mm256_or_si256(_mm256_and_si256(x[v], place), tables);
      entry[v] = _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), at, 4);
      const Lanes f = _mm256_add_epi32(_mm256_srli_epi32(entry[v], 20), All8(1));
      const Lanes rest = _mm256_and_si256(_mm256_srli_epi32(entry[v], 8), place);
      x[v] = _mm256_add_epi32(_mm256_mullo_epi32(f, _mm256_srli_epi32(x[v], kRansBits)), rest);
      entry[v] = _mm256_and_si256(entry[v], All8(0xff));
    }
    for (int v = 0; v < 4; ++v) words = ReadWords8(&x[v], words);
    // Packing works on halves of a register, so groups of four bytes are out of order.
    const Lanes bytes = _mm256_packus_epi16(_mm256_packus_epi32(entry[0], entry[1]),
                                            _mm256_packus_epi32(entry[2], entry[3]));
    const Lanes order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const Lanes ordered = _mm256_permutevar8x32_epi32(bytes, order);
    std::memcpy(out + i, &ordered, sizeof(ordered));
  }
  std::memcpy(states, x, sizeof(x));
#endif
  auto step = [&](int lane, size_t at) __attribute__((always_inline)) {
    const uint32_t x = states[lane];
    const uint32_t entry = table[(lane & 1 ? odd : 0) + (x & (kRansTotal - 1))];
    out[at] = static_cast<uint8_t>(entry);
    return ((entry >> 20) + 1) * (x >> kRansBits) + (entry >> 8 & (kRansTotal - 1));
  };
  for (; n - i >= kRansCoders && end - words >= kMost; i += kRansCoders) {
    for (int lane = 0; lane < kRansCoders; ++lane) {
      const uint32_t x = step(lane, i + lane);
      uint16_t word;
      std::memcpy(&word, words, 2);
      const uint32_t low = (x - kRansLeast) >> 31;  // 1 if x < kRansLeast
      words += 2 * low;
      states[lane] = x << 16 * low | (word & (0 - low));
    }
  }
  for (; i < n; ++i) {
    const int lane = static_cast<int>(i % kRansCoders);
    uint32_t x = step(lane, i);
    if (x < kRansLeast) {
      if (end - words < 2) return nullptr;
      uint16_t word;
      std::memcpy(&word, words, 2);
      words += 2;
      x = x << 16 | word;
    }
    states[lane] = x;
  }
  return words;
}

}  // namespace
}  // namespace hipress
