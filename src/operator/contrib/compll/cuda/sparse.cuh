/*!
 * \file sparse.cuh
 * \brief Random numbers, and operations on whole vectors whose result is ordered: compaction,
 * selection, sorting, sampling, bits under a mask.
 *
 * Each is a sequence of steps; all blocks have ended a step before the next one begins. Order comes
 * from counting first: each block counts in its part of the vector, the last block sums up what
 * lies before each part, and then each block writes from there on.
 */
#pragma once

#include "operator/contrib/compll/cuda/team.cuh"

namespace hipress::compll {
namespace {

// Random words: Philox4x32-7 for a warp, as in philox.h -------------------------------------------

COMPLL_DEVICE void Philox(const PhiloxKey& key, uint32_t site, uint64_t counter, uint32_t* out) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = site, c3 = key.stream, k0 = key.seed, k1 = key.step;
COMPLL_UNROLL
  for (int round = 0; round < 7; ++round) {
    const uint32_t h0 = __umulhi(c0, 0xD2511F53u), h1 = __umulhi(c2, 0xCD9E8D57u);
    const uint32_t l0 = c0 * 0xD2511F53u, l1 = c2 * 0xCD9E8D57u;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/// words[r] for element first + 32 * r + lane; first is a multiple of 64, kRows of 4. All lanes.
template <int kRows>
COMPLL_DEVICE void RandomRows(const PhiloxKey& key, uint32_t site, int64_t first, uint32_t* words) {
  static_assert(kRows % 4 == 0, "a warp draws the words of two groups of 64 at once");
  const int lane = Lane();
  const bool low = lane < 16;
COMPLL_UNROLL
  for (int r = 0; r < kRows; r += 4) {
    // The lower half of the warp draws for one group of 64 elements, the upper half for the next;
    // each lane needs two words of both.
    const uint64_t group = static_cast<uint64_t>(first) / 64 + r / 2 + (low ? 0 : 1);
    uint32_t own[4];
    Philox(key, site, group * 16 + lane % 16, own);
    const uint32_t a = __shfl_xor_sync(kAll, low ? own[1] : own[0], 16);
    const uint32_t b = __shfl_xor_sync(kAll, low ? own[3] : own[2], 16);
    words[r] = low ? own[0] : a;
    words[r + 1] = low ? own[2] : b;
    words[r + 2] = low ? a : own[1];
    words[r + 3] = low ? b : own[3];
  }
}

/// halves[r] likewise, 16 random bits each: element i takes bits 8 * b to 8 * b + 15, round the
/// end, of word 2 * (i / 64 mod 2) + (i mod 16) / 8 of counter 8 * (i / 128) + i mod 8, with b = (i
/// mod 64) / 16.
template <int kRows>
COMPLL_DEVICE void RandomRows16(const PhiloxKey& key, uint32_t site, int64_t first,
                                int32_t* halves) {
  static_assert(kRows == 8, "the 32 lanes draw for four groups of 128 elements");
  const int lane = Lane();
  const uint64_t tile = static_cast<uint64_t>(first) / 64;
  uint32_t own[4];
  Philox(key, site, tile / 2 * 8 + lane, own);
COMPLL_UNROLL
  for (int r = 0; r < kRows; r += 2) {
    const uint64_t at = tile + r / 2;
    const int source = 8 * static_cast<int>(at / 2 - tile / 2) + lane % 8;
    const uint32_t lower = __shfl_sync(kAll, at % 2 == 0 ? own[0] : own[2], source);
    const uint32_t upper = __shfl_sync(kAll, at % 2 == 0 ? own[1] : own[3], source);
    const uint64_t word = lane % 16 < 8 ? lower : upper, twice = word << 32 | word;
    halves[r] = static_cast<int32_t>(twice >> (lane < 16 ? 0 : 8) & 0xffff);
    halves[r + 1] = static_cast<int32_t>(twice >> (lane < 16 ? 16 : 24) & 0xffff);
  }
}

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

// Vectors of bits, 32 at a time -------------------------------------------------------------------

/// Sets bits of memory that was zero; `value` has at most 32.
COMPLL_DEVICE void SetBits(uint32_t* words, int64_t bit, uint32_t value) {
  const uint64_t shifted = static_cast<uint64_t>(value) << (bit % 32);
  if (const uint32_t first = static_cast<uint32_t>(shifted)) atomicOr(words + bit / 32, first);
  if (const uint32_t next = static_cast<uint32_t>(shifted >> 32)) atomicOr(words + bit / 32 + 1, next);
}

/// Bytes of a payload as words; what is after them reads as 0.
struct PayloadWords {
  const uint8_t* data;
  int64_t bytes;
  COMPLL_DEVICE uint32_t operator()(int64_t w) const {
    uint32_t word = 0;
    for (int b = 0; b < 4 && 4 * w + b < bytes; ++b) {
      word |= static_cast<uint32_t>(data[4 * w + b]) << (8 * b);
    }
    return word;
  }
};

/// Bits from `bit` on of words, at most 32 of them.
COMPLL_DEVICE uint32_t GetBits(const PayloadWords& words, int64_t bit, int bits) {
  const uint64_t pair = words(bit / 32) | static_cast<uint64_t>(words(bit / 32 + 1)) << 32;
  return static_cast<uint32_t>(pair >> (bit % 32) & ((uint64_t(1) << bits) - 1));
}

/// \param before what ScanArray made of CountBits of the mask, which has n bits
/// \param out in the workspace, zero
template <class Team, class Bits, class Mask>
COMPLL_DEVICE void PackWhere(const Team& team, Shared& shared, const Bits& bits, const Mask& mask,
                             int64_t n, const uint32_t* before, uint8_t* out) {
  ForWords(team, shared, mask, n, before, [&](int64_t w, uint32_t word, int64_t at) {
    const uint32_t from = bits(w);
    uint32_t joined = 0;
    for (int k = 0; word != 0; word &= word - 1, ++k) {
      joined |= (from >> (__ffs(static_cast<int>(word)) - 1) & 1u) << k;
    }
    SetBits(reinterpret_cast<uint32_t*>(out), at, joined);
  });
}

/// The n bits again, 0 where the mask is, in the workspace.
template <class Team, class Mask>
COMPLL_DEVICE void UnpackWhere(const Team& team, Shared& shared, const PayloadWords& packed,
                               const Mask& mask, int64_t n, const uint32_t* before, uint8_t* out) {
  ForWords(team, shared, mask, n, before, [&](int64_t w, uint32_t word, int64_t at) {
    uint32_t joined = GetBits(packed, at, __popc(word)), bits = 0;
    for (; word != 0; word &= word - 1, joined >>= 1) {
      if (joined & 1u) bits |= word & (~word + 1);
    }
    reinterpret_cast<uint32_t*>(out)[w] = bits;
  });
}

}  // namespace
}  // namespace hipress::compll
