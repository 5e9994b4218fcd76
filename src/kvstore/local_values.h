/*!
 * \file local_values.h
 * \brief Values of keys without servers, on each worker: what it pulled last, or the initial value, for
 *        pulls that no iteration answers.
 *
 * Compressed results are kept as the payloads in which they arrived. Uncompressed ones are copied, unless the
 * push requested that the result is for that iteration's pull only.
 */
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "casync/executor.h"
#include "casync/flow.h"

namespace hipress {

class LocalValues {
 public:
  explicit LocalValues(Executor* executor) : executor_(executor) {}

  /// The initial value: all elements in the wire's dtype, the result of the flow's first iteration.
  void Init(const Flow& flow, const Buffer& value);
  /// A partition's result; see FlowHost::OnOutput.
  void Put(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value, bool keep);
  /// Writes the value that results from this worker's pushes so far, as soon as it is ready.
  void Fetch(const std::shared_ptr<Flow>& flow, void* out, DType dtype, int priority, Done done);

  /// Ends every fetch with this error, now and later.
  void Fail(const std::string& sentence);

 private:
  struct Fetching {
    std::shared_ptr<Flow> flow;
    uint8_t* out;
    DType dtype;
    int priority;
    uint64_t version;
    Done done;
  };
  struct Held {
    std::vector<Value> values;         ///< per partition; without data: not kept
    std::vector<uint64_t> iterations;  ///< per partition
    std::vector<Fetching> waiting;

    bool Has(uint64_t version) const;
  };
  void Serve(Fetching fetch, std::vector<Value> values);

  Executor* const executor_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, Held> held_;  ///< by key
  std::string failure_;
};

}  // namespace hipress
