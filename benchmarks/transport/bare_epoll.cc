// Baseline: one thread per side, one socket, epoll, 64-byte headers, large payloads read straight
// into place; no queue, no checksum, no checks.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "channel.h"

namespace hipress {
namespace bench {
namespace {

struct Header {
  uint64_t size, count, echo, pad[5];
};
static_assert(sizeof(Header) == 64, "as large as ours");

class Peer {
 public:
  explicit Peer(int fd) : fd_(fd), epoll_(epoll_create1(0)), buffer_(256 << 10) {
    const int one = 1, large = 4 << 20;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &large, sizeof(large));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof(large));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    Watch(EPOLLIN, EPOLL_CTL_ADD);
  }

  void Send(const Header& header, const uint8_t* payload) {
    iovec pieces[2] = {{const_cast<Header*>(&header), sizeof(header)},
                       {const_cast<uint8_t*>(payload), header.size}};
    SendPieces(pieces, header.size > 0 ? 2 : 1);
  }

  void SendPieces(iovec* pieces, int count) {
    while (count > 0) {
      ssize_t n = writev(fd_, pieces, count);
      if (n < 0) {
        if (errno != EAGAIN) throw std::runtime_error("writev");
        Watch(EPOLLOUT, EPOLL_CTL_MOD);
        Wait();
        Watch(EPOLLIN, EPOLL_CTL_MOD);
        continue;
      }
      for (; count > 0 && n >= static_cast<ssize_t>(pieces->iov_len); ++pieces, --count) {
        n -= static_cast<ssize_t>(pieces->iov_len);
      }
      if (count > 0) {
        pieces->iov_base = static_cast<char*>(pieces->iov_base) + n;
        pieces->iov_len -= static_cast<size_t>(n);
      }
    }
  }

  /// Receives one message into the next buffer of `ring`. \return false at the end of the stream
  bool Receive(Header* header, std::unique_ptr<Ring>* ring, size_t* ring_size) {
    while (end_ - begin_ < sizeof(Header)) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      const ssize_t n = Read(buffer_.data() + end_, buffer_.size() - end_);
      if (n <= 0) return false;
      end_ += static_cast<size_t>(n);
    }
    std::memcpy(header, buffer_.data() + begin_, sizeof(Header));
    begin_ += sizeof(Header);
    if (!*ring || *ring_size != header->size) {
      *ring = std::make_unique<Ring>(header->size);
      *ring_size = header->size;
    }
    uint8_t* to = (*ring)->Next();
    const size_t here = std::min<size_t>(header->size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, here);
    begin_ += here;
    for (size_t got = here; got < header->size;) {
      const ssize_t n = Read(to + got, header->size - got);
      if (n <= 0) return false;
      got += static_cast<size_t>(n);
    }
    return true;
  }

 private:
  ssize_t Read(uint8_t* to, size_t size) {
    for (;;) {
      const ssize_t n = read(fd_, to, size);
      if (n >= 0 || errno != EAGAIN) return n;
      Wait();
    }
  }
  void Watch(uint32_t events, int operation) {
    epoll_event event{};
    event.events = events;
    epoll_ctl(epoll_, operation, fd_, &event);
  }
  void Wait() {
    epoll_event event;
    epoll_wait(epoll_, &event, 1, -1);
  }

  const int fd_, epoll_;
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0, end_ = 0;
};

void RunReceiver(int fd) {
  Peer peer(fd);
  std::unique_ptr<Ring> ring;
  size_t ring_size = 0, received = 0;
  Header header;
  while (peer.Receive(&header, &ring, &ring_size)) {
    ++received;
    if (!header.echo && received < header.count) continue;
    received = 0;
    header.size = header.echo ? header.size : 0;
    peer.Send(header, header.size > 0 ? ring->Next() : nullptr);
  }
}

class BareEpoll final : public Channel {
 public:
  BareEpoll() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener, 1) != 0) {
      throw std::runtime_error("listen");
    }
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    child_ = fork();
    if (child_ == 0) {
      RunReceiver(accept(listener, nullptr, nullptr));
      _exit(0);
    }
    close(listener);
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0) {
      throw std::runtime_error("connect");
    }
    peer_ = std::make_unique<Peer>(fd_);
    clock_getcpuclockid(child_, &clock_);
  }
  ~BareEpoll() override {
    close(fd_);
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  void Stream(size_t size, size_t count) override {
    Ring ring(size);
    const Header header{size, count, 0, {}};
    if (size + sizeof(header) > 16 << 10) {
      for (size_t i = 0; i < count; ++i) peer_->Send(header, ring.Next());
    } else {
      // Small messages are joined into one system call, as in any comparable transport.
      std::vector<uint8_t> staging(64 << 10);
      for (size_t i = 0; i < count;) {
        size_t used = 0;
        for (; i < count && used + sizeof(header) + size <= staging.size(); ++i) {
          std::memcpy(staging.data() + used, &header, sizeof(header));
          std::memcpy(staging.data() + used + sizeof(header), ring.Next(), size);
          used += sizeof(header) + size;
        }
        iovec piece{staging.data(), used};
        peer_->SendPieces(&piece, 1);
      }
    }
    Header answer;
    peer_->Receive(&answer, &ring_, &ring_size_);
  }
  void PingPong(size_t size, size_t count) override {
    Ring ring(size);
    const Header header{size, 0, 1, {}};
    Header answer;
    for (size_t i = 0; i < count; ++i) {
      peer_->Send(header, ring.Next());
      peer_->Receive(&answer, &ring_, &ring_size_);
    }
  }
  double ReceiverCpu() const override {
    timespec time{};
    clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

 private:
  pid_t child_ = 0;
  int fd_ = -1;
  clockid_t clock_{};
  std::unique_ptr<Peer> peer_;
  std::unique_ptr<Ring> ring_;
  size_t ring_size_ = 0;
};

}  // namespace

std::unique_ptr<Channel> MakeBareEpoll() { return std::make_unique<BareEpoll>(); }

}  // namespace bench
}  // namespace hipress
