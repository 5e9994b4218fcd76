// IPv4 and IPv6 addresses; where a van listens and connects: bad addresses are errors, and a van
// waits for late listeners.
#include <thread>

#include "transport/handshake.h"
#include "van_testing.h"

namespace hipress::testing {
namespace {

/// Whether this machine has an address; IPv6 may be turned off.
bool CanListenOn(const char* host) {
  return ErrorOf([&] { Listen(Resolve(host, 0)); }).empty();
}

TEST(VanAddress, ErrorsSayWhatIsWrong) {
  Recorder receiver;
  const auto start = [&](const std::function<void(VanOptions*)>& change, const std::string& host, int port) {
    VanOptions options = TestVanOptions();
    change(&options);
    return ErrorOf([&] { MakeTcpVan(options)->Start(Server(0), host, port, &receiver); });
  };
  const auto same = [](VanOptions*) {};
  const UniqueFd taken = Listen(Resolve("127.0.0.1", 0));
  const int port = LocalAddress(taken.get()).port();
  EXPECT_HAS(start(same, "127.0.0.1", port),
             "port " + std::to_string(port) + " on 127.0.0.1 is in use by another process");
  EXPECT_HAS(start(same, "192.0.2.1", 0), "no interface of this machine has that address");
  EXPECT_HAS(start(same, "no-such-host.invalid", 0), "host 'no-such-host.invalid' has no IPv4 or IPv6 address");
  EXPECT_HAS(start([](VanOptions* o) { o->interface = "nope0"; }, "", 0),
             "DMLC_INTERFACE names 'nope0', but the interfaces with an address are lo (127.0.0.1");
  EXPECT_HAS(start([](VanOptions* o) { o->secret = ""; }, "0.0.0.0", 0), "set HIPRESS_SECRET");
  EXPECT_HAS(start([](VanOptions* o) { o->tls = "maybe"; }, "127.0.0.1", 0),
             "HIPRESS_TLS is 'maybe', but must be auto, on or off");
}

TEST(VanAddress, ConnectKeepsItsDeadlineAndSaysWhy) {
  Recorder receiver;
  const auto van = MakeTcpVan(TestVanOptions());
  van->Start(Worker(3), "127.0.0.1", 0, &receiver);
  const std::string nowhere = "127.0.0.1:" + std::to_string(FreePort());
  const auto begin = steady_clock::now();
  EXPECT_HAS(ErrorOf([&] { van->Connect(Server(0), nowhere, In(milliseconds(300))); }),
             "worker 3 cannot connect to server 0 at " + nowhere + ": nothing listens there (tried for ");
  EXPECT_LT(steady_clock::now() - begin, seconds(5));
  EXPECT_HAS(ErrorOf([&] { van->Connect(Server(0), "127.0.0.1", In(seconds(1))); }), "written host:port");
  EXPECT_HAS(ErrorOf([&] { van->Connect(Server(0), "127.0.0.1:99999", In(seconds(1))); }), "from 1 to 65535");
}

TEST(VanAddress, ConnectWaitsForALateListener) {
  Recorder receiver, at_late;
  const auto van = MakeTcpVan(TestVanOptions());
  van->Start(Worker(0), "127.0.0.1", 0, &receiver);
  const int port = FreePort();
  const auto late = MakeTcpVan(TestVanOptions());
  std::thread starter([&] {
    std::this_thread::sleep_for(milliseconds(200));
    late->Start(Server(0), "127.0.0.1", port, &at_late);
  });
  van->Connect(Server(0), "127.0.0.1:" + std::to_string(port), In(seconds(5)));
  starter.join();
  EXPECT_TRUE(at_late.AwaitUps(1));
}

TEST(VanAddress, LoopbackNeedsNoSecret) {
  VanOptions options = TestVanOptions();
  options.secret = "";
  for (const char* loopback : {"127.0.0.1", "::ffff:127.0.0.1", "::1"}) {
    if (!CanListenOn(loopback)) continue;
    Recorder receiver, at_other;
    const auto van = MakeTcpVan(options);
    const auto other = MakeTcpVan(options);
    const std::string address = van->Start(Server(0), loopback, 0, &receiver);
    other->Start(Worker(0), loopback, 0, &at_other);
    other->Connect(Server(0), address, In(seconds(5)));
    EXPECT_TRUE(receiver.AwaitUps(1)) << address;
    for (const char* distant : {"192.0.2.1:9", "[2001:db8::1]:9", "[::ffff:192.0.2.1]:9"}) {
      EXPECT_HAS(ErrorOf([&] { other->Connect(Server(1), distant, In(seconds(5))); }), "set HIPRESS_SECRET");
    }
  }
}

TEST(Address, TextsOfBothVersionsAreSplitAndJoined) {
  using HostAndPort = std::pair<std::string, int>;
  EXPECT_EQ(SplitAddress("10.0.0.2:4711"), HostAndPort("10.0.0.2", 4711));
  EXPECT_EQ(SplitAddress("[2001:db8::2]:4711"), HostAndPort("2001:db8::2", 4711));
  EXPECT_EQ(JoinAddress("2001:db8::2", 1), "[2001:db8::2]:1");
  EXPECT_EQ(JoinAddress("[2001:db8::2]", 1), "[2001:db8::2]:1");
  EXPECT_EQ(JoinAddress("host", 1), "host:1");
  EXPECT_EQ(Resolve("2001:db8::2", 4711).ToText(), "[2001:db8::2]:4711");
  EXPECT_EQ(Resolve("[2001:db8::2]", 4711).ToText(), "[2001:db8::2]:4711");
  for (const char* bad : {"2001:db8::2", "::1:80", "[::1]", "[::1]:0", "[]:80", "[host]:80", "[::1:80", ":80", "h:65536"}) {
    EXPECT_HAS(ErrorOf([&] { SplitAddress(bad); }), "[IPv6 address]:port") << bad;
  }
}

TEST(Address, AMappedAddressIsTheIpv4AddressItContains) {
  const SocketAddress mapped = Resolve("::ffff:10.0.0.2", 1);
  EXPECT_EQ(mapped.ToText(), "10.0.0.2:1");
  EXPECT_EQ(mapped.family(), AF_INET);
  EXPECT_TRUE(mapped.IsSameHost(Resolve("10.0.0.2", 2)));
  EXPECT_FALSE(mapped.IsLoopback());
  EXPECT_TRUE(Resolve("::ffff:127.0.0.1", 0).IsLoopback());
  EXPECT_TRUE(Resolve("::1", 0).IsLoopback());
  EXPECT_FALSE(Resolve("::", 0).IsLoopback());
}

TEST(Address, LinkLocalAddressesAreRefused) {
  for (const char* host : {"fe80::1", "fe80::1%lo", "fe80::1%eth7", "[fe80::1%lo]"}) {
    EXPECT_HAS(ErrorOf([&] { Resolve(host, 0); }), std::string("'") + host + "' is a link-local IPv6 address") << host;
  }
}

TEST(Address, TlsIsOffBetweenAddressesOfOneHostOnly) {
  const auto wants = [](const char* a, const char* b) { return WantsTls("auto", Resolve(a, 1), Resolve(b, 2)); };
  EXPECT_FALSE(wants("::1", "::1"));
  EXPECT_FALSE(wants("::1", "127.0.0.1"));
  EXPECT_FALSE(wants("::ffff:127.0.0.1", "127.0.0.2"));
  EXPECT_FALSE(wants("2001:db8::1", "2001:db8::1"));
  EXPECT_FALSE(wants("::ffff:10.0.0.1", "10.0.0.1"));
  EXPECT_TRUE(wants("2001:db8::1", "2001:db8::2"));
  EXPECT_TRUE(wants("::ffff:10.0.0.1", "::ffff:10.0.0.2"));
  EXPECT_TRUE(wants("::1", "2001:db8::1"));
}

TEST(Address, InterfacesAndRoutesHaveAddressesOfBothVersions) {
  EXPECT_EQ(AddressOfInterface("lo"), "127.0.0.1");
  EXPECT_EQ(AddressTowards("127.0.0.1"), "127.0.0.1");
  if (!CanListenOn("::1")) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_EQ(AddressOfInterface("lo", AF_INET6), "::1");
  EXPECT_EQ(AddressTowards("::1"), "::1");
  EXPECT_EQ(AddressTowards("[::1]"), "::1");
}

TEST(Address, ALaneNamesWhereItsCallerListensInBothVersions) {
  for (const char* host : {"10.0.0.2", "2001:db8::2"}) {
    const SocketAddress listens = Resolve(host, 4711);
    EXPECT_EQ(ListensAt(MakeLaneId(1, Purpose::kPlain, listens)).ToText(), listens.ToText());
  }
  EXPECT_EQ(ListensAt({}).port(), 0);
}

TEST(Address, AListenerForBothVersionsSeesIpv4CallersAsSuch) {
  if (!CanListenOn("::")) GTEST_SKIP() << "this machine has no IPv6";
  const UniqueFd listener = Listen(Resolve("::", 0));
  int error = 0;
  const UniqueFd caller = ConnectOnce(Resolve("127.0.0.1", LocalAddress(listener.get()).port()), In(seconds(5)), &error);
  if (error == ECONNREFUSED) GTEST_SKIP() << "this machine separates the versions (net.ipv6.bindv6only)";
  ASSERT_TRUE(WaitFor(listener.get(), true, In(seconds(5))));
  const UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(RemoteAddress(accepted.get()).HostText(), "127.0.0.1");
  EXPECT_TRUE(IsSameHost(accepted.get()));
}

}  // namespace
}  // namespace hipress::testing
