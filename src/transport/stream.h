/*!
 * \file stream.h
 * \brief A non-blocking byte stream over a connected socket: plain, or TLS (tls.h).
 */
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>

namespace hipress {

/// Does not own the descriptor. Results: bytes moved (> 0), kEof, or a negated errno;
/// kWouldBlock means: wait until the socket is ready and call again.
class Stream {
 public:
  static constexpr ssize_t kEof = 0;
  static constexpr ssize_t kWouldBlock = -EAGAIN;

  virtual ~Stream() = default;
  /// Fills the pieces in order, as far as bytes have arrived.
  virtual ssize_t Read(const iovec* pieces, int count) = 0;
  /// Takes bytes from the pieces in order, as far as there is room.
  virtual ssize_t Write(const iovec* pieces, int count) = 0;
  /// True while accepted bytes still wait for room in the socket; Write(nullptr, 0) moves them on.
  virtual bool HasUnsent() const { return false; }
  /// False if a read of fewer bytes than asked for means that the socket has been emptied.
  virtual bool ShortReadMeansNothing() const { return false; }
  /// Of a stream of several sockets: whether Read, or Write, waits for this one.
  virtual bool AwaitsRead(size_t socket) const { return true; }
  virtual bool AwaitsWrite(size_t socket) const { return true; }
};

class PlainStream final : public Stream {
 public:
  explicit PlainStream(int fd) : fd_(fd) {}
  ssize_t Read(const iovec* pieces, int count) override {
    for (;;) {
      const ssize_t n = count == 1 ? recv(fd_, pieces->iov_base, pieces->iov_len, MSG_DONTWAIT)
                                   : readv(fd_, pieces, count);
      if (n >= 0) return n;
      if (errno != EINTR) return -errno;
    }
  }
  ssize_t Write(const iovec* pieces, int count) override {
    if (count == 0) return kWouldBlock;
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces);
    message.msg_iovlen = static_cast<size_t>(count);
    for (;;) {
      const ssize_t n = sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) return n;
      if (errno != EINTR) return -errno;
    }
  }

 private:
  int fd_;
};

}  // namespace hipress
