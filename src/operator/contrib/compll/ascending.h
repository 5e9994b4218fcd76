/*!
 * \file ascending.h
 * \brief Ascending indices in few bytes: Elias, "Efficient storage and retrieval by content and
 *        address of static files", J. ACM 1974, and Fano, 1971.
 *
 * Of k indices below n, the lowest l = log2(n / k) bits of each (rounded down) are packed as they
 * are. What is above them is in unary before that: bit (index >> l) + j is set for index j. So an
 * index takes l + 1 + n / (k * 2^l) bits, about half a bit more than the best code if the indices
 * are random. From k = n / 4 on a mask of n bits is smaller, and takes its place (l = 0).
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_ASCENDING_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_ASCENDING_H_

#include "operator/contrib/compll/index_layout.h"
#include "operator/contrib/compll/sparse.h"

namespace hipress {
namespace compll {
namespace {

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

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_ASCENDING_H_
