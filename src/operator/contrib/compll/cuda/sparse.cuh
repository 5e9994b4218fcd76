/*!
 * \file sparse.cuh
 * \brief Operations on whole vectors whose result is ordered: compaction, selection, sorting,
 *        sampling. Each is a sequence of steps; what lies between two steps all blocks have done.
 *
 * Order comes from counting first: each block counts in its part of the vector, the last block sums
 * up what lies before each part, and then each block writes from there on.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_SPARSE_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_SPARSE_CUH_

#include "operator/contrib/compll/cuda/philox.cuh"
#include "operator/contrib/compll/cuda/reduce.cuh"

namespace hipress {
namespace compll {
namespace {

// Compaction: indices of the bits that are set, ascending --------------------

/// Words of a mask of n bits, in a part of the workspace, which is rounded up to 16 bytes.
struct MaskWords {
  const uint8_t* mask;
  int64_t n;
  COMPLL_DEVICE uint32_t operator()(int64_t w) const {
    const uint32_t word = reinterpret_cast<const uint32_t*>(mask)[w];
    const int64_t left = n - 32 * w;
    return left >= 32 ? word : word & ((1u << left) - 1);
  }
};

/// \param words word(w): bits 32 * w and following, of n in all
template <class Team, class Words>
COMPLL_DEVICE void CountBits(const Team& team, Shared& shared, const Words& words, int64_t n,
                             uint32_t* counts) {
  const Part part(team, Blocks(n, 32));
  uint32_t count = 0;
  for (int64_t w = part.begin + threadIdx.x; w < part.end; w += kThreads) {
    count += static_cast<uint32_t>(__popc(words(w)));
  }
  count = SumBlock(shared, count);
  if (threadIdx.x == 0) counts[team.Block()] = count;
}

/// work(w, word, how many bits that are set lie before it) for all words of n bits.
template <class Team, class Words, class Work>
COMPLL_DEVICE void ForWords(const Team& team, Shared& shared, const Words& words, int64_t n,
                            const uint32_t* before, const Work& work) {
  const Part part(team, Blocks(n, 32));
  int64_t at = before[team.Block()];
  for (int64_t first = part.begin; first < part.end; first += kThreads) {
    const int64_t w = first + threadIdx.x;
    const uint32_t word = w < part.end ? words(w) : 0;
    uint32_t total = 0;
    int64_t to = at;
    if (__syncthreads_or(word != 0)) {
      to += ScanBlock(shared, static_cast<uint32_t>(__popc(word)), &total);
    }
    if (w < part.end) work(w, word, to);
    at += total;
  }
}

/// put(j, which one) for the j-th bit that is set.
template <class Team, class Words, class Put>
COMPLL_DEVICE void WriteBits(const Team& team, Shared& shared, const Words& words, int64_t n,
                             const uint32_t* before, const Put& put) {
  ForWords(team, shared, words, n, before, [&](int64_t w, uint32_t word, int64_t to) {
    for (; word != 0; word &= word - 1) {
      put(to++, 32 * w + __ffs(static_cast<int>(word)) - 1);
    }
  });
}

// Selection: the k-th largest, digit by digit of the keys that order floats --------------------

/// In the workspace, zero at first.
struct Selection {
  uint32_t histogram[kBins];
  int64_t left;        ///< how many of the chosen are among the keys that begin with `prefix`
  uint32_t prefix;     ///< of the k-th largest key; after the last digit the key itself
  uint32_t nothing;    ///< k is 0
  uint32_t equal[kMaxBlocks];
  uint32_t larger[kMaxBlocks];
};

template <int kDigit>
struct SelectionDigit {
  static constexpr int kShift = kDigit == 0 ? 21 : (kDigit == 1 ? 10 : 0);
  static constexpr int kBits = kDigit == 2 ? 10 : 11;
};

/// One step for each of three digits, the first being the highest.
template <int kDigit, class Team>
COMPLL_DEVICE void CountDigit(const Team& team, Shared& shared, const float* values, int64_t n,
                              Selection* state) {
  using Digit = SelectionDigit<kDigit>;
  for (int b = threadIdx.x; b < kBins; b += kThreads) shared.histogram[b] = 0;
  __syncthreads();
  const uint32_t prefix = state->prefix;
  ForEach(team, n, [&](int64_t i) {
    const uint32_t key = Ordered(values[i]);
    if (kDigit > 0 && (uint64_t(key) >> (Digit::kShift + Digit::kBits)) != prefix) return;
    atomicAdd(&shared.histogram[key >> Digit::kShift & ((1u << Digit::kBits) - 1)], 1u);
  });
  __syncthreads();
  for (int b = threadIdx.x; b < kBins; b += kThreads) {
    if (shared.histogram[b] != 0) atomicAdd(&state->histogram[b], shared.histogram[b]);
  }
}

/// After CountDigit, in the last block: which digit the k-th largest key has.
template <int kDigit>
COMPLL_OUTLINE void PickDigit(Shared& shared, int64_t k, Selection* state) {
  constexpr int kEach = kBins / kThreads;
  const int64_t left = kDigit == 0 ? k : state->left;
  __syncthreads();
  // Thread 0 has the highest bins: what lies before a thread is what is larger.
  const int top = kBins - 1 - static_cast<int>(threadIdx.x) * kEach;
  int64_t sum = 0, total = 0;
  for (int b = 0; b < kEach; ++b) sum += state->histogram[top - b];
  int64_t larger = ScanBlock(shared, sum, &total);
  if (left > larger && left <= larger + sum) {
    int bin = top;
    while (larger + state->histogram[bin] < left) larger += state->histogram[bin--];
    const uint32_t prefix = kDigit == 0 ? 0 : state->prefix;
    state->prefix = prefix << SelectionDigit<kDigit>::kBits | static_cast<uint32_t>(bin);
    state->left = left - larger;
  }
  if (threadIdx.x == 0 && left <= 0) {
    state->left = 0;
    state->nothing = 1;
  }
  __syncthreads();
  for (int b = threadIdx.x; b < kBins; b += kThreads) state->histogram[b] = 0;
  __syncthreads();
}

template <class Team>
COMPLL_DEVICE void CountChosen(const Team& team, Shared& shared, const float* values, int64_t n,
                               Selection* state) {
  const Part part(team, n);
  const uint32_t key = state->prefix;
  uint64_t count = 0;  // of larger ones, and above bit 32 of equal ones
  for (int64_t i = part.begin + threadIdx.x; i < part.end; i += kThreads) {
    const uint32_t other = Ordered(values[i]);
    count += static_cast<uint64_t>(other > key) + (static_cast<uint64_t>(other == key) << 32);
  }
  count = SumBlock(shared, count);
  if (threadIdx.x == 0) {
    state->larger[team.Block()] = static_cast<uint32_t>(count);
    state->equal[team.Block()] = static_cast<uint32_t>(count >> 32);
  }
}

template <class Team>
COMPLL_DEVICE void ScanChosen(const Team& team, Shared& shared, Selection* state) {
  ScanArray(shared, state->larger, team.Blocks());
  ScanArray(shared, state->equal, team.Blocks());
}

/// Indices of the chosen ones, ascending; of equal ones the first.
template <class Team>
COMPLL_DEVICE void WriteChosen(const Team& team, Shared& shared, const float* values, int64_t n,
                               const Selection* state, int32_t* out) {
  if (state->nothing) return;
  const Part part(team, n);
  const uint32_t key = state->prefix;
  const int64_t left = state->left;
  int64_t larger = state->larger[team.Block()], equal = state->equal[team.Block()];
  for (int64_t first = part.begin; first < part.end; first += kThreads) {
    const int64_t i = first + threadIdx.x;
    const uint32_t other = i < part.end ? Ordered(values[i]) : 0;
    const bool above = i < part.end && other > key, same = i < part.end && other == key;
    if (!__syncthreads_or(above || same)) continue;
    uint32_t total = 0;
    const uint32_t mine = (above ? 1u : 0u) + (same ? 1u << 16 : 0u);
    const uint32_t before = ScanBlock(shared, mine, &total);
    const int64_t larger_before = larger + (before & 0xffff), equal_before = equal + (before >> 16);
    if (above || (same && equal_before < left)) {
      out[larger_before + Least(equal_before, left)] = static_cast<int32_t>(i);
    }
    larger += total & 0xffff;
    equal += total >> 16;
  }
}

// Sorting: least significant digit first, two steps for each of four digits --------------------

constexpr int kSortBlocks = 256;

/// counts[digit * blocks + block] of the digit at `shift`.
template <class Team>
COMPLL_DEVICE void CountSortDigit(const Team& team, Shared& shared, const uint32_t* keys, int64_t n,
                                  int shift, uint32_t* counts) {
  if (team.Block() >= kSortBlocks) return;
  for (int d = threadIdx.x; d < kDigits; d += kThreads) shared.base[d] = 0;
  __syncthreads();
  const Part part(team, n);
  for (int64_t i = part.begin + threadIdx.x; i < part.end; i += kThreads) {
    atomicAdd(&shared.base[keys[i] >> shift & (kDigits - 1)], 1u);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < kDigits; d += kThreads) {
    counts[static_cast<int64_t>(d) * team.Blocks() + team.Block()] = shared.base[d];
  }
}

template <class Team>
COMPLL_DEVICE void MoveSortDigit(const Team& team, Shared& shared, const uint32_t* keys, int64_t n,
                                 int shift, const uint32_t* before, uint32_t* out) {
  const Part part(team, n);
  __syncthreads();
  for (int d = threadIdx.x; d < kDigits; d += kThreads) {
    shared.base[d] = before[static_cast<int64_t>(d) * team.Blocks() + team.Block()];
  }
  for (int64_t first = part.begin; first < part.end; first += kThreads) {
    for (int d = Lane(); d < kDigits; d += kWarpSize) shared.digits[WarpIndex()][d] = 0;
    __syncwarp();
    const int64_t i = first + threadIdx.x;
    const bool in = i < part.end;
    const uint32_t key = in ? keys[i] : 0;
    const uint32_t digit = in ? key >> shift & (kDigits - 1) : kDigits;
    const uint32_t peers = __match_any_sync(kAll, digit);
    const uint32_t earlier = peers & ((1u << Lane()) - 1);
    if (in && earlier == 0) {
      shared.digits[WarpIndex()][digit] = static_cast<uint32_t>(__popc(peers));
    }
    __syncthreads();
    if (in) {
      uint32_t to = shared.base[digit] + static_cast<uint32_t>(__popc(earlier));
      for (int w = 0; w < WarpIndex(); ++w) to += shared.digits[w][digit];
      out[to] = key;
    }
    __syncthreads();
    for (int d = threadIdx.x; d < kDigits; d += kThreads) {
      for (int w = 0; w < kWarps; ++w) shared.base[d] += shared.digits[w][d];
    }
    __syncthreads();
  }
}

// Sampling --------------------

/// work(j, index): one random index of each of k parts of range(n).
template <class Team, class Work>
COMPLL_DEVICE void ForStrata(const Team& team, int64_t n, int64_t k, const PhiloxKey& key,
                             uint32_t site, const Work& work) {
  ForUnits(team, k, kTile, [&](int64_t, int64_t begin, int64_t end) {
    uint32_t words[kRows];
    RandomRows<kRows>(key, site, begin, words);
COMPLL_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int64_t j = begin + 32 * r + Lane();
      if (j >= end) continue;
      const int64_t low = j * n / k, high = (j + 1) * n / k;
      work(j, low + (static_cast<int64_t>(words[r]) * (high - low) >> 32));
    }
  });
}

/// work(j, index) for k indices of range(n): runs of neighbors, one of each of equal parts.
template <int kRun, class Team, class Work>
COMPLL_DEVICE void ForRuns(const Team& team, int64_t n, int64_t k, const PhiloxKey& key,
                           uint32_t site, const Work& work) {
  ForStrata(team, (n + kRun - 1) / kRun, (k + kRun - 1) / kRun, key, site,
            [&](int64_t part, int64_t run) {
              for (int64_t j = part * kRun; j < Least(k, (part + 1) * kRun); ++j) {
                work(j, Least(run * kRun + j % kRun, n - 1));
              }
            });
}

template <typename T>
COMPLL_DEVICE T Element(const T* values, int64_t size, int64_t at) {
  if (size <= 0) return T(0);
  return values[at < 0 ? 0 : Least(at, size - 1)];
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_SPARSE_CUH_
