/*!
 * \file codec_testing.h
 * \brief Memory, values and a fixture for tests on every table of kernels.
 */
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "operator/contrib/codec.h"
#include "operator/contrib/half.h"
#include "operator/contrib/kernels.h"

namespace hipress {

inline const size_t kSizes[] = {0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 65, 1000, 4096, 65537};
inline const DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
inline const char* const kTables[] = {"baseline", "avx2", "avx512"};
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// n elements that start `offset` bytes after an aligned address.
struct Memory {
  explicit Memory(size_t bytes, size_t offset = 0) : buffer(AllocateBuffer(bytes + offset + 64)) {
    std::memset(buffer.data, 0xa5, buffer.size);
    data = buffer.data + offset;
  }
  float* floats() { return reinterpret_cast<float*>(data); }
  Buffer buffer;
  uint8_t* data;
};

inline float Get(const void* data, DType dtype, size_t i) {
  uint16_t half;
  float value;
  if (dtype == DType::kFloat32) {
    std::memcpy(&value, static_cast<const uint8_t*>(data) + 4 * i, 4);
    return value;
  }
  std::memcpy(&half, static_cast<const uint8_t*>(data) + 2 * i, 2);
  return dtype == DType::kFloat16 ? ToFloat(Float16{half}) : ToFloat(BFloat16{half});
}

inline void Put(void* data, DType dtype, size_t i, float value) {
  if (dtype == DType::kFloat32) {
    std::memcpy(static_cast<uint8_t*>(data) + 4 * i, &value, 4);
  } else if (dtype == DType::kFloat16) {
    Float16 half;
    FromFloat(value, &half);
    std::memcpy(static_cast<uint8_t*>(data) + 2 * i, &half, 2);
  } else {
    BFloat16 half;
    FromFloat(value, &half);
    std::memcpy(static_cast<uint8_t*>(data) + 2 * i, &half, 2);
  }
}

/// Normal values with exact thresholds, zeros, negative zeros and subnormals sprinkled in.
inline void FillGradient(void* data, DType dtype, size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.6f);
  const float special[] = {0.0f, -0.0f, 0.5f, -0.5f, 0.125f, 1e-40f, -1e-40f, 3.0f};
  for (size_t i = 0; i < n; ++i) {
    Put(data, dtype, i, random() % 8 == 0 ? special[random() % 8] : normal(random));
  }
}

inline void ExpectSameBits(const void* actual, const void* expected, size_t bytes, const std::string& what) {
  if (bytes == 0 || std::memcmp(actual, expected, bytes) == 0) return;
  size_t at = 0;
  while (static_cast<const uint8_t*>(actual)[at] == static_cast<const uint8_t*>(expected)[at]) ++at;
  ADD_FAILURE() << what << " differs first at byte " << at;
}

class OnEveryTable : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Kernels* kernels = FindKernels(GetParam());
    if (kernels == nullptr) GTEST_SKIP() << "this CPU or build has no " << GetParam();
    previous_ = &ActiveKernels();
    SetActiveKernels(*kernels);
  }
  void TearDown() override {
    if (previous_ != nullptr) SetActiveKernels(*previous_);
  }
  const Kernels* previous_ = nullptr;
};

}  // namespace hipress
