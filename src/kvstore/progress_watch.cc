#include "kvstore/progress_watch.h"

namespace hipress {
namespace {

/// A node that waits for sums only cannot tell which summand is late. Nodes that can get this long to
/// report it.
constexpr std::chrono::seconds kReportTime{10};

std::string NamesOf(const std::vector<NodeId>& nodes) {
  std::string names;
  for (NodeId node : nodes) names += (names.empty() ? "" : ", ") + node.ToString();
  return names;
}

}  // namespace

std::string ProgressWatch::Check(const std::vector<std::shared_ptr<Flow>>& flows, NodeId self,
                                 const std::set<NodeId>& left) {
  const auto now = std::chrono::steady_clock::now();
  // Of keys that are gone nothing is kept: another may lie where one was.
  std::map<const Flow*, Progress> before;
  before.swap(progress_);
  for (const auto& flow : flows) {
    const auto known = before.find(flow.get());
    if (known != before.end()) progress_.insert(*known);
  }
  for (const auto& flow : flows) {
    const Flow::Wait wait = flow->WaitingFor();
    Progress& progress = progress_[flow.get()];
    if (wait.iteration == 0 || progress.iteration != wait.iteration ||
        progress.updating != wait.updating) {
      progress = {wait.iteration, wait.updating, now};
      continue;
    }
    const std::string what =
        "iteration " + std::to_string(wait.iteration) + " of key '" + flow->name() + "'";
    for (NodeId node : wait.peers) {
      if (wait.unpushed || left.count(node) == 0) continue;
      return node.ToString() + " left the job while " + what +
             " still waits for its push: every worker must push equally often";
    }
    if (now - progress.since <= timeout_) continue;
    if (wait.updating) {
      return "waited " + std::to_string(timeout_.count()) + " s for the optimizer of " +
             self.ToString() + " to end " + what + " (HIPRESS_TIMEOUT changes this)";
    }
    std::vector<NodeId> late = wait.culprits;
    if (wait.unpushed) {
      late = {self};
    } else if (late.empty()) {
      if (now - progress.since <= timeout_ + kReportTime) continue;
      late = wait.peers;
    }
    return "waited " + std::to_string(timeout_.count()) + " s for " + NamesOf(late) +
           " to push " + what + " (HIPRESS_TIMEOUT changes this)";
  }
  return "";
}

}  // namespace hipress
