/*!
 * \file scheduler.h
 * \brief Messages by which a job forms, as text that is checked, and the scheduler's records:
 *        registered nodes, their ranks, and nodes that wait at barriers.
 */
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/json.h"
#include "van/message.h"

namespace hipress {

struct JobOptions;

/// A node's application to the scheduler.
struct Registration {
  Role role = Role::kWorker;
  int wanted_rank = -1;
  std::string address;
  int num_workers = 0;
  int num_servers = 0;

  std::string ToText() const;
  /// \throw ProtocolError
  static Registration Parse(const std::string& text);
};

/// The scheduler's answer: the node's identity, and the addresses of all nodes.
struct Roster {
  NodeId self;
  std::map<NodeId, std::string> addresses;

  std::string ToText() const;
  /// \throw ProtocolError
  static Roster Parse(const std::string& text);
};

/// Subtypes of membership messages, in header.flags.
enum MembershipFlag : uint8_t {
  kPlainFlag = 0,
  kRefusalFlag = 1,  ///< kRoster: the payload says why the job does not form for you
  kQueryFlag = 1,    ///< kBarrier: which nodes are missing? kRelease: the answer
  kFailureFlag = 2,  ///< kRelease: the barrier cannot be completed; the payload says why
};

/// Barriers by header.key.
enum BarrierKind : uint64_t { kWorkersBarrier = 0, kAllBarrier = 1, kReadyBarrier = 2 };
constexpr int kBarrierKinds = 3;
/// Name of a barrier; the first of a kind has number 1: "workers 1".
std::string NameOfBarrier(uint64_t kind, uint64_t number);

/// The largest text of a membership message.
constexpr uint64_t kMaxMembershipBytes = 8 << 20;

/// Failure report: a node is dead.
Message NodeDown(NodeId node, const std::string& what);
/// The payload, with '?' for control characters.
std::string PrintableTextIn(const Message& message);

/// "a", "a and b", "a, b and c"
std::string JoinWords(const std::vector<std::string>& words);

/// Pure bookkeeping without threads or waits: its owner holds a lock around every call.
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
