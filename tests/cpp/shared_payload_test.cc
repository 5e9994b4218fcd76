// Payloads in memory that processes of one host share: when they are, and what a bad peer cannot
// do.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/buffer.h"
#include "raw_client.h"
#include "transport/checksum.h"
#include "transport/message.h"
#include "transport/shared_payload.h"
#include "van_testing.h"

namespace hipress::testing {
namespace {

constexpr size_t kLarge = 1 << 20;

Message Filled(size_t size, uint8_t value) {
  Message message(MessageKind::kData);
  message.payload = AllocateBuffer(size);
  std::memset(message.payload.data, value, size);
  return message;
}

bool IsFilled(const Buffer& payload, size_t size, uint8_t value) {
  return payload.size == size &&
         std::all_of(payload.data, payload.data + size, [value](uint8_t b) { return b == value; });
}

class SharedPayloadTest : public ::testing::Test {
 protected:
  void Connect(bool worker_shares, bool server_shares) {
    VanOptions options = TestVanOptions();
    options.shared_memory = worker_shares;
    worker_ = MakeTcpVan(options);
    options.shared_memory = server_shares;
    server_ = MakeTcpVan(options);
    worker_->Start(Worker(0), "127.0.0.1", 0, &at_worker_);
    address_ = server_->Start(Server(0), "127.0.0.1", 0, &at_server_);
    worker_->Connect(Server(0), address_, In(seconds(5)));
    ASSERT_TRUE(at_server_.AwaitUps(1));
  }
  /// The first large message makes the offer; one sent after the answer can be shared.
  void Warm() {
    worker_->Send(Server(0), Filled(kLarge, 1));
    ASSERT_TRUE(at_server_.AwaitMessages(1));
    worker_->Send(Server(0), Filled(10, 1));
    ASSERT_TRUE(at_server_.AwaitMessages(2));
    server_->Send(Worker(0), Filled(10, 1));  // comes after the answer
    ASSERT_TRUE(at_worker_.AwaitMessages(1));
    at_worker_.Do([this] { at_worker_.messages.clear(); });
    at_server_.Do([this] { at_server_.messages.clear(); });
  }
  uint64_t shared() const { return worker_->counters().shared_memory_bytes; }
  void TearDown() override {
    worker_.reset();
    server_.reset();
  }

  Recorder at_worker_, at_server_;
  std::shared_ptr<Van> worker_, server_;
  std::string address_;
};

TEST_F(SharedPayloadTest, LargePayloadsAreReadWhereTheyLie) {
  Connect(true, true);
  Warm();
  std::atomic<int> done{0};
  Message message = Filled(kLarge, 7);  // pooled, so in the arena
  worker_->Send(Server(0), message, 0, [&](bool sent) { done += sent; });
  worker_->Send(Server(0), Filled(1000, 8));
  ASSERT_TRUE(at_server_.AwaitMessages(2));
  EXPECT_TRUE(IsFilled(at_server_.messages[0].second.payload, kLarge, 7));
  EXPECT_TRUE(IsFilled(at_server_.messages[1].second.payload, 1000, 8));
  EXPECT_TRUE(Eventually([&] { return shared() == kLarge; }));
  // One memory, seen twice.
  message.payload.data[5] = 99;
  EXPECT_EQ(at_server_.messages[0].second.payload.data[5], 99);
  EXPECT_EQ(done, 0) << "the receiver still reads";
  at_server_.Do([this] { at_server_.messages.clear(); });
  EXPECT_TRUE(Eventually([&] { return done == 1; }));
}

TEST_F(SharedPayloadTest, MemoryOfTheUserIsCopiedAndGivenBackAtOnce) {
  Connect(true, true);
  Warm();
  auto user = std::make_shared<std::vector<uint8_t>>(kLarge, 3);
  std::weak_ptr<std::vector<uint8_t>> watch = user;
  Message message = Filled(8, 0);
  message.payload = {user->data(), user->size(), user};
  user.reset();
  std::atomic<int> done{0};
  worker_->Send(Server(0), std::move(message), 0, [&](bool sent) { done += sent; });
  ASSERT_TRUE(at_server_.AwaitMessages(1));
  EXPECT_TRUE(Eventually([&] { return watch.expired(); }));
  EXPECT_TRUE(Eventually([&] { return done == 1; })) << "though the receiver still reads the copy";
  EXPECT_TRUE(IsFilled(at_server_.messages[0].second.payload, kLarge, 3));
  EXPECT_EQ(shared(), kLarge);
}

TEST_F(SharedPayloadTest, AReceiverThatKeepsEverythingStopsNobody) {
  Connect(true, true);
  Warm();
  constexpr int kCount = 300;  // more than may be out
  for (int i = 0; i < kCount; ++i) {
    std::vector<uint8_t> user(kLarge, static_cast<uint8_t>(i));
    Message message = Filled(8, 0);
    auto owner = std::make_shared<std::vector<uint8_t>>(std::move(user));
    message.payload = {owner->data(), owner->size(), owner};
    worker_->Send(Server(0), std::move(message));
  }
  ASSERT_TRUE(at_server_.AwaitMessages(kCount));
  for (int i = 0; i < kCount; ++i) {
    EXPECT_TRUE(IsFilled(at_server_.messages[i].second.payload, kLarge, static_cast<uint8_t>(i))) << i;
  }
  EXPECT_GE(shared(), 200 * kLarge);
  EXPECT_LT(shared(), kCount * kLarge);
}

TEST_F(SharedPayloadTest, PayloadIsFreedAfterItsReaderWhenTheConnectionCloses) {
  Connect(true, true);
  Warm();
  auto user = std::make_shared<std::vector<uint8_t>>();
  std::weak_ptr<std::vector<uint8_t>> watch = user;
  Message message = Filled(kLarge, 7);
  user->resize(1);
  // Lives as long as the payload's memory does.
  message.payload.owner = std::shared_ptr<void>(user.get(), [user, owner = message.payload.owner](void*) {});
  user.reset();
  worker_->Send(Server(0), std::move(message));
  ASSERT_TRUE(at_server_.AwaitMessages(1));
  Message read;
  at_server_.Do([&] { read = std::exchange(at_server_.messages[0].second, {}); });
  TearDown();
  SharedPayloads::FreeAbandoned();
  EXPECT_FALSE(watch.expired()) << "it is read still";
  EXPECT_TRUE(IsFilled(read.payload, kLarge, 7));
  read = {};
  SharedPayloads::FreeAbandoned();
  EXPECT_TRUE(watch.expired());
}

TEST_F(SharedPayloadTest, EitherEndCanDoWithout) {
  for (const bool worker_shares : {true, false}) {
    Connect(worker_shares, !worker_shares);
    worker_->Send(Server(0), Filled(kLarge, 1));
    ASSERT_TRUE(at_server_.AwaitMessages(1));
    std::this_thread::sleep_for(milliseconds(50));
    worker_->Send(Server(0), Filled(kLarge, 2));
    ASSERT_TRUE(at_server_.AwaitMessages(2));
    EXPECT_TRUE(IsFilled(at_server_.messages[1].second.payload, kLarge, 2));
    EXPECT_EQ(shared(), 0u);
    TearDown();
    at_server_.messages.clear();
    at_server_.ups.clear();
  }
}

TEST_F(SharedPayloadTest, AForkedChildLeavesTheArenaAlone) {
  Connect(true, true);
  Warm();
  const Buffer before = AllocateBuffer(kLarge);
  ASSERT_TRUE(Arena::Get()->Contains(before.data, before.size));
  const pid_t child = fork();
  if (child == 0) {
    bool inside = false;
    for (int i = 0; i < 10; ++i) inside |= Arena::Owns(AllocateBuffer(kLarge).data);
    _exit(inside || Arena::Get() != nullptr ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(SharedPayloadTest, AnArenaThatIsNotTheOfferedOneIsNotOpened) {
  Arena* const arena = Arena::Enable();
  ASSERT_NE(arena, nullptr);
  const ArenaOffer good = {static_cast<uint32_t>(getpid()), arena->fd(), arena->size(), 7, arena->nonce()};
  EXPECT_NE(PeerArena::Open(good), nullptr);
  ArenaOffer bad = good;
  bad.nonce[0] ^= 1;
  EXPECT_EQ(PeerArena::Open(bad), nullptr);
  bad = good;
  bad.size *= 2;
  EXPECT_EQ(PeerArena::Open(bad), nullptr);
  bad = good;
  bad.fd = 0;
  EXPECT_EQ(PeerArena::Open(bad), nullptr);
  bad = good;
  bad.pid = 0x7fffffff;
  EXPECT_EQ(PeerArena::Open(bad), nullptr);
}

TEST_F(SharedPayloadTest, APeerCannotLendWhatItDoesNotHave) {
  Connect(true, true);
  Arena* const arena = Arena::Enable();
  const ArenaOffer offer = {static_cast<uint32_t>(getpid()), arena->fd(), arena->size(), 7, arena->nonce()};
  const auto lend = [](uint64_t offset, uint64_t bytes) {
    Message message = Filled(8, 0);
    Seal(&message);
    message.header.payload_bytes = bytes;
    SealShared(&message, {offset});
    return message;
  };
  const auto send_offer = [&](RawClient* client) {
    Message message(MessageKind::kArenaOffer);
    message.payload = AllocateBuffer(sizeof(offer));
    std::memcpy(message.payload.data, &offer, sizeof(offer));
    Seal(&message);
    client->Send(message.header);
    client->Send(offer);
  };
  struct Case {
    bool offered;
    uint64_t offset, bytes;
    const char* reason;
  };
  const Case cases[] = {
      {false, 0, 1000, "its payload is in memory that its sender has not offered"},
      {true, 0, 0, "its payload is in memory that its sender has not offered"},
      {true, arena->size() - 10, 1000, "outside of the memory that its sender shares"},
      {true, UINT64_MAX - 10, 1000, "outside of the memory that its sender shares"},
  };
  size_t downs = 0;
  for (const Case& c : cases) {
    RawClient client(address_);
    client.Authenticate(Worker(1), Server(0));
    if (c.offered) send_offer(&client);
    client.Send(lend(c.offset, c.bytes).header);
    client.Send(SharedPayload{c.offset});
    ASSERT_TRUE(at_server_.AwaitDowns(++downs));
    EXPECT_HAS(at_server_.downs.back().reason, c.reason);
    EXPECT_TRUE(client.IsClosed());
  }
  RawClient client(address_);
  client.Authenticate(Worker(1), Server(0));
  Message message(MessageKind::kArenaRelease);
  message.header.key = 4096;
  Seal(&message);
  client.Send(message.header);
  ASSERT_TRUE(at_server_.AwaitDowns(++downs));
  EXPECT_HAS(at_server_.downs.back().reason, "it releases a payload that is not shared");
  EXPECT_EQ(server_->counters().refused_messages, downs);
  EXPECT_TRUE(at_server_.messages.empty());
}

}  // namespace
}  // namespace hipress::testing
