#include "base/buffer.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hipress {
namespace {

/// Address space of an arena; memory is taken as it is used.
constexpr size_t kArenaBytes = size_t(64) << 30;
constexpr size_t kPageBytes = 4096;

std::atomic<uint8_t*> mapped{nullptr};

constexpr size_t kHugePageBytes = size_t(2) << 20;

/// Allocates from the system. \param bytes a multiple of the alignment, or of a huge page
void* Allocate(size_t bytes) {
  const bool large = bytes >= kHugePageBytes;
  void* block = std::aligned_alloc(large ? kHugePageBytes : kAlignment, bytes);
  if (block == nullptr) throw std::bad_alloc();
  if (large) madvise(block, bytes, MADV_HUGEPAGE);  // a hint: 15-20% on memory-bound kernels
  return block;
}

/// The process's pool. A forked child gets a new one, because another thread of the parent may hold
/// the lock. (The parent cannot take the lock to fork: before it forks, MXNet waits for operations
/// that need the pool.) Never destroyed, because threads that outlive static destructors may
/// release buffers.
template <typename AnyPool>
AnyPool& TheOnly() {
  static std::atomic<AnyPool*> pool{nullptr};
  static const int registered = [] {
    pool = new AnyPool();
    return pthread_atfork(nullptr, nullptr, [] { pool = new AnyPool(); });
  }();
  static_cast<void>(registered);
  return *pool.load(std::memory_order_relaxed);
}

/// Freed blocks by size class. Classes are powers of two and their halves (1, 1.5, 2, 3, 4, 6 ...),
/// so at most a third of a block is wasted.
class Pool {
 public:
  static Pool& Get() { return TheOnly<Pool>(); }

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
  static StatePool& Get() { return TheOnly<StatePool>(); }

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

std::atomic<Arena*> Arena::arena_{nullptr};

Arena::Arena(int fd, uint8_t* base, size_t size, const Nonce& nonce)
    : fd_(fd), base_(base), size_(size), nonce_(nonce), used_(kPageBytes) {
  std::memcpy(base, nonce.data(), nonce.size());
}

Arena* Arena::Enable() {
  static std::mutex mutex;
  static bool tried = false;
  std::lock_guard<std::mutex> lock(mutex);
  if (tried) return Get();
  tried = true;
  Nonce nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != ssize_t(nonce.size())) return nullptr;
  const int fd = memfd_create("hipress", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return nullptr;
  // Sealed, so that no reader can meet an end of the file where it expects data.
  if (ftruncate(fd, kArenaBytes) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    close(fd);
    return nullptr;
  }
  void* base = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) {
    close(fd);
    return nullptr;
  }
  madvise(base, kArenaBytes, MADV_DONTDUMP);
  mapped = static_cast<uint8_t*>(base);
  pthread_atfork(nullptr, nullptr, [] { arena_.store(nullptr); });
  arena_.store(new Arena(fd, static_cast<uint8_t*>(base), kArenaBytes, nonce));
  return Get();
}

bool Arena::Owns(const void* p) {
  const uint8_t* base = mapped.load(std::memory_order_relaxed);
  const auto* byte = static_cast<const uint8_t*>(p);
  return base != nullptr && byte >= base && byte < base + kArenaBytes;
}

void* Arena::Allocate(size_t bytes) {
  bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const size_t offset = used_.fetch_add(bytes);
  if (offset > size_ || bytes > size_ - offset) {
    used_.fetch_sub(bytes);
    return nullptr;
  }
  return base_ + offset;
}

void Arena::Discard(void* p, size_t bytes) {
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(OffsetOf(p)), off_t(bytes));
}

}  // namespace hipress
