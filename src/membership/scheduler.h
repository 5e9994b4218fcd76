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
#include <utility>
#include <vector>

#include "base/json.h"
#include "transport/message.h"

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

/// Members of a job, as far as a node knows.
struct Members {
  std::map<NodeId, std::string> addresses;  ///< of workers and servers, once the job is formed
  std::vector<std::pair<NodeId, std::string>> deaths;  ///< oldest first, with sentences
  std::set<NodeId> left;  ///< normally

  bool IsDead(NodeId node) const;
  /// Whether `node` is a member, or the scheduler, and has neither died nor left.
  bool Lives(NodeId node) const;
};

/// The scheduler's part in starting a job and in its barriers.
///
/// Pure bookkeeping without threads or waits: its owner holds a lock around every call.
class SchedulerState {
 public:
  enum class Phase { kRegistering, kConnecting, kRunning, kFailed };

  /// \param send sends a message
  /// \param rename gives a connected node its name in the job
  SchedulerState(const JobOptions& options, Members* members,
                 std::function<void(NodeId to, Message message)> send,
                 std::function<void(NodeId from, NodeId to)> rename)
      : options_(options), members_(*members), send_(std::move(send)), rename_(std::move(rename)) {}

  /// These throw ProtocolError when the message makes no sense.
  void OnRegister(NodeId from, const Message& message);
  void OnBarrier(NodeId from, const Message& message);
  /// Processes the loss of a node that waits for the job to form.
  void OnApplicantDown(NodeId peer, const std::string& reason);
  /// Reports a death to all members that are left; `what` is a full sentence.
  void OnDeath(NodeId node, const std::string& what);
  /// Fails barriers to which a node that has left will not come.
  void OnLeave();

  /// Ends the start: all waiting nodes receive `why`.
  void GiveUp(const std::string& why);
  /// Nodes that the start still waits for: "2 of 4 workers and 1 of 2 servers".
  std::string Missing() const;
  /// Adds the missing nodes at the start and at barriers to a JSON object.
  void Describe(JsonWriter* json) const;

  Phase phase() const { return phase_; }
  const std::string& failure() const { return failure_; }

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
  std::vector<NodeId> NotArrived(uint64_t kind) const;
  /// Names of the nodes that a barrier waits for, 20 at most.
  std::string NamesOfMissing(uint64_t kind) const;

  const JobOptions& options_;
  Members& members_;
  const std::function<void(NodeId, Message)> send_;
  const std::function<void(NodeId, NodeId)> rename_;
  Phase phase_ = Phase::kRegistering;
  std::string failure_;
  std::vector<Applicant> applicants_;  ///< in the order of arrival
  std::set<NodeId> impatient_;  ///< applicants that timed out and have requested the missing nodes
  Barrier barriers_[kBarrierKinds];
};

}  // namespace hipress
