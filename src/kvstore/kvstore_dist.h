/*!
 * \file kvstore_dist.h
 * \brief A worker's key-value store: keys, pushes, pulls, commands to servers.
 *
 * Pushes and pulls are asynchronous and take the user's memory as it is; the task graph of each key
 * (casync/flow.h) does the rest. After any node's death every operation, running or later, ends with
 * one sentence that names the node.
 *
 * A key whose graph has no servers lives in the workers alone: they agree on it at worker 0, sum up
 * its initial value (all but worker 0 contribute zeros), and each holds the result (LocalValues).
 */
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "casync/executor.h"
#include "casync/flow.h"
#include "kvstore/config_table.h"
#include "kvstore/fetch_table.h"
#include "kvstore/fused.h"
#include "kvstore/gradient_compression.h"
#include "kvstore/key_states.h"
#include "kvstore/local_values.h"
#include "kvstore/pending_operations.h"
#include "kvstore/progress_watch.h"
#include "kvstore/protocol.h"
#include "kvstore/request_table.h"
#include "van/postoffice.h"

namespace hipress {

/// Traffic of a worker's store, for HipressStats. Bytes on the wire include headers.
struct StoreCounters {
  std::atomic<uint64_t> pushed_bytes{0}, pulled_bytes{0};          ///< on the wire
  std::atomic<uint64_t> pushed_raw_bytes{0}, pulled_raw_bytes{0};  ///< the same, uncompressed
};

class KVStoreDist : public PostofficeReceiver, public FlowHost {
 public:
  using Programs = std::map<NodeId, std::vector<int64_t>>;

  explicit KVStoreDist(JobOptions options);
  ~KVStoreDist() override;

  void Start();
  /// Leaves normally, or without goodbye.
  void Stop();
  void Abort();

  /// Asynchronous servers apply each push at once. Before the first Init only.
  void SetSync(bool sync);
  /// For all pushes from now on.
  void SetGradientCompression(GradientCompressionPtr compression);

  /// Collective: blocks until all workers have called it.
  /// \param data read on worker 0 only
  /// \param graph describes the key's graph: the same text on all workers
  /// \param programs of this worker, and of all servers that the graph has
  /// \throw Error, the same on all of them
  void Init(uint64_t key, const std::string& name, const void* data, int64_t n, DType dtype,
            const std::string& graph, const Programs& programs);
  /// Begins to do the same for a key without servers whose encodes are the front end's business, and that
  /// has no value before the first push. Many keys are begun, and then waited for together.
  void AddKey(uint64_t key, const std::string& name, int64_t n, DType dtype,
              const std::string& graph, const std::vector<int64_t>& program, Binding binding,
              float momentum);
  /// Blocks until all workers have added this worker's keys. If that fails, no worker has them.
  void AwaitKeys();
  /// \throw Error if there is no such key
  std::shared_ptr<Flow> KeyOf(uint64_t key) const;
  /// Drops a key that no worker pushes any more.
  void DropKey(uint64_t key);
  /// A codec of such a key: equal ones are one object, here and in what peers announce.
  CodecPtr Intern(const CodecPtr& codec) { return configs_.Intern(codec); }
  /// \throw Error at once for an unknown key, another size or dtype, or a failed job
  void Push(uint64_t key, const void* gradient, int64_t n, DType dtype, int priority, Done done);
  void Pull(uint64_t key, void* out, int64_t n, DType dtype, int priority, Done done);
  void PushPull(uint64_t key, const void* gradient, void* out, int64_t n, DType dtype,
                int priority, Done done);
  /// One key's push and pull.
  struct PushPullRequest {
    uint64_t key;
    const void* gradient;
    void* out;
    int64_t n;
    DType dtype;
    int priority;
  };
  /// Pushes and pulls several keys in one call; `done` at the end, with the first error.
  void PushPull(const std::vector<PushPullRequest>& requests, Done done);
  /// The same, of a key that has been looked up.
  struct Transfer {
    std::shared_ptr<Flow> flow;
    const void* gradient;
    void* out;
    int priority;
  };
  void PushPull(const std::vector<Transfer>& transfers, PushMode mode, Done done);
  /// Blocks for a server's answer. \throw Error with the server's sentence
  std::string Command(int server, int head, const void* body, size_t bytes);
  /// Saves the error-feedback states of these keys: on this worker (`server` -1), or on a server.
  /// \throw Error
  std::string SaveStates(int server, KeyRange range);
  /// The 2-norm of all vectors in this worker's states of these keys.
  double NormOfStates(KeyRange range) const;
  /// Loads such states in a job of the same shape: all of them, or none. \throw Error with a sentence
  void LoadStates(int server, KeyRange range, const std::string& states);
  void Barrier();
  /// Blocks until every push and pull so far has called back.
  void WaitAll() { pending_.Wait(); }
  /// Blocks until all that has been pushed is encoded. \throw Error if the job fails, or it takes too long
  void AwaitEncodes();
  /// Operations that WaitAll waits for.
  PendingOperations& pending() { return pending_; }
  /// The sentence with which every operation fails from now on; empty while none does.
  std::string Failure() const;
  /// The error of that sentence, or null. Callable under any lock.
  ErrorPtr JobError() const { return std::atomic_load(&failure_); }
  /// The error of an operation that has ended with this sentence.
  Error ErrorOf(const std::string& sentence) const;
  /// Ends every operation, running or later, with this sentence, here and on the workers that this
  /// one is linked with. The first one counts.
  void FailJob(const std::string& sentence, FailureCause cause = kFailed);
  Executor& executor() { return executor_; }

  const Postoffice& postoffice() const { return postoffice_; }
  Postoffice& postoffice() { return postoffice_; }
  const StoreCounters& counters() const { return counters_; }
  /// Adds what the node does and waits for to a JSON object (common/debug_dumps.h).
  void Describe(JsonWriter* json);

 private:
  // PostofficeReceiver
  Buffer OnHeader(NodeId from, const MessageHeader& header) override;
  void OnMessage(NodeId from, Message message) override;
  void OnDeath(NodeId peer, const std::string& what) override;
  void OnLeave(NodeId peer) override;
  // FlowHost
  NodeId Self() const override { return postoffice_.self(); }
  FlightRecorder* recorder() override { return &recorder_; }
  uint8_t timeline_node() const override { return postoffice_.timeline_node(); }
  CodecPtr CodecToEncode(const Flow& flow, const Task& task, const Value& sum,
                         bool updated) override;
  void SendValue(const Flow& flow, const Task& task, const Value& value, uint64_t iteration,
                 int priority, std::function<void(bool)> done) override;
  bool SendSmall(const Flow& flow, const Task& task, const Value& value, uint64_t iteration,
                 int priority) override;
  CodecPtr CodecOf(NodeId from, const MessageHeader& header) override;
  void OnOutput(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value,
                bool keep) override;
  void OnFailure(const Flow& flow, const std::string& sentence) override;

  std::shared_ptr<Flow> Checked(uint64_t key, int64_t n, DType dtype, const char* verb) const;
  MessageHeader DataHeader(const Flow& flow, const Task& task, const Value& value,
                           uint64_t iteration);
  std::shared_ptr<Flow> FindFlow(uint64_t key) const;
  /// Servers that hold a part of the key's value; empty if workers do without any.
  std::vector<NodeId> Owners(const Flow& flow) const;
  FlowsByKey Flows(KeyRange range) const;
  size_t PieceBytes() const { return std::min<uint64_t>(kTextPieceBytes, postoffice_.max_payload_bytes()); }
  std::string Request(NodeId to, int head, std::string body);
  /// Fails the job: the other workers' requests for the key already count this worker's, so it cannot ask again.
  void FailInterruptedInit(const Flow& flow);
  Message InitMessage(const Flow& flow, uint64_t digest, uint32_t request,
                      const std::vector<int64_t>& program) const;
  void InitOnServers(const Flow& flow, const std::vector<NodeId>& owners, const void* data,
                     const Programs& programs, uint64_t digest);
  void SendInitialValue(NodeId to, const Flow& flow, const Program& program, const void* data);
  void InitAmongWorkers(const std::shared_ptr<Flow>& flow, const void* data, uint64_t digest);
  /// Asks whether all workers have begun this key, and agree on it.
  std::future<Reply> AskWorkers(const Flow& flow, uint64_t digest);
  void AwaitWorkers(const Flow& flow, std::future<Reply>* reply);
  /// Connects to these workers, and watches from now on what becomes of keys without servers.
  void LinkPeers(std::set<NodeId> peers);
  void OnInitRequest(InitRequest request, uint64_t key);
  void AnswerInit(const std::vector<InitRequest>& requests, const std::string& error);
  void Push(const std::shared_ptr<Flow>& flow, const void* gradient, int priority, Done done,
            PushMode mode);
  /// Like the Push above, it leaves it to its callers to count it as pending.
  void Pull(const std::shared_ptr<Flow>& flow, void* out, int priority, Done done);
  /// \return whether this was the first failure
  bool FailAll(const Error& error);
  void FailJob(const Error& error, FailureCause cause);
  std::string NodeName(NodeId node) const { return postoffice_.options().van.names(node); }
  void ThrowIfFailed() const;
  void KeepForDebugging(const std::vector<std::shared_ptr<Flow>>& flows);
  void Watch();
  void StopWatch();
  void Drain();

  Postoffice postoffice_;
  FlightRecorder recorder_;
  ConfigTable configs_;
  StoreCounters counters_;
  PendingOperations pending_;
  RequestTable requests_;
  FetchTable fetches_;
  Outbox outbox_;
  LocalValues locals_;
  bool sync_ = true;
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  GradientCompressionPtr compression_;
  std::unordered_map<uint64_t, std::shared_ptr<Flow>> flows_;
  std::unordered_map<uint64_t, std::vector<NodeId>> owners_;  // servers that hold parts of a key
  std::vector<std::pair<std::shared_ptr<Flow>, std::future<Reply>>> added_;  // not waited for yet
  ErrorPtr failure_;  // set once, atomically
  std::string keys_at_failure_;  ///< what they waited for then, as JSON
  std::unordered_map<uint64_t, std::vector<InitRequest>> init_requests_;  // on worker 0
  std::set<NodeId> linked_;  // workers that this one talks to: gradients, or worker 0 about keys
  std::set<NodeId> left_;    // workers that have left normally
  int unsent_reports_ = 0;   // of a failure
  std::condition_variable reports_sent_;
  /// Time when this worker or a server reported a failure, of which other nodes may not yet know.
  std::chrono::steady_clock::time_point job_failed_at_;

  std::thread watch_;  // runs once there are keys without servers
  std::condition_variable watch_stops_;
  bool watch_stopped_ = false;

  Executor executor_;  // last: its threads end before what they use
};

}  // namespace hipress
