// The workers of a job without servers, and its scheduler, in one process.
#pragma once

#include <future>
#include <thread>

#include "kvstore/worker/kvstore_dist.h"
#include "programs_of_three.h"
#include "van_testing.h"

namespace hipress::testing {

/// A job of kWorkers workers; each joint operation runs in one thread per worker.
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
  ProgramKind kind = ProgramKind::kColocated;
  DType dtype = DType::kFloat32;
  CodecPtr codec = IdentityCodec();
  bool average = false;
  float momentum = 0;
};

/// A bound key, on one worker: `states` is the state of its encodes, by task, and `saved` saves
/// that.
struct BoundKey {
  std::shared_ptr<Flow> flow;
  std::vector<std::shared_ptr<CodecState>> states;
  std::vector<std::shared_ptr<StateBefore>> saved;

  BoundKey() = default;
  BoundKey(KVStoreDist* store, int worker, uint64_t key, int64_t n, const KeyOptions& options) {
    const Encodes encodes = ProgramOf(options.kind, n, worker);
    Binding binding;
    binding.encodes.resize(encodes.program.tasks.size() / 7 + 1);
    for (const auto& [task, num_summands] : encodes.num_summands) {
      states.push_back(std::make_shared<CodecState>());
      saved.push_back(std::make_shared<StateBefore>());
      EncodeBinding& encode = binding.encodes[size_t(task)];
      encode.codec = store->Intern(options.codec);
      encode.state = states.back();
      encode.before = saved.back();
      encode.factor = options.average && num_summands == kWorkers ? 1.0f / kWorkers : 1.0f;
      const bool partial = num_summands > 1 && num_summands < kWorkers;
      encode.wire = partial ? DType::kFloat32 : options.dtype;
    }
    store->AddKey(key, "key " + std::to_string(key), n, options.dtype, "a graph",
                  encodes.program.Flat(), std::move(binding), options.momentum);
    store->AwaitKeys();
    flow = store->KeyOf(key);
  }
};

}  // namespace hipress::testing
