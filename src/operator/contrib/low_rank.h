/*!
 * \file low_rank.h
 * \brief The three passes over a matrix that low-rank compression needs, and Gram-Schmidt; part of
 * the table of kernels.
 *
 * PowerSGD (Vogels, Karimireddy, Jaggi, NeurIPS 2019, arXiv:1905.13727, algorithm 2) sends a
 * gradient M of [rows, cols] as P Q^T, with P of [rows, rank] and Q of [cols, rank]: P = M Q' with
 * the Q' of the step before, P is summed over the ranks and made orthonormal, Q = M^T P, and Q is
 * summed. Each of its steps is memory's speed, so they are three passes over M and no more:
 *
 *   project  residual' = gradient + (residual - P' Q'^T), and P of it    reads 8 bytes, writes 4
 *   back     Q of it                                                     reads 4
 *   expand   P Q^T into the gradient                                     writes 4
 *
 * The residual that a step leaves is M - P Q^T with this rank's own Q, and the next step's first
 * pass makes it on its way: M is kept instead. `project` writes it elsewhere, so that a step which
 * turns out to have a NaN or Inf can be as if it had never been.
 *
 * Factors lie column by column, each padded with zeros to a multiple of kPad elements, and so do
 * M's rows. Every sum has a fixed order, in 32 lanes; so results do not depend on the instruction
 * set.
 */
#pragma once

#include <cstdint>

#include "base/types.h"

namespace hipress {

/// Sizes of a matrix [rows, cols] and its factors.
struct LowRankShape {
  static constexpr int64_t kPad = 32;
  static int64_t Padded(int64_t count) { return (count + kPad - 1) / kPad * kPad; }

  int64_t rows, cols, rank;
  int64_t row_stride = 0, col_stride = 0;  ///< of the whole matrix, if this is a part of it

  /// Elements from a column of P to the next.
  int64_t row_pad() const { return row_stride != 0 ? row_stride : Padded(rows); }
  /// Elements from a column of Q, or a row of M, to the next.
  int64_t col_pad() const { return col_stride != 0 ? col_stride : Padded(cols); }

  // Parts of a matrix, which any number of threads may go through; pointers are those of the part's
  // first row or column. The results have the bits that the whole has.
  /// For project and expand.
  LowRankShape Rows(int64_t count) const { return {count, cols, rank, row_pad(), col_pad()}; }
  /// For back; cut at multiples of kPad.
  LowRankShape Columns(int64_t count) const { return {rows, count, rank, row_pad(), col_pad()}; }
};

struct LowRankKernels {
  /// next = gradient + (last - p_last q_last^T), p = next q. All but the gradient is padded.
  void (*project)(const LowRankShape& shape, const void* gradient, DType type, const float* last,
                  const float* p_last, const float* q_last, const float* q, float* next, float* p);
  /// out = last - p q^T, not padded: the residual, for inspection.
  void (*residual)(const LowRankShape& shape, const float* last, const float* p, const float* q,
                   float* out);
  /// q = m^T p.
  void (*back)(const LowRankShape& shape, const float* m, const float* p, float* q);
  /// out = p q^T, not padded.
  void (*expand)(const LowRankShape& shape, const float* p, const float* q, void* out, DType type);
  /// Makes `rank` columns of `count` elements, `pad` from one to the next, orthonormal. One that
  /// has nothing that those before it lack becomes 0 or, if `renew`, something arbitrary and
  /// orthonormal.
  void (*orthonormalize)(float* columns, int64_t count, int64_t pad, int64_t rank, bool renew);
};

}  // namespace hipress
