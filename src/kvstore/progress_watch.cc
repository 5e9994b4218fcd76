#include "kvstore/progress_watch.h"

namespace hipress {
namespace {

/// A node that waits for sums only cannot tell which summand is late. Nodes that can get this long
/// to report it.
constexpr std::chrono::seconds kReportTime{10};

}  // namespace

std::optional<Error> ProgressWatch::Check(const std::vector<std::shared_ptr<Flow>>& flows,
                                          NodeId self, const std::set<NodeId>& left) {
  const auto now = std::chrono::steady_clock::now();
  // Dropped keys are forgotten: the flow of a new key may have the same address.
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
      return Error(names_(node) + " left the job while " + what +
                       " still waits for its push: every worker must push equally often",
                   Cause::kLeft, node);
    }
    if (now - progress.since <= timeout_) continue;
    std::vector<NodeId> late = wait.first_hand;
    if (wait.updating || wait.unpushed) {
      late = {self};
    } else if (late.empty()) {
      if (now - progress.since <= timeout_ + kReportTime) continue;
      late = wait.peers;
    }
    std::string who;
    for (NodeId node : late) who += (who.empty() ? "" : ", ") + names_(node);
    return Error("waited " + std::to_string(timeout_.count()) + " s for " +
                     (wait.updating ? "the optimizer of " + who + " to end " : who + " to push ") +
                     what + hint_,
                 Cause::kTimedOut, late.front());
  }
  return std::nullopt;
}

}  // namespace hipress
