/*!
 * \file channel.h
 * \brief Channel that the benchmark measures: a sender in this process, a receiver in a forked one.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hipress {
namespace bench {

/// Buffers used in turn, more than a second-level cache holds, so that every transport reads and
/// writes memory as a training job does.
class Ring {
 public:
  explicit Ring(size_t size)
      : size_(size), count_(size >= (1u << 20) ? 8 : (8u << 20) / (size + 64) + 1),
        memory_(size_ * count_, 7) {}
  uint8_t* Next() {
    next_ = next_ + 1 == count_ ? 0 : next_ + 1;
    return memory_.data() + next_ * size_;
  }

 private:
  const size_t size_, count_;
  std::vector<uint8_t> memory_;
  size_t next_ = 0;
};

class Channel {
 public:
  virtual ~Channel() = default;
  /// Sends `count` messages of `size` bytes; returns when the receiver has confirmed the last.
  virtual void Stream(size_t size, size_t count) = 0;
  /// Sends `count` messages of `size` bytes, each after the echo of the one before.
  virtual void PingPong(size_t size, size_t count) = 0;
  /// CPU seconds that the receiver's process has used.
  virtual double ReceiverCpu() const = 0;
};

std::unique_ptr<Channel> MakeBareEpoll();
/// HiPress's van in three modes: everything through the socket, the same with TLS, large payloads
/// in shared memory.
enum class Lane { kPlain, kTls, kShared };
std::unique_ptr<Channel> MakeVanChannel(Lane lane);

}  // namespace bench
}  // namespace hipress
