/*!
 * \file cosines.h
 * \brief The orthonormal DCT-II of blocks, and its inverse: in a vector each lane has a block.
 *
 * The steps are those of backends/numpy/cosines.py, which say the order of every operation. The
 * table has the cosines of size s from s - 2 on; it is part of the generated file.
 */
#pragma once

#include "operator/contrib/compll/runtime.h"

namespace hipress::compll {
namespace {

extern const float kCosines[];

constexpr float kRootHalf = 0.70710678f;

/// work(j) for each j below kCount; unrolled if they are few.
template <int kCount, typename Work>
COMPLL_INLINE void Each(const Work& work) {
  if constexpr (kCount <= 8) {
    COMPLL_UNROLL
    for (int j = 0; j < kCount; ++j) work(j);
  } else {
    for (int j = 0; j < kCount; ++j) work(j);
  }
}

/// x[N] becomes its transform; t[N] is scratch.
template <int N>
struct Transform {
  static constexpr int kHalf = N / 2;
  using Half = Transform<kHalf>;

  static void Two(F* __restrict x, F* __restrict t) {
    Each<kHalf>([&](int j) {
      const F a = x[j], b = x[N - 1 - j];
      t[j] = (a + b) * kRootHalf;
      t[kHalf + j] = (a - b) * kRootHalf;
    });
    Half::Two(t, x);
    Half::Four(t + kHalf, x + kHalf);
    Each<kHalf>([&](int j) {
      x[2 * j] = t[j];
      x[2 * j + 1] = t[kHalf + j];
    });
  }

  /// The inverse of Two().
  static void Three(F* __restrict x, F* __restrict t) {
    Each<kHalf>([&](int j) {
      t[j] = x[2 * j];
      t[kHalf + j] = x[2 * j + 1];
    });
    Half::Three(t, x);
    Half::Four(t + kHalf, x + kHalf);
    Each<kHalf>([&](int j) {
      const F a = t[j], b = t[kHalf + j];
      x[j] = (a + b) * kRootHalf;
      x[N - 1 - j] = (a - b) * kRootHalf;
    });
  }

  /// Its own inverse.
  static void Four(F* __restrict x, F* __restrict t) {
    const float* const cosines = kCosines + N - 2;
    Each<kHalf>([&](int j) {
      const F a = x[j], b = x[N - 1 - j];
      const float c = cosines[j], s = cosines[N - 1 - j];
      const F turned = b * c - a * s;
      t[j] = a * c + b * s;
      t[kHalf + j] = j % 2 != 0 ? -turned : turned;
    });
    Half::Two(t, x);
    Half::Two(t + kHalf, x + kHalf);
    x[0] = t[0];
    x[N - 1] = -t[kHalf];
    Each<kHalf>([&](int j) {
      if (j > 0) {
        x[2 * j] = (t[j] + t[N - j]) * kRootHalf;
        x[2 * j - 1] = (t[j] - t[N - j]) * kRootHalf;
      }
    });
  }
};
template <>
struct Transform<1> {
  static void Two(F*, F*) {}
  static void Three(F*, F*) {}
  static void Four(F*, F*) {}
};

/// rows[r][l] and rows[l][r] change places.
COMPLL_INLINE void Transpose(F* rows) {
  COMPLL_UNROLL
  for (int by = 1; by < kLanes; by *= 2) {
    I low, high;
    for (int l = 0; l < kLanes; ++l) {
      low[l] = (l & by) == 0 ? l : kLanes + l - by;
      high[l] = (l & by) == 0 ? l + by : kLanes + l;
    }
    COMPLL_UNROLL
    for (int r = 0; r < kLanes; ++r) {
      if ((r & by) != 0) continue;
      const F a = rows[r], b = rows[r + by];
      rows[r] = __builtin_shuffle(a, b, low);
      rows[r + by] = __builtin_shuffle(a, b, high);
    }
  }
}

COMPLL_INLINE F OneNan(F x) { return NanTo(x, Set(std::numeric_limits<float>::quiet_NaN())); }

/// kLanes blocks of N elements, of which the first `count` exist.
template <int N, bool kInverse>
void TransformBlocks(const float* source, int count, float* target) {
  F x[N], t[N], rows[kLanes];
  for (int at = 0; at < N; at += kLanes) {
    for (int r = 0; r < kLanes; ++r) {
      rows[r] = r < count ? Load<false>(source, static_cast<int64_t>(r) * N + at, kLanes) : F{};
    }
    Transpose(rows);
    for (int r = 0; r < kLanes; ++r) x[at + r] = rows[r];
  }
  if (kInverse) {
    Transform<N>::Three(x, t);
  } else {
    Transform<N>::Two(x, t);
  }
  for (int at = 0; at < N; at += kLanes) {
    for (int r = 0; r < kLanes; ++r) rows[r] = x[at + r];
    Transpose(rows);
    for (int r = 0; r < count; ++r) {
      Store<false>(target, static_cast<int64_t>(r) * N + at, kLanes, OneNan(rows[r]));
    }
  }
}

template <int N, bool kInverse, typename Call>
void CosinesOf(const Call& call, const float* source, int64_t n, float* target) {
  ForBlocks(call, n, int64_t(kLanes) * N, [&](int64_t, int64_t begin, int64_t end, int) {
    const int count = static_cast<int>((end - begin) / N);
    if (count > 0) TransformBlocks<N, kInverse>(source + begin, count, target + begin);
    for (int64_t i = begin + static_cast<int64_t>(count) * N; i < end; i += kLanes) {
      const int left = static_cast<int>(std::min<int64_t>(end - i, kLanes));
      Store<true>(target, i, left, OneNan(Load<true>(source, i, left)));
    }
  });
}

/// The transform of each `block` elements of n. Those of an incomplete last block are unchanged.
template <bool kInverse, typename Call>
void Cosines(const Call& call, const float* source, int64_t n, int64_t block, float* target) {
  switch (block) {
    case 16: return CosinesOf<16, kInverse>(call, source, n, target);
    case 32: return CosinesOf<32, kInverse>(call, source, n, target);
    case 64: return CosinesOf<64, kInverse>(call, source, n, target);
    case 128: return CosinesOf<128, kInverse>(call, source, n, target);
    case 256: return CosinesOf<256, kInverse>(call, source, n, target);
    case 512: return CosinesOf<512, kInverse>(call, source, n, target);
    default: return CosinesOf<1024, kInverse>(call, source, n, target);
  }
}

}  // namespace
}  // namespace hipress::compll
