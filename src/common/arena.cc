#include "common/arena.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

namespace hipress {
namespace {

/// Address space of an arena; memory is taken as it is used.
constexpr size_t kArenaBytes = size_t(64) << 30;
constexpr size_t kPageBytes = 4096;

std::atomic<uint8_t*> mapped{nullptr};

}  // namespace

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
  const auto* at = static_cast<const uint8_t*>(p);
  return base != nullptr && at >= base && at < base + kArenaBytes;
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
