/*!
 * \file socket.h
 * \brief Sockets, with errors as sentences.
 */
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "base/types.h"
#include "transport/address.h"

namespace hipress {

/// Until when to wait; and, if `canceled` is given, only until that becomes true.
struct Deadline {
  Deadline(SteadyTime time, const std::atomic<bool>* canceled = nullptr)  // NOLINT: a time is one
      : time(time), canceled(canceled) {}
  /// The same, but not after `other`.
  Deadline AtMost(SteadyTime other) const { return {std::min(time, other), canceled}; }

  SteadyTime time;
  const std::atomic<bool>* canceled;
};

/// A file descriptor that is closed when its owner goes.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

std::string ErrnoText(int error);
/// "3.5 s"
std::string SecondsText(std::chrono::steady_clock::duration time);

/// A listening, non-blocking socket, closed on exec. Port 0 picks a free one.
/// \throw Error that says what is in the way (port in use, address of another machine)
UniqueFd Listen(const SocketAddress& address);

/// Connects within the deadline. \return a non-blocking socket; or an empty one, with *error
/// ECONNREFUSED if the machine itself refuses, EHOSTUNREACH if a firewall does, or another errno
UniqueFd ConnectOnce(const SocketAddress& address, const Deadline& deadline, int* error);

/// Whether the round-trip time is so long that socket buffers limit the speed.
bool IsLongLink(int fd);
/// Sockets that a connection needs to fill this socket's link: 1, unless the link is long and the
/// kernel limits buffers.
int StreamsFor(int fd);

/// Sets options of a connected socket. \param congestion_control the kernel's name for it; empty:
/// BBR on long links, otherwise the usual one, but not BBR
void Tune(int fd, std::chrono::milliseconds unacknowledged_limit, const std::string& congestion_control = "");
/// \throw Error unless the kernel allows a congestion control of this name, or the name is empty
void CheckCongestionControl(const std::string& name);

/// Adapts a long link's queue of unsent bytes to its rate, so that a fast link is never idle and
/// urgent messages do not wait long on a slow one. To be called regularly.
void TuneUnsent(int fd);

/// Waits until `fd` is readable (or writable). \return false after the deadline or a cancellation
/// \throw interrupt::Interrupted
bool WaitFor(int fd, bool readable, const Deadline& deadline);

/// Forked children close their copies of `fd`, which would hide this process's death from peers.
void CloseInForkedChildren(int fd);
/// Ends that; to be called before `fd` is closed.
void ForgetInForkedChildren(int fd);

/// Sent bytes that the other end's kernel has not acknowledged.
int64_t UnacknowledgedBytes(int fd);
/// Whether both ends of a connection are on this host.
bool IsSameHost(int fd);
SocketAddress LocalAddress(int fd);
SocketAddress RemoteAddress(int fd);

}  // namespace hipress
