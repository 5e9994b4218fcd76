/*!
 * \file wan_router.cc
 * \brief A wide-area network in user space: one router between TUN devices in network namespaces.
 *
 * A packet from node i to node j waits in i's queue for its link up, is lost or delayed by the
 * path's delay, and waits in j's queue for its link down. A queue has a number of bytes, and
 * packets that do not fit are dropped. Links are counted in bytes of IP.
 *
 * TCP's packets arrive from the kernel, and return to it, as super-packets of up to 64 KiB with
 * open checksums (virtio_net_hdr). Therefore one core carries several Gbit/s. Losses and full
 * queues affect single segments: a super-packet that loses some is split there.
 *
 * Standard input: a line for the network, `SEED REORDER`; then one for each node, `NAMESPACE UP
 * DOWN DELAY JITTER LOSS QUEUE_UP QUEUE_DOWN` (bytes and seconds; a rate of 0 is no limit);
 * `start`, which is answered with `ready`. Afterwards `cut N`, `mend N` and `stats`; its end ends
 * the router. Started by wan.py.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<uint8_t>;
using Nanoseconds = int64_t;

/// The kernel's virtio_net_hdr, whose header is not valid C++.
struct VnetHeader {
  uint8_t flags;
  uint8_t gso_type;  ///< 0: the packet is one segment
  uint16_t hdr_len;
  uint16_t gso_size;  ///< bytes of payload of each segment but the last
  uint16_t csum_start;
  uint16_t csum_offset;
};
static_assert(sizeof(VnetHeader) == 10, "as the kernel has it");

constexpr size_t kVnet = sizeof(VnetHeader);
/// Packets taken from one node before other nodes have their turn.
constexpr int kTurn = 64;

/// Ends the router with a sentence about errno.
[[noreturn]] void Fail(const std::string& what) {
  std::cerr << "wan_router: " << what << ": " << std::strerror(errno) << std::endl;
  std::exit(1);
}

Nanoseconds Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * Nanoseconds(1000000000) + now.tv_nsec;
}

uint32_t Sum(const uint8_t* data, size_t size, uint32_t sum = 0) {
  for (size_t i = 0; i + 1 < size; i += 2) sum += uint32_t(data[i]) << 8 | data[i + 1];
  return sum;
}

uint16_t Fold(uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

/// An IPv4 packet behind its virtio_net_hdr, with its segments.
class Packet {
 public:
  Packet(const uint8_t* data, size_t size) : bytes_(data, data + size) {
    const size_t ip_bytes = size_t(ip()->ihl) * 4;
    if (vnet()->gso_type == 0 || vnet()->gso_size == 0) return;
    const auto* tcp = reinterpret_cast<const tcphdr*>(bytes_.data() + kVnet + ip_bytes);
    headers_ = ip_bytes + size_t(tcp->doff) * 4;
    const size_t payload = bytes_.size() - kVnet - headers_;
    segments_ = std::max<size_t>(1, (payload + vnet()->gso_size - 1) / vnet()->gso_size);
  }

  size_t segments() const { return segments_; }
  /// Bytes of IP that its segments occupy on a link.
  double size() const {
    return static_cast<double>(bytes_.size() - kVnet + (segments_ - 1) * headers_);
  }
  /// Number of the destination node: node 0's address ends with 1.
  int target() const { return bytes_[kVnet + 19] - 1; }
  const Bytes& bytes() const { return bytes_; }

  /// The packet of `count` of its segments, from `first` on.
  Packet Slice(size_t first, size_t count) const {
    if (count == segments_) return *this;
    const size_t step = vnet()->gso_size;
    const size_t begin = kVnet + headers_ + first * step;
    const size_t end = std::min(bytes_.size(), begin + count * step);
    Packet part;
    part.bytes_.assign(bytes_.data(), bytes_.data() + kVnet + headers_);
    part.bytes_.insert(part.bytes_.end(), bytes_.data() + begin, bytes_.data() + end);
    part.headers_ = headers_;
    part.segments_ = count;
    uint8_t* const data = part.bytes_.data();
    auto* const info = reinterpret_cast<VnetHeader*>(data);
    if (count == 1) {
      info->gso_type = 0;
      info->gso_size = 0;
    }
    auto* const ip = reinterpret_cast<iphdr*>(data + kVnet);
    const size_t ip_bytes = size_t(ip->ihl) * 4;
    auto* const tcp = reinterpret_cast<tcphdr*>(data + kVnet + ip_bytes);
    ip->tot_len = htons(static_cast<uint16_t>(part.bytes_.size() - kVnet));
    ip->id = htons(static_cast<uint16_t>(ntohs(ip->id) + first));
    ip->check = 0;
    ip->check = htons(static_cast<uint16_t>(~Fold(Sum(data + kVnet, ip_bytes))));
    tcp->seq = htonl(static_cast<uint32_t>(ntohl(tcp->seq) + first * step));
    if (first > 0) tcp->res2 &= 1;  // CWR is the first one's
    if (first + count < segments_) tcp->fin = tcp->psh = 0;
    // An open checksum is the sum of data outside of the segment: addresses, protocol, length.
    const size_t tcp_bytes = part.bytes_.size() - kVnet - ip_bytes;
    const auto rest = static_cast<uint32_t>(IPPROTO_TCP + tcp_bytes);
    tcp->check = htons(Fold(Sum(data + kVnet + 12, 8, rest)));
    return part;
  }

 private:
  Packet() = default;
  const VnetHeader* vnet() const {
    return reinterpret_cast<const VnetHeader*>(bytes_.data());
  }
  const iphdr* ip() const { return reinterpret_cast<const iphdr*>(bytes_.data() + kVnet); }

  Bytes bytes_;
  size_t headers_ = 0;  ///< of a segment; 0 if there is only one
  size_t segments_ = 1;
};

/// One direction of a node's link: it computes when packets have left it.
struct Link {
  double rate = 0;   ///< bytes a second; 0: no limit
  double queue = 0;  ///< bytes
  Nanoseconds free = 0;

  /// Number of a packet's segments that fit into the queue.
  size_t Room(const Packet& packet, Nanoseconds now) const {
    if (rate == 0) return packet.segments();
    const double waiting = static_cast<double>(std::max<Nanoseconds>(0, free - now)) * 1e-9 * rate;
    if (waiting == 0) return packet.segments();
    const double of_one = packet.size() / static_cast<double>(packet.segments());
    return std::min(packet.segments(),
                    static_cast<size_t>(std::max(0.0, queue - waiting) / of_one));
  }
  Nanoseconds Take(const Packet& packet, Nanoseconds now) {
    const double wire = rate == 0 ? 0 : packet.size() / rate * 1e9;
    return free = std::max(free, now) + static_cast<Nanoseconds>(wire);
  }
};

struct Node {
  std::string space;
  int fd = -1;
  Link up, down;
  double delay = 0, jitter = 0, loss = 0;
  bool cut = false;
  uint64_t sent = 0, lost = 0, dropped = 0, delivered = 0;  ///< segments
};

struct Event {
  Nanoseconds at;
  uint64_t number;  ///< equal times keep their order
  bool leaves;      ///< the link down; else it comes to it
  Packet packet;
  bool operator<(const Event& other) const {  // the heap's order: the last is first
    return at != other.at ? at > other.at : number > other.number;
  }
};

class Router {
 public:
  Router() { ReadNodes(); }

  void Run() {
    prctl(PR_SET_TIMERSLACK, 1UL);
    poll_ = epoll_create1(EPOLL_CLOEXEC);
    timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (poll_ < 0 || timer_ < 0) Fail("cannot make an epoll or a timer");
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    Watch(STDIN_FILENO);
    Watch(timer_);
    for (const Node& node : nodes_) Watch(node.fd);
    std::cout << "ready" << std::endl;
    for (;;) {
      epoll_event found[32];
      const int count = epoll_wait(poll_, found, 32, -1);
      if (count < 0 && errno != EINTR) Fail("cannot wait");
      for (int i = 0; i < count; ++i) {
        const int fd = found[i].data.fd;
        if (fd == STDIN_FILENO) {
          if (!Command()) return;
        } else if (fd != timer_) {
          TakeFrom(fd);
        }
      }
      RunEvents();
    }
  }

 private:
  void ReadNodes() {
    std::string line;
    int reorder = 0;
    uint64_t seed = 0;
    if (!(std::cin >> seed >> reorder)) Fail("no seed came");
    random_.seed(seed);
    reorder_ = reorder != 0;
    std::getline(std::cin, line);
    while (std::getline(std::cin, line) && line != "start") {
      Node node;
      std::istringstream words(line);
      errno = EINVAL;
      if (!(words >> node.space >> node.up.rate >> node.down.rate >> node.delay >> node.jitter >>
            node.loss >> node.up.queue >> node.down.queue)) {
        Fail("cannot read '" + line + "'");
      }
      node.fd = Open(node.space);
      nodes_.push_back(std::move(node));
    }
    last_.assign(nodes_.size(), std::vector<Nanoseconds>(nodes_.size(), 0));
  }

  /// A TUN device "eth0" in a namespace.
  static int Open(const std::string& space) {
    const int where = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
    if (where < 0 || setns(where, CLONE_NEWNET) != 0) Fail("cannot enter namespace " + space);
    close(where);
    const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) Fail("cannot open /dev/net/tun");
    ifreq wanted{};
    std::strcpy(wanted.ifr_name, "eth0");
    wanted.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    if (ioctl(fd, TUNSETIFF, &wanted) != 0) Fail("cannot make a TUN device");
    if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0) {
      Fail("the kernel hands over no packets of TCP that are still to be cut");
    }
    return fd;
  }

  void Watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event) != 0) Fail("cannot watch a descriptor");
  }

  /// Executes a command of the parent process. \return false at the end of the input
  bool Command() {
    char text[4096];
    const ssize_t n = read(STDIN_FILENO, text, sizeof(text));
    if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
    commands_.append(text, static_cast<size_t>(n));
    for (size_t end; (end = commands_.find('\n')) != std::string::npos;) {
      std::istringstream words(commands_.substr(0, end));
      commands_.erase(0, end + 1);
      std::string word;
      size_t node = 0;
      words >> word >> node;
      if (word == "stats") {
        for (const Node& one : nodes_) {
          std::cout << one.sent << ' ' << one.lost << ' ' << one.dropped << ' ' << one.delivered
                    << '\n';
        }
      } else if (node < nodes_.size()) {
        nodes_[node].cut = word == "cut";
        std::cout << "done\n";
      }
      std::cout.flush();
    }
    return true;
  }

  void TakeFrom(int fd) {
    const auto node = std::find_if(nodes_.begin(), nodes_.end(),
                                   [fd](const Node& one) { return one.fd == fd; });
    for (int i = 0; i < kTurn; ++i) {
      const ssize_t n = read(fd, buffer_, sizeof(buffer_));
      if (n <= 0) return;
      const auto size = static_cast<size_t>(n);
      const bool ipv4 = size >= kVnet + sizeof(iphdr) && buffer_[kVnet] >> 4 == 4;
      if (ipv4) Enter(&*node, Packet(buffer_, size));
    }
  }

  /// Sends a packet of a node through its link up, to the end of the path's delay.
  void Enter(Node* node, const Packet& packet) {
    const auto target = static_cast<size_t>(packet.target());
    if (target >= nodes_.size() || node->cut || nodes_[target].cut) return;
    node->sent += packet.segments();
    const Nanoseconds now = Now();
    const size_t room = node->up.Room(packet, now);
    node->dropped += packet.segments() - room;
    if (room == 0) return;
    const Packet taken = packet.Slice(0, room);
    const Node& to = nodes_[target];
    const double jitter = (node->jitter + to.jitter) / 2;
    const double delay = (node->delay + to.delay) / 2 +
                         (jitter > 0 ? jitter * (2 * uniform_(random_) - 1) : 0);
    Nanoseconds at = node->up.Take(taken, now) + static_cast<Nanoseconds>(std::max(0.0, delay) * 1e9);
    Nanoseconds& last = last_[static_cast<size_t>(node - nodes_.data())][target];
    if (!reorder_) at = std::max(at, last);
    last = at;
    const double loss = (node->loss + to.loss) / 2;
    if (loss == 0) return Push({at, 0, false, taken});
    for (size_t begin = 0; begin < room;) {  // up to each lost segment
      const size_t kept = std::min(Survivors(loss), room - begin);
      if (kept > 0) Push({at, 0, false, taken.Slice(begin, kept)});
      begin += kept + 1;
      if (begin <= room) ++node->lost;
    }
  }

  /// Number of segments that pass before one is lost.
  size_t Survivors(double loss) {
    const double run = std::log(1 - uniform_(random_)) / std::log1p(-loss);
    return static_cast<size_t>(std::min(run, 1e9));
  }

  void Push(Event event) {
    event.number = ++number_;
    events_.push_back(std::move(event));
    std::push_heap(events_.begin(), events_.end());
  }

  /// Processes all due events, and sets the timer for the next.
  void RunEvents() {
    while (!events_.empty() && events_.front().at <= Now()) {
      std::pop_heap(events_.begin(), events_.end());
      Event event = std::move(events_.back());
      events_.pop_back();
      Node& to = nodes_[static_cast<size_t>(event.packet.target())];
      if (event.leaves) {
        Deliver(&to, event.packet);
        continue;
      }
      const size_t room = to.down.Room(event.packet, event.at);
      to.dropped += event.packet.segments() - room;
      if (room == 0) continue;
      Packet taken = room == event.packet.segments() ? std::move(event.packet)
                                                     : event.packet.Slice(0, room);
      const Nanoseconds at = to.down.Take(taken, event.at);
      Push({at, 0, true, std::move(taken)});
    }
    itimerspec when{};
    if (!events_.empty()) {
      when.it_value.tv_sec = events_.front().at / 1000000000;
      when.it_value.tv_nsec = events_.front().at % 1000000000;
    }
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
  }

  static void Deliver(Node* to, const Packet& packet) {
    if (to->cut) return;
    // Fails before the device is up, and while the node's processes end.
    const ssize_t n = write(to->fd, packet.bytes().data(), packet.bytes().size());
    (n > 0 ? to->delivered : to->dropped) += packet.segments();
  }

  std::vector<Node> nodes_;
  std::vector<std::vector<Nanoseconds>> last_;  ///< when the last packet of a path arrives
  bool reorder_ = false;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> uniform_{0.0, 1.0};
  std::vector<Event> events_;  ///< a heap
  uint64_t number_ = 0;
  int poll_ = -1, timer_ = -1;
  std::string commands_;
  uint8_t buffer_[1 << 17];
};

}  // namespace

int main() {
  static Router router;
  router.Run();
  return 0;
}
