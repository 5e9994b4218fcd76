/*!
 * \file philox.cuh
 * \brief Philox4x32-7 for a warp: the random words of rows of 32 elements.
 *
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Element i takes word
 * (i mod 64) / 16 of counter 16 * (i / 64) + i mod 16, as on the CPU.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PHILOX_CUH_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PHILOX_CUH_

#include "operator/contrib/compll/cuda/scalar.cuh"

namespace hipress {
namespace compll {
namespace {

struct PhiloxKey {
  uint32_t seed, step, stream;
};

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

/// halves[r] likewise, 16 random bits each: element i takes bits 8 * b to 8 * b + 15, round the end, of
/// word 2 * (i / 64 mod 2) + (i mod 16) / 8 of counter 8 * (i / 128) + i mod 8, with b = (i mod 64) / 16.
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

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_CUDA_PHILOX_CUH_
