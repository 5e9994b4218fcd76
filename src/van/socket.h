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

#include "common/types.h"
#include "van/address.h"

namespace hipress {

/// Until when to wait; and, if `cancelled` is given, only until that becomes true.
struct Deadline {
  Deadline(SteadyTime time, const std::atomic<bool>* cancelled = nullptr)  // NOLINT: a time is one
      : time(time), cancelled(cancelled) {}
  /// The same, but not after `other`.
  Deadline AtMost(SteadyTime other) const { return {std::min(time, other), cancelled}; }

  SteadyTime time;
  const std::atomic<bool>* cancelled;
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

/// Connects within the deadline. \return an open non-blocking socket; on failure an empty one with *error the
/// errno: ECONNREFUSED only if the machine itself refuses, EHOSTUNREACH if a firewall or router (ICMP) does
UniqueFd ConnectOnce(const SocketAddress& address, const Deadline& deadline, int* error);

/// Whether a round trip to the other end takes so long that what may be under way limits the speed.
bool IsLongLink(int fd);
/// How many sockets let enough be under way to the other end of this one: 1, unless it is a long link
/// and the kernel limits buffers to little.
int StreamsFor(int fd);

/// Options of an established connection: no delay, buffers, a limit for unacknowledged data, and how the kernel
/// controls congestion. `congestion_control`: its name for that; empty: the usual one, but BBR on long links, and not on
/// short ones.
void Tune(int fd, std::chrono::milliseconds unacknowledged_limit, const std::string& congestion_control = "");
/// \throw Error unless the kernel has a congestion control of this name, and allows it; or the name is empty
void CheckCongestionControl(const std::string& name);

/// Of a long link, to be called now and then: how much waits in the socket follows the rate at which it
/// goes, so that a fast one is never empty, and what is urgent overtakes what is left of a slow one.
void TuneUnsent(int fd);

/// Waits until `fd` is readable (or writable). \return false when the deadline has passed, or was cancelled
/// \throw interrupt::Interrupted
bool WaitFor(int fd, bool readable, const Deadline& deadline);

/// A forked child (of a data loader, say) closes its copy of `fd` at once: otherwise the child's copy
/// would keep the connection open, and hide this process's death from its peers.
void CloseInForkedChildren(int fd);
/// To be called before `fd` is closed, and so may come to mean something else.
void ForgetInForkedChildren(int fd);

/// What was sent and the other end's kernel has not yet acknowledged.
int64_t UnacknowledgedBytes(int fd);
/// Whether both ends of a connection are on this host.
bool IsSameHost(int fd);
SocketAddress LocalAddress(int fd);
SocketAddress RemoteAddress(int fd);

}  // namespace hipress
