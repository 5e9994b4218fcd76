// What shares a message and what does not; malformed ones must be refused whole, part by part.
#include "kvstore/fused.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/batch.h"
#include "flow_fixture.h"

namespace hipress {
namespace {

struct Sent {
  NodeId to;
  Message message;
  int priority;
};

class FusedTest : public testing::Test {
 protected:
  bool Take(NodeId to, uint64_t key, size_t bytes, int priority = 0) {
    MessageHeader header;
    header.kind = MessageKind::kData;
    header.key = key;
    header.elements = bytes / 4;
    Buffer payload = AllocateBuffer(bytes);
    std::memset(payload.data, int(key), bytes);
    return outbox_.Take(to, header, payload, priority);
  }

  std::vector<Sent> sent_;
  Outbox outbox_{[this](NodeId to, Message message, int priority) {
    sent_.push_back({to, std::move(message), priority});
  }};
};

TEST_F(FusedTest, OneMessageForEachPeerAtTheBatchsEnd) {
  EXPECT_FALSE(Take(Worker(1), 1, 8)) << "nobody would send it";
  {
    Batch batch;
    EXPECT_TRUE(Take(Worker(1), 1, 8, -3));
    EXPECT_TRUE(Take(Worker(2), 2, 8));
    EXPECT_TRUE(Take(Worker(1), 3, 13, -1));
    EXPECT_FALSE(Take(Worker(1), 4, kMaxFusedPayloadBytes + 1));
    EXPECT_FALSE(outbox_.empty());
    EXPECT_TRUE(sent_.empty());
  }
  EXPECT_TRUE(outbox_.empty());
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[0].to, Worker(1));
  EXPECT_EQ(sent_[0].priority, -1);
  EXPECT_EQ(sent_[0].message.header.kind, MessageKind::kFused);
  EXPECT_EQ(sent_[0].message.header.elements, 2u);
  EXPECT_EQ(sent_[0].message.payload.size, 2 * sizeof(FusedPart) + 8 + 16);
  // Alone it goes as it would have without a batch.
  EXPECT_EQ(sent_[1].message.header.kind, MessageKind::kData);
  EXPECT_EQ(sent_[1].message.header.key, 2u);
  EXPECT_EQ(sent_[1].message.payload.size, 8u);
}

TEST_F(FusedTest, AFullMessageLeavesBeforeTheBatchsEnd) {
  {
    Batch batch;
    for (uint64_t key = 0; key < 20; ++key) EXPECT_TRUE(Take(Worker(1), key, kMaxFusedPayloadBytes));
    EXPECT_EQ(sent_.size(), 2u);
  }
  uint64_t parts = 0;
  for (const Sent& sent : sent_) {
    EXPECT_LE(sent.message.payload.size, kMaxFusedMessageBytes);
    parts += sent.message.header.elements;
  }
  EXPECT_EQ(parts, 20u);
}

/// A worker's flow of 16 elements that has pushed and waits for the server's sum.
class UnfuseTest : public testing::Test {
 protected:
  UnfuseTest() {
    cluster_.Push(0, gradient_.data(), calls_.Expect());
    EXPECT_TRUE(cluster_.Pull(0, out_.data(), calls_.Expect()));
  }

  static FusedPart Part(uint32_t bytes = 64) {
    FusedPart part = {};
    part.key = 7;
    part.elements = 16;
    part.payload_bytes = bytes;
    part.iteration = 1;
    return part;
  }
  static void Append(std::vector<uint8_t>* to, const FusedPart& part, size_t bytes) {
    const auto* at = reinterpret_cast<const uint8_t*>(&part);
    to->insert(to->end(), at, at + sizeof(part));
    to->resize(to->size() + bytes);
  }
  void Give(const std::vector<uint8_t>& payload, uint64_t parts, NodeId from = Server(0)) {
    Message message(MessageKind::kFused);
    message.header.elements = parts;
    message.payload = AllocateBuffer(payload.size());
    if (!payload.empty()) std::memcpy(message.payload.data, payload.data(), payload.size());
    Unfuse(from, message, [this](const MessageHeader& part) {
      if (part.key != 7) throw ProtocolError("data of an unknown key");
      return cluster_.network.flows.at(Worker(0));
    }, &executor_);
  }
  void Refused(const std::vector<uint8_t>& payload, uint64_t parts, const std::string& why,
               NodeId from = Server(0)) {
    try {
      Give(payload, parts, from);
      FAIL() << "it was taken, not refused because of " << why;
    } catch (const ProtocolError& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }

  std::vector<float> gradient_ = std::vector<float>(16, 1), out_ = std::vector<float>(16, -1);
  Calls calls_;
  Cluster cluster_{16, 1, 2};  // worker 1 never pushes, so the server never answers
  Executor executor_{1};
};

TEST_F(UnfuseTest, MalformedOnesAreRefused) {
  std::vector<uint8_t> good;
  Append(&good, Part(), 64);
  auto cut = good;
  cut.resize(cut.size() - 8);
  Refused(cut, 1, "part 0 is malformed");
  cut.resize(20);
  Refused(cut, 1, "part 0 is malformed");
  Refused(good, 2, "announces 2");
  Refused({}, 1, "announces 1");
  auto tail = good;
  tail.resize(tail.size() + 8);
  Refused(tail, 1, "part 1 is malformed");
  Give(good, 1);  // none of these has left a trace
  ASSERT_TRUE(calls_.Wait());
}

TEST_F(UnfuseTest, EachPartIsCheckedLikeAMessage) {
  const auto with = [](FusedPart part, size_t bytes = 64) {
    std::vector<uint8_t> payload;
    Append(&payload, part, bytes);
    return payload;
  };
  FusedPart part = Part();
  part.reserved = 1;
  Refused(with(part), 1, "malformed");
  part = Part(UINT32_MAX - 3);
  Refused(with(part), 1, "malformed");
  part = Part();
  part.key = 99;
  Refused(with(part), 1, "unknown key");
  part = Part(56);
  Refused(with(part, 56), 1, "payload of 56 bytes");
  part = Part();
  part.elements = 15;
  Refused(with(part), 1, "15 elements");
  part = Part();
  part.partition = 7;
  Refused(with(part), 1, "no task");
  part = Part();
  part.iteration = 2;
  Refused(with(part), 1, "not expected now");
  Refused(with(Part()), 1, "no task", Worker(1));
  std::vector<uint8_t> twice = with(Part());
  Append(&twice, Part(), 64);
  Refused(twice, 2, "not expected now");
}

TEST_F(UnfuseTest, PartsReachTheirFlow) {
  std::vector<uint8_t> payload;
  Append(&payload, Part(), 64);
  const float value = 2.5f;
  for (int i = 0; i < 16; ++i) {
    std::memcpy(payload.data() + sizeof(FusedPart) + 4 * i, &value, 4);
  }
  Give(payload, 1);
  ASSERT_TRUE(calls_.Wait());
  EXPECT_EQ(out_, std::vector<float>(16, value));
}

}  // namespace
}  // namespace hipress
