// What is ready together goes together: tasks of an executor, messages of a connection.
#include "base/batch.h"

#include <atomic>
#include <set>

#include "graph/executor.h"
#include "transport/van.h"
#include "van_testing.h"

namespace hipress {
namespace {

using namespace testing;  // NOLINT

TEST(Batch, PutsOffToItsEndInOrderAndDoesAtOnceWithoutOne) {
  std::vector<int> done;
  {
    Batch batch;
    Batch::AfterAll([&] { done.push_back(9); });
    Batch::AtEnd([&] { done.push_back(1); });
    {
      Batch inner;  // part of the outer one
      Batch::AtEnd([&] {
        done.push_back(2);
        Batch::AtEnd([&] { done.push_back(3); });  // not a batch
      });
    }
    EXPECT_TRUE(done.empty());
  }
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3, 9}));
  done.pop_back();
  done.clear();
  {
    Batch batch;
    Batch::AfterAll([&] { done.push_back(9); });
    Batch::AtEnd([&] {
      Batch inside;
      Batch::AtEnd([&] { done.push_back(2); });
    });
    Batch::AtEnd([&] { done.push_back(3); });
  }
  EXPECT_EQ(done, (std::vector<int>{2, 3, 9}));
  done = {1, 2, 3};
  Batch::AtEnd([&] { done.push_back(4); });
  EXPECT_EQ(done.size(), 4u);
}

TEST(Batch, ContinuesAfterAnActionThatThrows) {
  int done = 0;
  {
    Batch batch;
    Batch::AfterAll([&] { ++done; });
    Batch::AtEnd([] { throw std::bad_alloc(); });
    Batch::AtEnd([&] { ++done; });
  }
  EXPECT_EQ(done, 2);
  EXPECT_FALSE(Batch::Open());
}

TEST(Batch, WorksInDestructorsOfAThreadsLastObjects) {
  struct Last {
    ~Last() {
      Batch batch;
      for (int i = 0; i < 100; ++i) Batch::AtEnd([ran = ran] { ++*ran; });
    }
    int* ran = nullptr;
  };
  int ran = 0;
  std::thread([&ran] {
    thread_local Last last;  // made before the thread's batch, and destroyed after it
    last.ran = &ran;
    Batch batch;
    for (int i = 0; i < 10; ++i) Batch::AtEnd([&ran] { ++ran; });
  }).join();
  EXPECT_EQ(ran, 110);
}

/// Jobs that tasks of these sizes and priorities are run in, of an executor with one thread.
std::vector<std::vector<int>> JobsOf(const std::vector<std::pair<int, int64_t>>& tasks) {
  std::vector<std::vector<int>> jobs(1);
  Waitable waitable;
  size_t ran = 0;
  Executor executor(1);
  {
    Batch together;
    for (size_t i = 0; i < tasks.size(); ++i) {
      executor.Submit(tasks[i].first, [&, i] {
        waitable.Do([&] {
          jobs.back().push_back(int(i));
          ++ran;
        });
        // The first operation of a job completes its list: there, the next job's list begins.
        if (jobs.back().size() == 1) Batch::AtEnd([&] { waitable.Do([&] { jobs.emplace_back(); }); });
      }, tasks[i].second);
    }
    EXPECT_EQ(ran, 0u);
  }
  EXPECT_TRUE(waitable.Await([&] { return ran == tasks.size() && jobs.back().empty(); }));
  jobs.pop_back();
  return jobs;
}

TEST(Executor, SmallTasksAreOneJobInTheirOrder) {
  const int64_t small = Executor::kJobElements / 8;
  EXPECT_EQ(JobsOf({{0, small}, {2, small}, {1, small}, {2, small}}),
            (std::vector<std::vector<int>>{{1, 3, 2, 0}}));
}

TEST(Executor, ATaskOfNoElementsWakesAThread) {
  Executor executor(1);
  Waitable waitable;
  for (int ran = 0; ran < 3;) {
    std::this_thread::sleep_for(milliseconds(20));  // until the thread waits
    const int before = ran;
    executor.Submit(0, [&] { waitable.Do([&] { ++ran; }); }, 0);
    ASSERT_TRUE(waitable.Await([&] { return ran > before; }, seconds(5)));
  }
}

TEST(Executor, AJobIsNoLongerThanALargeTask) {
  const int64_t full = Executor::kJobElements;
  EXPECT_EQ(JobsOf({{0, full / 2}, {0, full / 2}, {0, 1}, {0, full}, {0, 2 * full}, {0, 1}, {0, 1}}),
            (std::vector<std::vector<int>>{{0, 1}, {2}, {3}, {4}, {5, 6}}));
}

TEST(Executor, TheNextOfAChainGoesBeforeItsEquals) {
  Waitable waitable;
  std::vector<int> order;
  Executor executor(1);
  {
    Batch batch;
    const auto submit = [&](int priority, int name, bool next) {
      executor.Submit(priority, [&, name] { waitable.Do([&] { order.push_back(name); }); },
                      Executor::kJobElements, next);
    };
    submit(0, 1, false);
    submit(1, 2, false);
    submit(0, 3, true);
    submit(1, 4, true);
    submit(1, 5, true);
  }
  ASSERT_TRUE(waitable.Await([&] { return order.size() == 5; }));
  EXPECT_EQ(order, (std::vector<int>{4, 5, 2, 3, 1}));
}

TEST(Executor, RunsEverythingThatManyThreadsSubmit) {
  Waitable waitable;
  int ran = 0;
  Executor executor(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        Batch batch;
        for (int j = 0; j < t; ++j) {
          executor.Submit(j, [&] { waitable.Do([&] { ++ran; }); }, 1 + (i % 5) * Executor::kJobElements / 4);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(waitable.Await([&] { return ran == 500 * (1 + 2 + 3); }));
}

TEST(Van, MessagesOfABatchLeaveInOneWriteAndArriveInTheirOrder) {
  VanOptions options;
  options.tls = "off";
  Recorder at_server, at_worker;
  auto server = MakeTcpVan(options), worker = MakeTcpVan(options);
  const std::string address = server->Start(Server(0), "127.0.0.1", 0, &at_server);
  worker->Start(Worker(0), "127.0.0.1", 0, &at_worker);
  worker->Connect(Server(0), address, In(seconds(10)));
  const uint64_t before = worker->counters().writes;
  constexpr int kMessages = 200;
  {
    Batch batch;
    for (int i = 0; i < kMessages; ++i) {
      worker->Send(Server(0), Text(MessageKind::kCommand, "small", i), /*priority=*/i % 2);
    }
  }
  ASSERT_TRUE(at_server.AwaitMessages(kMessages));
  EXPECT_LE(worker->counters().writes - before, 3u);  // one, and a heartbeat perhaps
  for (int i = 0; i < kMessages; ++i) {
    const uint64_t key = 2 * uint64_t(i % (kMessages / 2)) + (i < kMessages / 2 ? 1 : 0);
    EXPECT_EQ(at_server.messages[i].second.header.key, key);
  }
  worker->Stop(milliseconds(500));
  server->Stop(milliseconds(500));
}

}  // namespace
}  // namespace hipress
