/*!
 * \file low_rank_api.cc
 * \brief The "Low rank" section of c_api.h: a step's three passes over all matrices of a bucket.
 */
#include <algorithm>
#include <cstddef>
#include <utility>

#include "c_api/error.h"
#include "hipress/c_api.h"
#include "operator/contrib/kernels.h"

using hipress::ActiveKernels;
using hipress::DType;
using hipress::DTypeFromFlag;
using hipress::LowRankShape;

// python/hipress/torch/low_rank.py has the same fields.
static_assert(sizeof(HipressLowRank) == 104 && offsetof(HipressLowRank, q) == 96, "packed");

namespace {

LowRankShape ShapeOf(const HipressLowRank& matrix) {
  return {matrix.rows, matrix.cols, matrix.rank};
}

DType TypeOf(const HipressLowRank& matrix) { return DTypeFromFlag(static_cast<int>(matrix.dtype)); }

/// Calls f with the kernels, each matrix and its shape; returns as c_api.h's functions do.
template <typename Function>
int Each(HipressLowRank* const* matrices, int64_t num, const Function& f) {
  API_BEGIN();
  const auto& kernels = ActiveKernels().low_rank;
  for (int64_t i = 0; i < num; ++i) f(kernels, *matrices[i], ShapeOf(*matrices[i]));
  API_END();
}

}  // namespace

int HipressLowRankProject(HipressLowRank* const* matrices, int64_t num) {
  return Each(matrices, num, [](const auto& kernels, HipressLowRank& m, const LowRankShape& shape) {
    kernels.project(shape, m.gradient, TypeOf(m), m.last, m.last_p, m.last_q, m.start_q, m.next, m.p);
  });
}

int HipressLowRankBack(HipressLowRank* const* matrices, int64_t num) {
  return Each(matrices, num, [](const auto& kernels, HipressLowRank& m, const LowRankShape& shape) {
    kernels.orthonormalize(m.p, m.rows, shape.row_pad(), m.rank, false);
    kernels.back(shape, m.next, m.p, m.own_q);
    std::copy(m.own_q, m.own_q + m.rank * shape.col_pad(), m.q);
  });
}

int HipressLowRankExpand(HipressLowRank* const* matrices, int64_t num) {
  return Each(matrices, num, [](const auto& kernels, HipressLowRank& m, const LowRankShape& shape) {
    kernels.expand(shape, m.p, m.q, m.gradient, TypeOf(m));
  });
}

int HipressLowRankKeep(HipressLowRank* const* matrices, int64_t num) {
  return Each(matrices, num, [](const auto& kernels, HipressLowRank& m, const LowRankShape& shape) {
    std::swap(m.last, m.next);
    std::swap(m.last_q, m.own_q);
    std::copy(m.p, m.p + m.rank * shape.row_pad(), m.last_p);
    std::copy(m.q, m.q + m.rank * shape.col_pad(), m.start_q);
    kernels.orthonormalize(m.start_q, m.cols, shape.col_pad(), m.rank, true);
  });
}

int HipressLowRankStart(HipressLowRank* matrix) {
  API_BEGIN();
  const LowRankShape shape = ShapeOf(*matrix);
  ActiveKernels().low_rank.orthonormalize(matrix->start_q, matrix->cols, shape.col_pad(),
                                          matrix->rank, true);
  API_END();
}

int HipressLowRankResidual(const HipressLowRank* matrix, float* out) {
  API_BEGIN();
  ActiveKernels().low_rank.residual(ShapeOf(*matrix), matrix->last, matrix->last_p, matrix->last_q,
                                    out);
  API_END();
}
