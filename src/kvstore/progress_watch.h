/*!
 * \file progress_watch.h
 * \brief Detects iterations that make no progress, and names the node that they wait for.
 */
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "casync/flow.h"

namespace hipress {

class ProgressWatch {
 public:
  /// `timeout`: for how long a worker may push nothing while others wait.
  explicit ProgressWatch(std::chrono::seconds timeout) : timeout_(timeout) {}

  /// To be called about once a second. `left`: nodes that have left in peace, after they had done
  /// all that they had begun.
  /// \return the sentence to fail the job with, or ""
  std::string Check(const std::vector<std::shared_ptr<Flow>>& flows, NodeId self,
                    const std::set<NodeId>& left);

 private:
  struct Progress {
    uint64_t iteration = 0;
    bool updating = false;
    std::chrono::steady_clock::time_point since;
  };
  const std::chrono::seconds timeout_;
  std::map<const Flow*, Progress> progress_;
};

}  // namespace hipress
