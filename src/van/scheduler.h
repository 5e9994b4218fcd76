/*!
 * \file scheduler.h
 * \brief The scheduler's records: registered nodes, their ranks, and nodes that wait at barriers.
 *
 * Pure bookkeeping without threads or waits: its owner holds a lock around every call.
 */
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/json.h"
#include "van/roster.h"

namespace hipress {

class SchedulerState {
 public:
  struct Hooks {
    std::function<void(NodeId to, Message message)> send;
    /// The node so far called `from` is `to` from now on.
    std::function<void(NodeId from, NodeId to)> rename;
    std::function<void(NodeId node, const std::string& what)> on_death;
    std::function<void(NodeId node)> on_leave;
  };
  enum class Phase { kRegistering, kConnecting, kRunning, kFailed };

  SchedulerState(const JobOptions& options, Hooks hooks);

  /// These throw ProtocolError when the message makes no sense.
  void OnRegister(NodeId from, const Message& message);
  void OnBarrier(NodeId from, const Message& message);
  /// A failure report about another node. \return whether that other is not known to be gone
  /// \throw ProtocolError
  bool IsNewFailure(NodeId from, const Message& message) const;
  void OnDown(NodeId peer, bool graceful, const std::string& reason);
  /// Reports the death to all nodes that are left; `what` is a full sentence.
  void Die(NodeId node, const std::string& what);

  /// Ends the start: all waiting nodes receive `why`.
  void GiveUp(const std::string& why);
  /// Nodes that the start still waits for: "2 of 4 workers and 1 of 2 servers".
  std::string Missing() const;

  /// Adds the missing nodes at the start and at barriers to a JSON object.
  void Describe(JsonWriter* json) const;

  Phase phase() const { return phase_; }
  const std::string& failure() const { return failure_; }
  /// Members of the job that have neither died nor left.
  std::set<NodeId> Living() const;
  bool Knows(NodeId node) const { return addresses_.count(node) != 0; }
  /// Whether a node is a member of the job that has neither died nor left.
  bool Lives(NodeId node) const {
    return Knows(node) && dead_.count(node) == 0 && left_.count(node) == 0;
  }

 private:
  struct Applicant {
    NodeId provisional;
    Registration registration;
  };
  struct Barrier {
    std::set<NodeId> arrived;
    uint64_t completed = 0;
  };

  /// The reason why this application cannot be granted; empty if it can.
  std::string Objection(const Registration& registration) const;
  int Count(Role role) const;
  int Wanted(Role role) const;
  void Form();
  std::vector<NodeId> Participants(uint64_t kind) const;
  void CheckBarrier(uint64_t kind);
  std::string NotArrived(uint64_t kind) const;
  std::string Describe(NodeId node) const;

  const JobOptions& options_;
  const Hooks hooks_;
  Phase phase_ = Phase::kRegistering;
  std::string failure_;
  std::vector<Applicant> applicants_;       ///< in the order of arrival
  std::map<NodeId, std::string> addresses_; ///< of the job's members, once it is formed
  std::set<NodeId> dead_, left_;
  std::set<NodeId> impatient_;  ///< applicants that timed out and have requested the missing nodes
  Barrier barriers_[kBarrierKinds];
};

}  // namespace hipress
