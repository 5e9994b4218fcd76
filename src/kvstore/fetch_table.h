/*!
 * \file fetch_table.h
 * \brief Pulls that no iteration of this worker answers: before the first push, repeated, or
 *        asynchronous. Each asks the key's servers for the value they hold.
 */
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "casync/executor.h"
#include "casync/flow.h"
#include "kvstore/config_table.h"
#include "van/message.h"

namespace hipress {

class FetchTable {
 public:
  FetchTable(const ConfigTable* configs, Executor* executor, ConfigTable::SendFn send);
  ~FetchTable();

  /// Asks `owners` for the key's value, not older than what this worker's pushes so far made of it.
  void Start(const std::shared_ptr<Flow>& flow, const std::vector<NodeId>& owners, void* out,
             DType dtype, int priority, Done done);

  // Answers (kFetched), on the van's thread.
  Buffer OnHeader(const MessageHeader& header) const;
  void OnMessage(Message message);

  /// Unfinished fetches, as a JSON array, for debugging hangs.
  void Describe(JsonWriter* json) const;

  /// Ends every fetch with this error, now and later.
  void Fail(const std::string& sentence);

 private:
  struct Fetch;
  std::shared_ptr<Fetch> Find(const MessageHeader& header) const;
  void Finish(const std::shared_ptr<Fetch>& fetch, const MessageHeader& header, const Buffer& data);

  const ConfigTable* const configs_;
  Executor* const executor_;
  const ConfigTable::SendFn send_;
  mutable std::mutex mutex_;
  std::unordered_map<uint32_t, std::shared_ptr<Fetch>> fetches_;  // by request id
  uint32_t next_request_ = 1;
  std::string failure_;
};

}  // namespace hipress
