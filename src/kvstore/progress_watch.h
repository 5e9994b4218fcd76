/*!
 * \file progress_watch.h
 * \brief Detects iterations that make no progress, and names the node that they wait for.
 */
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/flow.h"

namespace hipress {

class ProgressWatch {
 public:
  /// \param timeout for how long a worker may push nothing while others wait
  /// \param hint how users change it, for sentences
  explicit ProgressWatch(std::chrono::seconds timeout, std::string hint = "", NodeNames names = {})
      : timeout_(timeout), hint_(std::move(hint)), names_(std::move(names)) {}

  /// To be called about once a second. `left`: nodes that have left normally, after the end of all
  /// their operations. \return the error to fail the job with, if there is one
  std::optional<Error> Check(const std::vector<std::shared_ptr<Flow>>& flows, NodeId self,
                             const std::set<NodeId>& left);

 private:
  struct Progress {
    uint64_t iteration = 0;
    bool updating = false;
    std::chrono::steady_clock::time_point since;
  };

  const std::chrono::seconds timeout_;
  const std::string hint_;
  const NodeNames names_;
  std::map<const Flow*, Progress> progress_;
};

}  // namespace hipress
