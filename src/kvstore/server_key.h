/*!
 * \file server_key.h
 * \brief One key's shard on one server: its flow, its weight, its value for workers that fetch it.
 */
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "casync/flow.h"
#include "kvstore/config_table.h"
#include "kvstore/fused.h"
#include "kvstore/protocol.h"

namespace hipress {

/// weight <- f(weight, gradient), both float32[n]. \throw Error
using UpdateFn = std::function<void(uint64_t key, const std::string& name, float* gradient,
                                    float* weight, int64_t n)>;

/// Services of a server for its keys.
struct ServerContext {
  int num_workers = 0;
  std::function<NodeId()> self;
  ConfigTable configs;
  std::function<void(NodeId to, Message message, int priority, std::function<void(bool)> done)> send;
  Outbox outbox{[this](NodeId to, Message message, int priority) {
    send(to, std::move(message), priority, nullptr);
  }};
  std::function<void(const std::string& sentence)> fail;  ///< the job cannot go on
  std::mutex mutex;
  std::shared_ptr<const UpdateFn> updater;  ///< under the mutex; null: values are sums
  std::atomic<bool> has_updater{false};
  Executor* executor = nullptr;
  FlightRecorder* recorder = nullptr;
  uint8_t timeline_node = 0;
};

class ServerKey : public FlowHost, public std::enable_shared_from_this<ServerKey> {
 public:
  ServerKey(uint64_t key, ServerContext* context);

  /// \return true when all workers' requests, and all of the initial value, are here: the caller then
  ///         answers init_requests() with FinishInit().
  bool OnInitKey(NodeId from, const Message& message);
  bool OnInitData(NodeId from, const Message& message);
  const std::vector<InitRequest>& init_requests() const { return init_requests_; }
  /// Why it will never be complete, when all that worker 0 sends is here; else empty.
  std::string NeverComplete(const std::set<NodeId>& left) const;
  /// Makes the key ready. \return "", or the sentence that all workers get if they disagree
  std::string FinishInit();

  Buffer OnDataHeader(NodeId from, const MessageHeader& header);
  void OnData(NodeId from, Message message);
  /// The flow that data of this worker belong to; null if the job cannot go on.
  std::shared_ptr<Flow> FlowOf(NodeId from);
  void OnFetch(NodeId from, const MessageHeader& header);

  void Fail(const std::string& sentence);
  std::vector<std::shared_ptr<Flow>> flows() const;
  uint64_t key() const { return key_; }
  const std::string& name() const { return name_; }

  // FlowHost
  NodeId Self() const override { return context_->self(); }
  FlightRecorder* recorder() override { return context_->recorder; }
  uint8_t timeline_node() const override { return context_->timeline_node; }
  CodecPtr CodecToEncode(const Flow& flow, const Task& task, const Value& sum,
                         bool updated) override;
  void SendValue(const Flow& flow, const Task& task, const Value& value, uint64_t iteration,
                 int priority, std::function<void(bool)> done) override;
  bool SendSmall(const Flow& flow, const Task& task, const Value& value, uint64_t iteration,
                 int priority) override;
  CodecPtr CodecOf(NodeId from, const MessageHeader& header) override;
  bool HasUpdater() const override { return context_->has_updater; }
  Buffer Update(const Flow& flow, Buffer sum) override;
  void OnResult(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value) override;
  void OnFailure(const Flow& flow, const std::string& sentence) override;

 private:
  /// A partition's current value: a separate payload, or (codec null) a part of the weight.
  struct Published {
    Value value;
    uint64_t iteration = 0;
  };
  struct Waiter {
    NodeId from;
    uint32_t request;
    uint64_t version;  ///< pushes of `from` that the answer must contain
    std::vector<bool> answered;
  };

  MessageHeader DataHeader(const Flow& flow, const Task& task, const Value& value,
                           uint64_t iteration);
  bool InitComplete() const;
  void MakeWeightLocked();
  Value CurrentLocked(size_t local) const;
  void ServeWaiters();

  const uint64_t key_;
  ServerContext* const context_;
  std::string name_;
  int64_t elements_ = 0;
  DType dtype_ = DType::kFloat32;

  // Initialization; on the van's thread.
  std::vector<InitRequest> init_requests_;
  std::shared_ptr<const Program> program_;  ///< from rank 0, as the initial value
  size_t init_partitions_ = 0;
  std::vector<std::shared_ptr<Flow>> flows_;  ///< one, or one per worker in asynchronous mode

  std::mutex update_mutex_;  ///< held through an update; asynchronous pushes come from all sides
  mutable std::mutex mutex_;
  Buffer weight_;                  ///< float32[shard], once there is an optimizer
  std::shared_ptr<void> lease_;    ///< copied into every buffer of the weight that is handed out
  bool updating_ = false;
  std::vector<Published> published_;    ///< by index in program_->local_partitions()
  std::vector<int32_t> local_index_;    ///< partition -> that index, or -1
  std::vector<uint64_t> applied_;       ///< asynchronous mode: updates done, per worker
  std::vector<Waiter> waiters_;
};

}  // namespace hipress
