// Commands and answers that are longer than a message.
#include <future>
#include <memory>
#include <thread>

#include "kvstore/worker/kvstore_dist.h"
#include "kvstore/server/kvstore_dist_server.h"
#include "van_testing.h"

namespace hipress::testing {
namespace {

/// A job of one worker and one server, whose messages may have up to kLimit bytes.
class TextPiecesTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kLimit = 4096;

  void SetUp() override {
    options_.num_workers = options_.num_servers = 1;
    options_.root_uri = "127.0.0.1";
    options_.root_port = FreePort();
    options_.start_timeout = options_.wait_timeout = seconds(20);
    options_.num_threads = 2;
    options_.van = TestVanOptions();
    options_.van.heartbeat_timeout = seconds(20);
    options_.van.max_payload_bytes = kLimit;
    scheduler_ = std::make_unique<Postoffice>(Options(Role::kScheduler));
    server_ = std::make_unique<KVStoreDistServer>(Options(Role::kServer));
    worker_ = std::make_unique<KVStoreDist>(Options(Role::kWorker));
    threads_.emplace_back([this] {
      scheduler_->Start(&nothing_);
      scheduler_->WaitForEnd();
      scheduler_->Stop();
    });
    threads_.emplace_back([this] {
      server_->Start();
      server_->Serve([](int, int head, const std::string& body) -> std::optional<std::string> {
        if (head == 1) throw Error(body);
        return std::string(body.rbegin(), body.rend());
      });
      server_->Stop();
    });
    worker_->Start();
  }
  void TearDown() override {
    worker_->Stop();
    for (std::thread& thread : threads_) thread.join();
  }
  JobOptions Options(Role role) const {
    JobOptions options = options_;
    options.role = role;
    return options;
  }
  std::string Command(int head, const std::string& body) {
    return worker_->Command(0, head, body);
  }

  class Nothing : public PostofficeReceiver {
    Buffer OnHeader(NodeId, const MessageHeader&) override { return Buffer(); }
    void OnMessage(NodeId, Message) override {}
    void OnDeath(NodeId, const std::string&) override {}
  };
  Nothing nothing_;
  JobOptions options_;
  std::unique_ptr<Postoffice> scheduler_;
  std::unique_ptr<KVStoreDistServer> server_;
  std::unique_ptr<KVStoreDist> worker_;
  std::vector<std::thread> threads_;
};

std::string Pattern(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = char('a' + i % 23);
  return text;
}

TEST_F(TextPiecesTest, CommandsAndAnswersOfAnyLengthArrive) {
  for (const size_t size : {size_t(0), size_t(1), kLimit - 1, kLimit, kLimit + 1, 3 * kLimit, 100 * kLimit + 7}) {
    const std::string body = Pattern(size);
    EXPECT_EQ(Command(0, body), std::string(body.rbegin(), body.rend())) << size;
  }
  const std::string why = Pattern(3 * kLimit);
  EXPECT_EQ(ErrorOf([&] { Command(1, why); }), "server 0: " + why);
  EXPECT_EQ(worker_->Failure(), "");
}

TEST_F(TextPiecesTest, LongCommandsOfThreadsDoNotMix) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      const std::string body(size_t(10 * kLimit), char('a' + i));
      EXPECT_EQ(Command(0, body), body);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(TextPiecesTest, AKeyWhosePartitionsDoNotFitIntoAMessageIsRefused) {
  const int64_t n = 10000;
  const std::vector<int64_t> program = {2, 0, 1, 0, 0, 0, n};
  const std::vector<float> value(n, 0.0f);
  EXPECT_HAS(ErrorOf([&] {
    worker_->Init(7, "w", value.data(), n, DType::kFloat32, "a graph", {{Worker(0), program}});
  }), "key 'w' has a partition of 10000 elements, and a message has at most 4096 bytes");
  EXPECT_EQ(worker_->Failure(), "");
}

TEST(TextPieces, ForgetWhatANodeThatIsGoneHasNotFinished) {
  TextPieces pieces;
  Message begin(MessageKind::kReply, "begin");
  begin.header.iteration = 1;
  begin.header.step = kTextGoesOn;
  Message end(MessageKind::kReply, "end");
  end.header.iteration = 1;
  EXPECT_EQ(pieces.Add(Worker(0), begin), std::nullopt);
  EXPECT_EQ(pieces.Add(Worker(1), begin), std::nullopt);
  pieces.Forget(Worker(0));
  EXPECT_EQ(pieces.Add(Worker(0), end), "end");
  EXPECT_EQ(pieces.Add(Worker(1), end), "beginend");
  end.header.step = 2;
  EXPECT_THROW(pieces.Add(Worker(1), end), ProtocolError);
}

TEST(TextPieces, RefuseAnEmptyPieceOfATextThatContinues) {
  TextPieces pieces;
  Message empty(MessageKind::kReply, "");
  empty.header.step = kTextGoesOn;
  EXPECT_THROW(pieces.Add(Worker(0), empty), ProtocolError);
}

TEST(TextPieces, OfALongTextAreSentAfterGradients) {
  std::vector<int> priorities;
  const auto send = [&](Message, int priority) { priorities.push_back(priority); };
  SendText(ReplyHeader(1, true), "abcd", 4, send);
  EXPECT_EQ(priorities, std::vector<int>{kControlPriority});
  priorities.clear();
  SendText(ReplyHeader(1, true), "abcde", 4, send);
  EXPECT_EQ(priorities, (std::vector<int>{kTextPriority, kTextPriority}));
}

TEST(RequestTable, KeepsNoPiecesOfAnswersToUnknownRequests) {
  BlockingCalls calls;
  RequestTable requests(&calls, seconds(1));
  Message piece(MessageKind::kReply, "unknown");
  piece.header.iteration = 1;
  piece.header.step = kTextGoesOn;
  requests.OnReply(Worker(0), piece);
  std::future<Reply> reply;
  ASSERT_EQ(requests.Add(&reply), 1u);
  requests.OnReply(Worker(0), ReplyMessage(1, true, "known"));
  EXPECT_EQ(reply.get(), "known");
}

}  // namespace
}  // namespace hipress::testing
