/*!
 * \file postoffice-inl.h
 * \brief State of a postoffice; shared by postoffice.cc (barriers, links, messages),
 *        postoffice_start.cc (how a job forms) and postoffice_end.cc (leaves and deaths).
 */
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "van/postoffice.h"
#include "van/roster.h"
#include "van/scheduler.h"
#include "van/socket.h"
#include "van/timeline_exchange.h"

namespace hipress {

class Postoffice::Impl final : public VanReceiver {
 public:
  Impl(JobOptions options, std::unique_ptr<Van> van)
      : options_(std::move(options)),
        van_(van ? std::move(van) : MakeTcpVan(options_.van)),
        self_(NodeId{options_.role, kUnnamedRank}.Packed()) {
    if (options_.role != Role::kScheduler) return;
    self_ = Scheduler().Packed();
    state_ = std::make_unique<SchedulerState>(
        options_, SchedulerState::Hooks{
                      [this](NodeId to, Message m) { SendReport(to, std::move(m), 0); },
                      [this](NodeId from, NodeId to) { van_->RenamePeer(from, to); },
                      [this](NodeId node, const std::string& what) { Die(node, what); },
                      [this](NodeId node) { left_.insert(node); events_.push_back({node, ""}); }});
  }

  void Start(PostofficeReceiver* receiver);
  void Leave(bool goodbye);
  void Barrier(uint64_t kind, std::chrono::seconds timeout);
  void Link(NodeId peer);
  void Send(NodeId to, Message message, int priority, Van::SendDone done);
  std::string WaitForEnd();
  std::vector<NodeId> Dead();
  std::vector<NodeId> Left();
  NodeId self() const { return NodeId::Unpack(self_); }
  const JobOptions& options() const { return options_; }
  Van& van() { return *van_; }
  void Describe(JsonWriter* json);  // postoffice_debug.cc
  BlockingCalls& calls() { return calls_; }
  std::string Name() const;
  uint8_t timeline_node() const { return timeline_.node(); }

  // VanReceiver
  Buffer OnHeader(NodeId from, const MessageHeader& header) override;
  void OnMessage(NodeId from, Message message) override;
  void OnUp(NodeId peer) override;
  void OnDown(NodeId peer, bool graceful, const std::string& reason) override;
  void OnTick() override;

 private:
  /// A peer's failure report about a node from which this node still receives data.
  struct Suspicion {
    NodeId node;
    NodeId from;
    std::string what;
    SteadyTime since;
    std::string lost;  ///< why the connection with `from` is down meanwhile; empty while it is not
  };

  /// A leave (empty text) or a death that the receiver has not been notified of yet.
  struct Event {
    NodeId node;
    std::string death;
  };

  // postoffice_start.cc
  void StartScheduler(SteadyTime deadline);
  void ConnectInTries(NodeId peer, const std::string& address, SteadyTime deadline);
  void StartNode(SteadyTime deadline);
  void ThrowIfStartFailed();
  template <typename Predicate>
  void AwaitStart(std::unique_lock<std::mutex>* lock, SteadyTime deadline, Predicate done);
  void OnRoster(const Message& message);

  // postoffice.cc
  void SendBarrier(uint64_t kind, uint64_t number, uint8_t flags);
  void OnRelease(const Message& message);
  /// The death because of which a barrier of this kind cannot be completed; empty if there is none.
  /// The first death, if it keeps barriers of this kind from being completed, or null.
  const std::pair<NodeId, std::string>* Obstacle(uint64_t kind) const;
  void ThrowIfDead() const;
  void ThrowIfBroken(uint64_t kind) const;
  /// Gradients and commands come only from members of a formed job.
  void CheckMember(NodeId from);
  void AtScheduler(NodeId from, const Message& message);
  void AtNode(NodeId from, const Message& message);

  // postoffice_end.cc
  std::string Describe(NodeId node) const;
  void LostPeer(NodeId peer, bool graceful, const std::string& reason);
  /// Processes a failure report of `from` about `node`. It is accepted at once, unless this node still receives
  /// data from `node`: then its own connection decides. If `node` is still alive when a silent one would have
  /// timed out, `from` is cut off.
  void OnFailureReport(NodeId node, NodeId from, const std::string& what);
  /// Whether a death that `from` reports can be one more effect of a death that is still a suspicion: of
  /// the node that reported it and went, or after one that `from` itself reported before. The cause is
  /// judged first; this node's own connection decides about the rest.
  bool IsConsequence(NodeId node, NodeId from) const;
  /// A connection is down: judges suspicions by that. \return whether nothing else is to be done about it
  bool Settle(NodeId peer, bool graceful, const std::string& reason);
  /// Drops a suspicion, whether it was accepted or not, and checks the connection that was lost meanwhile.
  void Drop(const Suspicion& suspicion);
  void JudgeSuspicions();
  /// Enters a death into the scheduler's books, or a node's own.
  void Lose(NodeId node, const std::string& what);
  void Die(NodeId node, const std::string& what);
  /// This process will probably end because of the death. Its peers, and the scheduler, must receive the cause
  /// before they see that, or they would name this node. (The scheduler's report may arrive later, and no other
  /// node reports the scheduler's own death.)
  void NotifyPeers(NodeId node, const std::string& what);
  /// Sends a failure report, for which AwaitReports then waits.
  void SendReport(NodeId to, Message message, int priority);
  /// Waits, with mutex_ unlocked.
  void AwaitReports(std::unique_lock<std::mutex>* lock);
  bool IsDead(NodeId node) const;
  /// Whether a node is a member of the job, as far as this node knows, and has neither died nor left.
  bool Lives(NodeId node) const;
  /// Passes events on to the receiver, without the lock.
  void NotifyReceiver();
  bool AllWorkersLeft() const;
  /// Servers leave, and send what they recorded, after the workers.
  void WriteTimeline(std::unique_lock<std::mutex>* lock);

  const JobOptions options_;
  const std::unique_ptr<Van> van_;
  PostofficeReceiver* receiver_ = nullptr;
  std::atomic<uint32_t> self_;
  std::string root_address_;
  std::atomic<bool> member_check_{false};  ///< roster_ is complete and constant
  std::atomic<bool> any_dead_{false};
  /// Guards unsent_reports_: a message that cannot be sent ends while mutex_ is held.
  std::mutex reports_mutex_;
  std::condition_variable reports_sent_;
  int unsent_reports_ = 0;  ///< at the scheduler: all its messages
  std::recursive_mutex barrier_mutex_;  ///< a signal handler may enter a barrier during another one
  BlockingCalls calls_;

  mutable std::mutex mutex_;  ///< guards all below (roster_ only until member_check_)
  std::condition_variable changed_;
  Roster roster_;
  std::unique_ptr<SchedulerState> state_;  ///< only at the scheduler
  bool started_ = false;
  bool stopping_ = false;
  bool aborted_ = false;
  std::string start_failure_;
  std::vector<std::pair<NodeId, std::string>> deaths_;
  std::vector<Suspicion> suspicions_;
  std::set<NodeId> up_;  ///< connected to this node
  std::set<NodeId> left_;
  std::vector<Event> events_;
  uint64_t released_[kBarrierKinds] = {};
  uint64_t begun_[kBarrierKinds] = {};  ///< the barrier that this node came to and has not passed; 0: none
  std::string barrier_failure_, barrier_missing_;
  TimelineExchange timeline_{[this](NodeId to, Message m) { van_->Send(to, std::move(m)); },
                             options_.timeline, {options_.view, options_.job}};
  const pid_t creator_ = getpid();

  friend class Postoffice;
};

}  // namespace hipress
