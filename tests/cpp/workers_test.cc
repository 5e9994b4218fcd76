// Workers without servers: how they agree on keys, and how each learns what ends the job.
#include "workers_fixture.h"

#include "hipress/c_api.h"
#include "kvstore/progress_watch.h"

namespace hipress::testing {
namespace {

using Floats = std::vector<float>;

TEST(Workers, AFailureReachesAllBeforeTheFirstKey) {
  for (int culprit = 0; culprit < kWorkers; ++culprit) {
    Workers workers;
    const std::string sentence = "worker " + std::to_string(culprit) + " gave up: it is tired";
    workers.store(culprit).FailJob(sentence);
    for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(workers.FailureOf(w), sentence) << culprit;
  }
}

TEST(Workers, TheFirstFailureCountsEverywhere) {
  Workers workers;
  workers.store(1).FailJob("worker 1 gave up: first");
  for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(workers.FailureOf(w), "worker 1 gave up: first");
  workers.store(2).FailJob("worker 2 gave up: second");
  EXPECT_EQ(workers.store(2).Failure(), "worker 1 gave up: first");
}

TEST(Workers, NeedNoSchedulerOnceTheyHaveStarted) {
  Workers workers;
  BoundKey keys[kWorkers];
  workers.Together([&](int w, KVStoreDist& store) { keys[w] = BoundKey(&store, w, 1, 100, {}); });
  workers.scheduler().Stop();
  std::this_thread::sleep_for(milliseconds(300));
  Calls calls;
  std::vector<Floats> x(kWorkers, Floats(100, 2));
  for (int w = 0; w < kWorkers; ++w) {
    EXPECT_EQ(workers.store(w).Failure(), "");
    PushMode mode;
    mode.keep = false;
    workers.store(w).PushPull({{keys[w].flow, x[w].data(), x[w].data(), 0}}, mode, calls.Expect());
  }
  ASSERT_TRUE(calls.Wait());
  EXPECT_EQ(calls.error(), "");
  for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(x[w], Floats(100, 6));
}

TEST(Workers, FailWithASchedulerThatDies) {
  Workers workers;
  workers.scheduler().Abort();
  for (int w = 0; w < kWorkers; ++w) {
    const std::string failure = workers.FailureOf(w);
    EXPECT_HAS(failure, "scheduler (127.0.0.1:");
  }
}

TEST(Workers, WhoDisagreesOnAKeyHearsWhyAndMayTryAgain) {
  Workers workers;
  const auto add = [&](int w, KVStoreDist& store, uint64_t key, const std::string& name, int64_t n,
                       DType dtype, const std::string& graph) {
    const Encodes encodes = ProgramOf(ProgramKind::kColocated, n, w);
    Binding binding;
    binding.encodes.resize(encodes.program.tasks.size() / 7 + 1);
    for (EncodeBinding& encode : binding.encodes) {
      encode.codec = IdentityCodec();
      encode.state = std::make_shared<CodecState>();
    }
    store.AddKey(key, name, n, dtype, graph, encodes.program.Flat(), std::move(binding), 0);
    store.AwaitKeys();
  };
  for (int odd = 0; odd < 4; ++odd) {
    const auto errors = workers.Together([&](int w, KVStoreDist& store) {
      const bool other = w == 2;
      add(w, store, 5, other && odd == 0 ? "b" : "a", other && odd == 1 ? 101 : 100,
          other && odd == 2 ? DType::kFloat16 : DType::kFloat32,
          other && odd == 3 ? "a tree" : "a ring");
    });
    EXPECT_NE(errors[0], "") << odd;
    for (const std::string& error : errors) {
      EXPECT_EQ(error, errors[0]);
      EXPECT_HAS(error, "worker 2");
    }
    for (int w = 0; w < kWorkers; ++w) {
      EXPECT_HAS(ErrorOf([&] { workers.store(w).KeyOf(5); }), "there is no key 5");
      EXPECT_EQ(workers.store(w).Failure(), "");
    }
  }
  const auto errors = workers.Together([&](int w, KVStoreDist& store) {
    add(w, store, 5, "a", 100, DType::kFloat32, "a ring");
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  const auto twice = workers.Together([&](int w, KVStoreDist& store) {
    add(w, store, 5, "a", 100, DType::kFloat32, "a ring");
  });
  for (const std::string& error : twice) EXPECT_EQ(error, "key 'a' is already initialized");
}

TEST(Workers, AKeyMayGoWhenItsLastStepIsOverHere) {
  Workers workers;
  for (const ProgramKind kind : {ProgramKind::kColocated, ProgramKind::kChain}) {
    KeyOptions options;
    options.kind = kind;
    for (uint64_t key = 1; key <= 20; ++key) {
      std::vector<Floats> x(kWorkers, Floats(300, 1));
      const auto errors = workers.Together([&](int w, KVStoreDist& store) {
        const BoundKey bound(&store, w, key, 300, options);
        PushMode mode;
        mode.keep = false;
        Calls calls;
        store.PushPull({{bound.flow, x[w].data(), x[w].data(), 0}}, mode, calls.Expect());
        // Others still send, and wait for what this one sends.
        ASSERT_TRUE(calls.Wait()) << "worker " << w << ", key " << key << ": " << store.Failure();
        store.DropKey(key);
        EXPECT_EQ(calls.error(), "");
      });
      for (int w = 0; w < kWorkers; ++w) {
        ASSERT_EQ(errors[w], "");
        ASSERT_EQ(x[w], Floats(300, 3));
      }
    }
  }
  for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(workers.store(w).Failure(), "");
}

TEST(Scheduler, BackgroundSchedulerStopsWhenStoppedOrFreed) {
  // No other process has come: a job that fails to start must not keep its process.
  const char* names[] = {"DMLC_ROLE",       "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT",
                         "DMLC_NUM_WORKER", "DMLC_NUM_SERVER",  "HIPRESS_SECRET"};
  const char* values[] = {"scheduler", "127.0.0.1", "0", "2", "0", "0123456789abcdef"};
  for (const bool stops : {true, false}) {
    HipressNodeHandle node = nullptr;
    const char* address = nullptr;
    ASSERT_EQ(HipressStartScheduler(6, names, values, &node, &address), 0) << HipressGetLastError()->sentence;
    EXPECT_HAS(address, "127.0.0.1:");
    int over = 1;
    EXPECT_EQ(HipressAwaitEnd(node, 10, &over), 0);
    EXPECT_EQ(over, 0);
    const auto begin = steady_clock::now();
    if (stops) EXPECT_EQ(HipressStop(node), 0);
    EXPECT_EQ(HipressFree(node), 0);
    EXPECT_LT(steady_clock::now() - begin, seconds(5));
  }
}

TEST(ProgressWatch, DoesNotTakeAKeyForAnOlderOneAtTheSamePlace) {
  Cluster cluster(100, 0, 2);
  const Floats x(100, 1);
  const auto flow = cluster.network.flows.at(Worker(1));
  ProgressWatch watch(seconds(1));
  Calls calls;
  cluster.Push(1, x.data(), calls.Expect());  // it waits for worker 0
  EXPECT_FALSE(watch.Check({flow}, Worker(1), {}));
  EXPECT_FALSE(watch.Check({}, Worker(1), {}));  // it is dropped
  std::this_thread::sleep_for(milliseconds(1100));
  EXPECT_FALSE(watch.Check({flow}, Worker(1), {})) << "what waits here now has just begun";
  std::this_thread::sleep_for(milliseconds(1100));
  const auto late = watch.Check({flow}, Worker(1), {});
  ASSERT_TRUE(late);
  EXPECT_HAS(late->what(), "waited 1 s for worker 0");
  EXPECT_EQ(late->cause, Cause::kTimedOut);
  EXPECT_EQ(late->node, Worker(0));
  flow->Fail("the test is over");
  EXPECT_TRUE(calls.Wait());
}

}  // namespace
}  // namespace hipress::testing
