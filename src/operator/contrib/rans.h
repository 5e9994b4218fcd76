/*!
 * \file rans.h
 * \brief An order-0 entropy coder of bytes: range asymmetric numeral systems (J. Duda, 2013; the
 *        arithmetic of F. Giesen's "Interleaved entropy coders", 2014), 32 coders side by side.
 *
 * Byte i belongs to coder i % 32. A state x is in [2^15, 2^31). Frequencies f of bytes are
 * multiples of 1/4096; `start` of a byte is the sum of the frequencies before it. To encode byte s:
 *
 *   if x >= f << 19: emit the low 16 bits of x, x >>= 16
 *   x = (x / f << 12) + start + x % f
 *
 * from the last byte to the first, from x = 2^15 on; words are laid down backwards. So decoding
 * goes forwards through bytes and words, and ends with x = 2^15 in all coders:
 *
 *   s = the byte with start <= x % 4096 < start + f
 *   x = f * (x >> 12) + x % 4096 - start;   if x < 2^15: x = x << 16 | the next word
 *
 * Packed bytes are cut into blocks of 128 KiB. A block, in bytes, numbers little-endian:
 *
 *   1        number of tables: 0 (the block's bytes follow unmodified), 1, or 2 (for 16-bit
 *            elements: one of the bytes at even places, one of those at odd places)
 *   a table: 32 bytes with a bit for each byte that there is; then f - 1 of each of these, in one
 *   byte if
 *            it is below 128, or else in two: 128 + its low 7 bits, then the rest
 *   4 * 32   the states that decoding begins with
 *   2 * ...  the words, which end with the block's last byte
 *
 * All of it is arithmetic of whole numbers: the same bits on every machine.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace hipress {

constexpr int kRansCoders = 32;
constexpr int kRansBits = 12;
constexpr uint32_t kRansTotal = 1u << kRansBits;
constexpr uint32_t kRansLeast = 1u << 15;  ///< the least state
constexpr size_t kRansBlock = size_t(128) << 10;

/// What encoding a byte needs. x / f is a multiplication, exact for x < 2^31.
struct RansSymbol {
  uint32_t reciprocal;  ///< x / f = x * reciprocal >> 32 >> shift
  /// The new state is x + bias + x / f * (4096 - f); 13 bits.
  uint32_t bias : 13, less : 12, shift : 7;  ///< less: f - 1
};

/// The passes over bytes, for one instruction set (kernels.h). `odd` is where in a table that of
/// bytes at odd places begins; 0: they have the other ones' table.
struct RansKernels {
  /// Counts bytes at even and at odd places.
  void (*count)(const uint8_t* in, size_t n, uint32_t counts[2][256]);
  /// Writes words backwards from `end`, at most 2 * n bytes, behind 16 that are scratch. Returns
  /// where they begin.
  uint8_t* (*encode)(const RansSymbol* symbols, size_t odd, const uint8_t* in, size_t n,
                     uint32_t* states, uint8_t* end);
  /// Reads words from `words` on, none beyond `end`. Each entry of `table` (4096): the byte, x %
  /// 4096 - start << 8, f - 1 << 20. Returns where the words end, or null if there are too few.
  const uint8_t* (*decode)(const uint32_t* table, size_t odd, const uint8_t* words,
                           const uint8_t* end, size_t n, uint32_t* states, uint8_t* out);
};

/// Packs n bytes into less than `limit` ones. Returns how many, or 0 if they do not fit.
size_t RansPack(const uint8_t* in, size_t n, uint8_t* out, size_t limit);

/// Unpacks n bytes out of exactly `bytes` ones. Returns null, or why they are not n bytes that were
/// packed: the end of a sentence that begins "it".
const char* RansUnpack(const uint8_t* in, size_t bytes, uint8_t* out, size_t n);

}  // namespace hipress
