/*!
 * \file postoffice.h
 * \brief Membership: who is in the job, at which address, with which rank, and who has died.
 *
 * One scheduler, S servers and N workers. Each node registers with the scheduler. When all are registered, the
 * scheduler sends the roster to all nodes, and workers connect to all servers. Workers that exchange data with
 * each other (for example in rings) connect when they need to: Link.
 */
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/blocking_calls.h"
#include "van/van.h"

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
  std::chrono::seconds wait_timeout{600};   ///< for any later wait for other nodes (HIPRESS_TIMEOUT)
  std::string timeout_hint;  ///< for sentences about wait_timeout: how users change it; empty if a front end does
  size_t flight_entries = 1024;  ///< events that each thread remembers (HIPRESS_FLIGHT_RECORDER); 0: none
  int debug_signal = 0;  ///< on which it is dumped (HIPRESS_DEBUG_SIGNAL); 0: none
  /// File that a scheduler writes (HIPRESS_TIMELINE); that a worker of a view writes which fails.
  std::string timeline;
  std::string ranks;  ///< what users call workers 0, 1, ...: "1,3" (HIPRESS_RANKS); empty: the same
  std::string job;  ///< a name that no other job has (HIPRESS_JOB), for its timelines; may be empty
  int view = 0;  ///< of an elastic job, for which this one is (HIPRESS_VIEW): deaths are no surprise; 0: of none
  int num_threads = 0;  ///< of the executor (HIPRESS_NUM_THREADS); 0: as many as the cores, at most 4
  VanOptions van;                 ///< secret: HIPRESS_SECRET; interface: DMLC_INTERFACE; tls: HIPRESS_TLS

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
  /// whichever came first. `what` is a full sentence: "worker 1 (10.0.0.2:4711) died: it closed ...".
  virtual void OnDeath(NodeId peer, const std::string& what) = 0;
};

class Postoffice {
 public:
  /// `van` null: the TCP van from the options.
  explicit Postoffice(JobOptions options, std::unique_ptr<Van> van = nullptr);
  ~Postoffice();

  /// Joins the job; blocks until all nodes are present. The rank is known afterwards.
  /// \throw Error with the missing nodes ("waited 120 s for 2 of 4 workers and 1 of 2 servers ...").
  void Start(PostofficeReceiver* receiver);
  /// Leaves normally. Idempotent.
  void Stop();
  /// Leaves without goodbye, so that other nodes see a failure (the process ends with an error).
  void Abort();

  NodeId self() const;
  int num_workers() const;
  int num_servers() const;
  const JobOptions& options() const;
  /// Bytes of a message's payload that other nodes accept.
  uint64_t max_payload_bytes() const { return options().van.max_payload_bytes; }

  /// Blocks until every worker (and server, if with_servers) has called it the same number of times.
  /// \throw Error with the dead node, or, after the timeout, the missing ones.
  void Barrier(bool with_servers, std::chrono::seconds timeout);

  /// Connects to another worker, if it is not connected yet; blocks. Of two workers the one with the
  /// higher rank does so.
  /// \throw Error with the node that could not be reached, or has died meanwhile
  void Link(NodeId peer);

  void Send(NodeId to, Message message, int priority = 0, Van::SendDone done = nullptr);

  /// Nodes known to be dead.
  std::vector<NodeId> Dead() const;
  /// Nodes that were connected to this one and have left normally. Servers and the scheduler know of all
  /// workers.
  std::vector<NodeId> Left() const;
  /// Blocks until every worker has left normally or a node has died; for servers and the scheduler. \return
  /// empty if all left normally, otherwise the sentence about the first death.
  std::string WaitForEnd();
  const VanCounters& counters() const;
  /// Adds its waits and its knowledge of other nodes to a JSON object (common/debug_dumps.h).
  void Describe(JsonWriter* json);
  BlockingCalls& calls();
  /// "worker 0", or "a worker" while it has no rank.
  std::string Name() const;
  /// Its number for timeline::Record.
  uint8_t timeline_node() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hipress
