/*!
 * \file server_key.h
 * \brief One key's shard on one server: its flow, its weight, its value for whoever fetches it.
 */
#ifndef HIPRESS_KVSTORE_SERVER_KEY_H_
#define HIPRESS_KVSTORE_SERVER_KEY_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "casync/flow.h"
#include "kvstore/config_table.h"
#include "kvstore/protocol.h"

namespace hipress {

/// weight <- f(weight, gradient), both float32[n]. \throw Error
using UpdateFn = std::function<void(uint64_t key, const std::string& name, float* gradient,
                                    float* weight, int64_t n)>;

/// What a server gives its keys.
struct ServerContext {
  int num_workers = 0;
  bool sync = true;
  ConfigTable configs;
  std::function<void(NodeId to, Message message, int priority, std::function<void(bool)> done)> send;
  std::function<void(const std::string& sentence)> fail;  ///< the job cannot go on
  std::mutex mutex;
  std::shared_ptr<const UpdateFn> updater;  ///< under the mutex; null: values are sums
  std::atomic<bool> has_updater{false};
  Executor* executor = nullptr;
};

class ServerKey : public FlowHost, public std::enable_shared_from_this<ServerKey> {
 public:
  ServerKey(uint64_t key, ServerContext* context);

  /// A worker's wish to initialise the key. \return true when all workers' wishes, and all of the
  /// initial value, are here: the caller then answers with InitError().
  bool OnInitKey(NodeId from, const Message& message);
  bool OnInitData(NodeId from, const Message& message);
  Buffer OnInitDataHeader(const MessageHeader& header);
  /// "" if the key is ready; otherwise the sentence all workers get.
  std::string InitError() const { return init_error_; }
  /// (worker, request id) pairs to answer.
  std::vector<std::pair<NodeId, uint32_t>> TakeInitRequests();

  Buffer OnDataHeader(NodeId from, const MessageHeader& header);
  void OnData(NodeId from, Message message);
  void OnFetch(NodeId from, const MessageHeader& header);

  void Fail(const std::string& sentence);
  std::vector<std::shared_ptr<Flow>> flows() const;
  const std::string& name() const { return name_; }

  // FlowHost
  CodecPtr CodecToEncode(const Flow& flow, const Value& sum, bool updated) override;
  void SendValue(const Flow& flow, const Task& task, const Value& value, uint32_t iteration,
                 int priority, std::function<void(bool)> done) override;
  CodecPtr CodecOf(NodeId from, const MessageHeader& header) override;
  bool HasUpdater() const override { return context_->has_updater; }
  Buffer Update(const Flow& flow, Buffer sum) override;
  void OnResult(const Flow& flow, int32_t partition, uint32_t iteration, const Value& value) override;
  void OnFailure(const Flow& flow, const std::string& sentence) override;

 private:
  /// A partition's current value: a payload of its own, or (codec null) a part of the weight.
  struct Published {
    Value value;
    uint32_t iteration = 0;
  };
  struct Waiter {
    NodeId from;
    uint32_t request;
    uint32_t version;  ///< pushes of `from` that the answer must contain
    std::vector<bool> answered;
  };

  void FinishInit();
  Flow* FlowOf(NodeId from) const;
  bool Complete() const;
  void MakeWeightLocked();
  Value CurrentLocked(size_t local) const;
  void ServeWaiters();

  const uint64_t key_;
  ServerContext* const context_;
  std::string name_;
  int64_t elements_ = 0;
  DType dtype_ = DType::kFloat32;

  // Initialisation; on the van's thread.
  uint64_t digest_ = 0;
  NodeId first_;
  std::string init_error_;
  std::vector<std::pair<NodeId, uint32_t>> init_requests_;
  std::shared_ptr<const Program> program_;
  size_t init_partitions_ = 0;
  int init_workers_ = 0;
  std::vector<std::shared_ptr<Flow>> flows_;  ///< one, or one per worker in asynchronous mode

  std::mutex update_mutex_;  ///< held through an update; asynchronous pushes come from all sides
  mutable std::mutex mutex_;
  Buffer weight_;                  ///< float32[shard], once there is an optimizer
  std::shared_ptr<void> lease_;    ///< copied into every buffer of the weight that is handed out
  bool updating_ = false;
  std::vector<Published> published_;    ///< by index in program_->local_partitions()
  std::vector<int32_t> local_index_;    ///< partition -> that index, or -1
  std::vector<uint32_t> applied_;       ///< asynchronous mode: updates done, per worker
  std::vector<Waiter> waiters_;
};

}  // namespace hipress

#endif  // HIPRESS_KVSTORE_SERVER_KEY_H_
