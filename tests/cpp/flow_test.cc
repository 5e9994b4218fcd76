// Order, windows, outputs bound early, late or never, failures: sums must be exact in every case.
#include <gtest/gtest.h>

#include <future>
#include <set>

#include "flow_fixture.h"

namespace hipress {
namespace {

using Floats = std::vector<float>;

Floats Pattern(int64_t n, int worker, int iteration) {
  Floats x(n);
  for (int64_t i = 0; i < n; ++i) x[i] = float((i * 7 + worker * 31 + iteration * 5) % 64);
  return x;
}

Floats SumOf(int64_t n, int workers, int iteration) {
  Floats sum(n, 0);
  for (int w = 0; w < workers; ++w) {
    const Floats x = Pattern(n, w, iteration);
    for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
  }
  return sum;
}

TEST(Flow, SumsInPlaceOverManyIterations) {
  constexpr int kWorkers = 3, kIterations = 20;
  for (uint32_t seed = 0; seed < 5; ++seed) {
    Cluster cluster(1000, 7, kWorkers, IdentityCodec(), seed);
    Calls calls;
    std::vector<std::vector<Floats>> data(kWorkers);
    for (int it = 0; it < kIterations; ++it) {
      for (int w = 0; w < kWorkers; ++w) {
        data[w].push_back(Pattern(1000, w, it));
        float* x = data[w].back().data();
        cluster.Push(w, x, calls.Expect());
        ASSERT_TRUE(cluster.Pull(w, x, calls.Expect()));
      }
    }
    ASSERT_TRUE(calls.Wait());
    EXPECT_EQ(calls.error(), "");
    for (int it = 0; it < kIterations; ++it) {
      for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(data[w][it], SumOf(1000, kWorkers, it)) << it;
    }
  }
}

TEST(Flow, CallbackThatThrowsDoesNotEndTheProcess) {
  Cluster cluster(10, 1, 1);
  Floats x = Pattern(10, 0, 0);
  Calls calls;
  cluster.Push(0, x.data(), [pushed = calls.Expect()](const char* error) {
    pushed(error);
    throw std::bad_alloc();
  });
  ASSERT_TRUE(cluster.Pull(0, x.data(), calls.Expect()));
  ASSERT_TRUE(calls.Wait());
  EXPECT_EQ(calls.error(), "");
  EXPECT_EQ(x, Pattern(10, 0, 0));  // the sum of one worker
}

TEST(Flow, IterationsContinueBeyond32Bits) {
  constexpr int kWorkers = 2, kIterations = 12;
  for (const int64_t parts : {3, 0}) {  // by a server, and between two workers alone
    Cluster cluster(100, parts, kWorkers);
    const uint64_t first = (uint64_t(1) << 32) - 5;
    for (auto& [node, flow] : cluster.network.flows) flow->StartAt(first);
    for (int it = 0; it < kIterations; ++it) {
      Calls calls;
      std::vector<Floats> data;
      for (int w = 0; w < kWorkers; ++w) data.push_back(Pattern(100, w, it));
      for (int w = 0; w < kWorkers; ++w) {
        cluster.Push(w, data[w].data(), calls.Expect());
        ASSERT_TRUE(cluster.Pull(w, data[w].data(), calls.Expect()));
      }
      ASSERT_TRUE(calls.Wait()) << it;
      EXPECT_EQ(calls.error(), "");
      for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(data[w], SumOf(100, kWorkers, it)) << it;
    }
    EXPECT_EQ(cluster.flow(Worker(0)).iteration(), first + kIterations - 1);
  }
}

TEST(Executor, AnErrorOfATaskIsReportedAndTheNextTaskRuns) {
  std::string reported;
  std::promise<void> next;
  Executor executor(1, [&](const std::string& sentence) { reported = sentence; });
  executor.Submit(0, [] { throw Error("no memory"); });
  executor.Submit(0, [&] { next.set_value(); });
  ASSERT_EQ(next.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(reported, "a task failed: no memory");
}

TEST(Flow, PushesThatNobodyPullsAreDroppedAndTheLastIsRight) {
  Cluster cluster(1000, 3, 2);
  Calls calls;
  std::vector<Floats> keep;
  for (int it = 0; it < 30; ++it) {
    for (int w = 0; w < 2; ++w) {
      keep.push_back(Pattern(1000, w, it));
      cluster.Push(w, keep.back().data(), calls.Expect());
    }
  }
  Floats out(1000, -1);
  ASSERT_TRUE(cluster.Pull(1, out.data(), calls.Expect()));
  ASSERT_TRUE(calls.Wait());
  EXPECT_EQ(out, SumOf(1000, 2, 29));
  // The iteration is used up: a second pull must be fetched.
  EXPECT_FALSE(cluster.Pull(1, out.data(), [](const char*) {}));
}

TEST(Flow, OutputBoundAfterTheResultArrived) {
  Cluster cluster(512, 2, 1);
  Calls calls;
  const Floats x = Pattern(512, 0, 0);
  cluster.Push(0, x.data(), calls.Expect());
  ASSERT_TRUE(calls.Wait());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  Floats out(512);
  ASSERT_TRUE(cluster.Pull(0, out.data(), calls.Expect()));
  ASSERT_TRUE(calls.Wait());
  EXPECT_EQ(out, x);
}

TEST(Flow, CompressedSumsAgreeOnAllWorkers) {
  constexpr int kWorkers = 4, kIterations = 12;
  Cluster cluster(4096, 4, kWorkers, MakeCodec("onebit", {}));
  Calls calls;
  std::vector<Floats> in, out(kWorkers, Floats(4096));
  for (int it = 0; it < kIterations; ++it) {
    for (int w = 0; w < kWorkers; ++w) {
      in.push_back(Pattern(4096, w, it));
      cluster.Push(w, in.back().data(), calls.Expect());
      ASSERT_TRUE(cluster.Pull(w, out[w].data(), calls.Expect()));
    }
    ASSERT_TRUE(calls.Wait());
    EXPECT_NE(out[0], Floats(4096));
    for (int w = 1; w < kWorkers; ++w) ASSERT_EQ(out[w], out[0]);
  }
}

TEST(Flow, AnOptimizerSeesTheWholeShardOncePerIteration) {
  Cluster cluster(1000, 5, 2);
  cluster.hosts[2]->updater = true;
  Calls calls;
  Floats expected(1000, 0);
  for (int it = 0; it < 6; ++it) {
    const std::vector<Floats> x = {Pattern(1000, 0, it), Pattern(1000, 1, it)};
    std::vector<Floats> weight(2, Floats(1000));
    for (int w = 0; w < 2; ++w) {
      cluster.Push(w, x[w].data(), calls.Expect());
      ASSERT_TRUE(cluster.Pull(w, weight[w].data(), calls.Expect()));
    }
    ASSERT_TRUE(calls.Wait());
    const Floats sum = SumOf(1000, 2, it);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] -= sum[i];
    EXPECT_EQ(weight[0], expected);
    EXPECT_EQ(weight[1], expected);
    EXPECT_EQ(cluster.hosts[2]->updates, it + 1);
  }
}

std::string Described(const Flow& flow) {
  JsonWriter json;
  flow.Describe(&json);
  return json.text();
}

TEST(Flow, FailureIsReportedToEveryOperation) {
  Cluster cluster(1000, 3, 2);
  Calls calls;
  const Floats x = Pattern(1000, 0, 0);
  Floats out(1000);
  cluster.Push(0, x.data(), calls.Expect());
  ASSERT_TRUE(cluster.Pull(0, out.data(), calls.Expect()));
  // The push has finished; worker 1 never pushes, so the pull waits.
  ASSERT_TRUE(Soon([&] { return calls.done() == 1; }));
  Flow::Wait wait;
  EXPECT_TRUE(Soon([&] {
    wait = cluster.flow(Server(0)).WaitingFor();
    return wait.peers == std::vector<NodeId>{Worker(1)};
  }));
  EXPECT_EQ(wait.iteration, 1u);
  std::string server;
  EXPECT_TRUE(Soon([&] {
    server = Described(cluster.flow(Server(0)));
    return server.find("\"waits_for\":[{\"node\":\"worker 1\",\"messages\":3,") != std::string::npos &&
           server.find("worker 0") == std::string::npos;
  })) << server;
  EXPECT_EQ(calls.done(), 1);
  const std::string worker = Described(cluster.flow(Worker(0)));
  EXPECT_NE(worker.find("\"pushed\":1,\"iterations\":[{\"iteration\":1,"), std::string::npos) << worker;
  EXPECT_NE(worker.find("\"pulled\":true"), std::string::npos) << worker;
  EXPECT_EQ(Described(cluster.flow(Worker(1))).find("iterations"), std::string::npos);
  cluster.flow(Worker(0)).Fail("worker 1 died");
  ASSERT_TRUE(calls.Wait());
  EXPECT_EQ(calls.error(), "worker 1 died");
  cluster.Push(0, x.data(), calls.Expect());
  ASSERT_TRUE(calls.Wait());
}

TEST(Flow, WithoutServersAnIterationMayBeginElsewhere) {
  Cluster cluster(100, 0, 2);
  Calls calls;
  std::vector<Floats> x, out(8, Floats(100));
  for (int i = 0; i < 8; ++i) x.push_back(Pattern(100, i / 2, i % 2));
  // Worker 0 goes three iterations ahead.
  for (int i = 0; i < 3; ++i) {
    cluster.Push(0, x[2 * i].data(), calls.Expect());
    ASSERT_TRUE(cluster.Pull(0, out[2 * i].data(), calls.Expect()));
  }
  EXPECT_TRUE(Soon([&] {
    return cluster.flow(Worker(0)).WaitingFor().peers == std::vector<NodeId>{Worker(1)};
  }));
  EXPECT_TRUE(cluster.flow(Worker(0)).WaitingFor().first_hand.empty());  // it may wait for others
  EXPECT_TRUE(Soon([&] { return cluster.flow(Worker(1)).WaitingFor().unpushed; }));
  EXPECT_EQ(cluster.flow(Worker(1)).iteration(), 0u);
  EXPECT_FALSE(cluster.flow(Worker(0)).EndWithoutPulls());
  for (int i = 0; i < 3; ++i) {
    cluster.Push(1, x[2 * i + 1].data(), calls.Expect());
    ASSERT_TRUE(cluster.Pull(1, out[2 * i + 1].data(), calls.Expect()));
  }
  ASSERT_TRUE(calls.Wait());
  EXPECT_EQ(calls.error(), "");
  for (int i = 0; i < 3; ++i) {
    Floats sum(100);
    for (int j = 0; j < 100; ++j) sum[j] = x[2 * i][j] + x[2 * i + 1][j];
    EXPECT_EQ(out[2 * i], sum) << i;
    EXPECT_EQ(out[2 * i + 1], sum) << i;
  }
  // Pushed and never pulled: it drains once the other worker has also pushed.
  cluster.Push(0, x[6].data(), calls.Expect());
  EXPECT_FALSE(cluster.flow(Worker(0)).EndWithoutPulls());
  cluster.Push(1, x[7].data(), calls.Expect());
  ASSERT_TRUE(calls.Wait());
  for (int w = 0; w < 2; ++w) {
    for (int i = 0; i < 1000 && !cluster.flow(Worker(w)).EndWithoutPulls(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(cluster.flow(Worker(w)).EndWithoutPulls());
  }
}

TEST(Flow, WithoutServersStillRefusesWhatItDoesNotExpect) {
  Cluster cluster(100, 0, 2);
  Flow& flow = cluster.flow(Worker(1));
  MessageHeader good;
  good.elements = 100;
  good.payload_bytes = 400;
  good.iteration = 1;
  for (NodeId stranger : {Server(0), Worker(2), Worker(1)}) {
    EXPECT_THROW(flow.OnHeader(stranger, good), ProtocolError);
  }
  const std::vector<void (*)(MessageHeader*)> damages = {
      [](MessageHeader* h) { h->partition = 1; },
      [](MessageHeader* h) { h->step = 1; },
      [](MessageHeader* h) { h->elements = 99; },
      [](MessageHeader* h) { h->payload_bytes = 404; },
      [](MessageHeader* h) { h->iteration = 0; },
      [](MessageHeader* h) { h->iteration = 1000; },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    MessageHeader bad = good;
    damages[i](&bad);
    EXPECT_THROW(flow.OnHeader(Worker(0), bad), ProtocolError) << i;
  }
  EXPECT_NO_THROW(flow.OnHeader(Worker(0), good));
  EXPECT_THROW(flow.OnHeader(Worker(0), good), ProtocolError);  // twice
}

TEST(Flow, RefusesWhatItDoesNotExpect) {
  Cluster cluster(1000, 2, 2);
  Flow& server = cluster.flow(Server(0));
  MessageHeader good;
  good.elements = 500;
  good.payload_bytes = 2000;
  good.iteration = 1;
  EXPECT_THROW(server.OnHeader(Worker(2), good), ProtocolError);
  const std::vector<void (*)(MessageHeader*)> damages = {
      [](MessageHeader* h) { h->partition = 2; },
      [](MessageHeader* h) { h->step = 1; },
      [](MessageHeader* h) { h->elements = 499; },
      [](MessageHeader* h) { h->payload_bytes = 1996; },
      [](MessageHeader* h) { h->iteration = 0; },
      [](MessageHeader* h) { h->iteration = 1000; },
      [](MessageHeader* h) { h->dtype = uint8_t(DType::kFloat16); },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    MessageHeader bad = good;
    damages[i](&bad);
    EXPECT_THROW(server.OnHeader(Worker(0), bad), ProtocolError) << i;
  }
  EXPECT_NO_THROW(server.OnHeader(Worker(0), good));
  EXPECT_THROW(server.OnHeader(Worker(0), good), ProtocolError);  // twice
}

TEST(Flow, AMarkOfANaNOutOfPlaceIsRefusedAndHarmsNobody) {
  for (const bool bound : {false, true}) {
    Cluster cluster(100, 0, 2);
    for (int w = 0; w < 2 && bound; ++w) {
      Binding binding;
      binding.encodes.resize(cluster.flow(Worker(w)).program().tasks().size());
      for (EncodeBinding& encode : binding.encodes) {
        encode.codec = IdentityCodec();
        encode.state = std::make_shared<CodecState>();
      }
      cluster.flow(Worker(w)).Bind(std::move(binding));
    }
    Flow& flow = cluster.flow(Worker(1));
    MessageHeader mark;
    mark.elements = 100;
    mark.iteration = 1;
    mark.flags = kNonFiniteFlag;
    mark.payload_bytes = bound ? 400 : 0;
    EXPECT_THROW(flow.OnHeader(Worker(0), mark), ProtocolError);
    EXPECT_THROW(flow.Expect(Worker(0), mark, AllocateBuffer(mark.payload_bytes)), ProtocolError);
    mark.elements = 99;
    mark.payload_bytes = 0;
    EXPECT_THROW(flow.OnHeader(Worker(0), mark), ProtocolError);
    // The step it was for is still to come.
    Calls calls;
    const std::vector<Floats> x = {Pattern(100, 0, 0), Pattern(100, 1, 0)};
    std::vector<Floats> out(2, Floats(100));
    for (int w = 0; w < 2; ++w) {
      cluster.Push(w, x[w].data(), calls.Expect());
      ASSERT_TRUE(cluster.Pull(w, out[w].data(), calls.Expect()));
    }
    ASSERT_TRUE(calls.Wait());
    for (int w = 0; w < 2; ++w) EXPECT_EQ(out[w], SumOf(100, 2, 0));
  }
}

TEST(Program, RefusesMalformedForms) {
  FlatProgram good(100, 2);
  const int64_t payload = good.Add(Op::kEncode, 0, -1, {-1});
  good.Add(Op::kSend, 0, PackedId(Role::kServer, 0), {payload});
  EXPECT_NO_THROW(good.Parse(100));
  EXPECT_THROW(good.Parse(99), Error);  // a partition outside
  const std::vector<int64_t> flat = good.Flat();
  for (size_t i = 0; i < flat.size(); ++i) {
    for (const int64_t value : {int64_t(-2), int64_t(1) << 40, INT64_MAX, INT64_MIN}) {
      std::vector<int64_t> bad = flat;
      bad[i] = value;
      try {
        Program::Parse(bad.data(), int64_t(bad.size()), 100);
      } catch (const Error&) {  // some fields are harmless; none may crash
      }
    }
    EXPECT_THROW(Program::Parse(flat.data(), int64_t(i), 100), Error);
  }
}

TEST(Program, RefusesInputsThatATaskCannotRead) {
  // A payload has no floats, a sum no codec, and neither a gradient here nor a send any result.
  const auto parse = [](Op made, Op reads) {
    FlatProgram program(100, 1);
    const int64_t received = program.Add(Op::kRecv, 0, PackedId(Role::kWorker, 0), {});
    const int64_t sum = program.Add(Op::kMerge, 0, -1, {received});
    const int64_t payload = program.Add(Op::kEncode, 0, -1, {sum});
    const int64_t inputs[] = {payload, program.Add(Op::kDecode, 0, -1, {sum}), sum,
                              program.Add(Op::kSend, 0, PackedId(Role::kWorker, 0), {payload}),
                              received, program.Add(Op::kUpdate, 0, -1, {sum})};
    program.Add(reads, 0, -1, {inputs[int(made)]});
    program.Parse(100);
  };
  const std::set<std::pair<Op, Op>> can = {
      {Op::kEncode, Op::kDecode}, {Op::kEncode, Op::kMerge}, {Op::kEncode, Op::kSend},
      {Op::kRecv, Op::kDecode},   {Op::kRecv, Op::kMerge},   {Op::kRecv, Op::kSend},
      {Op::kMerge, Op::kEncode},  {Op::kMerge, Op::kDecode}, {Op::kMerge, Op::kMerge},
      {Op::kMerge, Op::kUpdate},  {Op::kUpdate, Op::kEncode}, {Op::kUpdate, Op::kDecode},
      {Op::kUpdate, Op::kMerge}};
  for (int made = 0; made <= int(Op::kUpdate); ++made) {
    for (int reads = 0; reads <= int(Op::kUpdate); ++reads) {
      if (can.count({Op(made), Op(reads)}) != 0) {
        EXPECT_NO_THROW(parse(Op(made), Op(reads))) << made << " " << reads;
      } else {
        EXPECT_THROW(parse(Op(made), Op(reads)), Error) << made << " " << reads;
      }
    }
  }
  for (const Op op : {Op::kDecode, Op::kSend, Op::kUpdate}) {
    FlatProgram program(100, 1);
    program.Add(op, 0, PackedId(Role::kServer, 0), {-1});
    EXPECT_THROW(program.Parse(100), Error) << int(op);
  }
}

TEST(Program, RefusesNumbersWhoseSumWraps) {
  FlatProgram good(100, 1);
  good.Add(Op::kEncode, 0, -1, {-1});
  const std::vector<int64_t> flat = good.Flat();
  const size_t offset = 5, count = 6, first_input = 7 + 5, num_inputs = 7 + 6;
  const auto parse = [&](size_t a, int64_t x, size_t b, int64_t y, int64_t n) {
    std::vector<int64_t> bad = flat;
    bad[a] = x;
    bad[b] = y;
    Program::Parse(bad.data(), int64_t(bad.size()), n);
  };
  EXPECT_THROW(parse(first_input, INT64_MAX, num_inputs, 1, 100), Error);
  EXPECT_THROW(parse(first_input, 1, num_inputs, INT64_MAX, 100), Error);
  EXPECT_THROW(parse(offset, INT64_MAX, count, 100, 100), Error);
  EXPECT_THROW(parse(offset, 1, count, INT64_MAX, INT64_MAX), Error);
  // Four bytes an element would make no byte at all of this.
  EXPECT_THROW(parse(offset, 0, count, int64_t(1) << 62, int64_t(1) << 62), Error);
  EXPECT_THROW(parse(offset, 0, count, 100, -1), Error);
  EXPECT_NO_THROW(parse(offset, 0, count, 100, 100));
}

}  // namespace
}  // namespace hipress
