// A node's last message reaches its peer although the connection is full, slow, or ends with a
// reset.
#include <sys/socket.h>

#include <atomic>
#include <future>

#include "raw_client.h"
#include "transport/message.h"
#include "van_testing.h"

namespace hipress::testing {
namespace {

/// A van whose peer does as the test likes.
class AbortDeliveryTest : public ::testing::Test {
 protected:
  Recorder receiver_;
  std::shared_ptr<Van> van_;
};

std::string Sealed(Message message) {
  Seal(&message);
  return std::string(reinterpret_cast<const char*>(&message.header), sizeof(message.header)) +
         TextIn(message);
}

bool Say(RawClient* client, const std::string& text) {
  const std::string bytes = Sealed(Text(MessageKind::kData, text));
  return client->Send(bytes.data(), bytes.size());
}

/// Reads until the other end closes. \return what came; `error` is 0 if the end was no reset
std::string ReadToTheEnd(RawClient* peer, int* error) {
  std::string heard;
  std::vector<char> chunk(1 << 16);
  ssize_t n = -1;
  while (WaitFor(peer->fd(), true, In(seconds(10))) &&
         (n = recv(peer->fd(), chunk.data(), chunk.size(), 0)) > 0) {
    heard.append(chunk.data(), static_cast<size_t>(n));
  }
  *error = n == 0 ? 0 : errno;
  return heard;
}

TEST_F(AbortDeliveryTest, WhatAPeerSaidBeforeItWentIsHeardWhenASendMeetsItsEndFirst) {
  van_ = MakeTcpVan(TestVanOptions());
  RawClient peer(van_->Start(Server(0), "127.0.0.1", 0, &receiver_));
  Tune(peer.fd(), seconds(5));  // "why" leaves at once
  peer.Authenticate(Worker(0), Server(0));
  ASSERT_TRUE(receiver_.AwaitUps(1));
  receiver_.on_message = [&](NodeId from, const Message& message) {
    if (TextIn(message) != "busy") return;
    // While this thread is busy, the peer sends its reason, and leaves before this is read:
    EXPECT_TRUE(Say(&peer, "why"));
    peer.Close();
    van_->Send(from, Text(MessageKind::kData, "what the kernel refuses"));
  };
  van_->Send(Worker(0), Text(MessageKind::kData, "unread"));
  ASSERT_TRUE(WaitFor(peer.fd(), true, In(seconds(5))));
  ASSERT_TRUE(Say(&peer, "busy"));
  ASSERT_TRUE(receiver_.AwaitDowns(1));
  ASSERT_EQ(receiver_.messages.size(), 2u);
  EXPECT_EQ(TextIn(receiver_.messages[1].second), "why");
  EXPECT_EQ(receiver_.downs[0].reason, "reset the connection");
  EXPECT_FALSE(receiver_.downs[0].graceful);
}

TEST_F(AbortDeliveryTest, WhatWasSentArrivesThoughTheNodeAbortsWithUnreadMessages) {
  van_ = MakeTcpVan(TestVanOptions());
  RawClient peer(van_->Start(Server(0), "127.0.0.1", 0, &receiver_));
  peer.Authenticate(Worker(0), Server(0));
  ASSERT_TRUE(receiver_.AwaitUps(1));
  // More than the peer's side of the kernel takes, so that the last message waits on this side.
  std::promise<bool> sent;
  van_->Send(Worker(0), Text(MessageKind::kData, std::string(150'000, 'x')));
  van_->Send(Worker(0), Text(MessageKind::kData, "why"), -1, [&](bool ok) { sent.set_value(ok); });
  auto result = sent.get_future();
  ASSERT_EQ(result.wait_for(seconds(10)), std::future_status::ready);
  ASSERT_TRUE(result.get());
  std::promise<void> held;
  std::thread abort;
  receiver_.on_message = [&](NodeId, const Message&) {
    abort = std::thread([&] { van_->Abort(seconds(20)); });
    EXPECT_TRUE(Say(&peer, "unread"));
    std::this_thread::sleep_for(milliseconds(200));  // Abort now waits for this thread
    held.set_value();
  };
  ASSERT_TRUE(Say(&peer, "busy"));
  ASSERT_EQ(held.get_future().wait_for(seconds(10)), std::future_status::ready);
  std::this_thread::sleep_for(milliseconds(100));  // an immediate close would have finished by now
  int error = 0;
  const std::string heard = ReadToTheEnd(&peer, &error);
  EXPECT_EQ(error, 0) << "instead of an end there was " << ErrnoText(error);
  const std::string last = Sealed(Text(MessageKind::kData, "why"));
  EXPECT_NE(heard.find(last), std::string::npos);
  const auto begin = steady_clock::now();
  peer.Close();
  abort.join();
  EXPECT_LT(steady_clock::now() - begin, seconds(10));  // it did not wait for all of its linger
}

TEST_F(AbortDeliveryTest, AbortReturnsWhenAPeerDoesNotRead) {
  van_ = MakeTcpVan(TestVanOptions());
  RawClient peer(van_->Start(Server(0), "127.0.0.1", 0, &receiver_));
  peer.Authenticate(Worker(0), Server(0));
  ASSERT_TRUE(receiver_.AwaitUps(1));
  std::atomic<int> answers{0};
  for (int i = 0; i < 5; ++i) {
    van_->Send(Worker(0), Text(MessageKind::kData, std::string(4 << 20, 'x')), 0,
               [&](bool) { ++answers; });
  }
  const auto begin = steady_clock::now();
  van_->Abort(milliseconds(300));
  EXPECT_LT(steady_clock::now() - begin, seconds(10));
  EXPECT_EQ(answers, 5);
}

TEST_F(AbortDeliveryTest, AnAbortWaitsLongerForWhatAPeerThatIsHeardHasNotAcknowledged) {
  van_ = MakeTcpVan(TestVanOptions());
  RawClient peer(van_->Start(Server(0), "127.0.0.1", 0, &receiver_));
  peer.Authenticate(Worker(0), Server(0));
  ASSERT_TRUE(receiver_.AwaitUps(1));
  std::promise<bool> sent;
  van_->Send(Worker(0), Text(MessageKind::kData, std::string(900'000, 'x')));
  van_->Send(Worker(0), Text(MessageKind::kData, "why"), -1, [&](bool ok) { sent.set_value(ok); });
  ASSERT_TRUE(sent.get_future().get());  // the kernel has it, and the peer has not
  std::thread abort([&] { van_->Abort(milliseconds(50)); });
  // A peer that is slow to read, but alive. Anything it sends after a close would be answered by a
  // reset.
  for (int i = 0; i < 20; ++i) {
    Say(&peer, "alive");
    std::this_thread::sleep_for(milliseconds(50));
  }
  int error = 0;
  const std::string heard = ReadToTheEnd(&peer, &error);
  EXPECT_EQ(error, 0) << "instead of an end there was " << ErrnoText(error);
  EXPECT_NE(heard.find(Sealed(Text(MessageKind::kData, "why"))), std::string::npos);
  peer.Close();
  abort.join();
}

TEST_F(AbortDeliveryTest, ReportsWaitBehindAtMostOneMegabyte) {
  van_ = MakeTcpVan(TestVanOptions());
  RawClient peer(van_->Start(Server(0), "127.0.0.1", 0, &receiver_));
  peer.Authenticate(Worker(0), Server(0));
  ASSERT_TRUE(receiver_.AwaitUps(1));
  constexpr size_t kMessage = 64 << 10, kMessages = 256;
  for (size_t i = 0; i < kMessages; ++i) {
    van_->Send(Worker(0), Text(MessageKind::kData, std::string(kMessage, 'x')));
  }
  std::this_thread::sleep_for(milliseconds(300));  // now the socket has what it takes
  van_->Send(Worker(0), Text(MessageKind::kData, "why"), 1);
  std::thread abort([&] { van_->Stop(seconds(20)); });
  int error = 0;
  const std::string heard = ReadToTheEnd(&peer, &error);
  const size_t before = heard.find(Sealed(Text(MessageKind::kData, "why")));
  ASSERT_NE(before, std::string::npos);
  EXPECT_GT(heard.size(), kMessage * kMessages);
  // In addition to that megabyte: what the peer's kernel has received, a batch, and the one in
  // progress.
  EXPECT_LT(before, size_t(2) << 20);
  peer.Close();
  abort.join();
}

}  // namespace
}  // namespace hipress::testing
