/*!
 * \file buffer.h
 * \brief Shared, aligned memory and the pool it comes from.
 *
 * A payload or a dense sum is written once and then read by several sends, so it is held by
 * shared_ptr and goes back to the pool when the last reader lets go. The pool keeps freed blocks:
 * fresh pages cost a fault per 4 KiB, which is slower than the codecs.
 */
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hipress {

/// Alignment of every pooled block, in bytes: a cache line, and the widest vector register.
constexpr size_t kAlignment = 64;

/// Size from which on a payload for a process on the same host is read in shared memory (Arena)
/// instead of being sent through a socket: below, a copy is cheaper than the bookkeeping.
constexpr size_t kMinSharedBytes = size_t(64) << 10;

/// Memory and the object that keeps it alive, or null if the caller does.
struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0;
  std::shared_ptr<void> owner;

  explicit operator bool() const { return data != nullptr; }
  template <typename T>
  T* as() const { return reinterpret_cast<T*>(data); }
  /// Bytes [offset, offset + count) of this buffer, sharing its owner.
  Buffer Slice(size_t offset, size_t count) const { return {data + offset, count, owner}; }
  static Buffer Unowned(const void* data, size_t size) {
    return {static_cast<uint8_t*>(const_cast<void*>(data)), size, nullptr};
  }
};

/// Allocates `bytes` (content undefined) from the process-wide pool. Thread-safe.
/// \throw std::bad_alloc
Buffer AllocateBuffer(size_t bytes);

/// Allocates memory that stays for long, such as residuals: of huge pages where the system has
/// them, however small the pieces (4% of a compressed step), and never shared with other processes.
Buffer AllocateState(size_t bytes);

/// Memory that other processes of this user on this host can read.
///
/// One anonymous memory file (memfd) per process, mapped once; it vanishes with its last user, so
/// nothing is left behind whatever happens. Pages are taken as they are first touched.
class Arena {
 public:
  using Nonce = std::array<uint8_t, 32>;
  /// Beginning of the link of its descriptor in /proc.
  static constexpr const char* kLinkPrefix = "/memfd:hipress";

  /// Creates this process's arena unless it is there. From now on the pool takes large buffers from
  /// it. \return null if the system has no such memory
  static Arena* Enable();
  /// Null before Enable, and in forked children, which must not write to it.
  static Arena* Get() { return arena_.load(std::memory_order_acquire); }
  /// Whether `p` lies in the arena of this process or of the one it was forked from.
  static bool Owns(const void* p);

  /// Null when it is full. Never given back; see Discard.
  void* Allocate(size_t bytes);
  /// Gives the pages back to the system; the addresses stay usable.
  void Discard(void* p, size_t bytes);

  bool Contains(const void* p, size_t bytes) const {
    const auto* byte = static_cast<const uint8_t*>(p);
    return byte >= base_ && bytes <= size_ && size_t(byte - base_) <= size_ - bytes;
  }
  uint64_t OffsetOf(const void* p) const { return uint64_t(static_cast<const uint8_t*>(p) - base_); }
  int fd() const { return fd_; }
  size_t size() const { return size_; }
  /// Random bytes at its beginning, by which a reader knows that it has found the right file.
  const Nonce& nonce() const { return nonce_; }

 private:
  Arena(int fd, uint8_t* base, size_t size, const Nonce& nonce);
  static std::atomic<Arena*> arena_;

  const int fd_;
  uint8_t* const base_;
  const size_t size_;
  const Nonce nonce_;
  std::atomic<size_t> used_;
};

}  // namespace hipress
