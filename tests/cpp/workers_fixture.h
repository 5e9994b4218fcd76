// The workers of a job without servers, and its scheduler, in one process; programs of three of them.
#ifndef HIPRESS_TESTS_CPP_WORKERS_FIXTURE_H_
#define HIPRESS_TESTS_CPP_WORKERS_FIXTURE_H_

#include <future>
#include <thread>

#include "flow_fixture.h"
#include "kvstore/kvstore_dist.h"
#include "van_testing.h"

namespace hipress {
namespace testing {

/// How the three of them sum up a gradient.
enum class Way {
  kColocated,  ///< each worker sums a part
  kChain,      ///< worker 0 to 1 to 2, and back from there: 1 sends a partial sum
  kReduce,     ///< only worker 0 gets the sum
};
constexpr int kWorkers = 3;

/// Encodes of a program: which of them are of sums, and of how many gradients.
struct Encodes {
  FlatProgram program;
  std::vector<std::pair<int, int>> terms;  ///< task and number of gradients

  int64_t Add(int64_t partition, int64_t input, int gradients) {
    const int64_t t = program.Add(Op::kEncode, partition, -1, {input}, 0, gradients);
    terms.emplace_back(int(t), gradients);
    return t;
  }
};

inline Encodes ProgramOf(Way way, int64_t n, int self) {
  Encodes all{FlatProgram(n, way == Way::kColocated ? kWorkers : 1), {}};
  FlatProgram& program = all.program;
  const auto id = [](int worker) { return PackedId(Role::kWorker, worker); };
  if (way == Way::kChain) {
    int64_t payload = -1;
    if (self == 0) {
      payload = all.Add(0, -1, 1);
    } else {
      const int64_t received = program.Add(Op::kRecv, 0, id(self - 1), {}, 0, self == 1 ? 0 : 1);
      payload = all.Add(0, program.Add(Op::kMerge, 0, -1, {received, -1}), self + 1);
    }
    if (self < 2) {
      program.Add(Op::kSend, 0, id(self + 1), {payload});
      payload = program.Add(Op::kRecv, 0, id(2), {}, 1);
    } else {
      for (int w = 0; w < 2; ++w) program.Add(Op::kSend, 0, id(w), {payload}, 1);
    }
    program.Add(Op::kDecode, 0, -1, {payload});
    return all;
  }
  const int64_t parts = int64_t(program.partitions.size() / 2);
  for (int64_t p = 0; p < parts; ++p) {
    if (p != self) {
      program.Add(Op::kSend, p, id(int(p)), {all.Add(p, -1, 1)});
      if (way == Way::kReduce) continue;
      program.Add(Op::kDecode, p, -1, {program.Add(Op::kRecv, p, id(int(p)), {}, 1)});
      continue;
    }
    std::vector<int64_t> inputs;
    for (int w = 0; w < kWorkers; ++w) {
      inputs.push_back(w == self ? -1 : program.Add(Op::kRecv, p, id(w), {}, 0, 0));
    }
    const int64_t payload = all.Add(p, program.Add(Op::kMerge, p, -1, inputs), kWorkers);
    for (int w = 0; w < kWorkers && way != Way::kReduce; ++w) {
      if (w != self) program.Add(Op::kSend, p, id(w), {payload}, 1);
    }
    program.Add(Op::kDecode, p, -1, {payload});
  }
  return all;
}

/// A job of kWorkers workers; what they do together they do in threads of their own.
class Workers {
 public:
  Workers() {
    JobOptions options;
    options.num_workers = kWorkers;
    options.root_uri = "127.0.0.1";
    options.start_timeout = options.wait_timeout = seconds(20);
    options.num_threads = 2;
    options.van = TestVanOptions();
    options.role = Role::kScheduler;
    std::promise<std::string> listening;
    options.on_listen = [&](const std::string& address) { listening.set_value(address); };
    scheduler_ = std::make_unique<Postoffice>(options);
    serving_ = std::thread([this] {
      scheduler_->Start(&nothing_);
      scheduler_->WaitForEnd();
      scheduler_->Stop();
    });
    options.on_listen = nullptr;
    options.root_port = SplitAddress(listening.get_future().get()).second;
    options.role = Role::kWorker;
    for (int w = 0; w < kWorkers; ++w) {
      options.wanted_rank = w;
      stores_.push_back(std::make_unique<KVStoreDist>(options));
    }
    Together([](int, KVStoreDist& store) { store.Start(); });
  }
  ~Workers() {
    Together([](int, KVStoreDist& store) { store.Stop(); });
    scheduler_->Stop();
    serving_.join();
  }
  KVStoreDist& store(int worker) { return *stores_[size_t(worker)]; }
  Postoffice& scheduler() { return *scheduler_; }

  /// \return what each of them threw
  std::vector<std::string> Together(const std::function<void(int, KVStoreDist&)>& work) {
    std::vector<std::string> errors(kWorkers);
    std::vector<std::thread> threads;
    for (int w = 0; w < kWorkers; ++w) {
      threads.emplace_back([&, w] { errors[w] = ErrorOf([&] { work(w, store(w)); }); });
    }
    for (auto& thread : threads) thread.join();
    return errors;
  }
  /// Waits until a worker's store has failed. \return why
  std::string FailureOf(int worker) {
    Eventually([&] { return !store(worker).Failure().empty(); }, seconds(5));
    return store(worker).Failure();
  }

 private:
  class Nothing : public PostofficeReceiver {
    Buffer OnHeader(NodeId, const MessageHeader&) override { return Buffer(); }
    void OnMessage(NodeId, Message) override {}
    void OnDeath(NodeId, const std::string&) override {}
  };

  Nothing nothing_;
  std::unique_ptr<Postoffice> scheduler_;
  std::thread serving_;
  std::vector<std::unique_ptr<KVStoreDist>> stores_;
};

/// How the encodes of a key are done.
struct KeyOptions {
  Way way = Way::kColocated;
  DType dtype = DType::kFloat32;
  CodecPtr codec = IdentityCodec();
  bool average = false;
  float momentum = 0;
};

/// A bound key, on one worker: what its encodes remember is `states`, by task.
struct BoundKey {
  std::shared_ptr<Flow> flow;
  std::vector<std::shared_ptr<CodecState>> states;

  BoundKey() = default;
  BoundKey(KVStoreDist* store, int worker, uint64_t key, int64_t n, const KeyOptions& options) {
    const Encodes encodes = ProgramOf(options.way, n, worker);
    Binding binding;
    binding.places.resize(encodes.program.tasks.size() / 7 + 1);
    for (const auto& [task, terms] : encodes.terms) {
      states.push_back(std::make_shared<CodecState>());
      Place& place = binding.places[size_t(task)];
      place.codec = store->Intern(options.codec);
      place.state = states.back();
      place.factor = options.average && terms == kWorkers ? 1.0f / kWorkers : 1.0f;
      const bool partial = terms > 1 && terms < kWorkers;
      place.wire = partial ? DType::kFloat32 : options.dtype;
    }
    flow = store->AddKey(key, "key " + std::to_string(key), n, options.dtype, "a graph",
                         encodes.program.Flat(), std::move(binding), options.momentum);
  }
};

}  // namespace testing
}  // namespace hipress

#endif  // HIPRESS_TESTS_CPP_WORKERS_FIXTURE_H_
