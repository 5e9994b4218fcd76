// Guarantees of the van for all its transports: TCP, TLS, several connections as one stream, shared
// memory.
#include <atomic>
#include <future>
#include <random>

#include "van_testing.h"

namespace hipress::testing {
namespace {

enum class Kind { kTcp, kTls, kStriped, kStripedTls, kSharedMemory };

const char* NameOf(Kind kind) {
  const char* const names[] = {"Tcp", "Tls", "Striped", "StripedTls", "SharedMemory"};
  return names[static_cast<int>(kind)];
}

class VanTest : public ::testing::TestWithParam<Kind> {
 protected:
  std::shared_ptr<Van> Make(VanOptions options = TestVanOptions()) {
    // Silence is failure_test.cc's matter; here it would be a sanitizer's on a busy machine.
    options.heartbeat_timeout = seconds(20);
    const bool striped = GetParam() == Kind::kStriped || GetParam() == Kind::kStripedTls;
    options.streams = striped ? 5 : 0;
    options.tls = GetParam() == Kind::kTls || GetParam() == Kind::kStripedTls ? "on" : "off";
    options.shared_memory = GetParam() == Kind::kSharedMemory;
    return MakeTcpVan(std::move(options));
  }
  /// Worker 0 connected to server 0.
  void ConnectPair() {
    worker_ = Make();
    server_ = Make();
    worker_->Start(Worker(0), "127.0.0.1", 0, &at_worker_);
    address_ = server_->Start(Server(0), "127.0.0.1", 0, &at_server_);
    worker_->Connect(Server(0), address_, In(seconds(5)));
    ASSERT_TRUE(at_server_.AwaitUps(1));
    ASSERT_TRUE(at_worker_.AwaitUps(1));
    EXPECT_EQ(at_server_.ups[0], Worker(0));
    EXPECT_EQ(at_worker_.ups[0], Server(0));
  }
  void TearDown() override {
    worker_.reset();
    server_.reset();
  }

  Recorder at_worker_, at_server_;
  std::shared_ptr<Van> worker_, server_;
  std::string address_;
};

Message Random(size_t size, uint64_t seed) {
  Message message(MessageKind::kData);
  message.header.key = seed;
  message.payload = AllocateBuffer(std::max<size_t>(size, 8));
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < size; i += 8) *reinterpret_cast<uint64_t*>(message.payload.data + i) = random();
  message.payload.size = size;
  return message;
}

bool Same(const Buffer& a, const Buffer& b) {
  return a.size == b.size && (a.size == 0 || std::equal(a.data, a.data + a.size, b.data));
}

TEST_P(VanTest, EchoesEverySize) {
  at_server_.on_message = [this](NodeId from, const Message& message) {
    server_->Send(from, message);
  };
  ConnectPair();
  std::vector<size_t> sizes = {0, 1, 2, 63, 64, 65, 100, 1023, 1024, 1025, 4096, 65535, 65536, 65537};
  for (const size_t around : {size_t(256) << 10, size_t(1) << 20, size_t(16) << 20}) {
    for (const int64_t offset : {-65, -64, -63, -1, 0, 1}) {
      sizes.push_back(around + static_cast<size_t>(offset));
    }
  }
  std::vector<Message> sent;
  for (const size_t size : sizes) {
    sent.push_back(Random((size + 7) / 8 * 8, size));
    sent.back().payload.size = size;
    worker_->Send(Server(0), sent.back());
  }
  ASSERT_TRUE(at_worker_.AwaitMessages(sizes.size(), seconds(60)))
      << (at_worker_.downs.empty() ? "the connection is up" : at_worker_.downs[0].reason);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto& [from, message] = at_worker_.messages[i];
    EXPECT_EQ(from, Server(0));
    EXPECT_EQ(message.header.key, sizes[i]);
    EXPECT_EQ(message.header.payload_bytes, sizes[i]);
    EXPECT_TRUE(Same(message.payload, sent[i].payload)) << "size " << sizes[i];
  }
}

TEST_P(VanTest, KeepsTheOrderOfManyMessages) {
  ConnectPair();
  std::mt19937 random(1);
  constexpr size_t kCount = 5000;
  for (size_t i = 0; i < kCount; ++i) {
    const size_t size = random() % 10 == 0 ? random() % 100000 : random() % 2000;
    worker_->Send(Server(0), Text(MessageKind::kData, std::string(size, static_cast<char>(i)), i));
  }
  ASSERT_TRUE(at_server_.AwaitMessages(kCount, seconds(60)));
  for (size_t i = 0; i < kCount; ++i) {
    const Message& message = at_server_.messages[i].second;
    ASSERT_EQ(message.header.key, i);
    const Buffer& payload = message.payload;
    ASSERT_TRUE(payload.size == 0 || payload.data[payload.size - 1] == uint8_t(i));
  }
}

TEST_P(VanTest, UrgentMessagesOvertakeQueuedOnes) {
  ConnectPair();
  std::promise<void> blocked, go;
  // Holds the sender's thread, so that what follows is still queued when the urgent one comes.
  worker_->Send(Server(0), Text(MessageKind::kData, "first", 0), 0, [&](bool) {
    blocked.set_value();
    go.get_future().wait();
  });
  blocked.get_future().wait();
  const std::vector<std::pair<int, uint64_t>> queued = {{0, 3}, {-5, 6}, {0, 4}, {7, 2}, {1000000, 1}, {-1, 5}};
  for (const auto& [priority, key] : queued) {
    worker_->Send(Server(0), Text(MessageKind::kData, "x", key), priority);
  }
  go.set_value();
  ASSERT_TRUE(at_server_.AwaitMessages(7));
  for (uint64_t key = 0; key < 7; ++key) EXPECT_EQ(at_server_.messages[key].second.header.key, key);
}

TEST_P(VanTest, DoneTellsWhetherItWasSentAndFreesThePayload) {
  ConnectPair();
  std::promise<bool> sent;
  Message message = Random(1 << 20, 1);
  const std::weak_ptr<void> payload = message.payload.owner;
  worker_->Send(Server(0), std::move(message), 0, [&](bool ok) { sent.set_value(ok); });
  EXPECT_TRUE(sent.get_future().get());
  ASSERT_TRUE(at_server_.AwaitMessages(1));
  EXPECT_TRUE(payload.expired());

  std::promise<bool> unknown;
  worker_->Send(Server(7), Random(100, 1), 0, [&](bool ok) { unknown.set_value(ok); });
  EXPECT_FALSE(unknown.get_future().get());
}

TEST_P(VanTest, PayloadLandsWhereTheReceiverSays) {
  std::vector<uint8_t> place(3 << 20);
  at_server_.on_header = [&](NodeId, const MessageHeader& header) {
    return Buffer{place.data() + header.key, place.size() - header.key, nullptr};
  };
  ConnectPair();
  const Message small = Random(1000, 64);
  const Message large = Random(2 << 20, 4096);
  worker_->Send(Server(0), small);
  worker_->Send(Server(0), large);
  ASSERT_TRUE(at_server_.AwaitMessages(2));
  EXPECT_EQ(at_server_.messages[0].second.payload.data, place.data() + 64);
  EXPECT_EQ(at_server_.messages[1].second.payload.data, place.data() + 4096);
  EXPECT_TRUE(Same(at_server_.messages[0].second.payload, small.payload));
  EXPECT_TRUE(Same(at_server_.messages[1].second.payload, large.payload));
}

TEST_P(VanTest, GoodbyeComesAfterWhatIsQueuedAndIsGraceful) {
  ConnectPair();
  std::atomic<int> done{0};
  for (int i = 0; i < 50; ++i) {
    worker_->Send(Server(0), Random(200000, i), -i, [&](bool sent) { done += sent; });
  }
  worker_->Stop(seconds(10));
  EXPECT_EQ(done, 50);
  ASSERT_TRUE(at_server_.AwaitDowns(1));
  EXPECT_EQ(at_server_.messages.size(), 50u);
  EXPECT_TRUE(at_server_.downs[0].graceful);
  EXPECT_EQ(at_server_.downs[0].peer, Worker(0));
  worker_->Stop();
  server_->Stop();
  EXPECT_EQ(at_server_.downs.size(), 1u);
  EXPECT_EQ(at_worker_.downs.size(), 1u);
}

TEST_P(VanTest, AbortIsAFailureForThePeer) {
  ConnectPair();
  worker_->Abort();
  ASSERT_TRUE(at_server_.AwaitDowns(1));
  EXPECT_FALSE(at_server_.downs[0].graceful);
  EXPECT_EQ(at_server_.downs[0].reason, "closed the connection without saying goodbye");
}

TEST_P(VanTest, EverySendIsAnsweredWhenThePeerGoes) {
  ConnectPair();
  std::atomic<int> answered{0};
  std::atomic<bool> stop{false};
  int asked = 0;
  std::thread sender([&] {
    while (!stop) {
      worker_->Send(Server(0), Random(100000, 1), 0, [&](bool) { ++answered; });
      ++asked;
      while (asked - answered > 100 && !stop) std::this_thread::yield();
    }
  });
  ASSERT_TRUE(at_server_.AwaitMessages(20));
  server_->Abort();
  ASSERT_TRUE(at_worker_.AwaitDowns(1));
  stop = true;
  sender.join();
  worker_->Stop();
  EXPECT_EQ(answered, asked);
}

TEST_P(VanTest, ARefusedMessageClosesTheConnectionAndIsCounted) {
  at_server_.on_header = [](NodeId, const MessageHeader& header) -> Buffer {
    if (header.key == 13) throw ProtocolError("its key is unlucky");
    return Buffer();
  };
  ConnectPair();
  worker_->Send(Server(0), Text(MessageKind::kData, "fine", 12));
  worker_->Send(Server(0), Text(MessageKind::kData, "not fine", 13));
  worker_->Send(Server(0), Text(MessageKind::kData, "too late", 14));
  ASSERT_TRUE(at_server_.AwaitDowns(1));
  ASSERT_TRUE(at_worker_.AwaitDowns(1));
  EXPECT_EQ(at_server_.messages.size(), 1u);
  EXPECT_EQ(server_->counters().refused_messages, 1u);
  EXPECT_FALSE(at_server_.downs[0].graceful);
  EXPECT_HAS(at_server_.downs[0].reason, "its key is unlucky");
  EXPECT_FALSE(at_worker_.downs[0].graceful);
}

TEST_P(VanTest, CountsMessagesAndBytes) {
  ConnectPair();
  worker_->Send(Server(0), Random(1000, 1));
  worker_->Send(Server(0), Text(MessageKind::kCommand, "12345"));
  ASSERT_TRUE(at_server_.AwaitMessages(2));
  EXPECT_EQ(server_->counters().data_bytes_received, 1064u);
  EXPECT_GE(server_->counters().bytes_received, 1064u + 69u);  // and a heartbeat, if it was slow
  EXPECT_TRUE(Eventually([&] { return worker_->counters().messages_sent >= 2; }));
  EXPECT_EQ(worker_->counters().data_bytes_sent, 1064u);
  EXPECT_GE(worker_->counters().bytes_sent, 1064u + 69u);
}

TEST_P(VanTest, TakesSendsFromManyThreads) {
  ConnectPair();
  constexpr int kThreads = 4, kEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        worker_->Send(Server(0), Text(MessageKind::kData, std::to_string(i), t));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(at_server_.AwaitMessages(kThreads * kEach));
  int next[kThreads] = {};
  for (const auto& [from, message] : at_server_.messages) {
    EXPECT_EQ(TextIn(message), std::to_string(next[message.header.key]++));
  }
}

TEST_P(VanTest, ASecondNodeOfTheSameNameIsRefused) {
  ConnectPair();
  Recorder at_other;
  const auto other = Make();
  other->Start(Worker(0), "127.0.0.1", 0, &at_other);
  EXPECT_HAS(ErrorOf([&] { other->Connect(Server(0), address_, In(seconds(5))); }),
             "already connected to a node that calls itself worker 0");
  EXPECT_TRUE(at_server_.downs.empty());
}

TEST_P(VanTest, ANodeWithAnotherSecretIsRefused) {
  ConnectPair();
  VanOptions options = TestVanOptions();
  options.secret = "another secret";
  Recorder at_other;
  const auto other = Make(options);
  other->Start(Worker(1), "127.0.0.1", 0, &at_other);
  EXPECT_HAS(ErrorOf([&] { other->Connect(Server(0), address_, In(seconds(5))); }), "HIPRESS_SECRET");
  EXPECT_TRUE(Eventually([&] { return server_->counters().refused_connections == 1; }));
  EXPECT_TRUE(at_other.ups.empty());
  EXPECT_EQ(at_server_.ups.size(), 1u);
}

TEST_P(VanTest, UnnamedNodesGetNamesLater) {
  server_ = Make();
  address_ = server_->Start(Scheduler(), "127.0.0.1", 0, &at_server_);
  Recorder receivers[3];
  std::vector<std::shared_ptr<Van>> nodes;
  for (auto& receiver : receivers) {
    nodes.push_back(Make());
    nodes.back()->Start({Role::kWorker, kUnnamedRank}, "127.0.0.1", 0, &receiver);
    nodes.back()->Connect(Scheduler(), address_, In(seconds(5)));
  }
  ASSERT_TRUE(at_server_.AwaitUps(3));
  at_server_.on_message = [this](NodeId from, const Message& message) {
    server_->RenamePeer(from, Worker(static_cast<int>(message.header.key)));
    server_->Send(Worker(static_cast<int>(message.header.key)), message);
  };
  for (int i = 0; i < 3; ++i) nodes[i]->Send(Scheduler(), Text(MessageKind::kCommand, "", 2 - i));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(receivers[i].AwaitMessages(1));
    EXPECT_EQ(receivers[i].messages[0].second.header.key, uint64_t(2 - i));
  }
  nodes[0]->Abort();
  ASSERT_TRUE(at_server_.AwaitDowns(1));
  EXPECT_EQ(at_server_.downs[0].peer, Worker(2));
}

TEST_P(VanTest, StopsWithinItsLingerWhenThePeerDoesNotRead) {
  std::promise<void> go;
  std::shared_future<void> gone(go.get_future());
  at_server_.on_message = [gone](NodeId, const Message&) { gone.wait_for(seconds(20)); };
  ConnectPair();
  for (int i = 0; i < 20; ++i) worker_->Send(Server(0), Random(4 << 20, i));
  const auto begin = steady_clock::now();
  worker_->Stop(milliseconds(300));
  EXPECT_LT(steady_clock::now() - begin, seconds(3));
  go.set_value();
}

/// A receiver whose callbacks throw once each, when the test requests it.
class Failing : public Recorder {
 public:
  void OnUp(NodeId peer) override {
    Recorder::OnUp(peer);
    if (up.exchange(false)) throw Error("no memory");
  }
  void OnTick() override {
    if (tick.exchange(false)) throw Error("no memory");
  }
  std::atomic<bool> up{false}, tick{false};
};

TEST(VanErrors, CallbackErrorClosesTheConnectionOnly) {
  for (const bool in_tick : {false, true}) {
    Failing at_worker;
    Recorder at_server;
    const auto worker = MakeTcpVan(TestVanOptions()), server = MakeTcpVan(TestVanOptions());
    worker->Start(Worker(0), "127.0.0.1", 0, &at_worker);
    const std::string address = server->Start(Server(0), "127.0.0.1", 0, &at_server);
    at_worker.up = !in_tick;
    worker->Connect(Server(0), address, In(seconds(5)));
    ASSERT_TRUE(at_server.AwaitUps(1));
    at_worker.tick = in_tick;
    ASSERT_TRUE(at_worker.AwaitDowns(1)) << in_tick;
    EXPECT_FALSE(at_worker.downs[0].graceful);
    EXPECT_EQ(at_worker.downs[0].reason, "can no longer be served by worker 0: no memory");
    ASSERT_TRUE(at_server.AwaitDowns(1));
    worker->Connect(Server(0), address, In(seconds(5)));  // the event loop continues
    worker->Send(Server(0), Text(MessageKind::kData, "again"));
    EXPECT_TRUE(at_server.AwaitMessages(1));
  }
}

TEST(VanErrors, AnErrorInTheCallbackOfAMessageIsLogged) {
  Recorder at_worker, at_server;
  const auto worker = MakeTcpVan(TestVanOptions()), server = MakeTcpVan(TestVanOptions());
  worker->Start(Worker(0), "127.0.0.1", 0, &at_worker);
  worker->Connect(Server(0), server->Start(Server(0), "127.0.0.1", 0, &at_server), In(seconds(5)));
  worker->Send(Server(0), Text(MessageKind::kData, "first"), 0, [](bool) { throw Error("no memory"); });
  worker->Send(Server(0), Text(MessageKind::kData, "second"));
  EXPECT_TRUE(at_server.AwaitMessages(2));
}

TEST(VanErrors, AMessageThatPeersWouldRefuseIsRefusedByTheSender) {
  VanOptions options = TestVanOptions();
  options.max_payload_bytes = 1000;
  Recorder at_worker, at_server;
  const auto worker = MakeTcpVan(options), server = MakeTcpVan(options);
  worker->Start(Worker(0), "127.0.0.1", 0, &at_worker);
  worker->Connect(Server(0), server->Start(Server(0), "127.0.0.1", 0, &at_server), In(seconds(5)));
  EXPECT_EQ(ErrorOf([&] { worker->Send(Server(0), Text(MessageKind::kData, std::string(1001, 'x'))); }),
            "a message of 1001 bytes to server 0 cannot be sent: the limit is 1000 bytes");
  worker->Send(Server(0), Text(MessageKind::kData, std::string(1000, 'x')));
  EXPECT_TRUE(at_server.AwaitMessages(1));
  EXPECT_TRUE(at_server.downs.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, VanTest, ::testing::Values(Kind::kTcp, Kind::kTls, Kind::kStriped, Kind::kStripedTls,
                                     Kind::kSharedMemory),
    [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace hipress::testing
