// Membership: a job forms, ranks are given, barriers hold, deaths and farewells are told.
#include <atomic>

#include "van_testing.h"

namespace hipress {
namespace testing {
namespace {

/// One node with its receiver; Start and everything after it may run on a thread of its own.
class Node : public PostofficeReceiver, public Waitable {
 public:
  explicit Node(JobOptions options) : office(std::move(options)) {}

  Buffer OnHeader(NodeId, const MessageHeader&) override { return Buffer(); }
  void OnMessage(NodeId from, Message message) override {
    Do([&] { texts.push_back(from.ToString() + ": " + TextIn(message)); });
  }
  void OnLeave(NodeId peer) override {
    Do([&] { leaves.push_back(peer); });
  }
  void OnDeath(NodeId peer, const std::string& what) override {
    Do([&] { deaths.emplace_back(peer, what); });
  }
  void Start() { error = ErrorOf([&] { office.Start(this); }); }
  bool AwaitDeath(milliseconds limit = seconds(8)) {
    return Await([&] { return !deaths.empty(); }, limit);
  }

  Postoffice office;
  std::string error;
  std::vector<std::string> texts;
  std::vector<NodeId> leaves;
  std::vector<std::pair<NodeId, std::string>> deaths;
};

class Job {
 public:
  Job(int workers, int servers, int start_timeout = 20)
      : workers_(workers), servers_(servers), port_(FreePort()), start_timeout_(start_timeout) {}

  JobOptions Options(Role role, int rank = -1) const {
    JobOptions options;
    options.role = role;
    options.root_uri = "127.0.0.1";
    options.root_port = port_;
    options.num_workers = workers_;
    options.num_servers = servers_;
    options.wanted_rank = rank;
    options.start_timeout = seconds(start_timeout_);
    options.van = TestVanOptions();
    return options;
  }
  Node& Add(JobOptions options) {
    nodes_.push_back(std::make_unique<Node>(std::move(options)));
    return *nodes_.back();
  }
  /// Starts all nodes added so far, at the same time.
  void Start() {
    std::vector<std::thread> threads;
    for (auto& node : nodes_) threads.emplace_back([&node] { node->Start(); });
    for (auto& thread : threads) thread.join();
  }
  /// Adds the whole job, wanting ranks in order, and starts it. The scheduler comes first.
  void StartAll() {
    Add(Options(Role::kScheduler));
    for (int i = 0; i < servers_; ++i) Add(Options(Role::kServer, i));
    for (int i = 0; i < workers_; ++i) Add(Options(Role::kWorker, i));
    Start();
    for (auto& node : nodes_) ASSERT_EQ(node->error, "");
  }
  Node& scheduler() { return *nodes_[0]; }
  Node& server(int i) { return *nodes_[1 + i]; }
  Node& worker(int i) { return *nodes_[1 + servers_ + i]; }
  std::vector<std::unique_ptr<Node>>& nodes() { return nodes_; }

 private:
  const int workers_, servers_, port_, start_timeout_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST(Postoffice, FormsAJobAndEndsItInPeace) {
  Job job(3, 2);
  job.StartAll();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(job.worker(i).office.self(), Worker(i));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(job.server(i).office.self(), Server(i));
  for (int w = 0; w < 3; ++w) {
    for (int s = 0; s < 2; ++s) {
      job.worker(w).office.Send(Server(s), Text(MessageKind::kData, "hello"));
      job.server(s).office.Send(Worker(w), Text(MessageKind::kFetched, "back"));
    }
  }
  for (int s = 0; s < 2; ++s) {
    EXPECT_TRUE(job.server(s).Await([&] { return job.server(s).texts.size() == 3; }));
  }
  for (int w = 0; w < 3; ++w) {
    EXPECT_TRUE(job.worker(w).Await([&] { return job.worker(w).texts.size() == 2; }));
  }
  std::vector<std::thread> ends;
  std::atomic<int> peaceful{0};
  for (int i = 0; i < 3; ++i) {
    Node& node = i == 0 ? job.scheduler() : job.server(i - 1);
    ends.emplace_back([&] { peaceful += node.office.WaitForEnd().empty(); });
  }
  for (int w = 0; w < 3; ++w) job.worker(w).office.Stop();
  for (auto& end : ends) end.join();
  EXPECT_EQ(peaceful, 3);
  for (int s = 0; s < 2; ++s) job.server(s).office.Stop();
  job.scheduler().office.Stop();
  for (auto& node : job.nodes()) EXPECT_TRUE(node->deaths.empty()) << node->deaths[0].second;
  EXPECT_EQ(job.server(0).leaves.size(), 3u);
}

TEST(Postoffice, BarrierWaitsForEveryone) {
  Job job(3, 1);
  job.StartAll();
  std::atomic<int> arrived{0};
  std::atomic<bool> early{false};
  std::vector<std::thread> threads;
  for (int w = 0; w < 3; ++w) {
    threads.emplace_back([&, w] {
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        job.worker(w).office.Barrier(false, seconds(10));
        if (arrived < 3 * round) early = true;
        job.worker(w).office.Barrier(true, seconds(10));
      }
    });
  }
  threads.emplace_back([&] {
    for (int round = 1; round <= 20; ++round) job.server(0).office.Barrier(true, seconds(10));
  });
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(early);
}

TEST(Postoffice, DeathIsToldToEveryoneOnce) {
  Job job(2, 2);
  job.StartAll();
  const auto begin = steady_clock::now();
  std::string barrier_error;
  std::thread waiting([&] {
    barrier_error = ErrorOf([&] { job.worker(0).office.Barrier(false, seconds(30)); });
  });
  std::this_thread::sleep_for(milliseconds(50));
  job.worker(1).office.Abort();
  waiting.join();
  EXPECT_LT(steady_clock::now() - begin, seconds(3));
  EXPECT_HAS(barrier_error, "worker 1 (127.0.0.1:");
  for (Node* node : {&job.scheduler(), &job.server(0), &job.server(1), &job.worker(0)}) {
    ASSERT_TRUE(node->AwaitDeath());
    EXPECT_EQ(node->deaths[0].first, Worker(1));
    EXPECT_HAS(node->deaths[0].second, "worker 1 (127.0.0.1:");
    EXPECT_EQ(node->office.Dead(), std::vector<NodeId>{Worker(1)});
  }
  EXPECT_HAS(job.server(0).office.WaitForEnd(), "worker 1");
  EXPECT_HAS(job.scheduler().office.WaitForEnd(), "worker 1");
  std::this_thread::sleep_for(milliseconds(100));
  for (auto& node : job.nodes()) EXPECT_LE(node->deaths.size(), 1u);
}

TEST(Postoffice, SchedulersDeathIsNoticedByAll) {
  Job job(2, 1);
  job.StartAll();
  job.scheduler().office.Abort();
  for (Node* node : {&job.server(0), &job.worker(0), &job.worker(1)}) {
    ASSERT_TRUE(node->AwaitDeath());
    EXPECT_EQ(node->deaths[0].first, Scheduler());
    EXPECT_HAS(node->deaths[0].second, "the scheduler (127.0.0.1:");
  }
}

}  // namespace
}  // namespace testing
}  // namespace hipress
