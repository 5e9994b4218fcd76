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

#include "kvstore/store_host.h"

namespace hipress {

/// weight <- f(weight, gradient), both float32[n]. \throw Error
using UpdateFn = std::function<void(uint64_t key, const std::string& name, float* gradient,
                                    float* weight, int64_t n)>;

/// Services of a server for its keys.
struct ServerContext : StoreContext {
  int num_workers = 0;
  std::mutex mutex;
  std::shared_ptr<const UpdateFn> updater;  ///< under the mutex; null: values are sums
  std::atomic<bool> has_updater{false};
};

class ServerKey : public StoreHost {
 public:
  ServerKey(uint64_t key, ServerContext* context);

  /// \return true when all workers' requests, and all of the initial value, are here: the caller
  /// then
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

  // FlowHost
  CodecPtr CodecToEncode(const Flow& flow, const Task& task, const Value& sum,
                         bool updated) override;
  bool HasUpdater() const override { return context_->has_updater; }
  Buffer Update(const Flow& flow, Buffer sum) override;
  void OnResult(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value) override;

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

  bool InitComplete() const;
  void MakeWeightLocked();
  /// The value to answer a fetch with: a float32 weight in place, other dtypes by a copy.
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

  std::mutex update_mutex_;  ///< held during an update; asynchronous flows may update at once
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
