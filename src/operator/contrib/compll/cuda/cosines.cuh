/*!
 * \file cosines.cuh
 * \brief The orthonormal DCT-II of blocks, and its inverse (backends/numpy/cosines.py), pass by
 * pass.
 *
 * A transform splits into two of half the size, and so on: what happens before each split goes
 * down, what happens after it comes up. All parts of one size are a pass, done at once in shared
 * memory.
 */
#pragma once

#include "operator/contrib/compll/cuda/team.cuh"

namespace hipress::compll {
namespace {

constexpr float kRootHalf = 0.70710678f;

/// A pair of elements of a part of a transform: the part's size, and which transform it is.
struct CosinePair {
  int size, half, base, j;
  bool four, three;

  /// Pair p of a tile of blocks that are split into parts of `part` elements.
  COMPLL_DEVICE CosinePair(int p, int part, int block, bool inverse) {
    size = part;
    half = part / 2;
    j = p % half;
    base = p / half * part;
    const int number = p / half % (block / part);  // of the part in its block
    // The second half of each but a DCT-IV is one: so says how many ones the number ends with.
    four = (__ffs(~number) - 1) % 2 != 0;
    three = inverse && number == 0;
  }

  COMPLL_DEVICE void Down(const float* cosines, const float* from, float* to) const {
    if (three) {
      to[base + j] = from[base + 2 * j];
      to[base + half + j] = from[base + 2 * j + 1];
      return;
    }
    const float a = from[base + j], b = from[base + size - 1 - j];
    if (four) {
      const float c = cosines[size - 2 + j], s = cosines[size - 2 + size - 1 - j];
      const float turned = b * c - a * s;
      to[base + j] = a * c + b * s;
      to[base + half + j] = j % 2 != 0 ? -turned : turned;
    } else {
      to[base + j] = (a + b) * kRootHalf;
      to[base + half + j] = (a - b) * kRootHalf;
    }
  }

  COMPLL_DEVICE void Up(const float* from, float* to) const {
    const float a = from[base + j];
    if (four) {
      if (j == 0) {
        to[base] = a;
        to[base + size - 1] = -from[base + half];
      } else {
        const float b = from[base + size - j];
        to[base + 2 * j] = (a + b) * kRootHalf;
        to[base + 2 * j - 1] = (a - b) * kRootHalf;
      }
      return;
    }
    const float b = from[base + half + j];
    to[base + (three ? j : 2 * j)] = three ? (a + b) * kRootHalf : a;
    to[base + (three ? size - 1 - j : 2 * j + 1)] = three ? (a - b) * kRootHalf : b;
  }
};

/// The transform of each `block` elements of n. Those of an incomplete last block are unchanged.
template <bool kInverse, class Team>
COMPLL_DEVICE void Cosines(const Team& team, Shared& shared, const float* source, int64_t n,
                           int64_t block, const float* cosines, float* target) {
  const int size = static_cast<int>(block);
  for (int64_t begin = int64_t(team.Block()) * kTransformed; begin < n;
       begin += int64_t(team.Blocks()) * kTransformed) {
    const int here = static_cast<int>(Least(n - begin, kTransformed));
    const int whole = here / size * size;
    float *from = shared.rows[0], *to = shared.rows[1];
    const auto pass = [&](int part, const bool up) {
      for (int p = static_cast<int>(threadIdx.x); p < whole / 2; p += kThreads) {
        const CosinePair pair(p, part, size, kInverse);
        if (up) {
          pair.Up(from, to);
        } else {
          pair.Down(cosines, from, to);
        }
      }
      __syncthreads();
      float* const other = from;
      from = to;
      to = other;
    };
    for (int i = static_cast<int>(threadIdx.x); i < whole; i += kThreads) from[i] = source[begin + i];
    __syncthreads();
    for (int part = size; part > 1; part /= 2) pass(part, false);
    for (int part = 2; part <= size; part *= 2) pass(part, true);
    for (int i = static_cast<int>(threadIdx.x); i < here; i += kThreads) {
      const float value = i < whole ? from[i] : source[begin + i];
      target[begin + i] = IsNan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
    }
    __syncthreads();
  }
}

}  // namespace
}  // namespace hipress::compll
