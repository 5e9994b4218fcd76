// Membership: a job forms, ranks are given, barriers hold.
#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <set>

#include "job_of_nodes.h"
#include "membership/scheduler.h"

namespace hipress::testing {
namespace {

TEST(Postoffice, FormsAJobAndLeavesWithoutFailure) {
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
  std::vector<std::thread> waiting_threads;
  std::atomic<int> peaceful{0};
  for (int i = 0; i < 3; ++i) {
    Node& node = i == 0 ? job.scheduler() : job.server(i - 1);
    waiting_threads.emplace_back([&] { peaceful += node.office.WaitForEnd().empty(); });
  }
  for (int w = 0; w < 3; ++w) job.worker(w).office.Stop();
  for (auto& end : waiting_threads) end.join();
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
  // Any process that answers at the scheduler's address may send it.
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
  for (int i : {2, 3}) {  // until they have received it
    ASSERT_TRUE(Eventually([&] { return job.nodes()[i]->started.load(); }));
  }
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
    std::this_thread::sleep_for(milliseconds(1500));  // until it has registered
    doomed.office.Abort();
  });
  const auto begin = steady_clock::now();
  job.Start();
  EXPECT_LT(steady_clock::now() - begin, seconds(10));
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
    std::this_thread::sleep_for(milliseconds(1500));  // until it has registered
    doomed.office.Abort();
  });
  job.Start();
  killer.join();
  start_doomed.join();
  for (auto& node : job.nodes()) EXPECT_HAS(node->error, "worker 1 (127.0.0.1:");
}

TEST(Postoffice, ServerDeathStopsConnectionAttempts) {
  Job job(1, 1, 30);
  job.Add(job.Options(Role::kScheduler));
  job.Add(job.Options(Role::kWorker));
  Recorder receiver;
  const auto doomed = MakeTcpVan(TestVanOptions());
  doomed->Start(NodeId{Role::kServer, kUnnamedRank}, "127.0.0.1", 0, &receiver);
  std::thread killer([&] {
    Registration registration;
    registration.role = Role::kServer;
    registration.address = "127.0.0.1:" + std::to_string(FreePort());  // no process listens there
    registration.num_workers = registration.num_servers = 1;
    doomed->Connect(Scheduler(), job.scheduler_address(), In(seconds(5)));
    doomed->Send(Scheduler(), Message(MessageKind::kRegister, registration.ToText()));
    std::this_thread::sleep_for(milliseconds(1500));
    doomed->Abort();
  });
  const auto begin = steady_clock::now();
  job.Start();
  EXPECT_LT(steady_clock::now() - begin, seconds(12));
  killer.join();
  for (auto& node : job.nodes()) EXPECT_HAS(node->error, "server 0 (127.0.0.1:");
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

TEST(Postoffice, ABarrierMayBeTriedAgain) {
  Job job(2, 1);
  job.StartAll();
  EXPECT_HAS(ErrorOf([&] { job.worker(0).office.Barrier(false, seconds(1)); }), "waited 1 s at a barrier");
  std::string error;
  std::thread again([&] { error = ErrorOf([&] { job.worker(0).office.Barrier(false, seconds(20)); }); });
  EXPECT_EQ(ErrorOf([&] { job.worker(1).office.Barrier(false, seconds(20)); }), "");
  again.join();
  EXPECT_EQ(error, "");
  EXPECT_TRUE(job.worker(0).deaths.empty() && job.worker(1).deaths.empty());
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

TEST(Postoffice, BarrierFailsWhenItsNodeIsStopped) {
  Job job(2, 0);
  job.StartAll();
  std::string error;
  std::thread waiting([&] { error = ErrorOf([&] { job.worker(0).office.Barrier(false, seconds(20)); }); });
  std::this_thread::sleep_for(milliseconds(100));
  job.worker(0).office.Stop();
  waiting.join();
  EXPECT_HAS(error, "is being stopped");
}

}  // namespace
}  // namespace hipress::testing
