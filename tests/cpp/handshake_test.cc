// Which peers a node accepts: strangers, garbage, wrong secrets and corrupt messages are refused,
// counted and logged, without an effect on other peers.
#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>

#include "transport/checksum.h"
#include "transport/message.h"
#include "transport/handshake.h"
#include "transport/tls.h"
#include "raw_client.h"
#include "van_testing.h"

namespace hipress::testing {
namespace {

int OpenDescriptors() {
  DIR* dir = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

class HandshakeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    worker_ = MakeTcpVan(TestVanOptions());
    server_ = MakeTcpVan(TestVanOptions());
    worker_->Start(Worker(0), "127.0.0.1", 0, &at_worker_);
    address_ = server_->Start(Server(0), "127.0.0.1", 0, &at_server_);
    worker_->Connect(Server(0), address_, In(seconds(5)));
    ASSERT_TRUE(at_server_.AwaitUps(1));
  }
  /// The real pair still works, and no other peer was accepted.
  void ExpectUnharmed() { ExpectUnharmedBut(1); }
  /// The real pair still works, and so many nodes have come in and stay.
  void ExpectUnharmedBut(size_t ups) {
    const size_t before = at_server_.messages.size();
    worker_->Send(Server(0), Text(MessageKind::kData, std::string(100000, 'u')));
    EXPECT_TRUE(at_server_.AwaitMessages(before + 1));
    EXPECT_TRUE(at_server_.Await([&] { return at_server_.ups.size() == ups && at_server_.downs.empty(); },
                                 milliseconds(0)));
  }
  bool AwaitRefused(uint64_t count) {
    return Eventually([&] { return server_->counters().refused_connections >= count; });
  }

  Recorder at_worker_, at_server_;
  std::shared_ptr<Van> worker_, server_;
  std::string address_;
};

// ---- strangers

TEST_F(HandshakeTest, RandomBytesHarmNobody) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> sent{0};
  std::thread traffic([&] {
    while (!stop) {
      worker_->Send(Server(0), Text(MessageKind::kData, std::string(20000, 't'), sent++));
      at_server_.AwaitMessages(sent);
    }
  });
  const int before = OpenDescriptors();
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(1 + random() % 3000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    RawClient stranger(address_);
    stranger.Send(bytes.data(), bytes.size());
    if (i % 3 == 0) {
      EXPECT_TRUE(stranger.IsClosed());
    }
  }
  EXPECT_TRUE(AwaitRefused(300));
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() <= before; }));
  stop = true;
  traffic.join();
  EXPECT_GT(sent, 10u);
  EXPECT_EQ(server_->counters().refused_connections, 300u);
  EXPECT_EQ(server_->counters().refused_messages, 0u);
  ExpectUnharmed();
}

TEST_F(HandshakeTest, WellFramedMessagesAndHellosOfStrangersHarmNobody) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 300; ++i) {
    RawClient stranger(address_);
    if (i % 2 == 0) {  // right hello, no secret
      Hello hello = MakeHello(Worker(static_cast<int>(random() % 4)), Server(0), random() % 2 != 0);
      if (i % 10 == 0) hello.version = static_cast<uint16_t>(random());
      if (i % 12 == 0) hello.from = static_cast<uint32_t>(random());
      stranger.Send(hello);
      Mac mac;
      for (uint8_t& byte : mac) byte = static_cast<uint8_t>(random());
      stranger.Send(mac);
    }
    Message message = Text(MessageKind::kData, std::string(random() % 500, 'w'), random());
    message.header.kind = MessageKind(random() % 30);
    Seal(&message);
    stranger.Send(message.header);
    stranger.Send(message.payload.data, message.payload.size);
    if (i % 3 == 0) {
      EXPECT_TRUE(stranger.IsClosed());
    }
  }
  EXPECT_TRUE(AwaitRefused(300));
  EXPECT_EQ(server_->counters().refused_connections, 300u);
  ExpectUnharmed();
}

TEST_F(HandshakeTest, AStrangerIsLoggedWithItsAddress) {
  ::testing::internal::CaptureStderr();
  RawClient stranger(address_);
  const std::string from = LocalAddress(stranger.fd()).ToText();
  stranger.Send("GET / HTTP/1.1\r\n\r\n", 18);
  EXPECT_TRUE(stranger.IsClosed());
  for (int i = 0; i < 50; ++i) RawClient(address_).Send("x", 1);
  EXPECT_TRUE(AwaitRefused(51));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_HAS(log, "refused a connection from " + from + ": it does not speak HiPress");
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 2) << log;
}

TEST_F(HandshakeTest, AStrangerThatGoesIsASentence) {
  ::testing::internal::CaptureStderr();
  RawClient(address_).Close();
  EXPECT_TRUE(AwaitRefused(1));
  EXPECT_HAS(::testing::internal::GetCapturedStderr(), ": it closed the connection during the handshake\n");
}

TEST_F(HandshakeTest, ManyIdleStrangersDoNotKeepARealNodeOut) {
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(std::make_unique<RawClient>(address_));
  Recorder at_late;
  const auto late = MakeTcpVan(TestVanOptions());
  late->Start(Worker(1), "127.0.0.1", 0, &at_late);
  late->Connect(Server(0), address_, In(seconds(2)));
  EXPECT_TRUE(at_server_.AwaitUps(2));
  // The first connections had to make room; the rest are closed when their time expires.
  EXPECT_TRUE(idle.front()->IsClosed());
  EXPECT_TRUE(idle.back()->IsClosed(seconds(8)));
  EXPECT_TRUE(AwaitRefused(300));
}

TEST_F(HandshakeTest, DescriptorsDoNotLeak) {
  const auto round = [&] {
    Recorder at_other;
    const auto other = MakeTcpVan(TestVanOptions());
    other->Start(Worker(1), "127.0.0.1", 0, &at_other);
    other->Connect(Server(0), address_, In(seconds(5)));
    other->Stop();
    for (int i = 0; i < 5; ++i) RawClient stranger(address_);
  };
  round();
  const int before = OpenDescriptors();
  for (int i = 0; i < 60; ++i) round();
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() <= before; })) << OpenDescriptors() - before;
  EXPECT_TRUE(at_server_.AwaitDowns(61));
  EXPECT_TRUE(AwaitRefused(305));
}

// ---- attacks on the handshake

TEST(Handshake, ProofsDependOnEverything) {
  const Transcript base{MakeHello(Worker(0), Server(0), false), MakeHello(Server(0), Worker(0), false)};
  const Mac proof = CallerProof("secret", base);
  EXPECT_TRUE(Equal(proof, CallerProof("secret", base).data()));
  EXPECT_NE(proof, CallerProof("Secret", base));
  EXPECT_NE(proof, ListenerProof("secret", base, 0));
  EXPECT_NE(proof, TlsKey("secret", base));
  EXPECT_NE(ListenerProof("secret", base, 0), ListenerProof("secret", base, 1));
  for (size_t i = 0; i < sizeof(Transcript); ++i) {
    Transcript other = base;
    reinterpret_cast<uint8_t*>(&other)[i] ^= 1;
    EXPECT_NE(proof, CallerProof("secret", other)) << "byte " << i;
  }
  const Transcript swapped{base.listener, base.caller};
  EXPECT_NE(proof, CallerProof("secret", swapped));
  EXPECT_NE(std::memcmp(base.caller.nonce, base.listener.nonce, sizeof(base.caller.nonce)), 0);
}

/// A listener without the secret; `behave` answers one caller, who waits for `limit`.
std::string ErrorOfCallerAt(const std::function<void(int)>& behave, milliseconds limit = seconds(5)) {
  const UniqueFd listener = Listen(Resolve("127.0.0.1", 0));
  std::thread impostor([&] {
    if (!WaitFor(listener.get(), true, In(seconds(5)))) return;
    const int fd = accept(listener.get(), nullptr, nullptr);
    behave(fd);
    close(fd);
  });
  Recorder receiver;
  const auto van = MakeTcpVan(TestVanOptions());
  van->Start(Worker(0), "127.0.0.1", 0, &receiver);
  const std::string error = ErrorOf([&] {
    van->Connect(Server(0), LocalAddress(listener.get()).ToText(), In(limit));
  });
  impostor.join();
  EXPECT_TRUE(receiver.ups.empty());
  return error;
}

TEST(Handshake, ReflectedMessagesProveNothing) {
  const std::string error = ErrorOfCallerAt([](int fd) {
    Hello hello;
    recv(fd, &hello, sizeof(hello), MSG_WAITALL);
    std::swap(hello.from, hello.to);
    send(fd, &hello, sizeof(hello), MSG_NOSIGNAL);
    Verdict verdict{};
    recv(fd, verdict.mac, sizeof(verdict.mac), MSG_WAITALL);
    send(fd, &verdict, sizeof(verdict), MSG_NOSIGNAL);
    char rest;
    recv(fd, &rest, 1, 0);
  });
  EXPECT_HAS(error, "worker 0 cannot connect to server 0 at 127.0.0.1:");
  EXPECT_HAS(error, "could not prove that it knows the job secret");
}

TEST(Handshake, ASilentOrForeignListenerIsNamed) {
  EXPECT_HAS(ErrorOfCallerAt([](int) { std::this_thread::sleep_for(milliseconds(900)); }, milliseconds(700)),
             "did not answer the handshake in time");
  EXPECT_HAS(ErrorOfCallerAt([](int fd) {
               const std::string greeting(100, 'S');
               send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL);
               char rest[100];
               while (recv(fd, rest, sizeof(rest), 0) > 0) {  // until the caller has left
               }
             }),
             "does not speak HiPress");
}

/// The proof of a caller that has just connected.
Mac Prove(RawClient* client, const Hello& hello) {
  client->Send(hello);
  Transcript transcript{hello, {}};
  EXPECT_TRUE(WaitFor(client->fd(), true, In(seconds(5))));
  EXPECT_EQ(recv(client->fd(), &transcript.listener, sizeof(Hello), 0), ssize_t(sizeof(Hello)));
  const Mac proof = CallerProof(TestVanOptions().secret, transcript);
  client->Send(proof);
  return proof;
}

void AwaitVerdict(RawClient* client) {
  Verdict verdict;
  ASSERT_TRUE(WaitFor(client->fd(), true, In(seconds(5))));
  ASSERT_EQ(recv(client->fd(), &verdict, sizeof(verdict), 0), ssize_t(sizeof(verdict)));
  ASSERT_EQ(verdict.code, uint8_t(VerdictCode::kAccepted));
}

TEST_F(HandshakeTest, ACallerThatGaveUpIsNobodysDeath) {
  const Hello hello = MakeHello(Worker(1), Server(0), false);
  {
    RawClient gives_up(address_);
    Prove(&gives_up, hello);
    AwaitVerdict(&gives_up);
  }
  RawClient again(address_);
  again.Authenticate(Worker(1), Server(0));
  ASSERT_TRUE(at_server_.AwaitUps(2));
  ExpectUnharmedBut(2);
  EXPECT_EQ(server_->counters().refused_connections, 0u);
}

TEST_F(HandshakeTest, ACallerThatKnowsTheSecretMayBeLate) {
  RawClient late(address_);
  Prove(&late, MakeHello(Worker(1), Server(0), false));
  AwaitVerdict(&late);
  std::this_thread::sleep_for(seconds(6));  // a stranger has 5
  late.Send(kConfirmation);
  EXPECT_TRUE(at_server_.AwaitUps(2));
}

TEST_F(HandshakeTest, AReplayedHandshakeIsRefused) {
  const Hello hello = MakeHello(Worker(1), Server(0), false);
  RawClient first(address_);
  const Mac proof = Prove(&first, hello);
  first.Send(kConfirmation);
  ASSERT_TRUE(at_server_.AwaitUps(2));
  first.Close();
  ASSERT_TRUE(at_server_.AwaitDowns(1));
  RawClient replay(address_);
  replay.Send(hello);
  replay.Send(proof);
  EXPECT_TRUE(replay.IsClosed());
  EXPECT_EQ(server_->counters().refused_connections, 1u);
  EXPECT_EQ(at_server_.ups.size(), 2u);
}

TEST_F(HandshakeTest, TlsMismatchIsAnErrorOnBothNodes) {
  VanOptions options = TestVanOptions();
  options.tls = "on";
  Recorder receiver;
  const auto other = MakeTcpVan(options);
  other->Start(Worker(1), "127.0.0.1", 0, &receiver);
  ::testing::internal::CaptureStderr();
  EXPECT_HAS(ErrorOf([&] { other->Connect(Server(0), address_, In(seconds(5))); }),
             "this end wants TLS and the other does not; set HIPRESS_TLS");
  EXPECT_TRUE(AwaitRefused(1));
  EXPECT_HAS(::testing::internal::GetCapturedStderr(), "wants TLS, unlike this node");
}

TEST_F(HandshakeTest, GarbageInsteadOfTlsIsRefused) {
  VanOptions options = TestVanOptions();
  options.tls = "on";
  Recorder receiver;
  const auto van = MakeTcpVan(options);
  const std::string address = van->Start(Server(1), "127.0.0.1", 0, &receiver);
  for (int i = 0; i < 20; ++i) {
    RawClient client(address);
    client.Authenticate(Worker(0), Server(1), true);
    const std::string garbage(50 + i, static_cast<char>(20 + i));
    client.Send(garbage.data(), garbage.size());
    EXPECT_TRUE(client.IsClosed());
  }
  {  // TLS with a key of another connection
    RawClient client(address);
    client.Authenticate(Worker(0), Server(1), true);
    EXPECT_THROW(CallerTls(client.fd(), Mac{}, In(seconds(5))), HandshakeBroken);
  }
  EXPECT_TRUE(Eventually([&] { return van->counters().refused_connections == 21; }));
  EXPECT_TRUE(receiver.ups.empty());
}

TEST_F(HandshakeTest, TheWrongNodeIsNamed) {
  Recorder receiver;
  const auto other = MakeTcpVan(TestVanOptions());
  other->Start(Worker(1), "127.0.0.1", 0, &receiver);
  EXPECT_HAS(ErrorOf([&] { other->Connect(Server(1), address_, In(seconds(5))); }),
             "worker 1 cannot connect to server 1 at " + address_ + ": server 0 listens there");
}

// ---- corrupt messages of authenticated peers

TEST_F(HandshakeTest, CorruptMessagesAreRefusedWithTheirSendersName) {
  const auto sealed = [](const std::function<void(Message*)>& change, bool reseal) {
    Message message = Text(MessageKind::kData, std::string(5000, 'p'), 1);
    Seal(&message);
    change(&message);
    if (reseal) message.header.header_checksum = Checksum(&message.header, offsetof(MessageHeader, header_checksum));
    return message;
  };
  struct Case {
    Message message;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {sealed([](Message* m) { m->header.magic ^= 1; }, true), "does not begin with a message header"},
      {sealed([](Message* m) { m->header.key ^= 4; }, false), "its header's checksum is wrong"},
      {sealed([](Message* m) { m->header.version = 9; }, true), "its format version is 9, not 4"},
      {sealed([](Message* m) { m->header.kind = MessageKind(99); }, true), "its kind 99 is unknown"},
      {sealed([](Message* m) { m->header.placement = 7; }, true), "its placement is unknown"},
      {sealed([](Message* m) { m->header.payload_bytes = uint64_t(1) << 40; }, true), "exceeds the limit"},
      {sealed([](Message* m) { m->payload.data[4321] ^= 8; }, false),
       "payload of this kData message (5000 bytes) has a wrong checksum"},
      {sealed([](Message* m) { m->header.kind = MessageKind::kHeartbeat; }, true),
       "a kHeartbeat message carries a wrong payload"},
  };
  size_t count = 0;
  for (const Case& c : cases) {
    ++count;
    RawClient client(address_);
    client.Authenticate(Worker(1), Server(0));
    const std::string from = LocalAddress(client.fd()).ToText();
    ::testing::internal::CaptureStderr();
    client.Send(c.message.header);
    client.Send(c.message.payload.data, c.message.payload.size);
    EXPECT_TRUE(at_server_.AwaitDowns(count)) << c.reason;
    EXPECT_TRUE(client.IsClosed());
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_HAS(log, "refused a message from worker 1 (" + from + ")");
    EXPECT_HAS(log, c.reason);
    EXPECT_EQ(at_server_.downs.back().peer, Worker(1));
    EXPECT_FALSE(at_server_.downs.back().graceful);
    EXPECT_HAS(at_server_.downs.back().reason, c.reason);
    EXPECT_EQ(server_->counters().refused_messages, count);
  }
  EXPECT_TRUE(at_server_.messages.empty());
}

TEST_F(HandshakeTest, RandomChangesNeverGetThrough) {
  Message good = Text(MessageKind::kData, std::string(300, 'g'), 5);
  Seal(&good);
  std::string bytes(reinterpret_cast<const char*>(&good.header), sizeof(good.header));
  bytes += TextIn(good);
  std::mt19937 random(11);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 200; ++i) {
    std::string changed = bytes;
    changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
    RawClient client(address_);
    client.Authenticate(Worker(1), Server(0));
    client.Send(changed.data(), changed.size());
    ASSERT_TRUE(at_server_.AwaitDowns(static_cast<size_t>(i + 1)));
  }
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(server_->counters().refused_messages, 200u);
  EXPECT_TRUE(at_server_.messages.empty());
}

TEST_F(HandshakeTest, TruncatedMessageClosesTheConnection) {
  for (const size_t keep : {10u, 64u, 70u, 200000u}) {
    const size_t count = at_server_.downs.size() + 1;
    RawClient client(address_);
    client.Authenticate(Worker(1), Server(0));
    Message message = Text(MessageKind::kData, std::string(400000, 'p'));
    Seal(&message);
    std::string bytes(reinterpret_cast<const char*>(&message.header), sizeof(message.header));
    bytes += TextIn(message);
    client.Send(bytes.data(), keep);
    client.Close();
    ASSERT_TRUE(at_server_.AwaitDowns(count));
    EXPECT_EQ(at_server_.downs.back().reason, "closed the connection in the middle of a message");
  }
  EXPECT_TRUE(at_server_.messages.empty());
}

// ---- addresses and secrets

}  // namespace
}  // namespace hipress::testing
