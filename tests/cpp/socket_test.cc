// Options that a connection sets in the kernel.
#include <netinet/tcp.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "van_testing.h"

namespace hipress::testing {
namespace {

std::string CongestionControl(int fd) {
  char name[16] = "";
  socklen_t size = sizeof(name);
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
  return name;
}

class ShortLink : public ::testing::Test {
 protected:
  void SetUp() override {
    int error = 0;
    listener_ = Listen(Resolve("127.0.0.1", 0));
    socket_ = ConnectOnce(LocalAddress(listener_.get()), Deadline{In(seconds(5))}, &error);
    ASSERT_EQ(error, 0);
  }
  /// What is used in the end where the kernel would use this; empty if it may not.
  std::string InPlaceOf(const std::string& usual) {
    if (setsockopt(socket_.get(), IPPROTO_TCP, TCP_CONGESTION, usual.data(), socklen_t(usual.size())) != 0) {
      return "";
    }
    Tune(socket_.get(), seconds(5));
    return CongestionControl(socket_.get());
  }
  UniqueFd listener_, socket_;
};

TEST_F(ShortLink, DoesWithoutBbrWhichSharesItUnevenly) {
  const std::string used = InPlaceOf("bbr");
  if (used.empty()) GTEST_SKIP() << "this kernel has no BBR, or allows root alone to use it";
  EXPECT_TRUE(used == "cubic" || used == "reno") << used;
}

TEST_F(ShortLink, UsesWhatItIsTold) {
  Tune(socket_.get(), seconds(5), "reno");
  EXPECT_EQ(CongestionControl(socket_.get()), "reno");
  CheckCongestionControl("reno");
  EXPECT_HAS(ErrorOf([] { CheckCongestionControl("nope"); }),
             "HIPRESS_CONGESTION_CONTROL is 'nope', but this kernel allows ");
}

TEST_F(ShortLink, KeepsWhatElseTheSystemUses) { EXPECT_EQ(InPlaceOf("reno"), "reno"); }

/// Answers the next SYN to `port` of ::1 with ICMPv6's "port unreachable".
void RejectNextCall6(int raw_tcp, in_port_t port) {
  UniqueFd icmp(socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6));
  ASSERT_GE(icmp.get(), 0);
  for (;;) {
    ASSERT_TRUE(WaitFor(raw_tcp, true, In(seconds(5))));
    uint8_t packet[256];  // without its IP header
    const ssize_t n = recv(raw_tcp, packet, sizeof(packet), 0);
    ASSERT_GE(n, 20);
    in_port_t to;
    std::memcpy(&to, packet + 2, sizeof(to));
    if (to != port) continue;
    uint8_t answer[8 + 40 + 20] = {1, 4};  // its header, then the packet's IP header and TCP's
    uint8_t* const ip = answer + 8;
    ip[0] = 6 << 4;
    ip[5] = static_cast<uint8_t>(n);
    ip[6] = IPPROTO_TCP;
    ip[7] = 64;
    ip[23] = ip[39] = 1;  // from ::1 to ::1
    std::memcpy(answer + 8 + 40, packet, 20);
    const auto target = Resolve("::1", 0).endpoint();
    ASSERT_EQ(sendto(icmp.get(), answer, sizeof(answer), 0, target.data(), target.size()),
              static_cast<ssize_t>(sizeof(answer)));
    return;
  }
}

/// Answers the next SYN to `port` of 127.0.0.1 with ICMP's "port unreachable", as a firewall does
/// that rejects.
void RejectNextCall(int raw_tcp, in_port_t port) {
  UniqueFd icmp(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
  ASSERT_GE(icmp.get(), 0);
  for (;;) {
    ASSERT_TRUE(WaitFor(raw_tcp, true, In(seconds(5))));
    uint8_t packet[256];
    const ssize_t n = recv(raw_tcp, packet, sizeof(packet), 0);
    ASSERT_GE(n, 40);
    in_port_t to;
    std::memcpy(&to, packet + 22, sizeof(to));
    if (to != port) continue;
    uint8_t answer[8 + 28] = {3, 3};  // its header, then the packet's IP header and 8 bytes of TCP's
    std::memcpy(answer + 8, packet, 28);
    uint32_t sum = 0;
    for (size_t i = 0; i < sizeof(answer); i += 2) sum += answer[i] << 8 | answer[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    const auto check = static_cast<uint16_t>(~(sum + (sum >> 16)));
    answer[2] = static_cast<uint8_t>(check >> 8);
    answer[3] = static_cast<uint8_t>(check);
    const auto target = Resolve("127.0.0.1", 0).endpoint();
    ASSERT_EQ(sendto(icmp.get(), answer, sizeof(answer), 0, target.data(), target.size()),
              static_cast<ssize_t>(sizeof(answer)));
    return;
  }
}

bool IsOlderThan(int major, int minor) {
  utsname system{};
  int found[2] = {0, 0};
  return uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &found[0], &found[1]) == 2 &&
         (found[0] < major || (found[0] == major && found[1] < minor));
}

class Connect : public ::testing::TestWithParam<const char*> {};

TEST_P(Connect, AFirewallsRefusalIsNotTheMachinesOwn) {
  const SocketAddress host = Resolve(GetParam(), 0);
  UniqueFd raw(socket(host.family(), SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP));
  if (raw.get() < 0) GTEST_SKIP() << "needs root";
  if (IsOlderThan(5, 19)) GTEST_SKIP() << "this kernel does not tell";
  // A listener whose backlog is full answers no call.
  UniqueFd listener(socket(host.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any_port = host.endpoint();
  if (bind(listener.get(), any_port.data(), any_port.size()) != 0) GTEST_SKIP() << "this machine has no IPv6";
  ASSERT_EQ(listen(listener.get(), 0), 0);
  const SocketAddress address = LocalAddress(listener.get());
  int error = 0;
  std::vector<UniqueFd> callers;
  do {
    callers.push_back(ConnectOnce(address, In(milliseconds(300)), &error));
  } while (callers.back().get() >= 0 && callers.size() < 10);
  ASSERT_EQ(error, ETIMEDOUT);
  raw = UniqueFd(socket(host.family(), SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP));
  const in_port_t port = htons(static_cast<uint16_t>(address.port()));
  const auto reject = host.family() == AF_INET ? RejectNextCall : RejectNextCall6;
  std::thread firewall([&] { reject(raw.get(), port); });
  EXPECT_EQ(ConnectOnce(address, In(seconds(5)), &error).get(), -1);
  firewall.join();
  EXPECT_EQ(error, EHOSTUNREACH);
  listener = UniqueFd();
  EXPECT_EQ(ConnectOnce(address, In(seconds(5)), &error).get(), -1);
  EXPECT_EQ(error, ECONNREFUSED);
}

INSTANTIATE_TEST_SUITE_P(BothVersions, Connect, ::testing::Values("127.0.0.1", "::1"),
                         [](const auto& info) { return std::string(info.index == 0 ? "Ipv4" : "Ipv6"); });

}  // namespace
}  // namespace hipress::testing
