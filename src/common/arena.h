/*!
 * \file arena.h
 * \brief Memory that other processes of this user on this host can read.
 *
 * One anonymous memory file (memfd) per process, mapped once; it vanishes with its last user, so
 * nothing is left behind whatever happens. Pages are taken as they are first touched.
 */
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hipress {

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
    const auto* at = static_cast<const uint8_t*>(p);
    return at >= base_ && bytes <= size_ && size_t(at - base_) <= size_ - bytes;
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
