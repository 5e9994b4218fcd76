#include "common/buffer.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/arena.h"

namespace hipress {
namespace {

constexpr size_t kHugePageBytes = size_t(2) << 20;

/// Allocates from the system; `bytes` is a multiple of the alignment, which for large blocks is a huge page.
void* Allocate(size_t bytes) {
  const bool large = bytes >= kHugePageBytes;
  void* block = std::aligned_alloc(large ? kHugePageBytes : kAlignment, bytes);
  if (block == nullptr) throw std::bad_alloc();
  if (large) madvise(block, bytes, MADV_HUGEPAGE);  // a hint: 15-20% on memory-bound kernels
  return block;
}

/// No other thread is inside a pool when the process forks: its lock would be held for ever in the child.
template <typename AnyPool>
AnyPool* UsableAfterFork(AnyPool* pool) {
  pthread_atfork([] { AnyPool::Get().mutex().lock(); }, [] { AnyPool::Get().mutex().unlock(); },
                 [] { AnyPool::Get().mutex().unlock(); });
  return pool;
}

/// Freed blocks by size class. Classes are powers of two and their halves (1, 1.5, 2, 3, 4, 6 ...),
/// so at most a third of a block is wasted.
class Pool {
 public:
  static Pool& Get() {
    // Never destroyed: buffers may be released by threads that outlive static destructors.
    static Pool* pool = UsableAfterFork(new Pool());
    return *pool;
  }
  std::mutex& mutex() { return mutex_; }

  void* Take(size_t capacity) {
    Arena* const arena = capacity >= kMinSharedBytes ? Arena::Get() : nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto& blocks = free_[capacity];
      while (!blocks.empty()) {
        void* block = blocks.back();
        blocks.pop_back();
        cached_bytes_ -= capacity;
        if (Arena::Owns(block) == (arena != nullptr)) return block;
        // From before there was an arena; or its parent's, in a forked child.
        if (arena != nullptr) std::free(block);
      }
      if (arena != nullptr) {
        auto& discarded = discarded_[capacity];
        if (!discarded.empty()) {
          void* block = discarded.back();
          discarded.pop_back();
          return block;
        }
      }
    }
    if (arena != nullptr) {
      if (void* block = arena->Allocate(capacity)) return block;
    }
    return Allocate(capacity);
  }

  void Give(void* block, size_t capacity) {
    Arena* const arena = Arena::Get();
    const bool shared = Arena::Owns(block);
    if (shared && arena == nullptr) return;  // the parent's, in a forked child
    std::lock_guard<std::mutex> lock(mutex_);
    if (cached_bytes_ + capacity <= kMaxCachedBytes) {
      free_[capacity].push_back(block);
      cached_bytes_ += capacity;
    } else if (shared) {
      arena->Discard(block, capacity);
      discarded_[capacity].push_back(block);
    } else {
      std::free(block);
    }
  }

  static size_t ClassOf(size_t bytes) {
    size_t power = kAlignment;
    while (power < bytes) power *= 2;
    const size_t three_quarters = power / 4 * 3;
    const bool fits = bytes <= three_quarters && three_quarters % kAlignment == 0;
    // aligned_alloc wants a multiple of the alignment; large blocks are aligned to a huge page.
    if (!fits || (power >= kHugePageBytes && three_quarters % kHugePageBytes != 0)) return power;
    return three_quarters;
  }

 private:
  static constexpr size_t kMaxCachedBytes = size_t(1) << 30;
  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_;
  std::unordered_map<size_t, std::vector<void*>> discarded_;  ///< of the arena, without pages
  size_t cached_bytes_ = 0;
};

/// Pieces of large mappings of huge pages; freed pieces are kept for the next of their size.
class StatePool {
 public:
  static StatePool& Get() {
    static StatePool* pool = UsableAfterFork(new StatePool());
    return *pool;
  }
  std::mutex& mutex() { return mutex_; }

  void* Take(size_t capacity) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& blocks = free_[capacity];
    if (!blocks.empty()) {
      void* block = blocks.back();
      blocks.pop_back();
      return block;
    }
    if (capacity > size_t(end_ - next_)) {
      const size_t pages = (std::max(capacity, kChunkBytes) + kHugePageBytes - 1) / kHugePageBytes;
      const size_t bytes = pages * kHugePageBytes;
      next_ = static_cast<uint8_t*>(Allocate(bytes));
      end_ = next_ + bytes;
    }
    return std::exchange(next_, next_ + capacity);
  }

  void Give(void* block, size_t capacity) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_[capacity].push_back(block);
  }

 private:
  static constexpr size_t kChunkBytes = size_t(16) << 20;
  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_;
  uint8_t* next_ = nullptr;
  uint8_t* end_ = nullptr;
};

template <typename AnyPool>
Buffer AllocateFrom(size_t bytes) {
  const size_t capacity = Pool::ClassOf(bytes);
  void* block = AnyPool::Get().Take(capacity);
  std::shared_ptr<void> owner(block, [capacity](void* p) { AnyPool::Get().Give(p, capacity); });
  return {static_cast<uint8_t*>(block), bytes, std::move(owner)};
}

}  // namespace

Buffer AllocateState(size_t bytes) { return AllocateFrom<StatePool>(bytes); }
Buffer AllocateBuffer(size_t bytes) { return AllocateFrom<Pool>(bytes); }

}  // namespace hipress
