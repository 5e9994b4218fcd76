#include "van/stream.h"

#include <sys/socket.h>

namespace hipress {

ssize_t PlainStream::Read(const iovec* pieces, int count) {
  for (;;) {
    const ssize_t n = count == 1 ? recv(fd_, pieces->iov_base, pieces->iov_len, MSG_DONTWAIT)
                                 : readv(fd_, pieces, count);
    if (n >= 0) return n;
    if (errno != EINTR) return -errno;
  }
}

ssize_t PlainStream::Write(const iovec* pieces, int count) {
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

}  // namespace hipress
