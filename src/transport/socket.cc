#include "transport/socket.h"

#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <system_error>

#include "base/interrupt.h"

namespace hipress {
namespace {

UniqueFd NewSocket(int family) {
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) throw Error("cannot open a socket: " + ErrnoText(errno));
  return fd;
}

void SetOption(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof(value));
}

/// Whether an ICMP message has ended a socket's connect, which another machine than the called one
/// may have sent. Before Linux 5.19 this is unknown, and the result is false.
bool EndedByIcmp(int fd) {
  alignas(cmsghdr) char control[512];
  msghdr message{};
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return false;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    const bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR;
    const bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR;
    if (!v4 && !v6) continue;
    sock_extended_err error;
    std::memcpy(&error, CMSG_DATA(c), sizeof(error));
    if (error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6) return true;
  }
  return false;
}

template <typename SystemCall>
SocketAddress AddressBy(SystemCall call, int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  call(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return SocketAddress(reinterpret_cast<const sockaddr*>(&address));
}

constexpr int kSocketBuffer = 4 << 20;
constexpr int kLongLinkWindow = 8 << 20;
/// At 1 Gbit/s and 100 ms of round trip 12.5 MB, and as much again behind a lost packet.
constexpr int64_t kInFlightBytes = 32 << 20;
/// Urgent data wait for at most this much data that are not yet in transit.
constexpr int kUnsentBytes = 1 << 20;

/// The kernel's limits of a socket's buffer. `kind`: rmem or wmem.
struct BufferLimits {
  explicit BufferLimits(const std::string& kind) {
    std::ifstream limit("/proc/sys/net/core/" + kind + "_max"), own("/proc/sys/net/ipv4/tcp_" + kind);
    int64_t limit_bytes = 0, least = 0, usual = 0, largest = 0;
    if (!(limit >> limit_bytes && own >> least >> usual >> largest)) return;
    asked = 2 * std::min<int64_t>(limit_bytes, kSocketBuffer);
    grown = largest;
  }
  int64_t asked = 0;  ///< what it makes of kSocketBuffer: cuts it down to a limit, and doubles it
  /// Size that the kernel chooses for a buffer without a requested size.
  int64_t grown = kSocketBuffer;
};

/// \return whether the kernel allows it
bool SetCongestionControl(int fd, const std::string& name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

/// Has the kernel use CUBIC where it would use BBR; or Reno, which needs no permission. BBR gives
/// the connections of one node unequal parts of its link for hundreds of milliseconds, so that
/// others wait for the slowest of them and have nothing to send meanwhile.
void AvoidBbr(int fd) {
  char used[16] = "";  // TCP_CA_NAME_MAX
  socklen_t size = sizeof(used);
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, used, &size) != 0) return;
  if (std::string(used).rfind("bbr", 0) != 0) return;
  if (!SetCongestionControl(fd, "cubic")) SetCongestionControl(fd, "reno");
}

/// Descriptors + 1, 0 where free. Plain memory, since a forked child may run little code.
constexpr size_t kMaxGuarded = 8192;
std::atomic<int> guarded_fds[kMaxGuarded];

void CloseGuarded() {
  for (std::atomic<int>& slot : guarded_fds) {
    const int fd = slot.exchange(0, std::memory_order_relaxed) - 1;
    if (fd >= 0) close(fd);
  }
}

}  // namespace

void CloseInForkedChildren(int fd) {
  static const int registered = pthread_atfork(nullptr, nullptr, CloseGuarded);
  if (registered != 0) return;
  for (std::atomic<int>& slot : guarded_fds) {
    int free = 0;
    if (slot.compare_exchange_strong(free, fd + 1)) return;
  }
  // More connections than slots: heartbeats still notice the death.
}

void ForgetInForkedChildren(int fd) {
  for (std::atomic<int>& slot : guarded_fds) {
    int mine = fd + 1;
    if (slot.compare_exchange_strong(mine, 0)) return;
  }
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

std::string ErrnoText(int error) { return std::generic_category().message(error); }

std::string SecondsText(std::chrono::steady_clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

UniqueFd Listen(const SocketAddress& address) {
  UniqueFd fd = NewSocket(address.family());
  SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  const auto& endpoint = address.endpoint();
  if (bind(fd.get(), endpoint.data(), socklen_t(endpoint.size())) != 0 || listen(fd.get(), 1024) != 0) {
    const int error = errno;
    const std::string host = address.HostText();
    if (error == EADDRINUSE) {
      throw Error("port " + std::to_string(address.port()) + " on " + host +
                  " is in use by another process; choose a free one or end that process");
    }
    if (error == EADDRNOTAVAIL) {
      throw Error("cannot listen on " + host + ": no interface of this machine has that address");
    }
    throw Error("cannot listen on " + address.ToText() + ": " + ErrnoText(error));
  }
  return fd;
}

UniqueFd ConnectOnce(const SocketAddress& address, const Deadline& deadline, int* error) {
  UniqueFd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  *error = 0;
  // Out of descriptors, for example: no fault of the peer, and it may pass.
  if (fd.get() < 0) {
    *error = errno;
    return UniqueFd();
  }
  const bool v6 = address.family() == AF_INET6;
  const int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP, report_icmp = v6 ? IPV6_RECVERR : IP_RECVERR;
  SetOption(fd.get(), level, report_icmp, 1);
  const auto& endpoint = address.endpoint();
  if (connect(fd.get(), endpoint.data(), socklen_t(endpoint.size())) != 0 && errno != EINPROGRESS && errno != EINTR) {
    *error = errno;
    return UniqueFd();
  }
  if (!WaitFor(fd.get(), false, deadline)) {
    *error = ETIMEDOUT;
    return UniqueFd();
  }
  socklen_t size = sizeof(*error);
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, error, &size);
  // A firewall's "port unreachable" is the same errno as a refusal by the machine itself.
  if (*error == ECONNREFUSED && EndedByIcmp(fd.get())) *error = EHOSTUNREACH;
  // On an open connection it would make passing errors final.
  SetOption(fd.get(), level, report_icmp, 0);
  // Without a listener on an ephemeral port the kernel may connect a socket to itself.
  if (*error == 0 && LocalAddress(fd.get()).ToText() == address.ToText()) *error = ECONNREFUSED;
  return *error == 0 ? std::move(fd) : UniqueFd();
}

bool IsLongLink(int fd) {
  constexpr uint32_t kLongMicroseconds = 5000;
  tcp_info info{};
  socklen_t size = sizeof(info);
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_rtt >= kLongMicroseconds;
}

int StreamsFor(int fd) {
  if (!IsLongLink(fd)) return 1;
  const BufferLimits sending("wmem");
  const int64_t of_one = std::max<int64_t>(1, std::max(sending.asked, sending.grown));
  return static_cast<int>(std::clamp<int64_t>(kInFlightBytes / of_one, 1, 8));
}

void TuneUnsent(int fd) {
  // This thread's other work, and its waits for a processor.
  constexpr double kSeconds = 0.03;
  // The kernel's tcp_info as far as it is used here. Its own header, linux/tcp.h, cannot be
  // included together with netinet/tcp.h, whose tcp_info has no rates.
  struct {
    char before[104];
    uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
    uint32_t segments_and_rtt[6];
    uint64_t delivery_rate;
  } info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  // Beyond the delivery rate: it is that of a sender which had nothing to send, too.
  const auto rate = static_cast<double>(std::min(info.pacing_rate, 4 * info.delivery_rate));
  const double bytes = std::clamp(rate * kSeconds, double(kUnsentBytes) / 8,
                                  double(kSocketBuffer));
  SetOption(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(bytes));
}

void CheckCongestionControl(const std::string& name) {
  if (name.empty() || SetCongestionControl(NewSocket(AF_INET).get(), name)) return;
  std::string allowed;
  std::getline(std::ifstream("/proc/sys/net/ipv4/tcp_allowed_congestion_control"), allowed);
  throw Error("environment variable HIPRESS_CONGESTION_CONTROL is '" + name + "', but this kernel allows " + allowed +
              " (sysctl net.ipv4.tcp_allowed_congestion_control)");
}

void Tune(int fd, std::chrono::milliseconds unacknowledged_limit, const std::string& congestion_control) {
  static const BufferLimits sending("wmem"), receiving("rmem");
  const bool long_link = IsLongLink(fd);
  const int unsent = kUnsentBytes / StreamsFor(fd);
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (sending.asked > sending.grown) SetOption(fd, SOL_SOCKET, SO_SNDBUF, kSocketBuffer);
  if (receiving.asked > receiving.grown) SetOption(fd, SOL_SOCKET, SO_RCVBUF, kSocketBuffer);
  if (!congestion_control.empty()) {
    SetCongestionControl(fd, congestion_control);
  } else if (long_link) {
    // There, packets are lost without a queue that is full, and others take each loss for one.
    SetCongestionControl(fd, "bbr");
  } else {
    AvoidBbr(fd);
  }
  if (long_link) {
    // Makes the kernel open the window as far as it may at once, and leaves the buffer's size to
    // it: as it grows by itself, a sender that finds a window full takes the link to be no faster.
    SetOption(fd, SOL_SOCKET, SO_RCVLOWAT, kLongLinkWindow);
    SetOption(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
  }
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(unacknowledged_limit.count()));
  SetOption(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsent);
  // Where the kernel has it (Linux 6.15): after a cut, the first byte is through within a second.
  constexpr int kTcpRtoMaxMs = 44;
  SetOption(fd, IPPROTO_TCP, kTcpRtoMaxMs, 1000);
}

bool WaitFor(int fd, bool readable, const Deadline& deadline) {
  constexpr int64_t kLookForCancellation = 10;  // milliseconds
  const int64_t longest = deadline.canceled    ? kLookForCancellation
                          : interrupt::Needed() ? interrupt::kInterval.count()
                                                : 3600 * 1000;
  interrupt::PolledCheck check_signals;
  for (;;) {
    if (deadline.canceled && *deadline.canceled) return false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline.time - std::chrono::steady_clock::now());
    pollfd poll_fd{fd, static_cast<short>(readable ? POLLIN : POLLOUT), 0};
    const auto wait = std::clamp<int64_t>(left.count(), 0, longest);
    const int n = poll(&poll_fd, 1, static_cast<int>(wait));
    if (n > 0) return true;
    if (left.count() <= 0) return false;
    check_signals();
  }
}

int64_t UnacknowledgedBytes(int fd) {
  int bytes = 0;
  return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

bool IsSameHost(int fd) { return LocalAddress(fd).IsSameHost(RemoteAddress(fd)); }

SocketAddress LocalAddress(int fd) { return AddressBy(getsockname, fd); }
SocketAddress RemoteAddress(int fd) { return AddressBy(getpeername, fd); }

}  // namespace hipress
