// What a server's key takes from workers, and when.
#include <climits>
#include <future>

#include "flow_fixture.h"
#include "kvstore/server/server_key.h"
#include "van_testing.h"

namespace hipress::testing {
namespace {

constexpr int64_t kElements = 100;

/// A key of two workers, in one partition.
class ServerKeyTest : public ::testing::Test {
 protected:
  ServerKeyTest() : executor_(1) {
    context_.num_workers = 2;
    context_.executor = &executor_;
    context_.self = [] { return Server(0); };
    context_.send = [](NodeId, Message, int, std::function<void(bool)> done) {
      if (done) done(true);
    };
    context_.fail = [](const std::string&) {};
    key_ = std::make_shared<ServerKey>(7, &context_);
  }
  ~ServerKeyTest() override {
    key_->Fail("the test is over");
    executor_.Stop();
  }

  std::vector<int64_t> Program() const {
    FlatProgram program(kElements, 1);
    std::vector<int64_t> received;
    for (int w = 0; w < 2; ++w) {
      received.push_back(program.Add(Op::kRecv, 0, PackedId(Role::kWorker, w), {}));
    }
    const int64_t merged = program.Add(Op::kMerge, 0, -1, received);
    program.Add(Op::kEncode, 0, -1, {program.Add(Op::kUpdate, 0, -1, {merged})});
    return program.Flat();
  }
  bool InitKey(NodeId from, const std::vector<int64_t>& program = {}) {
    Message message(MessageKind::kInitKey);
    message.header.elements = kElements;
    message.payload = InitKeyBody{"w", program}.Pack();
    return key_->OnInitKey(from, message);
  }
  bool InitData(NodeId from, int64_t elements = kElements) {
    Message message(MessageKind::kInitData);
    message.payload = AllocateBuffer(size_t(elements) * sizeof(float));
    std::memset(message.payload.data, 0, message.payload.size);
    return key_->OnInitData(from, message);
  }
  void Push(NodeId from) {
    Message message;
    MessageHeader& header = message.header;
    header.kind = MessageKind::kData;
    header.elements = kElements;
    header.iteration = 1;
    header.config = Digest(IdentityCodec()->Config());
    message.payload = AllocateBuffer(kElements * sizeof(float));
    std::memset(message.payload.data, 0, message.payload.size);
    header.payload_bytes = message.payload.size;
    key_->OnDataHeader(from, header);
    key_->OnData(from, std::move(message));
  }
  void AwaitTasks() {
    for (int round = 0; round < 8; ++round) {
      std::promise<void> idle;
      executor_.Submit(INT_MIN, [&idle] { idle.set_value(); });
      idle.get_future().wait();
    }
  }

  Executor executor_;
  ServerContext context_;
  std::shared_ptr<ServerKey> key_;
};

TEST_F(ServerKeyTest, AnInitialValueComesOnceBeforeTheFirstPush) {
  EXPECT_THROW(InitData(Worker(0)), ProtocolError);  // nothing is known of the key yet
  EXPECT_FALSE(InitKey(Worker(0), Program()));
  EXPECT_THROW(InitData(Worker(1)), ProtocolError);
  EXPECT_THROW(InitData(Worker(0), kElements - 1), ProtocolError);
  EXPECT_FALSE(InitData(Worker(0)));
  EXPECT_THROW(InitData(Worker(0)), ProtocolError);  // twice
  EXPECT_TRUE(InitKey(Worker(1)));
  ASSERT_EQ(key_->FinishInit(), "");
  EXPECT_THROW(InitKey(Worker(0), Program()), ProtocolError);
  EXPECT_THROW(InitData(Worker(0)), ProtocolError);
  // With an optimizer the weight takes the place of the initial value.
  std::atomic<int> updates{0};
  context_.updater = std::make_shared<const UpdateFn>(
      [&](uint64_t, const std::string&, float*, float*, int64_t) { ++updates; });
  context_.has_updater = true;
  for (int w = 0; w < 2; ++w) Push(Worker(w));
  AwaitTasks();
  EXPECT_EQ(updates, 1);
  EXPECT_THROW(InitData(Worker(0)), ProtocolError);
}

}  // namespace
}  // namespace hipress::testing
