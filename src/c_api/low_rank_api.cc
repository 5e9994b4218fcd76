/*!
 * \file low_rank_api.cc
 * \brief The "Low rank" section of c_api.h, and a step's passes over all matrices of a bucket.
 */
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "c_api/error.h"
#include "c_api/low_rank.h"
#include "hipress/c_api.h"
#include "operator/contrib/kernels.h"

// python/hipress/torch/low_rank.py has the same fields.
static_assert(sizeof(HipressLowRank) == 104 && offsetof(HipressLowRank, q) == 96, "packed");

namespace hipress {
namespace {

using Jobs = std::vector<std::function<void()>>;

LowRankShape ShapeOf(const HipressLowRank& matrix) {
  return {matrix.rows, matrix.cols, matrix.rank};
}

const LowRankKernels& Passes() { return ActiveKernels().low_rank; }

/// Calls add with the first and the number of rows, or columns, of each part of about kJobElements.
template <typename Function>
void EachPart(int64_t length, int64_t width, int64_t granularity, const Function& add) {
  const int64_t each = std::max<int64_t>(1, Executor::kJobElements / std::max<int64_t>(1, width));
  const int64_t step = (each + granularity - 1) / granularity * granularity;
  for (int64_t begin = 0; begin < length; begin += step) add(begin, std::min(step, length - begin));
}

void AddProject(HipressLowRank* m, Jobs* jobs) {
  const LowRankShape shape = ShapeOf(*m);
  EachPart(m->rows, shape.col_pad(), 2, [&](int64_t row, int64_t count) {
    jobs->push_back([m, shape, row, count] {
      const auto type = DTypeFromFlag(static_cast<int>(m->dtype));
      const auto* gradient =
          static_cast<const uint8_t*>(m->gradient) + row * m->cols * int64_t(SizeOf(type));
      const int64_t at = row * shape.col_pad();
      Passes().project(shape.Rows(count), gradient, type, m->last + at, m->last_p + row, m->last_q,
                        m->start_q, m->next + at, m->p + row);
    });
  });
}

void AddBack(HipressLowRank* m, Jobs* jobs) {
  const LowRankShape shape = ShapeOf(*m);
  EachPart(m->cols, m->rows, LowRankShape::kPad, [&](int64_t column, int64_t count) {
    jobs->push_back([m, shape, column, count] {
      Passes().back(shape.Columns(count), m->next + column, m->p, m->own_q + column);
      const int64_t padded = LowRankShape::Padded(count);
      for (int64_t k = 0; k < m->rank; ++k) {
        const float* from = m->own_q + k * shape.col_pad() + column;
        std::copy(from, from + padded, m->q + k * shape.col_pad() + column);
      }
    });
  });
}

void AddExpand(HipressLowRank* m, Jobs* jobs) {
  const LowRankShape shape = ShapeOf(*m);
  EachPart(m->rows, shape.col_pad(), 1, [&](int64_t row, int64_t count) {
    jobs->push_back([m, shape, row, count] {
      const auto type = DTypeFromFlag(static_cast<int>(m->dtype));
      auto* gradient = static_cast<uint8_t*>(m->gradient) + row * m->cols * int64_t(SizeOf(type));
      Passes().expand(shape.Rows(count), m->p + row, m->q, gradient, type);
    });
  });
}

/// The residual is what this rank's own Q has left unsent; the next step begins with the summed Q.
void Keep(HipressLowRank* m) {
  const LowRankShape shape = ShapeOf(*m);
  std::swap(m->last, m->next);
  std::swap(m->last_q, m->own_q);
  std::copy(m->p, m->p + m->rank * shape.row_pad(), m->last_p);
  std::copy(m->q, m->q + m->rank * shape.col_pad(), m->start_q);
  Passes().orthonormalize(m->start_q, m->cols, shape.col_pad(), m->rank, true);
}

}  // namespace

Bucket::LowRank LowRankOf(HipressLowRank* const* matrices, const int64_t* offsets, int64_t num,
                          DType dtype) {
  const std::vector<HipressLowRank*> all(matrices, matrices + num);
  Bucket::LowRank found;
  found.bind = [all, where = std::vector<int64_t>(offsets, offsets + num), dtype](
                   uint8_t* flat, float* p, float* q) {
    for (size_t i = 0; i < all.size(); ++i) {
      HipressLowRank& matrix = *all[i];
      const LowRankShape shape = ShapeOf(matrix);
      matrix.gradient = flat + where[i] * int64_t(SizeOf(dtype));
      matrix.dtype = static_cast<int64_t>(dtype);
      matrix.p = p;
      matrix.q = q;
      p += matrix.rank * shape.row_pad();
      q += matrix.rank * shape.col_pad();
    }
  };
  for (HipressLowRank* m : all) {
    AddProject(m, &found.project);
    found.orthonormalize.push_back([m] {
      Passes().orthonormalize(m->p, m->rows, ShapeOf(*m).row_pad(), m->rank, false);
    });
    AddBack(m, &found.back);
    AddExpand(m, &found.expand);
    found.keep.push_back([m] { Keep(m); });
  }
  return found;
}

}  // namespace hipress

int HipressLowRankStart(HipressLowRank* matrix) {
  API_BEGIN();
  const auto shape = hipress::ShapeOf(*matrix);
  hipress::Passes().orthonormalize(matrix->start_q, matrix->cols, shape.col_pad(), matrix->rank,
                                    true);
  API_END();
}

int HipressLowRankResidual(const HipressLowRank* matrix, float* out) {
  API_BEGIN();
  hipress::Passes().residual(hipress::ShapeOf(*matrix), matrix->last, matrix->last_p,
                              matrix->last_q, out);
  API_END();
}
