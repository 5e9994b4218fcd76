/*!
 * \file pulls.h
 * \brief Pulls that no iteration of this worker answers: before the first push, repeated, or
 * asynchronous.
 *
 * If the key has servers, FetchTable requests the value from them. Otherwise LocalValues has it.
 */
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "kvstore/store_host.h"

namespace hipress {

/// One such pull. All code that may still write the output holds it. Its destructor notifies the
/// user.
struct StoredPull {
  StoredPull(std::shared_ptr<Flow> flow, void* out, int priority, Done done);
  ~StoredPull() { Notify(done, error); }

  const std::shared_ptr<Flow> flow;
  const uint64_t version;  ///< pushes of this worker that the value must contain
  uint8_t* const out;
  const int priority;
  const Done done;
  std::string error;
};
using StoredPullPtr = std::shared_ptr<StoredPull>;

class FetchTable {
 public:
  explicit FetchTable(StoreContext* context) : context_(context) {}

  /// Requests the value from the key's servers.
  void Start(StoredPullPtr pull, const std::vector<NodeId>& servers);

  // Answers (kFetched), on the van's thread.
  Buffer OnHeader(const MessageHeader& header) const;
  void OnMessage(Message message);

  /// Adds unfinished fetches to a debug dump.
  void Describe(JsonWriter* json) const;
  /// Ends every fetch with this error, now and later.
  void Fail(const std::string& sentence);

 private:
  struct Fetch;
  using FetchPtr = std::shared_ptr<Fetch>;
  FetchPtr Find(const MessageHeader& header) const;
  void Finish(const FetchPtr& fetch, const MessageHeader& header, const Buffer& data);

  StoreContext* const context_;
  mutable std::mutex mutex_;
  std::unordered_map<uint32_t, FetchPtr> fetches_;  // by request id
  uint32_t next_request_ = 1;
  std::string failure_;
};

/// Values of keys without servers: the result that was pulled last, or the initial value.
/// Compressed results are kept as the payloads in which they arrived. Uncompressed ones are copied,
/// unless the push requested that the result is for that iteration's pull only.
class LocalValues {
 public:
  explicit LocalValues(Executor* executor) : executor_(executor) {}

  /// The initial value: all elements in the wire's dtype, the result of the flow's first iteration.
  void Init(const Flow& flow, const Buffer& value);
  /// A partition's result; see FlowHost::OnOutput.
  void Put(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value, bool keep);
  /// Writes the value as soon as it is ready.
  void Fetch(StoredPullPtr pull);

  /// Ends every fetch with this error, now and later.
  void Fail(const std::string& sentence);

 private:
  struct Held {
    std::vector<Value> values;         ///< per partition; without data: not kept
    std::vector<uint64_t> iterations;  ///< per partition
    std::vector<StoredPullPtr> waiting;

    bool Has(uint64_t version) const;
  };
  void Serve(StoredPullPtr pull, std::vector<Value> values);

  Executor* const executor_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, Held> held_;  ///< by key
  std::string failure_;
};

}  // namespace hipress
