/*!
 * \file raw_client.h
 * \brief A connection that sends whatever a test wants, also what no van would.
 */
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "transport/handshake.h"
#include "transport/socket.h"
#include "van_testing.h"

namespace hipress::testing {

/// A TCP client that does as it likes.
class RawClient {
 public:
  explicit RawClient(const std::string& address) {
    const auto [host, port] = SplitAddress(address);
    int error = 0;
    fd_ = ConnectOnce(Resolve(host, port), In(seconds(5)), &error);
    EXPECT_EQ(error, 0);
  }
  int fd() const { return fd_.get(); }
  /// \return false if the other end has closed
  bool Send(const void* data, size_t size) {
    for (size_t sent = 0; sent < size;) {
      const ssize_t n = send(fd(), static_cast<const char*>(data) + sent, size - sent, MSG_NOSIGNAL);
      if (n > 0) {
        sent += static_cast<size_t>(n);
      } else if (errno != EAGAIN || !WaitFor(fd(), false, In(seconds(5)))) {
        return false;
      }
    }
    return true;
  }
  template <typename T>
  bool Send(const T& value) {
    return Send(&value, sizeof(value));
  }
  /// Whether the other end closes within the limit, regardless of what it sends before.
  bool IsClosed(milliseconds limit = seconds(5)) {
    const auto deadline = In(limit);
    char waste[1024];
    for (;;) {
      if (!WaitFor(fd(), true, deadline)) return false;
      const ssize_t n = recv(fd(), waste, sizeof(waste), 0);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return true;
    }
  }
  void Authenticate(NodeId self, NodeId peer, bool tls = false) {
    CallerHandshake(fd(), TestVanOptions().secret, self, peer, tls, In(seconds(5)));
  }
  void Close() { fd_ = UniqueFd(); }

 private:
  UniqueFd fd_;
};

}  // namespace hipress::testing
