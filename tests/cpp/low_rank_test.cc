// The passes of low-rank compression against matrices in double precision, on every instruction
// set.
#include "operator/contrib/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "operator/contrib/half.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

const char* const kTables[] = {"baseline", "avx2", "avx512"};
// Around the lanes, the rows and the columns that loops take at once, and the part of a row (2048).
const LowRankShape kShapes[] = {{1, 40, 1},   {3, 31, 2},    {5, 32, 3},   {8, 33, 4},
                                {64, 100, 5}, {9, 2048, 8},  {6, 2100, 7}, {4, 4097, 2},
                                {70, 65, 17}, {129, 64, 32}};

/// Floats at a multiple of 64 bytes.
class Floats {
 public:
  explicit Floats(int64_t count) : lines_(count / 16 + 1), count_(count) {}
  float* get() { return lines_.data()->values; }
  std::vector<float> values() { return {get(), get() + count_}; }

 private:
  struct alignas(64) Line {
    float values[16] = {};
  };
  std::vector<Line> lines_;
  int64_t count_;
};

/// All that a step reads and writes.
struct Step {
  explicit Step(const LowRankShape& shape)
      : shape(shape), gradient(shape.rows * shape.cols + 3), last(shape.rows * shape.col_pad()),
        next(shape.rows * shape.col_pad()), last_p(shape.rank * shape.row_pad()),
        p(shape.rank * shape.row_pad()), last_q(shape.rank * shape.col_pad()),
        start(shape.rank * shape.col_pad()), q(shape.rank * shape.col_pad()) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const auto fill = [&](Floats* out, int64_t rows, int64_t cols, int64_t pad) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) out->get()[i * pad + j] = normal(random);
      }
    };
    fill(&gradient, 1, shape.rows * shape.cols, 0);
    fill(&last, shape.rows, shape.cols, shape.col_pad());
    fill(&last_p, shape.rank, shape.rows, shape.row_pad());
    fill(&last_q, shape.rank, shape.cols, shape.col_pad());
    fill(&start, shape.rank, shape.cols, shape.col_pad());
  }
  const LowRankShape shape;
  Floats gradient, last, next, last_p, p, last_q, start, q;
};

float AsFloat(const void* data, DType type, int64_t i) {
  if (type == DType::kFloat32) return static_cast<const float*>(data)[i];
  if (type == DType::kFloat16) return ToFloat(static_cast<const Float16*>(data)[i]);
  return ToFloat(static_cast<const BFloat16*>(data)[i]);
}

class LowRankTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (FindKernels(GetParam()) == nullptr) GTEST_SKIP() << "this CPU or build has no " << GetParam();
    kernels_ = &FindKernels(GetParam())->low_rank;
  }
  const LowRankKernels* kernels_ = nullptr;
};

TEST_P(LowRankTest, PassesAreWhatTheyAreInDoublePrecision) {
  const auto& one = kBaselineKernels.low_rank;
  for (const LowRankShape& shape : kShapes) {
    SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.cols << ", " << shape.rank);
    const int64_t pad = shape.col_pad();
    Step a(shape), b(shape);
    // Shifted by one element: gradients start anywhere in their bucket.
    const float* gradient = a.gradient.get() + 1;
    kernels_->project(shape, gradient, DType::kFloat32, a.last.get(), a.last_p.get(), a.last_q.get(),
                      a.start.get(), a.next.get(), a.p.get());
    one.project(shape, b.gradient.get() + 1, DType::kFloat32, b.last.get(), b.last_p.get(),
                b.last_q.get(), b.start.get(), b.next.get(), b.p.get());
    EXPECT_EQ(a.next.values(), b.next.values());
    EXPECT_EQ(a.p.values(), b.p.values());
    std::vector<float> residual(shape.rows * shape.cols);
    kernels_->residual(shape, a.last.get(), a.last_p.get(), a.last_q.get(), residual.data());
    for (int64_t i = 0; i < shape.rows; ++i) {
      for (int64_t j = 0; j < shape.cols; ++j) {
        double want = a.last.get()[i * pad + j];
        for (int64_t k = 0; k < shape.rank; ++k) {
          want -= double(a.last_p.get()[k * shape.row_pad() + i]) * a.last_q.get()[k * pad + j];
        }
        const float left = residual[i * shape.cols + j];
        ASSERT_NEAR(left, want, 1e-4);
        // Bit for bit, so that a saved and loaded residual continues as if it had not been saved.
        ASSERT_EQ(a.next.get()[i * pad + j], gradient[i * shape.cols + j] + left);
      }
      for (int64_t k = 0; k < shape.rank; ++k) {
        double want = 0;
        for (int64_t j = 0; j < shape.cols; ++j) {
          want += double(a.next.get()[i * pad + j]) * a.start.get()[k * pad + j];
        }
        ASSERT_NEAR(a.p.get()[k * shape.row_pad() + i], want, 1e-3 * std::sqrt(shape.cols));
      }
    }

    kernels_->back(shape, a.next.get(), a.p.get(), a.q.get());
    one.back(shape, b.next.get(), b.p.get(), b.q.get());
    EXPECT_EQ(a.q.values(), b.q.values());
    for (int64_t k = 0; k < shape.rank; ++k) {
      for (int64_t j = 0; j < pad; ++j) {
        double want = 0, size = 1;
        for (int64_t i = 0; i < shape.rows; ++i) {
          const double term = double(a.next.get()[i * pad + j]) * a.p.get()[k * shape.row_pad() + i];
          want += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(a.q.get()[k * pad + j], want, 1e-6 * size);
      }
    }
  }
}

TEST_P(LowRankTest, PartsHaveTheBitsOfTheWhole) {
  const int64_t sizes[][2] = {{1, 40}, {7, 31}, {65, 97}, {129, 64}, {10, 2049}, {31, 4097}};
  for (const auto& size : sizes) {
    for (int64_t rank = 1; rank <= 9; ++rank) {
      const LowRankShape shape{size[0], size[1], rank};
      SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.cols << ", " << rank);
      Step whole(shape), parts(shape);
      const int64_t pad = shape.col_pad(), count = shape.rows * shape.cols;
      const auto project = [&](Step* s, int64_t row, const LowRankShape& part) {
        kernels_->project(part, s->gradient.get() + row * shape.cols, DType::kFloat32,
                          s->last.get() + row * pad, s->last_p.get() + row, s->last_q.get(),
                          s->start.get(), s->next.get() + row * pad, s->p.get() + row);
      };
      // Parts in any order, of sizes that no loop likes: threads take them as they come.
      project(&whole, 0, shape);
      const int64_t rows = 6, cut = (shape.rows - 1) / rows * rows;
      for (int64_t row = cut; row >= 0; row -= rows) {
        project(&parts, row, shape.Rows(std::min(rows, shape.rows - row)));
      }
      EXPECT_EQ(parts.next.values(), whole.next.values());
      EXPECT_EQ(parts.p.values(), whole.p.values());

      kernels_->back(shape, whole.next.get(), whole.p.get(), whole.q.get());
      const int64_t columns = 3 * LowRankShape::kPad;
      for (int64_t at = (shape.cols - 1) / columns * columns; at >= 0; at -= columns) {
        kernels_->back(shape.Columns(std::min(columns, shape.cols - at)), parts.next.get() + at,
                       parts.p.get(), parts.q.get() + at);
      }
      EXPECT_EQ(parts.q.values(), whole.q.values());

      for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        std::vector<uint8_t> one(count * SizeOf(type)), many(one.size());
        kernels_->expand(shape, whole.p.get(), whole.q.get(), one.data(), type);
        for (int64_t row = (shape.rows - 1) / 5 * 5; row >= 0; row -= 5) {
          kernels_->expand(shape.Rows(std::min<int64_t>(5, shape.rows - row)), parts.p.get() + row,
                           parts.q.get(), many.data() + row * shape.cols * SizeOf(type), type);
        }
        EXPECT_EQ(many, one);
      }
    }
  }
}

TEST_P(LowRankTest, ExpandsIntoEveryType) {
  for (const LowRankShape& shape : kShapes) {
    SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.cols << ", " << shape.rank);
    Step step(shape);
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      const size_t size = SizeOf(type), bytes = shape.rows * shape.cols * size;
      std::vector<uint8_t> out, same;
      for (const size_t offset : {size_t{64}, 64 + size}) {  // aligned, perhaps, and surely not
        out.assign(bytes + 128, 0xa5);
        same = out;
        kernels_->expand(shape, step.last_p.get(), step.last_q.get(), out.data() + offset, type);
        kBaselineKernels.low_rank.expand(shape, step.last_p.get(), step.last_q.get(),
                                         same.data() + offset, type);
        EXPECT_EQ(out, same);
        EXPECT_EQ(out[offset - 1], 0xa5);
        EXPECT_EQ(out[offset + bytes], 0xa5);
      }
      for (int64_t i = 0; i < shape.rows * shape.cols; ++i) {
        double want = 0;
        for (int64_t k = 0; k < shape.rank; ++k) {
          want += double(step.last_p.get()[k * shape.row_pad() + i / shape.cols]) *
                  step.last_q.get()[k * shape.col_pad() + i % shape.cols];
        }
        const double rounding = type == DType::kFloat32 ? 1e-5 : type == DType::kFloat16 ? 1e-2 : 0.2;
        ASSERT_NEAR(AsFloat(out.data() + 64 + size, type, i), want, rounding);
      }
    }
  }
}

TEST_P(LowRankTest, TakesGradientsOfEveryType) {
  const LowRankShape shape{5, 70, 2};
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    Step halves(shape), floats(shape);
    std::vector<uint8_t> gradient(shape.rows * shape.cols * 2);
    FindKernels(GetParam())->convert(floats.gradient.get(), DType::kFloat32,
                                     shape.rows * shape.cols, gradient.data(), type);
    for (int64_t i = 0; i < shape.rows * shape.cols; ++i) {
      floats.gradient.get()[i] = AsFloat(gradient.data(), type, i);
    }
    for (Step* step : {&halves, &floats}) {
      const bool half = step == &halves;
      kernels_->project(shape, half ? static_cast<void*>(gradient.data()) : step->gradient.get(),
                        half ? type : DType::kFloat32, step->last.get(), step->last_p.get(),
                        step->last_q.get(), step->start.get(), step->next.get(), step->p.get());
    }
    EXPECT_EQ(halves.next.values(), floats.next.values());
    EXPECT_EQ(halves.p.values(), floats.p.values());
  }
}

double Dot(float* columns, int64_t count, int64_t pad, int64_t a, int64_t b) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += double(columns[a * pad + i]) * columns[b * pad + i];
  return sum;
}

TEST_P(LowRankTest, OrthonormalizesWhatIsNearlyDependent) {
  const int64_t count = 100, pad = LowRankShape::Padded(count), rank = 6;
  for (const float size : {1.0f, 1e-30f, 1e30f}) {
    Floats columns(rank * pad);
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (int64_t k = 0; k < rank; ++k) {
      for (int64_t i = 0; i < count; ++i) {
        // Each is the one before and a thousandth of something new; the fourth is nothing new.
        const float before = k == 0 ? 0.0f : columns.get()[(k - 1) * pad + i];
        const float fresh = (k == 0 ? 1.0f : 1e-3f) * normal(random) * size;
        columns.get()[k * pad + i] = before + (k == 3 ? 0.0f : fresh);
      }
    }
    Floats copy = columns;
    for (const bool renew : {false, true}) {
      Floats& of = renew ? copy : columns;
      kernels_->orthonormalize(of.get(), count, pad, rank, renew);
      for (int64_t a = 0; a < rank; ++a) {
        const bool nothing = a == 3 && !renew;
        EXPECT_NEAR(Dot(of.get(), count, pad, a, a), nothing ? 0.0 : 1.0, 1e-5) << a << " " << size;
        for (int64_t b = 0; b < a; ++b) {
          EXPECT_NEAR(Dot(of.get(), count, pad, a, b), 0.0, 1e-5) << a << " and " << b;
        }
        for (int64_t i = count; i < pad; ++i) ASSERT_EQ(of.get()[a * pad + i], 0.0f);
      }
    }
  }
}

TEST_P(LowRankTest, OrthonormalizesNothing) {
  const int64_t count = 3, pad = LowRankShape::Padded(count), rank = 4;
  Floats columns(rank * pad), same(rank * pad);
  kernels_->orthonormalize(columns.get(), count, pad, rank, false);
  EXPECT_EQ(columns.values(), std::vector<float>(rank * pad, 0.0f));
  kernels_->orthonormalize(columns.get(), count, pad, rank, true);
  kBaselineKernels.low_rank.orthonormalize(same.get(), count, pad, rank, true);
  EXPECT_EQ(columns.values(), same.values());
  for (int64_t k = 0; k < rank; ++k) {  // in three dimensions there is no fourth column
    EXPECT_NEAR(Dot(columns.get(), count, pad, k, k), k < count ? 1.0 : 0.0, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, LowRankTest, testing::ValuesIn(kTables),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hipress
