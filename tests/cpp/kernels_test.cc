// Conversions and sums of plain numbers against scalar code, on every instruction set.
#include "codec_testing.h"

namespace hipress {
namespace {

class KernelsOnEveryTable : public OnEveryTable {};
INSTANTIATE_TEST_SUITE_P(Tables, KernelsOnEveryTable, testing::ValuesIn(kTables),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(KernelsOnEveryTable, ConvertsEveryHalfToFloatAndBack) {
  const Kernels& kernels = ActiveKernels();
  const size_t n = 65536;
  std::vector<uint16_t> halves(n), back(n);
  std::vector<float> floats(n);
  for (size_t i = 0; i < n; ++i) halves[i] = static_cast<uint16_t>(i);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    kernels.convert(halves.data(), dtype, n, floats.data(), DType::kFloat32);
    kernels.convert(floats.data(), DType::kFloat32, n, back.data(), dtype);
    for (size_t i = 0; i < n; ++i) {
      if (std::isnan(floats[i])) {
        ASSERT_EQ(back[i], halves[i] | (dtype == DType::kFloat16 ? 0x200 : 0x40)) << i;
      } else {
        ASSERT_EQ(back[i], halves[i]) << i;
      }
    }
  }
}

TEST_P(KernelsOnEveryTable, ScalesAndAccumulatesAsTheScalarCodeDoes) {
  const float factor = 0.3f;
  for (const size_t n : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{1003}}) {
    for (const DType in : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const DType out : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        Memory from(n * 4), to(n * 4), expected(n * 4);
        FillGradient(from.data, in, n, 1);
        ActiveKernels().scale(from.data, in, factor, n, to.data, out);
        for (size_t i = 0; i < n; ++i) Put(expected.data, out, i, Get(from.data, in, i) * factor);
        ASSERT_EQ(std::memcmp(to.data, expected.data, n * SizeOf(out)), 0);
        for (size_t i = 0; i < n; ++i) {
          const float product = Get(from.data, in, i) * factor;
          Put(expected.data, out, i, Get(to.data, out, i) + product);
        }
        ASSERT_TRUE(ActiveKernels().accumulate(from.data, in, factor, n, to.data, out));
        ASSERT_EQ(std::memcmp(to.data, expected.data, n * SizeOf(out)), 0);
      }
    }
  }
}

TEST_P(KernelsOnEveryTable, FindsNaNAndInfWhereverTheyAre) {
  const size_t n = 37;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    Memory values(n * 4), zeros(n * 4);
    std::memset(zeros.data, 0, n * 4);
    for (size_t i = 0; i < n; ++i) Put(values.data, dtype, i, 1.0f);
    EXPECT_TRUE(ActiveKernels().finite(values.data, dtype, n));
    for (size_t i = 0; i < n; ++i) {
      for (const float bad : {kNaN, kInf, -kInf}) {
        Put(values.data, dtype, i, bad);
        EXPECT_FALSE(ActiveKernels().finite(values.data, dtype, n)) << i;
        EXPECT_FALSE(ActiveKernels().accumulate(zeros.data, dtype, 1.0f, n, values.data, dtype)) << i;
      }
      Put(values.data, dtype, i, 1.0f);
    }
  }
  // Finite before, and too large for the narrower type.
  Memory wide(4), half(2);
  Put(wide.data, DType::kFloat32, 0, 65504.0f);
  Put(half.data, DType::kFloat16, 0, 65504.0f);
  EXPECT_FALSE(ActiveKernels().accumulate(wide.data, DType::kFloat32, 1.0f, 1, half.data,
                                          DType::kFloat16));
}

TEST_P(KernelsOnEveryTable, RoundsToNearestEvenAsTheScalarCodeDoes) {
  const size_t n = 1 << 16;
  std::vector<float> values(n);
  std::mt19937 random(7);
  for (float& value : values) value = FloatOf(random());
  const float edges[] = {65504, 65519.996f, 65520, 65536, 0x1p-24f, 0x1p-25f, 0x1.8p-25f,
                         0x1p-14f, 0x1.ffcp-15f, 0x1.ffep-15f, kInf, -kInf, kNaN, 3.3895e38f};
  std::copy(std::begin(edges), std::end(edges), values.begin());
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    std::vector<uint16_t> actual(n), expected(n);
    ActiveKernels().convert(values.data(), DType::kFloat32, n, actual.data(), dtype);
    for (size_t i = 0; i < n; ++i) Put(expected.data(), dtype, i, values[i]);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(actual[i], expected[i]) << NameOf(dtype) << " of " << values[i];
    }
  }
}

}  // namespace
}  // namespace hipress
