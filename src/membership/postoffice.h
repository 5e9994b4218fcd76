/*!
 * \file postoffice.h
 * \brief Membership: who is in the job, at which address, with which rank, and who has died.
 *
 * One scheduler, S servers and N workers. Each node registers with the scheduler. When all are
 * registered, the scheduler sends the roster to all nodes, and workers connect to all servers.
 * Workers that exchange data with each other (for example in rings) connect when they need to.
 */
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/blocking_calls.h"
#include "membership/scheduler.h"
#include "membership/timeline_exchange.h"
#include "transport/van.h"

namespace hipress {

/// The job as the DMLC_* environment describes it (names of MXNet and ps-lite).
struct JobOptions {
  Role role = Role::kWorker;      ///< DMLC_ROLE
  std::string root_uri;           ///< DMLC_PS_ROOT_URI: the scheduler's host
  int root_port = 0;              ///< DMLC_PS_ROOT_PORT
  int num_workers = 0;            ///< DMLC_NUM_WORKER
  int num_servers = 0;            ///< DMLC_NUM_SERVER
  /// DMLC_WORKER_ID / DMLC_SERVER_ID: the rank this node wants, -1 if it does not care. Wanting one
  /// makes ranks, and so results, repeatable.
  int wanted_rank = -1;
  std::string node_host;          ///< DMLC_NODE_HOST: address to listen on; empty: derive it
  std::chrono::seconds start_timeout{120};  ///< for all nodes to appear (HIPRESS_START_TIMEOUT)
  /// For any later wait for other nodes (HIPRESS_TIMEOUT)
  std::chrono::seconds wait_timeout{600};
  /// For sentences about wait_timeout: how users change it; empty if a front end does.
  std::string timeout_hint;
  /// Events that each thread remembers (HIPRESS_FLIGHT_RECORDER); 0: none.
  size_t flight_entries = 1024;
  int debug_signal = 0;  ///< on which it is dumped (HIPRESS_DEBUG_SIGNAL); 0: none
  /// File that a scheduler writes (HIPRESS_TIMELINE); that a worker of a view writes which fails.
  std::string timeline;
  std::string ranks;  ///< what users call workers 0, 1, ...: "1,3" (HIPRESS_RANKS); empty: the same
  std::string job;  ///< a name that no other job has (HIPRESS_JOB), for its timelines; may be empty
  /// Of an elastic job, for which this one is (HIPRESS_VIEW): deaths are no surprise; 0: of none.
  int view = 0;
  /// Of the executor (HIPRESS_NUM_THREADS); 0: as many as the cores, at most 4.
  int num_threads = 0;
  /// Secret: HIPRESS_SECRET; interface: DMLC_INTERFACE; tls: HIPRESS_TLS.
  VanOptions van;

  /// Called by a scheduler when it listens, with its "host:port", before it waits for other nodes.
  std::function<void(const std::string& address)> on_listen;

  using Values = std::map<std::string, std::string>;
  /// Reads the environment; `given` goes before it. A scheduler's port may be 0: a free one.
  /// \throw Error that names the variable that is missing or wrong
  static JobOptions From(const Values& given);
};

/// Upcalls in addition to the van's, on the van's thread.
class PostofficeReceiver {
 public:
  virtual ~PostofficeReceiver() = default;
  virtual Buffer OnHeader(NodeId from, const MessageHeader& header) = 0;
  virtual void OnMessage(NodeId from, Message message) = 0;
  /// A node left normally (workers do when training has ended).
  virtual void OnLeave(NodeId peer) {}
  /// A node is dead. Exactly once per node; known by our own connection or a failure report,
  /// whichever came first. `what`: "worker 1 (10.0.0.2:4711) died: it closed ...".
  virtual void OnDeath(NodeId peer, const std::string& what) = 0;
};

/// Public methods may be called from any thread.
class Postoffice final : private VanReceiver {
 public:
  /// `van` null: the TCP van from the options.
  explicit Postoffice(JobOptions options, std::shared_ptr<Van> van = nullptr);
  ~Postoffice() override;

  /// Joins the job; blocks until all nodes are present. The rank is known afterwards.
  /// \throw Error with the missing nodes ("waited 120 s for 2 of 4 workers ...")
  void Start(PostofficeReceiver* receiver);
  /// Leaves normally. Idempotent.
  void Stop() { Leave(true); }
  /// Leaves without goodbye, so that other nodes see a failure (the process ends with an error).
  void Abort() { Leave(false); }

  NodeId self() const { return NodeId::Unpack(self_); }
  int num_workers() const { return options_.num_workers; }
  int num_servers() const { return options_.num_servers; }
  const JobOptions& options() const { return options_; }
  /// Bytes of a message's payload that other nodes accept.
  uint64_t max_payload_bytes() const { return options_.van.max_payload_bytes; }

  /// Blocks until all workers (and servers, if with_servers) have called it equally often.
  /// \throw Error with the dead node, or, after the timeout, the missing ones.
  void Barrier(bool with_servers, std::chrono::seconds timeout);

  /// Connects to another worker, if it is not connected yet; blocks. Of two workers the one with
  /// the higher rank does so.
  /// \throw Error with the node that could not be reached, or has died meanwhile
  void Link(NodeId peer);

  void Send(NodeId to, Message message, int priority = 0, Van::SendDone done = nullptr);

  /// Nodes known to be dead.
  std::vector<NodeId> Dead() const;
  /// Nodes that were connected to this one and have left normally. Servers and the scheduler know
  /// of all workers.
  std::vector<NodeId> Left() const;
  /// Blocks until every worker has left normally or a node has died; for servers and the scheduler.
  /// \return empty if all left normally, otherwise the sentence about the first death.
  std::string WaitForEnd();
  const VanCounters& counters() const { return van_->counters(); }
  /// Adds its waits and its knowledge of other nodes to a JSON object (base/debug_dumps.h).
  void Describe(JsonWriter* json);
  BlockingCalls& calls() { return calls_; }
  /// "worker 0", or "a worker" while it has no rank.
  std::string Name() const;
  /// Its number for timeline::Record.
  uint8_t timeline_node() const { return timeline_.node(); }

 private:
  void Leave(bool goodbye);

  // VanReceiver
  Buffer OnHeader(NodeId from, const MessageHeader& header) override;
  void OnMessage(NodeId from, Message message) override;
  void OnUp(NodeId peer) override;
  void OnDown(NodeId peer, bool graceful, const std::string& reason) override;
  void OnTick() override;

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

  // Start
  void StartScheduler(SteadyTime deadline);
  void StartNode(SteadyTime deadline);
  void ConnectInTries(NodeId peer, const std::string& address, SteadyTime deadline);
  void ThrowIfStartFailed();
  template <typename Predicate>
  void AwaitStart(std::unique_lock<std::mutex>* lock, SteadyTime deadline, Predicate done);
  void OnRoster(const Message& message);

  // Messages and barriers
  void SendBarrier(uint64_t kind, uint64_t number, uint8_t flags);
  void OnRelease(const Message& message);
  /// The first death, if it keeps barriers of this kind from being completed, or null.
  const std::pair<NodeId, std::string>* Obstacle(uint64_t kind) const;
  void ThrowIfDead() const;
  void ThrowIfBroken(uint64_t kind) const;
  /// Gradients and commands come only from members of a formed job.
  void CheckMember(NodeId from);
  void AtScheduler(NodeId from, const Message& message);
  void AtNode(NodeId from, const Message& message);

  // Ends of nodes
  /// "worker 1 (10.0.0.2:4711)"
  std::string Describe(NodeId node) const;
  void LostPeer(NodeId peer, bool graceful, const std::string& reason);
  /// Processes a failure report of `from` about `node`. It is accepted at once, unless this node
  /// still receives data from `node`: then its own connection decides. If `node` is still alive
  /// when a silent one would have timed out, `from` is cut off.
  void OnFailureReport(NodeId node, NodeId from, const std::string& what);
  /// Whether a death that `from` reports can be one more effect of a death that is still a
  /// suspicion: of the node that reported it and went, or after one that `from` itself reported
  /// before. The cause is judged first; this node's own connection decides about the rest.
  bool IsConsequence(NodeId node, NodeId from) const;
  /// Judges suspicions by a connection that is down. \return whether nothing else is to be done
  bool JudgeByConnection(NodeId peer, bool graceful, const std::string& reason);
  /// Drops a suspicion, accepted or not, and processes the connection that was lost meanwhile.
  void Drop(const Suspicion& suspicion);
  void JudgeSuspicions();
  /// Records a death and reports it: the scheduler to all members, another node to its peers. This
  /// process will probably end because of the death, and its peers must receive the cause before
  /// they see that, or they would name this node. (The scheduler's report may arrive later, and no
  /// other node reports the scheduler's own death.)
  void Die(NodeId node, const std::string& what);
  /// Sends a failure report, for which AwaitReports then waits.
  void SendReport(NodeId to, Message message, int priority);
  /// Waits, with mutex_ unlocked.
  void AwaitReports(std::unique_lock<std::mutex>* lock);
  /// Passes events on to the receiver, without the lock.
  void NotifyReceiver();
  bool AllWorkersLeft() const;

  const JobOptions options_;
  const std::shared_ptr<Van> van_;
  PostofficeReceiver* receiver_ = nullptr;
  std::atomic<uint32_t> self_;
  std::string root_address_;
  std::atomic<bool> member_check_{false};  ///< members_.addresses is complete and constant
  std::atomic<bool> any_dead_{false};
  /// Guards unsent_reports_: a message that cannot be sent ends while mutex_ is held.
  std::mutex reports_mutex_;
  std::condition_variable reports_sent_;
  int unsent_reports_ = 0;  ///< at the scheduler: all its messages
  std::recursive_mutex barrier_mutex_;  ///< a signal handler may enter a barrier during another one
  BlockingCalls calls_;

  mutable std::mutex mutex_;  ///< guards all below (addresses only until member_check_)
  std::condition_variable changed_;
  Members members_;
  std::unique_ptr<SchedulerState> state_;  ///< only at the scheduler
  bool started_ = false;
  bool stopping_ = false;
  bool aborted_ = false;
  std::string start_failure_;
  std::vector<Suspicion> suspicions_;
  std::set<NodeId> up_;  ///< connected to this node
  std::vector<Event> events_;
  uint64_t released_[kBarrierKinds] = {};
  /// Barriers that this node came to and has not passed; 0: none.
  uint64_t begun_[kBarrierKinds] = {};
  std::string barrier_failure_, barrier_missing_;
  TimelineExchange timeline_{[this](NodeId to, Message m) { van_->Send(to, std::move(m)); },
                             options_.timeline, {options_.view, options_.job}};
  const pid_t creator_ = getpid();
};

}  // namespace hipress
