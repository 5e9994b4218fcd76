// Membership: deaths and leaves are reported to all nodes, once, with the right name.
#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <set>

#include "job_of_nodes.h"
#include "membership/scheduler.h"

namespace hipress::testing {
namespace {

TEST(Postoffice, DeathIsReportedToEveryoneOnce) {
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
  explicit OtherVan(std::shared_ptr<Van> van) : van_(std::move(van)) {}
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
  std::shared_ptr<Van> van_;
};

/// A van whose failure reports are slow to leave.
class SlowReportsVan : public OtherVan {
 public:
  SlowReportsVan(std::shared_ptr<Van> van, std::atomic<int>* left)
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

TEST(Postoffice, SchedulerStopsAfterItsReportsAreSent) {
  Job job(3, 1);
  std::atomic<int> left{0};
  JobOptions options = job.Options(Role::kScheduler);
  job.Add(options, std::make_unique<SlowReportsVan>(MakeTcpVan(options.van), &left));
  job.Add(job.Options(Role::kServer, 0));
  for (int i = 0; i < 3; ++i) job.Add(job.Options(Role::kWorker, i));
  job.Start();
  for (auto& node : job.nodes()) ASSERT_EQ(node->error, "");
  job.worker(1).office.Abort();
  // After this its process ends, and a node that has not received the message would name the
  // scheduler.
  EXPECT_HAS(job.scheduler().office.WaitForEnd(), "worker 1");
  EXPECT_EQ(left, 3);
}

TEST(Postoffice, SchedulersDeathIsReportedByAll) {
  Job job(2, 1);
  job.StartAll();
  job.scheduler().office.Abort();
  for (Node* node : {&job.server(0), &job.worker(0), &job.worker(1)}) {
    ASSERT_TRUE(node->AwaitDeath());
    EXPECT_EQ(node->deaths[0].first, Scheduler());
    EXPECT_HAS(node->deaths[0].second, "the scheduler (127.0.0.1:");
  }
}

TEST(Postoffice, ADeathIsReportedByWhoSeesItToo) {
  Job job(2, 1);
  job.StartAll();
  job.worker(1).office.Send(Server(0), NodeDown(Worker(0), "worker 0 died: it is a test"));
  // They receive from worker 0 directly, and wait for what their own connections report.
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
  // Worker 1 stops receiving from the server, reports that to the scheduler, and ends for that
  // reason.
  job.worker(1).office.Send(Scheduler(), NodeDown(Server(0), "server 0 died: it is a test"));
  std::this_thread::sleep_for(milliseconds(100));
  job.worker(1).office.Abort();
  // The server notices that end at once. The scheduler, which knows the reason, waits whether it is
  // true.
  for (Node* node : {&job.server(0), &job.scheduler(), &job.worker(0)}) {
    ASSERT_TRUE(node->AwaitDeath());
    EXPECT_EQ(node->deaths[0].first, Worker(1)) << node->deaths[0].second;
  }
  EXPECT_HAS(job.scheduler().office.WaitForEnd(), "worker 1");
}

TEST(Postoffice, ACutOffNodeThatReportedToEverybodyIsNamedByAll) {
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
  // Not before the timeout of a silent node (1.5 s here), and soon after.
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
  // It has not noticed anything, and only the scheduler informs it.
  ASSERT_TRUE(job.worker(1).AwaitDeath());
  EXPECT_EQ(job.worker(1).deaths[0].first, Scheduler());
  EXPECT_HAS(job.worker(1).deaths[0].second, "the scheduler (127.0.0.1:");
  EXPECT_HAS(job.worker(1).deaths[0].second, ") died: it was held up for ");
  EXPECT_HAS(job.scheduler().office.WaitForEnd(), ") died: it was held up for ");
}

TEST(Postoffice, AServerThatLeavesEarlyIsADeathForWorkers) {
  Job job(1, 1);
  job.StartAll();
  job.server(0).office.Stop();
  ASSERT_TRUE(job.worker(0).AwaitDeath());
  EXPECT_EQ(job.worker(0).deaths[0].first, Server(0));
  EXPECT_HAS(job.worker(0).deaths[0].second, "left the job before worker 0 had finished");
}

/// A node that receives the end of a barrier only after a peer has left.
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
