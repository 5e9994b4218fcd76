// Membership: a job forms, ranks are given, barriers hold, deaths and leaves are reported.
#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <set>

#include "van/roster.h"
#include "van_testing.h"

namespace hipress::testing {
namespace {

/// One node with its receiver; Start and everything after it may run on a thread of its own.
class Node : public PostofficeReceiver, public Waitable {
 public:
  explicit Node(JobOptions options, std::unique_ptr<Van> van = nullptr)
      : office(std::move(options), std::move(van)) {}

  Buffer OnHeader(NodeId, const MessageHeader&) override { return Buffer(); }
  void OnMessage(NodeId from, Message message) override {
    if (on_message) on_message();
    Do([&] { texts.push_back(from.ToString() + ": " + TextIn(message)); });
  }
  void OnLeave(NodeId peer) override {
    Do([&] { leaves.push_back(peer); });
  }
  void OnDeath(NodeId peer, const std::string& what) override {
    Do([&] { deaths.emplace_back(peer, what); });
  }
  void Start() {
    error = ErrorOf([&] { office.Start(this); });
    started = true;
  }
  bool AwaitDeath(milliseconds limit = seconds(8)) {
    return Await([&] { return !deaths.empty(); }, limit);
  }

  std::function<void()> on_message;  ///< more behaviour, on the van's thread
  std::string error;
  std::atomic<bool> started{false};  ///< or failed
  std::vector<std::string> texts;
  std::vector<NodeId> leaves;
  std::vector<std::pair<NodeId, std::string>> deaths;
  Postoffice office;  // last: it writes to the others until it has ended
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
  Node& Add(JobOptions options, std::unique_ptr<Van> van = nullptr) {
    nodes_.push_back(std::make_unique<Node>(std::move(options), std::move(van)));
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
  EXPECT_EQ(job.worker(1).office.Dead(), std::vector<NodeId>{Worker(1)});
  EXPECT_HAS(job.server(0).office.WaitForEnd(), "worker 1");
  EXPECT_HAS(job.scheduler().office.WaitForEnd(), "worker 1");
  std::this_thread::sleep_for(milliseconds(100));
  for (auto& node : job.nodes()) EXPECT_LE(node->deaths.size(), 1u);
}

/// Another van, with a difference.
class OtherVan : public Van {
 public:
  explicit OtherVan(std::unique_ptr<Van> van) : van_(std::move(van)) {}
  std::string Start(NodeId self, const std::string& host, int port, VanReceiver* receiver) override {
    return van_->Start(self, host, port, receiver);
  }
  void Rename(NodeId self) override { van_->Rename(self); }
  void RenamePeer(NodeId from, NodeId to) override { van_->RenamePeer(from, to); }
  void Connect(NodeId peer, const std::string& address, SteadyTime deadline) override {
    van_->Connect(peer, address, deadline);
  }
  void Send(NodeId to, Message message, int priority, SendDone done) override {
    van_->Send(to, std::move(message), priority, std::move(done));
  }
  const VanCounters& counters() const override { return van_->counters(); }
  void Stop(milliseconds linger) override { van_->Stop(linger); }
  void Abort(milliseconds linger) override { van_->Abort(linger); }

 private:
  std::unique_ptr<Van> van_;
};

/// A van whose failure reports are slow to leave.
class SlowReportsVan : public OtherVan {
 public:
  SlowReportsVan(std::unique_ptr<Van> van, std::atomic<int>* left)
      : OtherVan(std::move(van)), left_(left) {}
  ~SlowReportsVan() override {
    for (auto& thread : threads_) thread.join();
  }
  void Send(NodeId to, Message message, int priority, SendDone done) override {
    if (message.header.kind != MessageKind::kNodeDown) {
      return OtherVan::Send(to, std::move(message), priority, std::move(done));
    }
    auto held = std::make_shared<Message>(std::move(message));
    threads_.emplace_back([this, to, held, priority, done = std::move(done)] {
      std::this_thread::sleep_for(milliseconds(200));
      ++*left_;
      OtherVan::Send(to, std::move(*held), priority, done);
    });
  }

 private:
  std::atomic<int>* left_;
  std::vector<std::thread> threads_;
};

TEST(Postoffice, TheSchedulerEndsWhenItsReportsAreSent) {
  Job job(3, 1);
  std::atomic<int> left{0};
  JobOptions options = job.Options(Role::kScheduler);
  job.Add(options, std::make_unique<SlowReportsVan>(MakeTcpVan(options.van), &left));
  job.Add(job.Options(Role::kServer, 0));
  for (int i = 0; i < 3; ++i) job.Add(job.Options(Role::kWorker, i));
  job.Start();
  for (auto& node : job.nodes()) ASSERT_EQ(node->error, "");
  job.worker(1).office.Abort();
  // After this its process ends, and who has not heard would name the scheduler.
  EXPECT_HAS(job.scheduler().office.WaitForEnd(), "worker 1");
  EXPECT_EQ(left, 3);
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

TEST(Postoffice, NewsOfADeathAreToldByWhoSeesItToo) {
  Job job(2, 1);
  job.StartAll();
  job.worker(1).office.Send(Server(0), NodeDown(Worker(0), "worker 0 died: it is a test"));
  // They hear worker 0 themselves, and wait for what their own connections say.
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_TRUE(job.server(0).deaths.empty());
  job.worker(0).office.Abort();
  for (Node* node : {&job.server(0), &job.scheduler(), &job.worker(1)}) {
    ASSERT_TRUE(node->AwaitDeath());
    EXPECT_EQ(node->deaths[0].first, Worker(0));
  }
  EXPECT_EQ(job.server(0).deaths[0].second, "worker 0 died: it is a test");
}

TEST(Postoffice, ANodeThatIsCutOffIsNotBelievedAgainstALiveConnection) {
  Job job(2, 1);
  job.StartAll();
  // Worker 1 no longer hears the server, says so to the scheduler, and ends over it.
  job.worker(1).office.Send(Scheduler(), NodeDown(Server(0), "server 0 died: it is a test"));
  std::this_thread::sleep_for(milliseconds(100));
  job.worker(1).office.Abort();
  // The server sees that end at once; the scheduler, which knows why, waits whether it is true.
  for (Node* node : {&job.server(0), &job.scheduler(), &job.worker(0)}) {
    ASSERT_TRUE(node->AwaitDeath());
    EXPECT_EQ(node->deaths[0].first, Worker(1)) << node->deaths[0].second;
  }
  EXPECT_HAS(job.scheduler().office.WaitForEnd(), "worker 1");
}

TEST(Postoffice, ACutOffNodeThatToldEverybodyIsNamedByAll) {
  Job job(2, 1);
  job.StartAll();
  for (const NodeId to : {Scheduler(), Server(0)}) {
    const NodeId lost = to == Scheduler() ? Server(0) : Scheduler();
    job.worker(1).office.Send(to, NodeDown(lost, lost.ToString() + " died: it is a test"));
  }
  std::this_thread::sleep_for(milliseconds(100));
  const auto begin = std::chrono::steady_clock::now();
  job.worker(1).office.Abort();
  for (Node* node : {&job.server(0), &job.scheduler(), &job.worker(0)}) {
    ASSERT_TRUE(node->AwaitDeath());
    EXPECT_EQ(node->deaths[0].first, Worker(1)) << node->deaths[0].second;
    EXPECT_HAS(node->deaths[0].second, "died: it is cut off from ");
    EXPECT_HAS(node->deaths[0].second, ", which is alive");
  }
  // Not before a silent one would have been given up (1.5 s here), and soon after.
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(took, seconds(1));
  EXPECT_LT(took, seconds(5));
}

TEST(Postoffice, ANodeThatWasHeldUpDoesNotBlameThoseWhoLeaveBecauseOfIt) {
  Job job(2, 0);
  job.Add(job.Options(Role::kScheduler));
  job.Add(job.Options(Role::kWorker, 0));
  JobOptions patient = job.Options(Role::kWorker, 1);
  patient.van.heartbeat_timeout = seconds(60);
  job.Add(patient);
  std::promise<void> go;
  job.scheduler().on_message = [held = go.get_future().share()] { held.wait_for(seconds(20)); };
  job.Start();
  for (auto& node : job.nodes()) ASSERT_EQ(node->error, "");
  job.worker(0).office.Send(Scheduler(), Text(MessageKind::kData, "hold on"));
  ASSERT_TRUE(job.worker(0).AwaitDeath());
  EXPECT_HAS(job.worker(0).deaths[0].second, "the scheduler (127.0.0.1:");
  job.worker(0).office.Abort();
  go.set_value();
  // It has not noticed anything, and is told by the scheduler alone.
  ASSERT_TRUE(job.worker(1).AwaitDeath());
  EXPECT_EQ(job.worker(1).deaths[0].first, Scheduler());
  EXPECT_HAS(job.worker(1).deaths[0].second, "the scheduler (127.0.0.1:");
  EXPECT_HAS(job.worker(1).deaths[0].second, ") died: it was held up for ");
  EXPECT_HAS(job.scheduler().office.WaitForEnd(), ") died: it was held up for ");
}

TEST(Postoffice, FormsAJobWithTlsAndWorkerLinks) {
  Job job(3, 1);
  const auto options = [&](Role role) {
    JobOptions o = job.Options(role);
    o.van.tls = "on";
    return o;
  };
  for (const Role role : {Role::kScheduler, Role::kServer, Role::kWorker, Role::kWorker, Role::kWorker}) {
    job.Add(options(role));
  }
  job.Start();
  for (auto& node : job.nodes()) ASSERT_EQ(node->error, "");
  std::map<NodeId, Node*> workers;
  for (int i = 0; i < 3; ++i) workers[job.worker(i).office.self()] = &job.worker(i);
  ASSERT_EQ(workers.size(), 3u);
  for (const auto& [from, to] : {std::pair(2, 1), std::pair(2, 0), std::pair(1, 0)}) {
    Node* caller = workers.at(Worker(from));
    Node* called = workers.at(Worker(to));
    caller->office.Link(Worker(to));
    caller->office.Link(Worker(to));  // does nothing
    const size_t before = called->texts.size();
    caller->office.Send(Worker(to), Text(MessageKind::kData, "ring"));
    ASSERT_TRUE(called->Await([=] { return called->texts.size() == before + 1; }));
    called->office.Send(Worker(from), Text(MessageKind::kData, "ring"));
  }
  for (auto& [id, node] : workers) {
    EXPECT_TRUE(node->Await([n = node] { return n->texts.size() == 2; })) << id.ToString();
  }
}

// ---- who may join

TEST(Postoffice, DuplicateAndMissingRanksAreFilledUp) {
  Job job(4, 1);
  job.Add(job.Options(Role::kScheduler));
  job.Add(job.Options(Role::kServer));
  for (const int rank : {2, 2, -1, 0}) job.Add(job.Options(Role::kWorker, rank));
  job.Start();
  std::set<int> ranks;
  for (auto& node : job.nodes()) ASSERT_EQ(node->error, "");
  for (int i = 0; i < 4; ++i) ranks.insert(job.worker(i).office.self().rank);
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(job.worker(3).office.self(), Worker(0));
  EXPECT_TRUE(job.worker(0).office.self() == Worker(2) || job.worker(1).office.self() == Worker(2));
}

TEST(Postoffice, ARosterOfAJobOfAnotherSizeIsRefused) {
  // As whoever answers where the scheduler should be may send it.
  const int port = FreePort();
  for (const auto& others : {std::vector<NodeId>{}, {Server(0), Worker(2)}, {Server(1), Worker(1)}}) {
    Recorder scheduler;
    const auto van = MakeTcpVan(TestVanOptions());
    scheduler.on_message = [&](NodeId from, const Message&) {
      Roster roster;
      roster.self = Worker(0);
      roster.addresses[Worker(0)] = "127.0.0.1:1";
      for (const NodeId id : others) roster.addresses[id] = "127.0.0.1:2";
      van->Send(from, Message(MessageKind::kRoster, roster.ToText()));
    };
    van->Start(Scheduler(), "127.0.0.1", port, &scheduler);
    JobOptions options;
    options.role = Role::kWorker;
    options.root_uri = "127.0.0.1";
    options.root_port = port;
    options.num_workers = 2;
    options.num_servers = 1;
    options.start_timeout = seconds(5);
    options.van = TestVanOptions();
    Node node(std::move(options));
    node.Start();
    EXPECT_HAS(node.error, "the roster is of a job of another size");
  }
}

TEST(Postoffice, TheOddOneOutIsToldAndTheJobForms) {
  Job job(1, 1);
  job.Add(job.Options(Role::kScheduler));
  job.Add(job.Options(Role::kServer));
  JobOptions odd = job.Options(Role::kWorker);
  odd.num_workers = 3;
  job.Add(odd);
  JobOptions high = job.Options(Role::kServer, 5);
  job.Add(high);
  std::thread others([&] { job.Start(); });
  for (int i : {2, 3}) {
    ASSERT_TRUE(Eventually([&] { return job.nodes()[i]->office.self().rank == kUnnamedRank; }));
  }
  std::this_thread::sleep_for(milliseconds(300));
  Node good(job.Options(Role::kWorker));
  good.Start();
  others.join();
  EXPECT_EQ(good.error, "");
  EXPECT_EQ(job.nodes()[0]->error, "");
  EXPECT_HAS(job.nodes()[2]->error,
             "this worker was told of a job with 3 workers and 1 server, but the scheduler's job has 1 "
             "worker and 1 server; DMLC_NUM_WORKER");
  EXPECT_HAS(job.nodes()[3]->error, "rank 5 was asked for, but the job has only 1 server");
  Node late(job.Options(Role::kWorker));
  late.Start();
  EXPECT_HAS(late.error, "the job has already started with all its nodes");
  EXPECT_TRUE(job.scheduler().deaths.empty());
  EXPECT_TRUE(good.deaths.empty());
}

TEST(Postoffice, ANodeWithAnotherSecretNeitherJoinsNorDisturbs) {
  Job job(1, 0);
  job.Add(job.Options(Role::kScheduler));
  JobOptions wrong = job.Options(Role::kWorker);
  wrong.van.secret = "guess";
  job.Add(wrong);
  std::thread others([&] { job.Start(); });
  std::this_thread::sleep_for(milliseconds(200));
  Node good(job.Options(Role::kWorker));
  good.Start();
  others.join();
  EXPECT_EQ(good.error, "");
  EXPECT_HAS(job.nodes()[1]->error, "it has another job secret; set HIPRESS_SECRET");
  EXPECT_EQ(job.scheduler().office.counters().refused_connections, 1u);
}

// ---- starts that fail

TEST(Postoffice, WhoIsMissingIsNamedToAll) {
  Job job(4, 2, 1);
  job.Add(job.Options(Role::kScheduler));
  job.Add(job.Options(Role::kServer));
  job.Add(job.Options(Role::kWorker, 0));
  job.Add(job.Options(Role::kWorker, 2));
  const auto begin = steady_clock::now();
  job.Start();
  EXPECT_LT(steady_clock::now() - begin, seconds(4));
  for (auto& node : job.nodes()) {
    EXPECT_HAS(node->error, "waited 1 s for 2 of 4 workers (rank 1 and 3) and 1 of 2 servers");
  }
}

TEST(Postoffice, AnEarlierNodeAsksWhoIsMissing) {
  Job job(2, 0, 20);
  job.Add(job.Options(Role::kScheduler));
  JobOptions hasty = job.Options(Role::kWorker, 1);
  hasty.start_timeout = seconds(1);
  job.Add(hasty);
  job.Start();
  EXPECT_HAS(job.nodes()[1]->error, "waited 1 s for 1 of 2 workers (rank 0)");
  EXPECT_HAS(job.nodes()[0]->error, "worker 1 (127.0.0.1:");
  EXPECT_HAS(job.nodes()[0]->error, ") gave up waiting for 1 of 2 workers (rank 0)");
}

TEST(Postoffice, WithoutASchedulerTheStartFailsInTime) {
  Job job(1, 1, 1);
  Node worker(job.Options(Role::kWorker));
  const auto begin = steady_clock::now();
  worker.Start();
  EXPECT_LT(steady_clock::now() - begin, seconds(3));
  EXPECT_HAS(worker.error, "cannot connect to the scheduler at 127.0.0.1:");
  EXPECT_HAS(worker.error, "nothing listens there (tried for ");
}

TEST(Postoffice, ADeathDuringTheStartFailsItAtOnce) {
  Job job(3, 1, 30);
  job.Add(job.Options(Role::kScheduler));
  job.Add(job.Options(Role::kServer));
  job.Add(job.Options(Role::kWorker));
  Node doomed(job.Options(Role::kWorker));
  std::thread start_doomed([&] { doomed.Start(); });
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(300));
    doomed.office.Abort();
  });
  const auto begin = steady_clock::now();
  job.Start();
  EXPECT_LT(steady_clock::now() - begin, seconds(3));
  killer.join();
  start_doomed.join();
  for (auto& node : job.nodes()) EXPECT_HAS(node->error, "a worker (127.0.0.1:");
  for (auto& node : job.nodes()) EXPECT_HAS(node->error, "went away while the job was starting");
  EXPECT_HAS(doomed.error, "is being stopped");
}

TEST(Postoffice, ADeathDuringTheStartHasTheRankThatWasAskedFor) {
  Job job(2, 1, 30);
  job.Add(job.Options(Role::kScheduler));
  job.Add(job.Options(Role::kWorker, 0));
  Node doomed(job.Options(Role::kWorker, 1));
  std::thread start_doomed([&] { doomed.Start(); });
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(300));
    doomed.office.Abort();
  });
  job.Start();
  killer.join();
  start_doomed.join();
  for (auto& node : job.nodes()) EXPECT_HAS(node->error, "worker 1 (127.0.0.1:");
}

// ---- barriers that cannot be completed

TEST(Postoffice, ABarrierNamesTheFirstDeath) {
  Job job(2, 1);
  job.StartAll();
  std::string error;
  std::thread waiting([&] {
    error = ErrorOf([&] { job.worker(0).office.Barrier(false, seconds(30)); });
  });
  std::this_thread::sleep_for(milliseconds(50));
  job.server(0).office.Abort();  // does without it, but not without the scheduler:
  EXPECT_HAS(job.scheduler().office.WaitForEnd(), "server 0");
  job.scheduler().office.Abort();
  waiting.join();
  EXPECT_HAS(error, "server 0 (127.0.0.1:");
}

TEST(Postoffice, ABarrierNamesWhoHasNotCome) {
  Job job(3, 1);
  job.StartAll();
  std::string errors[2];
  std::thread other([&] { errors[0] = ErrorOf([&] { job.worker(0).office.Barrier(false, seconds(1)); }); });
  errors[1] = ErrorOf([&] { job.worker(2).office.Barrier(false, seconds(1)); });
  other.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "waited 1 s at a barrier for worker 1");
}

TEST(Postoffice, ABarrierFailsWhenAParticipantLeaves) {
  Job job(2, 1);
  job.StartAll();
  std::string error;
  std::thread waiting([&] { error = ErrorOf([&] { job.worker(0).office.Barrier(false, seconds(20)); }); });
  std::this_thread::sleep_for(milliseconds(100));
  job.worker(1).office.Stop();
  waiting.join();
  EXPECT_EQ(error, "a barrier cannot be completed: worker 1 has left the job and will not come to the barrier");
}

TEST(Postoffice, AServerKnowsWhoHasLeftInPeace) {
  Job job(2, 1);
  job.StartAll();
  EXPECT_TRUE(job.server(0).office.Left().empty());
  job.worker(1).office.Stop();
  const auto deadline = std::chrono::steady_clock::now() + seconds(10);
  while (job.server(0).office.Left().empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(job.server(0).office.Left(), std::vector<NodeId>{Worker(1)});
}

TEST(Postoffice, ABarrierEndsWhenItsOwnNodeIsStopped) {
  Job job(2, 0);
  job.StartAll();
  std::string error;
  std::thread waiting([&] { error = ErrorOf([&] { job.worker(0).office.Barrier(false, seconds(20)); }); });
  std::this_thread::sleep_for(milliseconds(100));
  job.worker(0).office.Stop();
  waiting.join();
  EXPECT_HAS(error, "is being stopped");
}

// ---- leaving and dying

TEST(Postoffice, AServerThatLeavesEarlyIsADeathForWorkers) {
  Job job(1, 1);
  job.StartAll();
  job.server(0).office.Stop();
  ASSERT_TRUE(job.worker(0).AwaitDeath());
  EXPECT_EQ(job.worker(0).deaths[0].first, Server(0));
  EXPECT_HAS(job.worker(0).deaths[0].second, "left the job before worker 0 had finished");
}

/// A node that hears of a barrier's end only after a peer has gone.
class LateReleaseVan : public OtherVan, public VanReceiver {
 public:
  using OtherVan::OtherVan;
  std::string Start(NodeId self, const std::string& host, int port, VanReceiver* receiver) override {
    receiver_ = receiver;
    return OtherVan::Start(self, host, port, this);
  }
  Buffer OnHeader(NodeId from, const MessageHeader& header) override {
    return receiver_->OnHeader(from, header);
  }
  void OnMessage(NodeId from, Message message) override {
    if (message.header.kind == MessageKind::kRelease && !gone_) {
      release_ = std::make_unique<Message>(std::move(message));
    } else {
      receiver_->OnMessage(from, std::move(message));
    }
  }
  void OnUp(NodeId peer) override { receiver_->OnUp(peer); }
  void OnDown(NodeId peer, bool graceful, const std::string& reason) override {
    receiver_->OnDown(peer, graceful, reason);
    gone_ = true;
    if (release_) receiver_->OnMessage(Scheduler(), std::move(*std::exchange(release_, nullptr)));
  }

 private:
  VanReceiver* receiver_ = nullptr;
  std::unique_ptr<Message> release_;
  bool gone_ = false;
};

TEST(Postoffice, AWorkerThatHasFinishedBeforeAServerKnowsOfTheStartHasLeftInPeace) {
  Job job(1, 1);
  job.Add(job.Options(Role::kScheduler));
  const JobOptions options = job.Options(Role::kServer);
  job.Add(options, std::make_unique<LateReleaseVan>(MakeTcpVan(options.van)));
  job.Add(job.Options(Role::kWorker));
  std::thread start([&] { job.Start(); });
  EXPECT_TRUE(Eventually([&] { return job.worker(0).started.load(); }));
  job.worker(0).office.Stop();
  start.join();
  EXPECT_EQ(job.server(0).error, "");
  EXPECT_EQ(job.server(0).office.WaitForEnd(), "");
  EXPECT_TRUE(job.server(0).deaths.empty());
}

TEST(Postoffice, SendingToADeadNodeIsAnsweredWithFalse) {
  Job job(2, 1);
  job.StartAll();
  job.server(0).office.Abort();
  ASSERT_TRUE(job.worker(0).AwaitDeath());
  std::atomic<int> answer{-1};
  job.worker(0).office.Send(Server(0), Text(MessageKind::kData, "x"), 0, [&](bool sent) { answer = sent; });
  EXPECT_TRUE(Eventually([&] { return answer == 0; }));
}

TEST(Postoffice, EveryRoleCanDieAtAnyMoment) {
  for (int victim = 0; victim < 4; ++victim) {
    Job job(2, 1);
    job.StartAll();
    std::atomic<bool> stop{false};
    std::thread traffic([&] {
      while (!stop) {
        job.worker(0).office.Send(Server(0), Text(MessageKind::kData, std::string(100000, 'd')));
        std::this_thread::sleep_for(milliseconds(1));
      }
    });
    std::this_thread::sleep_for(milliseconds(20));
    job.nodes()[victim]->office.Abort();
    for (int i = 0; i < 4; ++i) {
      if (i == victim) continue;
      EXPECT_TRUE(job.nodes()[i]->AwaitDeath()) << "victim " << victim << ", survivor " << i;
      EXPECT_EQ(job.nodes()[i]->deaths[0].first, job.nodes()[victim]->office.self());
    }
    stop = true;
    traffic.join();
  }
}

}  // namespace
}  // namespace hipress::testing
