/*!
 * \file low_rank-inl.h
 * \brief The kernels of low_rank.h, on the lanes of generated code. Part of kernels-inl.h.
 */
#pragma once

#include <algorithm>
#include <cmath>

#include "operator/contrib/low_rank.h"

namespace hipress {
namespace {

static_assert(LowRankShape::kPad == kSumLanes, "no sum over padded elements has a tail");

/// Columns of a factor that a loop takes at once, and the elements of a row that stay in the cache.
constexpr int kColumns = 4;
constexpr int64_t kRowTile = 2048;

/// Calls f with the first column and, as a type, the number of columns of each group.
template <typename Function>
COMPLL_INLINE void EachGroup(int64_t rank, const Function& f) {
  int64_t k = 0;
  for (; k + kColumns <= rank; k += kColumns) f(k, std::integral_constant<int, kColumns>());
  switch (rank - k) {
    case 1: return f(k, std::integral_constant<int, 1>());
    case 2: return f(k, std::integral_constant<int, 2>());
    case 3: return f(k, std::integral_constant<int, 3>());
  }
}

/// Calls f with the first column and the number of columns of each part of a row.
template <typename Function>
COMPLL_INLINE void EachRowTile(int64_t cols, const Function& f) {
  for (int64_t j = 0; j < cols; j += kRowTile) f(j, std::min(kRowTile, cols - j));
}

/// A vector past the cache, where it can: what is not read soon need not be fetched to be written.
COMPLL_INLINE void Stream(float* out, F value, bool aligned) {
#if defined(COMPLL_AVX)
  if (aligned) return COMPLL_X86(stream_ps)(out, value);
#endif
  Store<false>(out, 0, kLanes, value);
}
COMPLL_INLINE bool Aligned(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) % 64 == 0;
}
COMPLL_INLINE void EndOfStream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// The sum of kSumLanes lanes, by halves.
COMPLL_INLINE float SumOfLanes(const F* lanes) {
  float all[kSumLanes];
  std::memcpy(all, lanes, sizeof(all));
  for (int half = kSumLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) all[l] += all[l + half];
  }
  return all[0];
}

/// The dot products of x with N columns, `pad` apart; `count` is a multiple of kSumLanes.
template <int N>
COMPLL_INLINE void Dot(const float* x, const float* columns, int64_t pad, int64_t count, float* out) {
  F sums[N][kSums] = {};
  for (int64_t j = 0; j < count; j += kSumLanes) {
    COMPLL_UNROLL
    for (int v = 0; v < kSums; ++v) {
      const F value = Load<false>(x, j + v * kLanes, kLanes);
      COMPLL_UNROLL
      for (int k = 0; k < N; ++k) {
        sums[k][v] += value * Load<false>(columns + k * pad, j + v * kLanes, kLanes);
      }
    }
  }
  for (int k = 0; k < N; ++k) out[k] = SumOfLanes(sums[k]);
}

/// t = base - the sum of p[k] times column k, in this order, over a part of a row.
COMPLL_INLINE void Subtract(const LowRankShape& shape, const float* base, const float* p, int64_t row,
                            const float* q, int64_t count, float* t) {
  EachGroup(shape.rank, [&](int64_t k, auto group) __attribute__((always_inline)) {
    constexpr int kGroup = decltype(group)::value;
    float factor[kGroup];
    for (int c = 0; c < kGroup; ++c) factor[c] = p[(k + c) * shape.row_pad() + row];
    const float* columns = q + k * shape.col_pad();
    const float* from = k == 0 ? base : t;
    for (int64_t j = 0; j < count; j += kLanes) {
      F value = Load<false>(from, j, kLanes);
      COMPLL_UNROLL
      for (int c = 0; c < kGroup; ++c) {
        value -= factor[c] * Load<false>(columns + c * shape.col_pad(), j, kLanes);
      }
      Store<false>(t, j, kLanes, value);
    }
  });
}

/// Rows whose sums, N columns of each, are in registers together: what is loaded of the columns
/// serves all.
#if defined(COMPLL_AVX512)
constexpr int kProjectRows = 2;
#else
constexpr int kProjectRows = 1;
#endif

/// A part of R rows of project, for few columns: while they are in registers, all of the elements'
/// arithmetic. More columns would not fit there, so they go group by group, by way of memory.
template <int R, int N, typename T>
COMPLL_INLINE void ProjectRows(const LowRankShape& shape, const T* gradient, const float* last,
                               const float* p_last, int64_t row, const float* q_last, const float* q,
                               int64_t count, float* next, float* p) {
  const int64_t pad = shape.col_pad();
  const bool aligned = Aligned(next);  // and so are all rows
  float factor[R][N];
  for (int r = 0; r < R; ++r) {
    for (int k = 0; k < N; ++k) factor[r][k] = p_last[k * shape.row_pad() + row + r];
  }
  F sums[R][N][kSums] = {};
  const auto vector = [&](auto tail, int64_t j, int v, int left) __attribute__((always_inline)) {
    F value[R];
    COMPLL_UNROLL
    for (int r = 0; r < R; ++r) value[r] = Load<false>(last + r * pad, j, kLanes);
    COMPLL_UNROLL
    for (int k = 0; k < N; ++k) {
      const F column = Load<false>(q_last + k * pad, j, kLanes);
      COMPLL_UNROLL
      for (int r = 0; r < R; ++r) value[r] -= factor[r][k] * column;
    }
    COMPLL_UNROLL
    for (int r = 0; r < R; ++r) {
      value[r] = Load<decltype(tail)::value>(gradient + r * shape.cols, j, left) + value[r];
      Stream(next + r * pad + j, value[r], aligned);
    }
    COMPLL_UNROLL
    for (int k = 0; k < N; ++k) {
      const F column = Load<false>(q + k * pad, j, kLanes);
      COMPLL_UNROLL
      for (int r = 0; r < R; ++r) sums[r][k][v] += value[r] * column;
    }
  };
  int64_t j = 0;
  for (; j + kSumLanes <= count; j += kSumLanes) {
    COMPLL_UNROLL
    for (int v = 0; v < kSums; ++v) vector(std::false_type(), j + v * kLanes, v, kLanes);
  }
  for (int v = 0; v < kSums && j + v * kLanes < count; ++v) {
    const int64_t at = j + v * kLanes;
    vector(std::true_type(), at, v, static_cast<int>(count - at));
  }
  for (int r = 0; r < R; ++r) {
    for (int k = 0; k < N; ++k) p[k * shape.row_pad() + row + r] += SumOfLanes(sums[r][k]);
  }
}

void Project(const LowRankShape& shape, const void* gradient, DType type, const float* last,
             const float* p_last, const float* q_last, const float* q, float* next, float* p) {
  const int64_t rows = shape.rows, pad = shape.col_pad();
  for (int64_t k = 0; k < shape.rank; ++k) std::fill_n(p + k * shape.row_pad(), rows, 0.0f);
  WithType(type, [&](auto zero) {
    const auto* values = static_cast<const decltype(zero)*>(gradient);
    EachRowTile(shape.cols, [&](int64_t j, int64_t count) __attribute__((always_inline)) {
      alignas(64) float tile[kRowTile];
      const int64_t padded = LowRankShape::Padded(count);
      int64_t i = 0;
      const auto few = [&](auto group, auto together) __attribute__((always_inline)) {
        constexpr int kGroup = decltype(group)::value, kTogether = decltype(together)::value;
        for (; i + kTogether <= rows; i += kTogether) {
          ProjectRows<kTogether, kGroup>(shape, values + i * shape.cols + j, last + i * pad + j, p_last,
                                         i, q_last + j, q + j, count, next + i * pad + j, p);
        }
      };
      if (shape.rank <= kColumns) {
        EachGroup(shape.rank, [&](int64_t, auto group) __attribute__((always_inline)) {
          few(group, std::integral_constant<int, kProjectRows>());
          few(group, std::integral_constant<int, 1>());
        });
      }
      for (; i < rows; ++i) {
        const auto* from = values + i * shape.cols + j;
        float* to = next + i * pad + j;
        Subtract(shape, last + i * pad + j, p_last, i, q_last + j, padded, tile);
        const bool aligned = Aligned(to);
        EachVector(count, [&](auto tail, int64_t v, int left) __attribute__((always_inline)) {
          const F sum = Load<decltype(tail)::value>(from, v, left) + Load<false>(tile, v, kLanes);
          Store<false>(tile, v, kLanes, sum);
          Stream(to + v, sum, aligned);
        });
        EachGroup(shape.rank, [&](int64_t k, auto group) __attribute__((always_inline)) {
          constexpr int kGroup = decltype(group)::value;
          float dots[kGroup];
          Dot<kGroup>(tile, q + k * pad + j, pad, padded, dots);
          for (int c = 0; c < kGroup; ++c) p[(k + c) * shape.row_pad() + i] += dots[c];
        });
      }
    });
  });
  EndOfStream();
}

void Residual(const LowRankShape& shape, const float* last, const float* p, const float* q,
              float* out) {
  EachRowTile(shape.cols, [&](int64_t j, int64_t count) __attribute__((always_inline)) {
    alignas(64) float tile[kRowTile];
    for (int64_t i = 0; i < shape.rows; ++i) {
      Subtract(shape, last + i * shape.col_pad() + j, p, i, q + j, LowRankShape::Padded(count), tile);
      std::copy(tile, tile + count, out + i * shape.cols + j);
    }
  });
}

/// Rows that are added at once.
constexpr int kRows = 4;

/// q += the rows of m times their elements of p, row by row, over a part of a row.
template <int R, int N>
COMPLL_INLINE void AddRows(const LowRankShape& shape, const float* m, const float* p, int64_t count,
                           float* q) {
  float factor[R][N];
  for (int r = 0; r < R; ++r) {
    for (int k = 0; k < N; ++k) factor[r][k] = p[k * shape.row_pad() + r];
  }
  for (int64_t j = 0; j < count; j += kLanes) {
    F x[R];
    COMPLL_UNROLL
    for (int r = 0; r < R; ++r) x[r] = Load<false>(m + r * shape.col_pad(), j, kLanes);
    COMPLL_UNROLL
    for (int k = 0; k < N; ++k) {
      F sum = Load<false>(q + k * shape.col_pad(), j, kLanes);
      COMPLL_UNROLL
      for (int r = 0; r < R; ++r) sum += x[r] * factor[r][k];
      Store<false>(q + k * shape.col_pad(), j, kLanes, sum);
    }
  }
}

void Back(const LowRankShape& shape, const float* m, const float* p, float* q) {
  const int64_t pad = shape.col_pad(), cols = LowRankShape::Padded(shape.cols);
  for (int64_t k = 0; k < shape.rank; ++k) std::fill_n(q + k * pad, cols, 0.0f);
  EachRowTile(cols, [&](int64_t j, int64_t count) __attribute__((always_inline)) {
    for (int64_t i = 0; i < shape.rows; i += kRows) {
      EachGroup(shape.rank, [&](int64_t k, auto group) __attribute__((always_inline)) {
        constexpr int kGroup = decltype(group)::value;
        const float* rows = m + i * pad + j;
        const float* of = p + k * shape.row_pad() + i;
        float* to = q + k * pad + j;
        if (shape.rows - i >= kRows) return AddRows<kRows, kGroup>(shape, rows, of, count, to);
        for (int64_t r = 0; r < shape.rows - i; ++r) {
          AddRows<1, kGroup>(shape, rows + r * pad, of + r, count, to);
        }
      });
    }
  });
}

void Expand(const LowRankShape& shape, const float* p, const float* q, void* out, DType type) {
  const int64_t pad = shape.col_pad();
  WithType(type, [&](auto zero) {
    using T = decltype(zero);
    T* values = static_cast<T*>(out);
    EachRowTile(shape.cols, [&](int64_t j, int64_t count) __attribute__((always_inline)) {
      alignas(64) float tile[kRowTile];
      for (int64_t i = 0; i < shape.rows; ++i) {
        EachGroup(shape.rank, [&](int64_t k, auto group) __attribute__((always_inline)) {
          constexpr int kGroup = decltype(group)::value;
          float factor[kGroup];
          for (int c = 0; c < kGroup; ++c) factor[c] = p[(k + c) * shape.row_pad() + i];
          const float* columns = q + k * pad + j;
          const bool last = k + kGroup == shape.rank;
          T* to = values + i * shape.cols + j;
          const bool aligned = std::is_same<T, float>::value && Aligned(to);
          EachVector(count, [&](auto tail, int64_t v, int left) __attribute__((always_inline)) {
            constexpr bool kTail = decltype(tail)::value;
            F value = k == 0 ? F{} : Load<false>(tile, v, kLanes);
            COMPLL_UNROLL
            for (int c = 0; c < kGroup; ++c) {
              value += factor[c] * Load<false>(columns + c * pad, v, kLanes);
            }
            if (!last) return Store<false>(tile, v, kLanes, value);
            if constexpr (std::is_same<T, float>::value && !kTail) {
              return Stream(reinterpret_cast<float*>(to) + v, value, aligned);
            }
            Store<kTail>(to, v, left, value);
          });
        });
      }
    });
  });
  EndOfStream();
}

/// Numbers in [-1, 1) that look random: the finalizer of MurmurHash3 (Appleby, 2011) on their
/// place.
inline float Arbitrary(uint32_t column, uint32_t element) {
  uint32_t x = element * 0x9e3779b9u + column * 0x7f4a7c15u + 1;
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  x ^= x >> 16;
  return static_cast<float>(x >> 8) * 0x1p-23f - 1.0f;
}

/// Makes x a unit vector; 0 if it is none. First to a largest element of 1: squares of gradients'
/// elements may be no floats any more.
void Normalize(float* x, int64_t pad) {
  float most = 0.0f;
  for (int64_t j = 0; j < pad; ++j) most = std::max(most, std::fabs(x[j]));
  if (!(most > 0.0f) || !std::isfinite(1.0f / most)) return std::fill(x, x + pad, 0.0f);
  Scale(x, DType::kFloat32, 1.0f / most, pad, x, DType::kFloat32);
  float square;
  Dot<1>(x, x, pad, pad, &square);
  Scale(x, DType::kFloat32, 1.0f / std::sqrt(square), pad, x, DType::kFloat32);
}

/// Length that is left of a unit vector which is the sum of earlier ones, at most: rounding errors.
constexpr float kNothing = 1e-5f;

/// Takes the columns before it out of unit column k, twice: once leaves what rounding made of it.
/// Returns whether there was anything else in it.
bool Orthogonal(float* columns, int64_t pad, int64_t k) {
  float* x = columns + k * pad;
  float square;
  for (int turn = 0; turn < 2; ++turn) {
    for (int64_t before = 0; before < k; ++before) {
      const float* y = columns + before * pad;
      float dot;
      Dot<1>(x, y, pad, pad, &dot);
      Accumulate(y, DType::kFloat32, -dot, pad, x, DType::kFloat32);
    }
    Dot<1>(x, x, pad, pad, &square);
    if (!(square > kNothing * kNothing)) return false;
    Normalize(x, pad);
  }
  return true;
}

void Orthonormalize(float* columns, int64_t count, int64_t pad, int64_t rank, bool renew) {
  for (int64_t k = 0; k < rank; ++k) {
    float* x = columns + k * pad;
    Normalize(x, pad);
    if (Orthogonal(columns, pad, k)) continue;
    std::fill(x, x + pad, 0.0f);
    if (!renew || k >= count) continue;
    for (int64_t j = 0; j < count; ++j) {
      x[j] = Arbitrary(static_cast<uint32_t>(k), static_cast<uint32_t>(j));
    }
    Normalize(x, pad);
    if (!Orthogonal(columns, pad, k)) std::fill(x, x + pad, 0.0f);
  }
}

}  // namespace
}  // namespace hipress
