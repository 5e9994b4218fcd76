/*!
 * \file buffer.h
 * \brief Shared, aligned memory and the pool it comes from.
 *
 * A payload or a dense sum is written once and then read by several sends, so it is held by
 * shared_ptr and goes back to the pool when the last reader lets go. The pool keeps freed blocks:
 * fresh pages cost a fault per 4 KiB, which is slower than the codecs.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hipress {

/// Alignment of every pooled block, in bytes: a cache line, and the widest vector register.
constexpr size_t kAlignment = 64;

/// Size from which on a payload for a process on the same host is read in shared memory (common/arena.h)
/// instead of being sent through a socket: below, a copy is cheaper than the bookkeeping.
constexpr size_t kMinSharedBytes = size_t(64) << 10;

/// Memory and the object that keeps it alive; `owner` may be null for memory that the caller guards.
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

/// Allocates memory that stays for long, such as residuals: of huge pages where the system has them,
/// however small the pieces (4% of a compressed step), and never shared with other processes.
Buffer AllocateState(size_t bytes);

}  // namespace hipress
