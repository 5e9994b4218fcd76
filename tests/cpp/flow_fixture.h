// Flows of several nodes joined by a delivery thread instead of a network.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <thread>

#include "graph/flow.h"

namespace hipress {

constexpr int64_t PackedId(Role role, int rank) { return int64_t(role) << 16 | rank; }

/// Builds the flat form that Python writes.
struct FlatProgram {
  std::vector<int64_t> partitions, tasks, inputs;

  FlatProgram(int64_t n, int64_t parts) {
    const int64_t step = (n + parts - 1) / parts;
    for (int64_t at = 0; at < n; at += step) {
      partitions.insert(partitions.end(), {at, std::min(step, n - at)});
    }
  }
  int64_t Add(Op op, int64_t partition, int64_t peer, std::vector<int64_t> in, int64_t step = 0,
              int64_t num_summands = 1) {
    tasks.insert(tasks.end(), {int64_t(op), partition, step, peer, num_summands, int64_t(inputs.size()),
                               int64_t(in.size())});
    inputs.insert(inputs.end(), in.begin(), in.end());
    return int64_t(tasks.size() / 7) - 1;
  }
  std::vector<int64_t> Flat() const {
    std::vector<int64_t> flat = {2, 0, int64_t(partitions.size() / 2), int64_t(tasks.size() / 7),
                                 int64_t(inputs.size())};
    for (auto* part : {&partitions, &tasks, &inputs}) {
      flat.insert(flat.end(), part->begin(), part->end());
    }
    return flat;
  }
  std::shared_ptr<const Program> Parse(int64_t n) const {
    const auto flat = Flat();
    return Program::Parse(flat.data(), int64_t(flat.size()), n);
  }
};

inline std::shared_ptr<const Program> WorkerProgram(int64_t n, int64_t parts) {
  FlatProgram program(n, parts);
  const int64_t server = PackedId(Role::kServer, 0);
  for (int64_t p = 0; p < int64_t(program.partitions.size() / 2); ++p) {
    program.Add(Op::kSend, p, server, {program.Add(Op::kEncode, p, -1, {-1})});
    program.Add(Op::kDecode, p, -1, {program.Add(Op::kRecv, p, server, {})});
  }
  return program.Parse(n);
}

inline std::shared_ptr<const Program> ServerProgram(int64_t n, int64_t parts, int workers) {
  FlatProgram program(n, parts);
  for (int64_t p = 0; p < int64_t(program.partitions.size() / 2); ++p) {
    std::vector<int64_t> received;
    for (int w = 0; w < workers; ++w) {
      received.push_back(program.Add(Op::kRecv, p, PackedId(Role::kWorker, w), {}));
    }
    const int64_t merged = program.Add(Op::kMerge, p, -1, received);
    const int64_t updated = program.Add(Op::kUpdate, p, -1, {merged});
    const int64_t payload = program.Add(Op::kEncode, p, -1, {updated});
    for (int w = 0; w < workers; ++w) {
      program.Add(Op::kSend, p, PackedId(Role::kWorker, w), {payload});
    }
  }
  return program.Parse(n);
}

/// Two workers without a server, one partition: worker 0's gradient goes to worker 1, the sum back.
inline std::shared_ptr<const Program> PairProgram(int64_t n, int rank) {
  FlatProgram program(n, 1);
  if (rank == 0) {
    program.Add(Op::kSend, 0, PackedId(Role::kWorker, 1), {program.Add(Op::kEncode, 0, -1, {-1})});
    program.Add(Op::kDecode, 0, -1, {program.Add(Op::kRecv, 0, PackedId(Role::kWorker, 1), {}, 1)});
  } else {
    const int64_t received = program.Add(Op::kRecv, 0, PackedId(Role::kWorker, 0), {}, 0, 0);
    const int64_t total = program.Add(Op::kMerge, 0, -1, {received, -1});
    const int64_t payload = program.Add(Op::kEncode, 0, -1, {total}, 0, 2);
    program.Add(Op::kSend, 0, PackedId(Role::kWorker, 0), {payload}, 1);
    program.Add(Op::kDecode, 0, -1, {payload});
  }
  return program.Parse(n);
}

/// Delivers on a separate thread: in order between two nodes, in random order among pairs.
class Network {
 public:
  explicit Network(uint32_t seed) : random_(seed), thread_([this] { Loop(); }) {}
  ~Network() { Stop(); }
  void Stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  void Send(NodeId from, NodeId to, Message message, std::function<void(bool)> done) {
    std::lock_guard<std::mutex> lock(mutex_);
    queues_[{from, to}].push_back({std::move(message), std::move(done)});
    wake_.notify_all();
  }
  std::map<NodeId, std::shared_ptr<Flow>> flows;

 private:
  struct Item {
    Message message;
    std::function<void(bool)> done;
  };
  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      std::vector<std::pair<NodeId, NodeId>> ready;
      for (auto& [route, queue] : queues_) {
        if (!queue.empty()) ready.push_back(route);
      }
      if (ready.empty()) {
        if (stop_) return;
        wake_.wait(lock);
        continue;
      }
      const auto route = ready[random_() % ready.size()];
      Item item = std::move(queues_[route].front());
      queues_[route].pop_front();
      lock.unlock();
      Deliver(route.first, route.second, std::move(item));
      lock.lock();
    }
  }
  void Deliver(NodeId from, NodeId to, Item item) {
    const MessageHeader header = item.message.header;
    Buffer buffer = flows.at(to)->OnHeader(from, header);
    if (!buffer) buffer = AllocateBuffer(header.payload_bytes);
    std::memcpy(buffer.data, item.message.payload.data, header.payload_bytes);
    buffer.size = header.payload_bytes;
    item.message.payload = Buffer();
    item.done(true);
    item.done = nullptr;
    flows.at(to)->OnMessage(from, {header, std::move(buffer)});
  }

  std::mt19937 random_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::pair<NodeId, NodeId>, std::deque<Item>> queues_;
  bool stop_ = false;
  std::thread thread_;
};

class FakeHost : public FlowHost {
 public:
  FakeHost(NodeId self, Network* network, CodecPtr codec)
      : self(self), network_(network), codec_(std::move(codec)) {}
  NodeId Self() const override { return Worker(0); }
  CodecPtr CodecToEncode(const Flow&, const Task&, const Value&, bool) override { return codec_; }
  void SendValue(const Flow& flow, const Task& task, const Value& value, uint64_t iteration, int,
                 std::function<void(bool)> done) override {
    Message message(MessageKind::kData);
    message.header.key = flow.key();
    message.header.elements = uint64_t(flow.program().partitions()[task.partition].count);
    message.header.payload_bytes = value.data.size;
    message.header.iteration = uint32_t(iteration);
    message.header.partition = uint32_t(task.partition);
    message.header.step = uint16_t(task.step);
    message.header.dtype = uint8_t(flow.wire());
    message.payload = value.data;
    network_->Send(self, task.peer, std::move(message), std::move(done));
  }
  CodecPtr CodecOf(NodeId, const MessageHeader&) override { return codec_; }
  bool HasUpdater() const override { return updater; }
  /// weight -= sum, from zeros.
  Buffer Update(const Flow&, Buffer sum) override {
    ++updates;
    Buffer next = AllocateBuffer(sum.size);
    for (size_t i = 0; i < sum.size / 4; ++i) {
      next.as<float>()[i] = (weight ? weight.as<float>()[i] : 0) - sum.as<float>()[i];
    }
    return weight = next;
  }
  void OnFailure(const Flow&, const std::string& sentence) override { failure = sentence; }

  const NodeId self;
  bool updater = false;
  int updates = 0;
  Buffer weight;
  std::string failure;

 private:
  Network* network_;
  CodecPtr codec_;
};

/// Polls for a condition that has no notification, for at most 20 s.
template <typename Condition>
bool Soon(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// Counts callbacks and records the first error.
class Calls {
 public:
  Done Expect() {
    ++expected_;
    return [this](const char* error) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (error != nullptr && error_.empty()) error_ = error;
      ++done_;
      wake_.notify_all();
    };
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    return wake_.wait_for(lock, std::chrono::seconds(20), [this] { return done_ == expected_; });
  }
  int done() {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_;
  }
  std::string error() {
    std::lock_guard<std::mutex> lock(mutex_);
    return error_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  int expected_ = 0, done_ = 0;
  std::string error_;
};

/// Workers and one server (the last host), all with one codec.
class Cluster {
 public:
  Cluster(int64_t n, int64_t parts, int workers, CodecPtr codec = IdentityCodec(),
          uint32_t seed = 1)
      : network(seed) {
    if (parts == 0) {
      AddPair(n, codec);
      return;
    }
    for (int w = 0; w <= workers; ++w) {
      const NodeId id = w < workers ? Worker(w) : Server(0);
      hosts.push_back(std::make_unique<FakeHost>(id, &network, codec));
      executors_.push_back(std::make_unique<Executor>(2));
      auto program = w < workers ? WorkerProgram(n, parts) : ServerProgram(n, parts, workers);
      network.flows[id] = std::make_shared<Flow>(7, "w", n, 0, program, DType::kFloat32,
                                                 hosts.back().get(), executors_.back().get());
    }
  }
  ~Cluster() {
    executors_.clear();
    network.Stop();
  }
  Flow& flow(NodeId id) { return *network.flows.at(id); }
  bool Pull(int worker, float* out, Done done) {
    return flow(Worker(worker)).Pull(out, &done);
  }
  void Push(int worker, const float* x, Done done) {
    flow(Worker(worker)).Push(x, 0, std::move(done));
  }

  std::vector<std::unique_ptr<FakeHost>> hosts;
  Network network;

 private:
  /// With 0 parts: two workers alone.
  void AddPair(int64_t n, const CodecPtr& codec) {
    for (int w = 0; w < 2; ++w) {
      hosts.push_back(std::make_unique<FakeHost>(Worker(w), &network, codec));
      executors_.push_back(std::make_unique<Executor>(2));
      network.flows[Worker(w)] =
          std::make_shared<Flow>(7, "w", n, 0, PairProgram(n, w), DType::kFloat32,
                                 hosts.back().get(), executors_.back().get());
    }
  }

  std::vector<std::unique_ptr<Executor>> executors_;
};

}  // namespace hipress
