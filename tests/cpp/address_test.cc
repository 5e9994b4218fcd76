// Where a van listens and whom it connects to: bad addresses are sentences, late listeners are waited for.
#include <thread>

#include "van_testing.h"

namespace hipress::testing {
namespace {

TEST(VanAddress, ErrorsSayWhatIsWrong) {
  Recorder receiver;
  const auto start = [&](const std::function<void(VanOptions*)>& change, const std::string& host, int port) {
    VanOptions options = TestVanOptions();
    change(&options);
    return ErrorOf([&] { MakeTcpVan(options)->Start(Server(0), host, port, &receiver); });
  };
  const auto same = [](VanOptions*) {};
  const UniqueFd taken = Listen(Resolve("127.0.0.1", 0));
  const int port = ntohs(LocalAddress(taken.get()).sin_port);
  EXPECT_HAS(start(same, "127.0.0.1", port),
             "port " + std::to_string(port) + " on 127.0.0.1 is in use by another process");
  EXPECT_HAS(start(same, "192.0.2.1", 0), "no interface of this machine has that address");
  EXPECT_HAS(start(same, "no-such-host.invalid", 0), "host 'no-such-host.invalid' has no IPv4 address");
  EXPECT_HAS(start([](VanOptions* o) { o->interface = "nope0"; }, "", 0),
             "DMLC_INTERFACE names 'nope0', but the interfaces with an IPv4 address are lo (127.0.0.1)");
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
  Recorder receiver, at_other;
  const auto van = MakeTcpVan(options);
  const auto other = MakeTcpVan(options);
  const std::string address = van->Start(Server(0), "127.0.0.1", 0, &receiver);
  other->Start(Worker(0), "127.0.0.1", 0, &at_other);
  other->Connect(Server(0), address, In(seconds(5)));
  EXPECT_TRUE(receiver.AwaitUps(1));
  EXPECT_HAS(ErrorOf([&] { other->Connect(Server(1), "192.0.2.1:9", In(seconds(5))); }),
             "set HIPRESS_SECRET");
}

}  // namespace
}  // namespace hipress::testing
