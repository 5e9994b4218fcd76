// Connections between machines break and resume: nothing is lost, and a dead process is still
// detected at once. Different addresses of the loopback network are two machines to a van.
#include <sys/socket.h>

#include <atomic>
#include <list>
#include <random>

#include "raw_client.h"
#include "van_testing.h"

namespace hipress::testing {
namespace {

/// Forwards connections to an address, as a router does, and drops them on request.
class Router {
 public:
  explicit Router(const std::string& to) : listener_(Listen(Resolve("127.0.0.3", 0))) {
    const auto [host, port] = SplitAddress(to);
    to_ = Resolve(host, port);
    thread_ = std::thread([this] { Run(); });
  }
  ~Router() {
    stop_ = true;
    thread_.join();
  }
  std::string address() const { return LocalAddress(listener_.get()).ToText(); }
  /// Ends all connections; with a reset, or as if each side had closed.
  void Cut(bool reset) {
    cut_ = reset ? 2 : 1;
    while (cut_ != 0) std::this_thread::sleep_for(milliseconds(1));
  }
  /// Ends all connections, and refuses new ones for a while.
  void Refuse(milliseconds time) {
    refuse_ = time;
    Cut(true);
  }
  /// Swallows what arrives on the current connections and, if `later`, also on those that follow.
  void Forget(bool later = false) {
    forget_later_ = later;
    forget_ = true;
    while (forget_) std::this_thread::sleep_for(milliseconds(1));
  }

 private:
  struct Flow {
    UniqueFd sockets[2];
    std::string waiting[2];  ///< bytes for either end
    bool over[2] = {};       ///< no more will follow
    bool forgotten = false;
  };
  void Run() {
    while (!stop_) {
      if (const int how = cut_; how != 0) {
        for (Flow& flow : flows_) {
          for (UniqueFd& end : flow.sockets) {
            const linger at_once{1, 0};
            if (how == 2) setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
          }
        }
        flows_.clear();
        if (const milliseconds time = refuse_.exchange(milliseconds(0)); time.count() > 0) {
          const SocketAddress at = LocalAddress(listener_.get());
          listener_ = UniqueFd();
          std::this_thread::sleep_for(time);
          listener_ = Listen(at);
        }
        cut_ = 0;
      }
      if (forget_) {
        for (Flow& flow : flows_) flow.forgotten = true;
        forget_ = false;
      }
      bool idle = true;
      UniqueFd caller(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (caller.get() >= 0) {
        int error = 0;
        flows_.emplace_back();
        flows_.back().sockets[0] = std::move(caller);
        flows_.back().sockets[1] = ConnectOnce(to_, In(seconds(5)), &error);
        flows_.back().forgotten = forget_later_;
        if (error != 0) flows_.pop_back();
      }
      flows_.remove_if([&](Flow& flow) { return !flow.forgotten && !Forward(&flow, &idle); });
      if (idle) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  /// \return false when both ends have closed, or one is broken
  static bool Forward(Flow* flow, bool* idle) {
    for (int e = 0; e < 2; ++e) {
      std::string& waiting = flow->waiting[e];
      if (flow->over[e]) continue;
      if (waiting.empty()) {
        waiting.resize(1 << 16);
        const ssize_t n = recv(flow->sockets[1 - e].get(), waiting.data(), waiting.size(), MSG_DONTWAIT);
        waiting.resize(n > 0 ? static_cast<size_t>(n) : 0);
        if (n < 0 && errno != EAGAIN) return false;
        flow->over[e] = n == 0;
        if (n == 0) {
          shutdown(flow->sockets[e].get(), SHUT_WR);
          continue;
        }
      }
      const ssize_t n = send(flow->sockets[e].get(), waiting.data(), waiting.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EAGAIN) return false;
      if (n > 0) waiting.erase(0, static_cast<size_t>(n));
      *idle &= n <= 0;
    }
    return !flow->over[0] || !flow->over[1];
  }

  UniqueFd listener_;
  SocketAddress to_;
  std::list<Flow> flows_;
  std::atomic<bool> stop_{false}, forget_{false}, forget_later_{false};
  std::atomic<int> cut_{0};
  std::atomic<milliseconds> refuse_{milliseconds(0)};
  std::thread thread_;
};

struct Kind {
  const char* tls;
  int streams;
};

class ResumeTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    options_.tls = GetParam().tls;
    options_.streams = GetParam().streams;
    options_.heartbeat_timeout = seconds(20);
  }
  /// Worker 0 connected to server 0, through the router.
  void ConnectPair() {
    worker_ = MakeTcpVan(options_);
    server_ = MakeTcpVan(options_);
    worker_->Start(Worker(0), "127.0.0.1", 0, &at_worker_);
    router_ = std::make_unique<Router>(server_->Start(Server(0), "127.0.0.1", 0, &at_server_));
    worker_->Connect(Server(0), router_->address(), In(seconds(10)));
    ASSERT_TRUE(at_server_.AwaitUps(1));
  }
  void TearDown() override {
    worker_.reset();
    server_.reset();
  }
  /// Makes room for another pair.
  void Forget() {
    TearDown();
    for (Recorder* recorder : {&at_worker_, &at_server_}) {
      recorder->ups.clear();
      recorder->downs.clear();
      recorder->messages.clear();
    }
  }
  bool BothAreUp() {
    const auto up = [](Recorder* at) { return at->Await([at] { return at->downs.empty(); }, milliseconds(0)); };
    return up(&at_worker_) && up(&at_server_);
  }
  uint64_t Resumed() const {
    return std::min(worker_->counters().resumed_connections.load(),
                    server_->counters().resumed_connections.load());
  }

  VanOptions options_ = TestVanOptions();
  Recorder at_worker_, at_server_;
  std::shared_ptr<Van> worker_, server_;
  std::unique_ptr<Router> router_;
};

TEST_P(ResumeTest, AllMessagesArriveOnceAndInOrderWhileTheConnectionBreaks) {
  ConnectPair();
  constexpr uint64_t kCount = 400;
  std::mt19937_64 random(5);
  std::thread breaks([&] {
    for (uint64_t i = 1; i <= 10; ++i) {
      router_->Cut(i % 2 == 0);
      EXPECT_TRUE(Eventually([&] { return Resumed() >= i; }));
    }
  });
  std::atomic<uint64_t> done{0};
  for (uint64_t i = 0; i < kCount || Resumed() < 10; ++i) {
    if (!BothAreUp()) break;
    const std::string text(random() % 60000, static_cast<char>(i));
    worker_->Send(Server(0), Text(MessageKind::kData, text, i), 0, [&](bool sent) { done += sent; });
    server_->Send(Worker(0), Text(MessageKind::kData, text, i), 0, [&](bool sent) { done += sent; });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    // Under a sanitizer messages are slow; the connection is to break while they are in transit,
    // not queued.
    EXPECT_TRUE(Eventually([&] { return done + 100 > 2 * i; }, seconds(20))) << done << " of " << 2 * i;
    if (i + 1 >= kCount && Resumed() >= 10) {
      ASSERT_TRUE(at_worker_.AwaitMessages(i + 1));
      ASSERT_TRUE(at_server_.AwaitMessages(i + 1));
    }
  }
  breaks.join();
  EXPECT_TRUE(BothAreUp());
  for (const Recorder* recorder : {&at_worker_, &at_server_}) {
    ASSERT_EQ(recorder->messages.size(), done / 2);
    for (uint64_t i = 0; i < recorder->messages.size(); ++i) {
      const Message& message = recorder->messages[i].second;
      ASSERT_EQ(message.header.key, i);
      const Buffer& payload = message.payload;
      ASSERT_TRUE(payload.size == 0 || payload.data[payload.size - 1] == uint8_t(i));
    }
  }
  EXPECT_EQ(at_server_.ups.size(), 1u);
  // And it can still end normally.
  worker_->Stop();
  ASSERT_TRUE(at_server_.AwaitDowns(1));
  EXPECT_TRUE(at_server_.downs[0].graceful);
}

TEST_P(ResumeTest, AConnectionThatARouterForgetsIsResumed) {
  options_.heartbeat_timeout = milliseconds(3000);
  ConnectPair();
  router_->Forget();
  worker_->Send(Server(0), Text(MessageKind::kData, "over the new one"));
  EXPECT_TRUE(at_server_.AwaitMessages(1));
  EXPECT_TRUE(Eventually([&] { return Resumed() >= 1; }));
  EXPECT_TRUE(BothAreUp());
}

TEST_P(ResumeTest, AGoodbyeOutlivesTheBreakThatItIsLostIn) {
  for (const bool worker_leaves : {false, true}) {
    ConnectPair();
    Van* const leaver = worker_leaves ? worker_.get() : server_.get();
    Recorder* const other = worker_leaves ? &at_server_ : &at_worker_;
    router_->Forget();
    leaver->Send(worker_leaves ? Server(0) : Worker(0), Text(MessageKind::kData, "the last"));
    std::thread leave([&] { leaver->Stop(); });
    std::this_thread::sleep_for(milliseconds(100));
    router_->Cut(true);
    const bool down = other->AwaitDowns(1);
    leave.join();
    ASSERT_TRUE(down);
    EXPECT_TRUE(other->downs[0].graceful) << worker_leaves << ": " << other->downs[0].reason;
    EXPECT_EQ(other->messages.size(), 1u);
    Forget();
  }
}

TEST_P(ResumeTest, AGoodbyeIsNotSwallowedByARouterThatForgetsTheConnection) {
  options_.heartbeat_interval = seconds(1);  // as usual: a leaving node waits for its peers
  for (const bool worker_leaves : {false, true}) {
    ConnectPair();
    Van* const leaver = worker_leaves ? worker_.get() : server_.get();
    Recorder* const other = worker_leaves ? &at_server_ : &at_worker_;
    router_->Forget();
    // More than the router's kernel takes.
    leaver->Send(worker_leaves ? Server(0) : Worker(0), Text(MessageKind::kData, std::string(32 << 20, 'x')));
    leaver->Stop();
    ASSERT_TRUE(other->AwaitDowns(1));
    EXPECT_TRUE(other->downs[0].graceful) << worker_leaves << ": " << other->downs[0].reason;
    EXPECT_EQ(other->messages.size(), 1u);
    Forget();
  }
}

TEST_P(ResumeTest, WhoLeavesInPeaceDoesSoAtOnce) {
  ConnectPair();
  router_->Cut(true);
  ASSERT_TRUE(Eventually([&] { return Resumed() >= 1; }));
  const auto begin = steady_clock::now();
  const uint64_t refused = server_->counters().refused_connections;
  worker_->Stop();
  EXPECT_LT(steady_clock::now() - begin, milliseconds(1900));  // otherwise it would wait for 2 s
  ASSERT_TRUE(at_server_.AwaitDowns(1));
  EXPECT_TRUE(at_server_.downs[0].graceful);
  EXPECT_EQ(server_->counters().refused_connections, refused);
}

TEST_P(ResumeTest, AnotherMachinesFirstRefusalsAreNoDeath) {
  ConnectPair();
  router_->Refuse(milliseconds(100));
  worker_->Send(Server(0), Text(MessageKind::kData, "after it"));
  EXPECT_TRUE(at_server_.AwaitMessages(1));
  EXPECT_TRUE(BothAreUp());
  // But a peer that continues to refuse is dead, long before its silence would show that.
  const auto begin = steady_clock::now();
  router_->Refuse(milliseconds(2000));
  ASSERT_TRUE(at_worker_.AwaitDowns(1));
  EXPECT_LT(steady_clock::now() - begin, seconds(10));
}

TEST_P(ResumeTest, AbortIsReportedBeforeTheConnectionCloses) {
  ConnectPair();
  router_->Cut(true);
  ASSERT_TRUE(Eventually([&] { return Resumed() >= 1; }));
  std::atomic<bool> sent{false};
  server_->Send(Worker(0), Text(MessageKind::kData, "why"), 0, [&](bool ok) { sent = ok; });
  ASSERT_TRUE(Eventually([&] { return sent.load(); }));
  const auto begin = steady_clock::now();
  server_->Abort();
  ASSERT_TRUE(at_worker_.AwaitDowns(1));
  EXPECT_LT(steady_clock::now() - begin, seconds(5));
  EXPECT_EQ(at_worker_.messages.size(), 1u);
  EXPECT_EQ(at_worker_.downs[0].reason, "closed the connection without saying goodbye");
}

TEST_P(ResumeTest, WhoCannotBeReachedAgainIsDeadAfterTheTimeOfSilence) {
  options_.heartbeat_timeout = milliseconds(1500);
  ConnectPair();
  const auto begin = steady_clock::now();
  router_->Forget(true);
  router_->Cut(true);
  ASSERT_TRUE(at_server_.AwaitDowns(1));
  ASSERT_TRUE(at_worker_.AwaitDowns(1));
  EXPECT_GT(steady_clock::now() - begin, seconds(1));
  EXPECT_EQ(Resumed(), 0u);
  // The break is detected here first, or at the other end, which reports it.
  EXPECT_HAS(at_worker_.downs[0].reason, ", and could not be reached again for");
}

TEST_P(ResumeTest, AProcessThatListensAtTheSamePlaceIsNotTakenForTheOldOne) {
  worker_ = MakeTcpVan(options_);
  server_ = MakeTcpVan(options_);
  worker_->Start(Worker(0), "127.0.0.1", 0, &at_worker_);
  const std::string address = server_->Start(Server(0), "127.0.0.2", 0, &at_server_);
  worker_->Connect(Server(0), address, In(seconds(10)));
  ASSERT_TRUE(at_server_.AwaitUps(1));
  const auto other = MakeTcpVan(options_);
  Recorder at_other;
  const std::string other_address = other->Start(Server(0), "127.0.0.2", 0, &at_other);
  RawClient stranger(other_address);
  // A peer that resumes a connection unknown to this process is refused, and nothing else happens.
  const bool tls = std::string(GetParam().tls) == "on";
  LaneId id;
  id.connection = 12345;
  id.purpose = Purpose::kResume;
  id.generation = 1;
  EXPECT_HAS(ErrorOf([&] {
               CallerHandshake(stranger.fd(), options_.secret, Worker(0), Server(0), tls, In(seconds(5)), id);
             }),
             "no longer has that connection");
  EXPECT_TRUE(at_other.ups.empty());
  // A peer without the secret does not receive that answer.
  for (const Purpose purpose : {Purpose::kResume, Purpose::kProbe}) {
    id.purpose = purpose;
    RawClient guesser(address);
    EXPECT_HAS(ErrorOf([&] {
                 CallerHandshake(guesser.fd(), "a secret that is wrong", Worker(0), Server(0), tls,
                                 In(seconds(5)), id);
               }),
               "another job secret");
  }
  EXPECT_EQ(Resumed(), 0u);
  EXPECT_TRUE(BothAreUp());
}

INSTANTIATE_TEST_SUITE_P(All, ResumeTest,
                         ::testing::Values(Kind{"off", 1}, Kind{"on", 1}, Kind{"off", 3}, Kind{"on", 3}),
                         [](const auto& info) {
                           return std::string(info.param.tls) + std::to_string(info.param.streams);
                         });

}  // namespace
}  // namespace hipress::testing
