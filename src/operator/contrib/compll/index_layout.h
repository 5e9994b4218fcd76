/*!
 * \file index_layout.h
 * \brief How ascending indices are packed, on CPU and GPU: the layouts of ascending.h and of gaps.h,
 *        which say what they mean.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_INDEX_LAYOUT_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_INDEX_LAYOUT_H_

#include "operator/contrib/compll/scalar.h"

namespace hipress {
namespace compll {
namespace {

/// log2(n / count), rounded down: the most bits of an index, or of a gap, that are packed as they are.
COMPLL_SCALAR int MostLow(int64_t count, int64_t n) {
  int low = 0;
  if (count > 0) {
    while (count << (low + 1) <= n) ++low;
  }
  return low;
}

/// How `count` indices below n are laid out.
struct Ascending {
  int low;        ///< bits of an index that are packed as they are
  int64_t upper;  ///< bits of the mask, or of the unary parts
  int64_t begin;  ///< bytes before the packed bits
  COMPLL_SCALAR Ascending(int64_t count, int64_t n)
      : low(4 * count < n ? MostLow(count, n) : 0),
        upper(count <= 0 ? 0 : low == 0 ? n : count + ((n - 1) >> low)),
        begin(Blocks(upper, 8)) {}
};
COMPLL_SCALAR int64_t AscendingBytes(int64_t count, int64_t n) {
  const Ascending layout(count, n);
  return layout.begin + Blocks(count * layout.low, 8);
}

constexpr int64_t kGapBlock = 32;
constexpr int kGapChoices = 4;

COMPLL_SCALAR int64_t GapBlocks(int64_t count) { return Blocks(count, kGapBlock); }
/// Bytes of the choices.
COMPLL_SCALAR int64_t ChoiceBytes(int64_t count) { return Blocks(2 * GapBlocks(count), 8); }
/// The most bytes of `count` or fewer indices below n.
COMPLL_SCALAR int64_t GapsMost(int64_t count, int64_t n) {
  if (count <= 0) return 0;
  int64_t bits = n;
  for (int low = 1; low < 32; ++low) bits = Least(bits, count * (low + 1) + ((n - count) >> low));
  return ChoiceBytes(count) + Blocks(bits, 8) + 1;  // two parts are rounded up
}
COMPLL_SCALAR uint32_t GapOf(const int32_t* index, int64_t j) {
  return static_cast<uint32_t>(j == 0 ? index[0] : index[j] - index[j - 1] - 1);
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_INDEX_LAYOUT_H_
