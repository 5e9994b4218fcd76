/*!
 * \file kernels-inl.h
 * \brief The kernels, written once on the lanes of generated code and compiled for each instruction
 *        set.
 */
#pragma once

#include "operator/contrib/compll/lanes.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

using namespace compll;  // NOLINT: it is this file's vocabulary

/// Calls f with a value of the C++ type of `dtype`.
template <typename Function>
inline void WithType(DType dtype, Function f) {
  switch (dtype) {
    case DType::kFloat32: return f(float());
    case DType::kFloat16: return f(Float16());
    case DType::kBFloat16: return f(BFloat16());
  }
}

/// body(is it a tail, first element, number of elements) for vectors of lanes in [0, n).
template <typename Body>
inline void EachVector(size_t n, const Body& body) {
  const int64_t size = static_cast<int64_t>(n);
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) body(std::false_type(), i, kLanes);
  if (i < size) body(std::true_type(), i, static_cast<int>(size - i));
}

/// Calls f with both pointers as pointers to the C++ types of their dtypes.
template <typename Function>
inline void WithTypes(const void* in, DType in_type, void* out, DType out_type, Function f) {
  WithType(in_type, [=](auto a) {
    WithType(out_type, [=](auto b) {
      f(static_cast<const decltype(a)*>(in), static_cast<decltype(b)*>(out));
    });
  });
}

void Convert(const void* in, DType in_type, size_t n, void* out, DType out_type) {
  if (in_type == out_type) {
    if (n != 0) std::memcpy(out, in, n * SizeOf(in_type));
    return;
  }
  WithTypes(in, in_type, out, out_type, [=](const auto* from, auto* to) {
    EachVector(n, [=](auto tail, int64_t i, int left) __attribute__((always_inline)) {
      constexpr bool kTail = decltype(tail)::value;
      Store<kTail>(to, i, left, Load<kTail>(from, i, left));
    });
  });
}

void Add(const void* in, DType in_type, const float* residual, size_t n, void* out, DType out_type) {
  WithTypes(in, in_type, out, out_type, [=](const auto* from, auto* to) {
    EachVector(n, [=](auto tail, int64_t i, int left) __attribute__((always_inline)) {
      constexpr bool kTail = decltype(tail)::value;
      Store<kTail>(to, i, left, Load<kTail>(from, i, left) + Load<kTail>(residual, i, left));
    });
  });
}

// Inputs are read by whole cache lines. Of several inputs at equal offsets in their pages, the
// first-level cache cannot keep all lines, so one that is read by parts may be fetched again for
// each part.
void Sum(const uint8_t* const* in, DType in_type, size_t count, size_t n, float* sum) {
  constexpr int kMany = kLanes == 4 ? 8 : kVectors;  // vectors that registers hold
  WithType(in_type, [=](auto a) {
    using In = decltype(a);
    auto add_up = [=](auto tail, auto vectors, int64_t i, int left) __attribute__((always_inline)) {
      constexpr bool kTail = decltype(tail)::value;
      constexpr int kCount = decltype(vectors)::value;
      F total[kCount];
      const In* from = reinterpret_cast<const In*>(in[0]);
#pragma GCC unroll 8
      for (int v = 0; v < kCount; ++v) total[v] = Load<kTail>(from, i + v * kLanes, left);
      for (size_t k = 1; k < count; ++k) {
        from = reinterpret_cast<const In*>(in[k]);
  #pragma GCC unroll 8
        for (int v = 0; v < kCount; ++v) total[v] += Load<kTail>(from, i + v * kLanes, left);
      }
#pragma GCC unroll 8
      for (int v = 0; v < kCount; ++v) Store<kTail>(sum, i + v * kLanes, left, total[v]);
    };
    const int64_t size = static_cast<int64_t>(n), whole = size - size % (kMany * kLanes);
    for (int64_t i = 0; i < whole; i += kMany * kLanes) {
      add_up(std::false_type(), std::integral_constant<int, kMany>(), i, kLanes);
    }
    EachVector(n - static_cast<size_t>(whole), [=](auto tail, int64_t i, int left)
               __attribute__((always_inline)) {
      add_up(tail, std::integral_constant<int, 1>(), whole + i, left);
    });
  });
}

void Scale(const void* in, DType in_type, float factor, size_t n, void* out, DType out_type) {
  WithTypes(in, in_type, out, out_type, [=](const auto* from, auto* to) {
    EachVector(n, [=](auto tail, int64_t i, int left) __attribute__((always_inline)) {
      constexpr bool kTail = decltype(tail)::value;
      Store<kTail>(to, i, left, Load<kTail>(from, i, left) * factor);
    });
  });
}

/// Remembers whether all values were finite: x - x is 0, or else NaN, which stays.
struct AllFinite {
  F zero = {};
  void See(F x) { zero += x - x; }
  explicit operator bool() const {
    float lanes[kLanes];
    std::memcpy(lanes, &zero, sizeof(lanes));
    bool all = true;
    for (const float lane : lanes) all = all && lane == 0.0f;
    return all;
  }
};

bool Accumulate(const void* in, DType in_type, float factor, size_t n, void* out, DType out_type) {
  AllFinite finite;
  WithTypes(in, in_type, out, out_type, [=, &finite](const auto* from, auto* to) {
    EachVector(n, [=, &finite](auto tail, int64_t i, int left) __attribute__((always_inline)) {
      constexpr bool kTail = decltype(tail)::value;
      Store<kTail>(to, i, left, Load<kTail>(to, i, left) + Load<kTail>(from, i, left) * factor);
      finite.See(Load<kTail>(to, i, left));  // as it is after rounding
    });
  });
  return bool(finite);
}

bool Finite(const void* in, DType in_type, size_t n) {
  AllFinite finite;
  WithType(in_type, [&](auto a) {
    const auto* from = static_cast<const decltype(a)*>(in);
    EachVector(n, [&](auto tail, int64_t i, int left) __attribute__((always_inline)) {
      finite.See(Load<decltype(tail)::value>(from, i, left));
    });
  });
  return bool(finite);
}

}  // namespace
}  // namespace hipress

#include "operator/contrib/low_rank-inl.h"
#include "operator/contrib/rans-inl.h"

namespace hipress {

const Kernels HIPRESS_SIMD_TABLE = {
    HIPRESS_SIMD_NAME, Convert, Add, Sum, Scale, Accumulate, Finite,
    {Project, Residual, Back, Expand, Orthonormalize},
    {CountBytes, RansEncode, RansDecode}};

}  // namespace hipress
