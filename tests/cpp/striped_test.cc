// A stream over several connections: the bytes and their order, whatever each of them takes and when.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>

#include "van/lanes.h"
#include "van/striped.h"

namespace hipress::testing {
namespace {

/// One direction of a connection in memory, with little room.
struct Pipe {
  std::deque<uint8_t> bytes;
  size_t room = 100000;
  bool closed = false;
};

class PipeEnd final : public Stream {
 public:
  PipeEnd(Pipe* in, Pipe* out, std::mt19937_64* random) : in_(in), out_(out), random_(random) {}
  ssize_t Read(const iovec* pieces, int count) override {
    if (in_->bytes.empty()) return in_->closed ? kEof : kWouldBlock;
    size_t most = 1 + (*random_)() % in_->bytes.size();
    ssize_t total = 0;
    for (int i = 0; i < count; ++i) {
      const size_t n = std::min(most, pieces[i].iov_len);
      std::copy_n(in_->bytes.begin(), n, static_cast<uint8_t*>(pieces[i].iov_base));
      in_->bytes.erase(in_->bytes.begin(), in_->bytes.begin() + static_cast<ptrdiff_t>(n));
      most -= n;
      total += static_cast<ssize_t>(n);
    }
    return total;
  }
  ssize_t Write(const iovec* pieces, int count) override {
    if (out_->closed) return -EPIPE;
    size_t room = out_->room - out_->bytes.size();
    if (room == 0 || count == 0) return kWouldBlock;
    room = 1 + (*random_)() % room;
    ssize_t total = 0;
    for (int i = 0; i < count; ++i) {
      const size_t n = std::min(room, pieces[i].iov_len);
      const auto* from = static_cast<const uint8_t*>(pieces[i].iov_base);
      out_->bytes.insert(out_->bytes.end(), from, from + n);
      room -= n;
      total += static_cast<ssize_t>(n);
    }
    return total;
  }

 private:
  Pipe* in_;
  Pipe* out_;
  std::mt19937_64* random_;
};

class StripedTest : public ::testing::Test {
 protected:
  static constexpr size_t kLanes = 3;
  StripedTest() {
    std::vector<std::unique_ptr<Stream>> senders, receivers;
    for (Pipe& pipe : pipes_) {
      senders.push_back(std::make_unique<PipeEnd>(&unused_, &pipe, &random_));
      receivers.push_back(std::make_unique<PipeEnd>(&pipe, &unused_, &random_));
    }
    sender_ = std::make_unique<StripedStream>(std::move(senders));
    receiver_ = std::make_unique<StripedStream>(std::move(receivers));
  }
  ssize_t Read(std::vector<uint8_t>* to, size_t most) {
    std::vector<uint8_t> piece(most);
    const iovec into[2] = {{piece.data(), most / 3}, {piece.data() + most / 3, most - most / 3}};
    const ssize_t n = receiver_->Read(into, 2);
    if (n > 0) to->insert(to->end(), piece.begin(), piece.begin() + n);
    return n;
  }

  std::mt19937_64 random_{7};
  Pipe pipes_[kLanes];
  Pipe unused_;
  std::unique_ptr<StripedStream> sender_, receiver_;
};

TEST_F(StripedTest, BytesArriveInOrderWhateverTheSocketsTake) {
  std::vector<uint8_t> sent(3000000), got;
  for (uint8_t& byte : sent) byte = static_cast<uint8_t>(random_());
  size_t begin = 0;
  size_t used[kLanes] = {};
  for (int turn = 0; got.size() < sent.size(); ++turn) {
    ASSERT_LT(turn, 1000000) << "it is stuck after " << got.size();
    const size_t size = std::min<size_t>(sent.size() - begin, random_() % 300000);
    const size_t first = size / 2;
    const iovec pieces[2] = {{sent.data() + begin, first}, {sent.data() + begin + first, size - first}};
    const ssize_t n = sender_->Write(pieces, size > 0 ? 2 : 0);
    ASSERT_TRUE(n > 0 || n == Stream::kWouldBlock);
    if (n > 0) begin += static_cast<size_t>(n);
    for (size_t i = 0; i < kLanes; ++i) used[i] = std::max(used[i], pipes_[i].bytes.size());
    if (random_() % 2 == 0) continue;
    const ssize_t r = Read(&got, 1 + random_() % 200000);
    ASSERT_TRUE(r > 0 || r == Stream::kWouldBlock);
  }
  EXPECT_EQ(got, sent);
  EXPECT_FALSE(sender_->HasUnsent());
  for (const size_t bytes : used) EXPECT_GT(bytes, 0u) << "a socket was never used";
}

TEST_F(StripedTest, OnlySocketsThatMayHaveTheNextByteAreWaitedFor) {
  const uint8_t data[2] = {1, 2};
  const iovec first = {const_cast<uint8_t*>(data), 1}, second = {const_cast<uint8_t*>(data + 1), 1};
  ASSERT_EQ(sender_->Write(&first, 1), 1);
  while (sender_->HasUnsent()) sender_->Write(nullptr, 0);
  ASSERT_EQ(sender_->Write(&second, 1), 1);
  while (sender_->HasUnsent()) sender_->Write(nullptr, 0);
  Pipe delayed = std::exchange(pipes_[0], Pipe());
  std::vector<uint8_t> got;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Read(&got, 10), Stream::kWouldBlock);
  // The second stripe is here, in a socket that stays readable: to wait for it would never end.
  EXPECT_TRUE(receiver_->AwaitsRead(0));
  EXPECT_FALSE(receiver_->AwaitsRead(1));
  pipes_[0] = delayed;
  for (int i = 0; i < 50 && got.size() < 2; ++i) Read(&got, 10);
  EXPECT_EQ(got, (std::vector<uint8_t>{1, 2}));
}

TEST_F(StripedTest, EndsWhenAllSocketsHaveEnded) {
  std::vector<uint8_t> got;
  pipes_[1].closed = true;
  EXPECT_EQ(Read(&got, 10), Stream::kWouldBlock);
  EXPECT_FALSE(receiver_->AwaitsRead(1));
  pipes_[0].closed = pipes_[2].closed = true;
  EXPECT_EQ(Read(&got, 10), Stream::kEof);
}

TEST_F(StripedTest, StripesThatCannotBeAreRefused) {
  const uint64_t wrong[][2] = {{0, 0}, {0, uint64_t(1) << 32}};
  for (const auto& header : wrong) {
    Pipe pipe;
    const auto* bytes = reinterpret_cast<const uint8_t*>(header);
    pipe.bytes.assign(bytes, bytes + sizeof(header));
    std::vector<std::unique_ptr<Stream>> lanes;
    lanes.push_back(std::make_unique<PipeEnd>(&pipe, &unused_, &random_));
    StripedStream stream(std::move(lanes));
    uint8_t to = 0;
    const iovec piece = {&to, 1};
    ssize_t n = Stream::kWouldBlock;
    for (int i = 0; i < 50 && n == Stream::kWouldBlock; ++i) n = stream.Read(&piece, 1);
    EXPECT_EQ(n, -EPROTO);
  }
}

TEST(Gathering, AConnectionIsThereWithItsLastSocketOrDropped) {
  Gathering gathering;
  const auto now = std::chrono::steady_clock::now();
  const auto add = [&](uint8_t stream, SteadyTime at) {
    Transcript transcript;
    StripeId stripe;
    stripe.streams = 3;
    stripe.stream = stream;
    stripe.group = 9;
    transcript.caller = MakeHello(Worker(0), Server(0), false, stripe);
    transcript.listener = MakeHello(Server(0), Worker(0), false, stripe);
    Lane lane;
    lane.stream = std::make_unique<PlainStream>(-1);
    return gathering.Add(transcript, std::move(lane), at).size();
  };
  EXPECT_EQ(add(0, now), 0u);
  EXPECT_EQ(add(2, now), 0u);
  EXPECT_EQ(add(2, now), 0u);  // again: not one more
  EXPECT_EQ(add(1, now), 3u);
  EXPECT_EQ(add(0, now), 0u);
  EXPECT_EQ(add(1, now), 0u);
  gathering.DropOld(now + std::chrono::seconds(60));
  EXPECT_EQ(add(2, now), 0u);
}

}  // namespace
}  // namespace hipress::testing
