/*!
 * \file runtime.h
 * \brief What generated code calls: scratch memory, blocks on threads, gradients, payload fields.
 *        Included once for each algorithm and instruction set, hence the unnamed namespace.
 */
#pragma once

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

namespace hipress::compll {
namespace {

/// Temporary vectors of one call. Blocks are kept for the thread's next call: fresh pages are slow.
class Arena {
 public:
  Arena() : blocks_(Cache()), next_(0) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Uninitialized T[size], 64-byte aligned, with room for a whole tile after the end.
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

constexpr int kMaxWorkers = 64;

/*!
 * \brief work(block, begin, end, worker) for all blocks of `size` elements in [0, n).
 *
 * Blocks are independent. A worker, from 0 to kMaxWorkers - 1, takes neighboring blocks in order.
 */
template <typename Call, typename Work>
inline void ForBlocks(const Call& call, int64_t n, int64_t size, const Work& work) {
  const int64_t blocks = (n + size - 1) / size;
  // Fewer elements than that are done before another thread wakes up.
  const int64_t workers =
      std::min(std::min<int64_t>({call.threads, kMaxWorkers, n / 16384}), blocks);
  auto run = [&](int64_t worker, int64_t count) {
    const int64_t last = blocks * (worker + 1) / count;
    for (int64_t block = blocks * worker / count; block < last; ++block) {
      work(block, block * size, std::min(n, (block + 1) * size), static_cast<int>(worker));
    }
  };
  if (workers <= 1) return run(0, 1);
  if (call.parallel != nullptr) {
    auto task = [&](int64_t worker) { run(worker, workers); };
    using Task = decltype(task);
    return call.parallel(
        workers, [](void* context, int64_t i) { (*static_cast<Task*>(context))(i); }, &task);
  }
  std::vector<std::thread> others;
  for (int64_t w = 1; w < workers; ++w) others.emplace_back(run, w, workers);
  run(0, workers);
  for (std::thread& thread : others) thread.join();
}

/// tile(is it a tail, i, elements from i on) for all tiles of [begin, end).
#define COMPLL_TILES(tile, begin, end)                                            \
  do {                                                                            \
    int64_t i = begin;                                                            \
    for (; i + kTile <= end; i += kTile) tile(std::false_type(), i, kTile);       \
    if (i < end) tile(std::true_type(), i, static_cast<int>(end - i));            \
  } while (false)

/// tile(is it a tail, is it usual, ...): tiles of a block for which `usual` holds, and others.
#define COMPLL_USUAL_TILES(tile, usual, begin, end)                                         \
  do {                                                                                      \
    int64_t i = begin;                                                                      \
    if (usual) {                                                                            \
      for (; i + kTile <= end; i += kTile) tile(std::false_type(), std::true_type(), i, kTile); \
    }                                                                                       \
    for (; i + kTile <= end; i += kTile) tile(std::false_type(), std::false_type(), i, kTile); \
    if (i < end) {                                                                          \
      tile(std::true_type(), std::false_type(), i, static_cast<int>(end - i));              \
    }                                                                                       \
  } while (false)

// Gradients ------------------------------------------------------------------

/// Elements i to i + 63 (a tail has `rem`) as float32: in place, or converted into `scratch`.
template <bool kTail>
COMPLL_INLINE const float* GradientTile(const CompllEncodeCall& call, int64_t i, int rem,
                                        float* scratch) {
  if (__builtin_expect(call.gradient_type == COMPLL_FLOAT32, 1)) {
    return static_cast<const float*>(call.gradient) + i;
  }
  for (int v = 0; v < kVectors; ++v) {
    const int left = rem - v * kLanes;
    if (kTail && left <= 0) break;
    const int64_t at = i + v * kLanes;
    const F value = call.gradient_type == COMPLL_FLOAT16
                        ? Load<kTail>(static_cast<const Float16*>(call.gradient), at, left)
                        : Load<kTail>(static_cast<const BFloat16*>(call.gradient), at, left);
    std::memcpy(scratch + v * kLanes, &value, sizeof(value));
  }
  return scratch;
}

/// Fetches a tile into the first cache; whatever the address, it does no harm.
template <typename T>
COMPLL_INLINE void PrefetchTile(const T* tile) {
  const char* const bytes = reinterpret_cast<const char*>(tile);
  COMPLL_UNROLL
  for (size_t at = 0; at < kTile * sizeof(T); at += 64) __builtin_prefetch(bytes + at);
}
/// The gradient's tile at i; half precision is converted anyway, which takes longer than fetching.
COMPLL_INLINE void PrefetchGradient(const CompllEncodeCall& call, int64_t i) {
  if (__builtin_expect(call.gradient_type == COMPLL_FLOAT32, 1)) {
    PrefetchTile(static_cast<const float*>(call.gradient) + i);
  }
}

template <bool kTail>
COMPLL_INLINE void StoreFloats(float* out, int64_t i, int rem, const F* values) {
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const int left = rem - v * kLanes;
    if (kTail && left <= 0) break;
    Store<kTail>(out, i + v * kLanes, left, values[v]);
  }
}

/// Writes a tile of decoded values in the type that is wanted.
template <bool kTail>
COMPLL_INLINE void StoreOut(const CompllDecodeCall& call, int64_t i, int rem, const F* values) {
  if (__builtin_expect(call.out_type == COMPLL_FLOAT32, 1)) {
    return StoreFloats<kTail>(static_cast<float*>(call.out), i, rem, values);
  }
  COMPLL_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const int left = rem - v * kLanes;
    if (kTail && left <= 0) break;
    const int64_t at = i + v * kLanes;
    if (call.out_type == COMPLL_FLOAT16) {
      Store<kTail>(static_cast<Float16*>(call.out), at, left, values[v]);
    } else {
      Store<kTail>(static_cast<BFloat16*>(call.out), at, left, values[v]);
    }
  }
}

/// gradient[index[l]] for each lane, clamped into the gradient.
COMPLL_INLINE F GatherGradient(const CompllEncodeCall& call, I index) {
  if (call.gradient_type == COMPLL_FLOAT32) {
    return Gather<F>(static_cast<const float*>(call.gradient), call.n, index);
  }
  F value = F{};
  for (int l = 0; l < kLanes && call.n > 0; ++l) {
    const int64_t at = index[l] < 0 ? 0 : (index[l] >= call.n ? call.n - 1 : index[l]);
    uint16_t bits;
    std::memcpy(&bits, static_cast<const uint16_t*>(call.gradient) + at, sizeof(bits));
    value[l] = call.gradient_type == COMPLL_FLOAT16 ? ToFloat(Float16{bits}) : ToFloat(BFloat16{bits});
  }
  return value;
}

/// The same for indices in runs, see GatherRuns.
template <bool kTail>
COMPLL_INLINE F GatherGradientRuns(const CompllEncodeCall& call, const int32_t* at, I index) {
  if (call.gradient_type != COMPLL_FLOAT32) return GatherGradient(call, index);
  return GatherRuns<kTail, F>(static_cast<const float*>(call.gradient), call.n, at, index);
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

/// One payload of a call, as a decoder sees it that adds one after the other.
struct DecodePart {
  const uint8_t* payload;
  int64_t bytes;
  float* out;
  bool add;
};
inline DecodePart PartOf(const CompllDecodeCall& call, int64_t k) {
  return {call.payloads[k], call.bytes[k], static_cast<float*>(call.out), call.add != 0 || k > 0};
}

/// True if `size` more bytes lie at `offset`; sizes come from the payload, so nothing may overflow.
inline bool Have(int64_t bytes, int64_t offset, int64_t size) {
  return size >= 0 && size <= bytes - offset;
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

}  // namespace
}  // namespace hipress::compll
