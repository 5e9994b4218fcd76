/*!
 * \file bits.h
 * \brief Vectors of bits, 64 at a time: counting, packing the bits under a mask, spreading them again.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_BITS_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_BITS_H_

#include "operator/contrib/compll/runtime.h"

namespace hipress {
namespace compll {
namespace {

/// Bits 64 * w and following; kTail: only `left` of them exist, and the rest are 0.
template <bool kTail>
COMPLL_INLINE uint64_t WordOf(const uint8_t* bits, int64_t w, int left) {
  uint64_t word = 0;
  if (!kTail) {
    std::memcpy(&word, bits + 8 * w, sizeof(word));
    return word;
  }
  std::memcpy(&word, bits + 8 * w, static_cast<size_t>(left + 7) / 8);
  return word & ((uint64_t(1) << left) - 1);
}

/// work(is it a tail, w, bits of it) for all words of n bits.
template <typename Work>
COMPLL_INLINE void ForWords(int64_t n, const Work& work) {
  for (int64_t w = 0; w < n / 64; ++w) work(std::false_type(), w, 64);
  if (n % 64 > 0) work(std::true_type(), n / 64, static_cast<int>(n % 64));
}

inline int64_t CountBits(const uint8_t* bits, int64_t n) {
  int64_t count = 0;
  ForWords(n, [&](auto tail, int64_t w, int left) {
    count += __builtin_popcountll(WordOf<decltype(tail)::value>(bits, w, left));
  });
  return count;
}

/// True if the last byte of n bits has more that are set.
COMPLL_INLINE bool HasPadding(const uint8_t* bits, int64_t n) {
  return n % 8 != 0 && bits[n / 8] >> (n % 8) != 0;
}

/// Writes bits one after the other, and nothing after the last byte.
class BitWriter {
 public:
  explicit BitWriter(uint8_t* out) : out_(out), word_(0), filled_(0) {}
  /// \param value below 2^bits, bits <= 64
  COMPLL_INLINE void Put(uint64_t value, int bits) {
    word_ |= value << filled_;
    filled_ += bits;
    if (filled_ < 64) return;
    std::memcpy(out_, &word_, sizeof(word_));
    out_ += sizeof(word_);
    filled_ -= 64;
    word_ = filled_ == 0 ? 0 : value >> (bits - filled_);
  }
  void End() { std::memcpy(out_, &word_, static_cast<size_t>((filled_ + 7) / 8)); }

 private:
  uint8_t* out_;
  uint64_t word_;
  int filled_;
};

/// The bits under a mask, side by side from the lowest on.
COMPLL_INLINE uint64_t Extract(uint64_t bits, uint64_t mask) {
#if defined(__BMI2__)
  return _pext_u64(bits, mask);
#else
  uint64_t joined = 0;
  for (int k = 0; mask != 0; mask &= mask - 1, ++k) {
    joined |= (bits >> __builtin_ctzll(mask) & 1) << k;
  }
  return joined;
#endif
}

/// Their places again; 0 where the mask is.
COMPLL_INLINE uint64_t Deposit(uint64_t joined, uint64_t mask) {
#if defined(__BMI2__)
  return _pdep_u64(joined, mask);
#else
  uint64_t bits = 0;
  for (; mask != 0; mask &= mask - 1, joined >>= 1) bits |= (mask & -mask) * (joined & 1);
  return bits;
#endif
}

/// Writes those of n bits that are under a mask, CountBits(mask, n) of them.
inline void PackWhere(const uint8_t* bits, const uint8_t* mask, int64_t n, uint8_t* out) {
  BitWriter writer(out);
  ForWords(n, [&](auto tail, int64_t w, int left) {
    constexpr bool kTail = decltype(tail)::value;
    const uint64_t word = WordOf<kTail>(mask, w, left);
    writer.Put(Extract(WordOf<kTail>(bits, w, left), word), __builtin_popcountll(word));
  });
  writer.End();
}

/// The next 64 of `count` bits, or as many as there are, from `bit` on.
__attribute__((noinline, cold)) inline uint64_t BitsNearEnd(const uint8_t* packed, uint64_t count,
                                                            uint64_t bit) {
  const uint64_t bytes = (count + 7) / 8, byte = bit / 8, shift = bit % 8;
  uint64_t word = 0;
  std::memcpy(&word, packed + byte, std::min<uint64_t>(bytes - byte, 8));
  const uint64_t next = byte + 8 < bytes ? packed[byte + 8] : 0;
  return word >> shift | next << 1 << (63 - shift);
}

/// Bits under the next word of a mask, at their places; 0 where the mask is.
/// \param count how many bits are packed
/// \param at in, out: how many of them are under the words before
COMPLL_INLINE uint64_t NextBits(const uint8_t* packed, int64_t count, uint64_t mask, int64_t* at) {
  const uint64_t bit = static_cast<uint64_t>(*at), all = static_cast<uint64_t>(count);
  const uint64_t found = static_cast<uint64_t>(__builtin_popcountll(mask)), shift = bit % 8;
  *at = static_cast<int64_t>(bit + found);
  if (__builtin_expect(bit + 64 > all || shift + found > 64, 0)) {
    return Deposit(BitsNearEnd(packed, all, bit), mask);
  }
  uint64_t word;
  std::memcpy(&word, packed + bit / 8, sizeof(word));
  return Deposit(word >> shift, mask);
}

/// n bits again, 0 where the mask is, from those under it; writes whole words.
inline void UnpackWhere(const uint8_t* packed, int64_t count, const uint8_t* mask, int64_t n,
                        uint8_t* bits) {
  int64_t at = 0;
  ForWords(n, [&](auto tail, int64_t w, int left) {
    const uint64_t word = WordOf<decltype(tail)::value>(mask, w, left);
    const uint64_t spread = NextBits(packed, count, word, &at);
    std::memcpy(bits + 8 * w, &spread, sizeof(spread));
  });
}

/// How many of n bits are set before each block of kBlock, and in all.
inline int64_t CountBlocks(const uint8_t* bits, int64_t n, int64_t* before) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    *before++ = count;
    count += CountBits(bits + i / 8, std::min<int64_t>(n - i, kBlock));
  }
  return count;
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_BITS_H_
