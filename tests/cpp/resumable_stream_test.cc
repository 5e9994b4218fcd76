// A stream over several sockets: the bytes and their order, for all splits, delays and breaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>

#include "transport/lanes.h"
#include "transport/resumable_stream.h"

namespace hipress::testing {
namespace {

/// One direction of a connection in memory, with little room.
struct Pipe {
  std::deque<uint8_t> bytes;
  size_t room = 100000;
  bool closed = false;  ///< no more comes after these bytes
  bool reset = false;   ///< nor can they be read
};

class PipeEnd final : public Stream {
 public:
  PipeEnd(Pipe* in, Pipe* out, std::mt19937_64* random) : in_(in), out_(out), random_(random) {}
  ssize_t Read(const iovec* pieces, int count) override {
    if (in_->reset) return -ECONNRESET;
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
    if (out_->closed || out_->reset) return -EPIPE;
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

class LanesTest : public ::testing::Test {
 protected:
  static constexpr size_t kLanes = 3;
  LanesTest() {
    std::vector<std::unique_ptr<Stream>> senders, receivers;
    for (Pipe& pipe : pipes_) {
      senders.push_back(std::make_unique<PipeEnd>(&unused_, &pipe, &random_));
      receivers.push_back(std::make_unique<PipeEnd>(&pipe, &unused_, &random_));
    }
    sender_ = std::make_unique<ResumableStream>(std::move(senders));
    receiver_ = std::make_unique<ResumableStream>(std::move(receivers));
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
  std::unique_ptr<ResumableStream> sender_, receiver_;
};

TEST_F(LanesTest, BytesArriveInOrderWhateverTheSocketsTake) {
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

TEST_F(LanesTest, OnlySocketsThatMayHaveTheNextByteAreWaitedFor) {
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

TEST_F(LanesTest, NoSocketStaysReadableWhileTheStripeOfAnotherIsLate) {
  const uint8_t data[100] = {};
  const iovec first = {const_cast<uint8_t*>(data), 100}, second = {const_cast<uint8_t*>(data), 1};
  ASSERT_EQ(sender_->Write(&first, 1), 100);
  while (sender_->HasUnsent()) sender_->Write(nullptr, 0);
  std::deque<uint8_t> late(pipes_[0].bytes.end() - 50, pipes_[0].bytes.end());
  pipes_[0].bytes.resize(pipes_[0].bytes.size() - 50);
  std::vector<uint8_t> got;
  for (int i = 0; i < 50; ++i) Read(&got, 60);
  ASSERT_EQ(got.size(), 50u);
  ASSERT_EQ(sender_->Write(&second, 1), 1);
  while (sender_->HasUnsent()) sender_->Write(nullptr, 0);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Read(&got, 60), Stream::kWouldBlock);
  EXPECT_TRUE(receiver_->AwaitsRead(0));
  EXPECT_FALSE(receiver_->AwaitsRead(1)) << "the frame of the second stripe was not taken";
  pipes_[2].closed = true;
  EXPECT_EQ(Read(&got, 60), Stream::kWouldBlock);
  EXPECT_FALSE(receiver_->AwaitsRead(2));
  pipes_[0].bytes.insert(pipes_[0].bytes.end(), late.begin(), late.end());
  for (int i = 0; i < 50 && got.size() < 101; ++i) Read(&got, 60);
  EXPECT_EQ(got.size(), 101u);
  EXPECT_EQ(Read(&got, 60), Stream::kEof) << "of the third socket, which was closed without a word";
}

TEST_F(LanesTest, StreamEndsAfterThePeersLastByteOnAllSockets) {
  uint8_t data = 1;
  const iovec piece = {&data, 1};
  ASSERT_EQ(sender_->Write(&piece, 1), 1);
  sender_->End();
  while (sender_->HasUnsent()) sender_->Write(nullptr, 0);
  std::vector<uint8_t> got;
  for (int i = 0; i < 50; ++i) Read(&got, 10);
  EXPECT_EQ(got.size(), 1u);
  EXPECT_TRUE(receiver_->AtEnd());
  pipes_[1].closed = true;
  EXPECT_EQ(Read(&got, 10), Stream::kWouldBlock);
  EXPECT_FALSE(receiver_->AwaitsRead(1));
  pipes_[0].closed = pipes_[2].closed = true;
  EXPECT_EQ(Read(&got, 10), Stream::kEof);
}

TEST_F(LanesTest, OneSocketThatClosesWithoutAWordIsABreak) {
  std::vector<uint8_t> got;
  pipes_[1].closed = true;
  EXPECT_EQ(Read(&got, 10), Stream::kEof);
  EXPECT_FALSE(receiver_->AtEnd());
}

TEST_F(LanesTest, FramesThatCannotBeAreRefused) {
  constexpr uint64_t kAcknowledgement = 0, kEnd = ~uint64_t(0);
  // A stripe that is too large; word of bytes that were never sent; an end before what has come.
  const std::vector<std::vector<uint64_t>> wrong = {
      {0, uint64_t(1) << 32}, {1, kAcknowledgement}, {5, kEnd, 6, kEnd}, {0, kEnd, 0, 1}};
  for (const std::vector<uint64_t>& frames : wrong) {
    Pipe pipe;
    const auto* bytes = reinterpret_cast<const uint8_t*>(frames.data());
    pipe.bytes.assign(bytes, bytes + 8 * frames.size());
    std::vector<std::unique_ptr<Stream>> lanes;
    lanes.push_back(std::make_unique<PipeEnd>(&pipe, &unused_, &random_));
    ResumableStream stream(std::move(lanes));
    uint8_t to = 0;
    const iovec piece = {&to, 1};
    ssize_t n = Stream::kWouldBlock;
    for (int i = 0; i < 50 && n == Stream::kWouldBlock; ++i) n = stream.Read(&piece, 1);
    EXPECT_EQ(n, -EPROTO) << frames[0] << ", " << frames[1];
  }
}

TEST(ResumableStream, KeepsNoMoreThanItsLimitAndGoesOnWhenItsPeerHasRead) {
  std::mt19937_64 random(3);
  Pipe there, back;
  there.room = back.room = size_t(1) << 40;
  const auto lane = [&](Pipe* in, Pipe* out) {
    std::vector<std::unique_ptr<Stream>> lanes;
    lanes.push_back(std::make_unique<PipeEnd>(in, out, &random));
    return lanes;
  };
  ResumableStream sender(lane(&back, &there)), receiver(lane(&there, &back));
  std::vector<uint8_t> data(8 << 20);
  const iovec piece = {data.data(), data.size()};
  size_t sent = 0;
  for (ssize_t n = 1; n > 0 || sender.HasUnsent(); sent += n > 0 ? static_cast<size_t>(n) : 0) {
    n = sender.Write(&piece, 1);
  }
  EXPECT_EQ(sent, ReplayBuffer::kMaxBytes);
  EXPECT_EQ(sender.kept(), ReplayBuffer::kMaxBytes);
  size_t got = 0;
  while (got < sent) {
    const ssize_t n = receiver.Read(&piece, 1);
    ASSERT_GT(n, 0);
    got += static_cast<size_t>(n);
    while (receiver.HasUnsent()) receiver.Write(nullptr, 0);
  }
  EXPECT_FALSE(sender.ReadMadeWork());
  while (!back.bytes.empty()) EXPECT_EQ(sender.Read(&piece, 1), Stream::kWouldBlock);
  EXPECT_TRUE(sender.ReadMadeWork());  // who waited for that writes again
  EXPECT_LT(sender.kept(), size_t(512 << 10));
  EXPECT_GT(sender.Write(&piece, 1), 0);
}

TEST(ResumableStream, AnAcknowledgementMayOvertakeAnother) {
  std::mt19937_64 random(4);
  Pipe there, back[2];
  there.room = size_t(1) << 40;
  std::vector<std::unique_ptr<Stream>> lanes;
  for (Pipe& pipe : back) lanes.push_back(std::make_unique<PipeEnd>(&pipe, &there, &random));
  ResumableStream sender(std::move(lanes));
  std::vector<uint8_t> data(600000);
  const iovec piece = {data.data(), data.size()};
  size_t sent = 0;
  while (sent < data.size() || sender.HasUnsent()) {
    const iovec rest = {data.data() + sent, data.size() - sent};
    const ssize_t n = sender.Write(&rest, sent < data.size() ? 1 : 0);
    sent += n > 0 ? static_cast<size_t>(n) : 0;
  }
  const uint64_t later[2] = {500000, 0}, earlier[2] = {250000, 0};
  const auto* const first = reinterpret_cast<const uint8_t*>(later);
  const auto* const second = reinterpret_cast<const uint8_t*>(earlier);
  back[0].bytes.assign(first, first + sizeof(later));  // the lane that is read first
  back[1].bytes.assign(second, second + sizeof(earlier));
  while (!back[0].bytes.empty() || !back[1].bytes.empty()) {
    ASSERT_EQ(sender.Read(&piece, 1), Stream::kWouldBlock);
  }
  EXPECT_EQ(sender.kept(), 100000u);
}

// ---- breaks

/// Two ends whose sockets break at random places. Each end notices at a different time, and has its
/// new sockets at a different time.
class BreakingLink {
 public:
  explicit BreakingLink(uint64_t seed) : random_(seed), long_(seed % 64 == 0) {
    Connect();
    for (int e = 0; e < 2; ++e) {
      streams_[e].stream = std::make_unique<ResumableStream>(LanesOf(e));
      streams_[e].sends.resize(1 + random_() % 60000);
      if (long_) streams_[e].sends.resize(1500000);  // acknowledgments are due, and overtake others
      for (uint8_t& byte : streams_[e].sends) byte = static_cast<uint8_t>(random_());
    }
  }

  /// Until both ends have all. \return what went wrong
  std::string Run() {
    for (int turn = 0; !Done(0) || !Done(1); ++turn) {
      if (turn > 200000) return "it is stuck";
      const int e = static_cast<int>(random_() % 2);
      if (breaks_ < 12 && random_() % 40 == 0) Break();
      End& end = streams_[e];
      if (end.broken) {
        if (!renewed_) {
          Connect();
          renewed_ = true;
        }
        // Its peer may still use the old sockets, which have also broken.
        if (random_() % 8 == 0) Resume(e);
        continue;
      }
      random_() % 2 == 0 ? Write(&end) : Read(&end, streams_[1 - e].sends);
      if (!wrong_.empty()) return wrong_;
      if (end.stream->kept() > end.sends.size()) return "it keeps more than it was given";
    }
    return "";
  }
  int breaks() const { return breaks_; }

 private:
  struct End {
    std::unique_ptr<ResumableStream> stream;
    std::vector<uint8_t> sends;
    size_t written = 0, read = 0;
    bool broken = false;
  };
  struct Pair {
    Pipe pipes[2];  ///< out of either end
  };

  bool Done(int e) const {
    return streams_[e].read == streams_[1 - e].sends.size() && streams_[e].written == streams_[e].sends.size();
  }
  void Connect() {
    now_.clear();
    const size_t lanes = 1 + random_() % 3;
    for (size_t i = 0; i < lanes; ++i) {
      all_.push_back(std::make_unique<Pair>());
      for (Pipe& pipe : all_.back()->pipes) pipe.room = 1 + random_() % 30000 + (long_ ? 50000 : 0);
      now_.push_back(all_.back().get());
    }
  }
  std::vector<std::unique_ptr<Stream>> LanesOf(int e) {
    std::vector<std::unique_ptr<Stream>> lanes;
    for (Pair* pair : now_) {
      lanes.push_back(std::make_unique<PipeEnd>(&pair->pipes[1 - e], &pair->pipes[e], &random_));
    }
    return lanes;
  }
  void Break() {
    if (streams_[0].broken || streams_[1].broken || renewed_) return;
    ++breaks_;
    Pair* const pair = now_[random_() % now_.size()];
    const bool reset = random_() % 2 == 0;
    for (Pipe& pipe : pair->pipes) {
      pipe.closed = true;
      pipe.reset = reset;
      // The data in transit is lost, or a part of it.
      if (random_() % 2 == 0) pipe.bytes.resize(random_() % (pipe.bytes.size() + 1));
    }
  }
  void Failed(End* end) {
    end->broken = true;
    end->stream->DropLanes();
    for (Pair* pair : renewed_ ? std::vector<Pair*>() : now_) {  // the peer receives it
      for (Pipe& pipe : pair->pipes) pipe.closed = true;
    }
  }
  void Resume(int e) {
    streams_[e].stream->Resume(LanesOf(e));
    streams_[e].broken = false;
    End& other = streams_[1 - e];
    // An end that has new sockets has no use for old ones.
    if (!std::exchange(resumed_, !resumed_) && !other.broken) {
      other.broken = true;
      other.stream->DropLanes();
    }
    if (!resumed_) renewed_ = false;
  }
  void Write(End* end) {
    const size_t left = end->sends.size() - end->written;
    const size_t size = std::min<size_t>(left, random_() % 20000);
    const iovec pieces[2] = {{end->sends.data() + end->written, size / 2},
                             {end->sends.data() + end->written + size / 2, size - size / 2}};
    const ssize_t n = end->stream->Write(pieces, size > 0 ? 2 : 0);
    if (n > 0) {
      end->written += static_cast<size_t>(n);
    } else if (n != Stream::kWouldBlock) {
      Failed(end);
    }
  }
  void Read(End* end, const std::vector<uint8_t>& expected) {
    std::vector<uint8_t> piece(1 + random_() % 20000);
    const iovec into = {piece.data(), piece.size()};
    const ssize_t n = end->stream->Read(&into, 1);
    if (n == -EPROTO) {
      wrong_ = "a frame was refused";
    } else if (n > 0) {
      const auto size = static_cast<size_t>(n);
      if (end->read + size > expected.size() ||
          std::memcmp(expected.data() + end->read, piece.data(), size) != 0) {
        wrong_ = "other bytes came after " + std::to_string(end->read);
      }
      end->read += size;
    } else if (n != Stream::kWouldBlock) {
      Failed(end);
    }
  }

  std::mt19937_64 random_;
  const bool long_;
  std::vector<std::unique_ptr<Pair>> all_;
  std::vector<Pair*> now_;
  End streams_[2];
  bool renewed_ = false;  ///< now_ are new sockets, which not both ends have taken over
  bool resumed_ = false;  ///< one has
  int breaks_ = 0;
  std::string wrong_;
};

TEST(ResumableStream, NothingIsLostOrComesTwiceWhereverSocketsBreak) {
  int breaks = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    BreakingLink link(seed);
    ASSERT_EQ(link.Run(), "") << "seed " << seed;
    breaks += link.breaks();
  }
  EXPECT_GT(breaks, 5000);
}

TEST(Gathering, AConnectionIsThereWithItsLastSocketOrDropped) {
  Gathering gathering;
  const auto now = std::chrono::steady_clock::now();
  const auto add = [&](uint8_t stream, SteadyTime at, uint16_t generation = 0) {
    Transcript transcript;
    LaneId id;
    id.lanes = 3;
    id.lane = stream;
    id.connection = 9;
    id.generation = generation;
    transcript.caller = MakeHello(Worker(0), Server(0), false, id);
    transcript.listener = MakeHello(Server(0), Worker(0), false, id);
    Lane lane;
    lane.stream = std::make_unique<PlainStream>(-1);
    return gathering.Add(transcript, std::move(lane), at).lanes.size();
  };
  EXPECT_EQ(add(0, now), 0u);
  EXPECT_EQ(add(2, now), 0u);
  EXPECT_EQ(add(2, now), 0u);  // again: not one more
  EXPECT_EQ(add(1, now, 1), 0u);  // of another try
  EXPECT_EQ(add(1, now), 3u);
  EXPECT_EQ(add(0, now), 0u);
  EXPECT_EQ(add(1, now), 0u);
  gathering.DropOld(now + std::chrono::seconds(60));
  EXPECT_EQ(add(2, now), 0u);
}

}  // namespace
}  // namespace hipress::testing
