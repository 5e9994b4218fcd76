/*!
 * \file replay_buffer.h
 * \brief The bytes of a stream from the first that may have to be sent again to the last.
 */
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>

#include "common/buffer.h"

namespace hipress {

/// Keeps them in blocks of the pool of buffers.
class ReplayBuffer {
 public:
  static constexpr size_t kBlockBytes = 256 << 10;
  /// More than a link has under way (socket.cc), with what waits in both sockets.
  static constexpr size_t kMaxBytes = 64 << 20;

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  size_t size() const { return static_cast<size_t>(end_ - begin_); }
  size_t Room() const { return kMaxBytes - size(); }

  /// Copies `size` bytes, for which there must be room, behind the last one.
  void Append(const void* data, size_t size);
  /// Forgets what is before `offset`, which lies between begin() and end().
  void DropBefore(uint64_t offset);
  /// The pieces of memory with bytes `from` to `to`, at most as many as `pieces` takes. \return how many
  int Find(uint64_t from, uint64_t to, iovec* pieces, int most) const;

 private:
  std::deque<Buffer> blocks_;
  uint64_t first_ = 0;  ///< of the first block's first byte
  uint64_t begin_ = 0, end_ = 0;
};

}  // namespace hipress
