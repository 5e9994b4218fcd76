/*!
 * \file runtime.h
 * \brief What generated code calls: scratch memory, blocks on threads, payload fields, sparse
 *        operations. Included once for each algorithm and instruction set, hence the unnamed
 *        namespace.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_RUNTIME_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_RUNTIME_H_

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

#include "operator/contrib/compll/abi.h"
#include "operator/contrib/compll/lanes.h"
#include "operator/contrib/compll/packing.h"
#include "operator/contrib/compll/philox.h"

namespace hipress {
namespace compll {
namespace {

/// Temporary vectors of one call. Blocks are kept for the thread's next call: fresh pages are slow.
class Arena {
 public:
  Arena() : blocks_(Cache()), next_(0) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Uninitialised T[size], 64-byte aligned, with room for a whole tile after the end.
  template <typename T>
  T* Get(int64_t size) {
    const size_t bytes = ((static_cast<size_t>(size) + 2 * kTile) * sizeof(T) + 63) / 64 * 64;
    if (next_ == blocks_.size()) blocks_.push_back({nullptr, 0});
    Block& block = blocks_[next_++];
    if (block.bytes < bytes) {
      std::free(block.data);
      block = {std::aligned_alloc(64, bytes), bytes};
      if (block.data == nullptr) {
        block.bytes = 0;
        throw std::bad_alloc();
      }
    }
    return static_cast<T*>(block.data);
  }

 private:
  struct Block {
    void* data;
    size_t bytes;
  };
  struct Blocks : std::vector<Block> {
    ~Blocks() {
      for (const Block& block : *this) std::free(block.data);
    }
  };
  static Blocks& Cache() {
    static thread_local Blocks blocks;
    return blocks;
  }
  Blocks& blocks_;
  size_t next_;
};

/// work(block, begin, end) for all blocks of `size` elements in [0, n); blocks are independent.
template <typename Work>
inline void ForBlocks(int threads, int64_t n, int64_t size, const Work& work) {
  const int64_t blocks = (n + size - 1) / size;
  auto run = [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      work(block, block * size, std::min(n, (block + 1) * size));
    }
  };
  const int64_t most = std::min<int64_t>(threads, blocks / 16);
  if (most <= 1) return run(0, blocks);
  std::vector<std::thread> others;
  for (int64_t t = 1; t < most; ++t) {
    others.emplace_back(run, blocks * t / most, blocks * (t + 1) / most);
  }
  run(0, blocks / most);
  for (std::thread& thread : others) thread.join();
}

// Payloads ------------------------------------------------------------------

inline int Fail(const CompllDecodeCall& call, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
inline int Fail(const CompllDecodeCall& call, const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::vsnprintf(call.error, static_cast<size_t>(call.error_size), format, args);
  va_end(args);
  return -1;
}

/// True if `size` more bytes lie at `offset`; sizes come from the payload, so nothing may overflow.
inline bool Have(const CompllDecodeCall& call, int64_t offset, int64_t size) {
  return size >= 0 && size <= call.bytes - offset;
}

template <typename T>
inline T ReadField(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

template <typename T>
inline void WriteField(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

/// True if indices ascend and lie in [0, n).
template <typename T>
inline bool ValidIndices(const T* index, int64_t size, int64_t n) {
  int64_t last = -1;
  for (int64_t j = 0; j < size; ++j) {
    T value;
    std::memcpy(&value, index + j, sizeof(T));
    const int64_t at = static_cast<int64_t>(value);
    if (at <= last || at >= n) return false;
    last = at;
  }
  return true;
}

// Sparse operations ------------------------------------------------------------------

/// Order of floats as unsigned numbers: -NaN < -Inf < ... < -0 < +0 < ... < Inf < NaN.
inline uint32_t Ordered(float value) {
  const uint32_t bits = BitsOf(value);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/// Indices of the bits that are set among n, ascending; returns their number.
inline int64_t Compact(const uint8_t* mask, int64_t n, int32_t* out) {
  int64_t found = 0;
  for (int64_t i = 0; i < n; i += 64) {
    uint64_t word = 0;
    std::memcpy(&word, mask + i / 8, static_cast<size_t>(std::min<int64_t>(8, (n - i + 7) / 8)));
    for (; word != 0; word &= word - 1) {
      out[found++] = static_cast<int32_t>(i + __builtin_ctzll(word));
    }
  }
  return found;
}

inline int64_t CountBits(const uint8_t* mask, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += 64) {
    uint64_t word = 0;
    std::memcpy(&word, mask + i / 8, static_cast<size_t>(std::min<int64_t>(8, (n - i + 7) / 8)));
    count += __builtin_popcountll(word);
  }
  return count;
}

/// Indices of the k largest of n values, ascending; of equal ones the first. 0 <= k <= n.
inline void TopK(const float* values, int64_t n, int64_t k, int32_t* out) {
  if (k == 0) return;
  // The key's upper bits find the bucket that holds the k-th largest; only that one is sorted.
  constexpr int kShift = 20;
  std::vector<int64_t> counts(size_t(1) << (32 - kShift));
  for (int64_t i = 0; i < n; ++i) ++counts[Ordered(values[i]) >> kShift];
  int64_t above = 0;
  uint32_t bucket = static_cast<uint32_t>(counts.size()) - 1;
  while (above + counts[bucket] < k) above += counts[bucket--];
  std::vector<uint64_t> ties;
  ties.reserve(static_cast<size_t>(counts[bucket]));
  int64_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t key = Ordered(values[i]);
    if (key >> kShift > bucket) {
      out[found++] = static_cast<int32_t>(i);
    } else if (key >> kShift == bucket) {
      ties.push_back(uint64_t(~key) << 32 | static_cast<uint32_t>(i));
    }
  }
  const auto last = ties.begin() + (k - found);
  if (last != ties.end()) std::nth_element(ties.begin(), last, ties.end());
  for (auto tie = ties.begin(); tie != last; ++tie) {
    out[found++] = static_cast<int32_t>(*tie & 0xffffffffu);
  }
  std::sort(out, out + k);
}

inline void Sort(const float* values, int64_t n, float* out) {
  std::copy(values, values + n, out);
  std::sort(out, out + n, [](float a, float b) { return Ordered(a) < Ordered(b); });
}

inline int64_t Clip(int64_t k, int64_t n) {
  return std::min(std::max<int64_t>(k, 0), std::max<int64_t>(n, 0));
}

/// One random index of each of k parts of range(n).
inline void Strata(int64_t n, int64_t k, const PhiloxKey& key, uint32_t site, int32_t* out) {
  alignas(64) uint32_t words[kTile];
  for (int64_t j = 0; j < k; ++j) {
    if (j % kTile == 0) RandomTile(key, site, j / kTile, words);
    const int64_t low = j * n / k, high = (j + 1) * n / k;
    const int64_t word = words[j % kTile];
    out[j] = static_cast<int32_t>(low + (word * (high - low) >> 32));
  }
}

template <typename T>
inline T Element(const T* values, int64_t size, int64_t at) {
  if (size == 0) return T(0);
  return values[std::min(std::max<int64_t>(at, 0), size - 1)];
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_RUNTIME_H_
