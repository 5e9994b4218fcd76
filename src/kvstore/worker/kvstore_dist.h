/*!
 * \file kvstore_dist.h
 * \brief A worker's key-value store: keys, pushes, pulls, commands to servers.
 *
 * Pushes and pulls are asynchronous and use the user's memory in place; the task graph of each key
 * (graph/flow.h) does the rest. After any node's death every operation, running or later, ends
 * with one sentence that names the node.
 *
 * A key whose graph has no servers exists on the workers alone: they agree on it at worker 0, sum
 * up its initial value (all but worker 0 contribute zeros), and each holds the result
 * (LocalValues).
 */
#pragma once

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
#include <utility>
#include <vector>

#include "base/blocking_calls.h"
#include "kvstore/gradient_compression.h"
#include "kvstore/key_states.h"
#include "kvstore/worker/pulls.h"
#include "kvstore/store_host.h"

namespace hipress {

/// Traffic of a worker's store, for HipressStats. Bytes on the wire include headers.
struct StoreCounters {
  std::atomic<uint64_t> pushed_bytes{0}, pulled_bytes{0};          ///< on the wire
  std::atomic<uint64_t> pushed_raw_bytes{0}, pulled_raw_bytes{0};  ///< the same, uncompressed
};

/// Counts asynchronous operations that have not called back yet.
class PendingOperations {
 public:
  /// Counts one operation until the callback that this returns, which calls `done`, has run.
  Done Count(Done done);
  /// Blocks until none is pending. \throw interrupt::Interrupted
  void Wait();
  /// Operations that are pending now.
  int64_t count();

 private:
  void End();

  std::mutex mutex_;
  std::condition_variable none_;
  int64_t count_ = 0;
};

/// Text of the answer to a request, or an Error.
using Reply = std::string;

/// Matches answers of other nodes to the requests that threads of this node block for.
class RequestTable {
 public:
  /// \param calls where waits are listed for debugging
  /// \param timeout of a wait
  /// \param hint how users change it, for sentences
  RequestTable(BlockingCalls* calls, std::chrono::seconds timeout, std::string hint = "")
      : calls_(calls), timeout_(timeout), hint_(std::move(hint)) {}

  /// \return the id that the answer has in MessageHeader::iteration. \throw Error after Fail
  uint32_t Add(std::future<Reply>* reply);
  /// Blocks for an answer.
  /// \param kind, about of the call, see BlockingCalls
  /// \param what "server 0 to answer a command": the object of "waited 600 s for"
  /// \throw Error if the answer is one, or the wait times out
  std::string Await(std::future<Reply>* reply, const char* kind, const std::string& about,
                    const std::string& what);
  /// An answer (kReply), or a piece of one; without effect if no thread waits for it.
  void OnReply(NodeId from, const Message& message);
  /// Answers every request, now and later, with this error.
  void Fail(const Error& error);

 private:
  BlockingCalls* const calls_;
  const std::chrono::seconds timeout_;
  const std::string hint_;
  std::mutex mutex_;
  std::unordered_map<uint32_t, std::promise<Reply>> requests_;
  uint32_t next_ = 1;
  TextPieces pieces_;
  ErrorPtr failure_;
};

class KVStoreDist : public PostofficeReceiver, public StoreHost {
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
  /// Begins to do the same for a key without servers whose encodes a front end binds, and that has
  /// no value before the first push. AwaitKeys waits for any number of keys.
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
  CodecPtr Intern(const CodecPtr& codec) { return context_.configs.Intern(codec); }
  /// The flow of a key that the user can `verb` with these elements.
  /// \throw Error for an unknown key, another size or dtype, or a failed job
  std::shared_ptr<Flow> Checked(uint64_t key, int64_t n, DType dtype, const char* verb) const;
  void Push(const std::shared_ptr<Flow>& flow, const void* gradient, int priority, Done done);
  void Pull(const std::shared_ptr<Flow>& flow, void* out, int priority, Done done);
  /// A push and a pull of one key.
  struct Transfer {
    std::shared_ptr<Flow> flow;
    const void* gradient;
    void* out;
    int priority;
  };
  /// Pushes and pulls keys in one call; `done` at the end, with the first error.
  void PushPull(const std::vector<Transfer>& transfers, PushMode mode, Done done);
  /// Blocks for a server's answer. \throw Error with the server's sentence
  std::string Command(int server, int head, std::string body);
  /// Saves the error-feedback states of these keys: on this worker (`server` -1), or on a server.
  /// \throw Error
  std::string SaveStates(int server, KeyRange range);
  /// The 2-norm of all vectors in this worker's states of these keys.
  double NormOfStates(KeyRange range) const;
  /// Loads such states in a job of the same shape: all, or none. \throw Error with a sentence
  void LoadStates(int server, KeyRange range, const std::string& states);
  void Barrier();
  /// Blocks until every push and pull so far has called back.
  void WaitAll() { pending_.Wait(); }
  /// Blocks until all that has been pushed is encoded. \throw Error after a failure or the timeout
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
  void FailJob(const Error& error);
  void FailJob(const std::string& sentence) {
    FailJob(Error(sentence, Cause::kReported, postoffice_.self()));
  }
  Executor& executor() { return executor_; }

  Postoffice& postoffice() { return postoffice_; }
  const StoreCounters& counters() const { return counters_; }
  /// Adds what the node does and waits for to a JSON object (base/debug_dumps.h).
  void Describe(JsonWriter* json);

 private:
  // PostofficeReceiver
  Buffer OnHeader(NodeId from, const MessageHeader& header) override;
  void OnMessage(NodeId from, Message message) override;
  void OnDeath(NodeId peer, const std::string& what) override;
  void OnLeave(NodeId peer) override;
  // FlowHost
  CodecPtr CodecToEncode(const Flow& flow, const Task& task, const Value& sum,
                         bool updated) override;
  uint8_t reply_policy() const override;
  void OnOutput(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value,
                bool keep) override;

  std::shared_ptr<Flow> FindFlow(uint64_t key) const;
  /// The key's flow, of a message. \throw ProtocolError
  std::shared_ptr<Flow> FlowOf(const MessageHeader& header) const;
  /// Servers that hold a part of the key's value; empty if the workers hold it.
  std::vector<NodeId> Owners(const Flow& flow) const;
  FlowsByKey Flows(KeyRange range) const;
  // Without an entry in pending_.
  void StartPush(const Transfer& transfer, Done done, PushMode mode);
  void StartPull(const Transfer& transfer, Done done);

  std::string Request(NodeId to, int head, std::string body);
  std::shared_ptr<Flow> NewFlow(uint64_t key, const std::string& name, int64_t n, DType dtype,
                                const std::vector<int64_t>& program);
  /// Adds a key while `initialize` runs with it. If that throws an exception, the key is dropped,
  /// or, after a signal, the job fails: other workers' requests for the key already count this
  /// worker's.
  template <typename Function>
  void Initialize(const std::shared_ptr<Flow>& flow, const std::vector<NodeId>& owners,
                  const Function& initialize);
  void FailInterruptedInit(const Flow& flow);
  Message InitMessage(const Flow& flow, uint64_t digest, uint32_t request,
                      const std::vector<int64_t>& program) const;
  void InitOnServers(const Flow& flow, const std::vector<NodeId>& owners, const void* data,
                     const Programs& programs, uint64_t digest);
  void SendInitialValue(NodeId to, const Flow& flow, const Program& program, const void* data);
  void InitAmongWorkers(const std::shared_ptr<Flow>& flow, const void* data, uint64_t digest);
  /// Announces a key to worker 0, which answers when all workers have, and agree.
  std::future<Reply> AnnounceKey(const Flow& flow, uint64_t digest);
  void AwaitWorkers(const Flow& flow, std::future<Reply>* reply);
  /// Connects to these workers, and watches the progress of keys without servers from now on.
  void LinkPeers(std::set<NodeId> peers);
  void OnInitRequest(InitRequest request, uint64_t key);
  void AnswerInit(const std::vector<InitRequest>& requests, const std::string& error);

  const NodeNames& names() const { return postoffice_.options().van.names; }
  Flow::Deadline WaitDeadline() const {
    return std::chrono::steady_clock::now() + postoffice_.options().wait_timeout;
  }
  /// \return whether this was the first failure
  bool FailAll(const Error& error);
  void ThrowIfFailed() const;
  void Watch();
  void StopWatch();
  /// Before this worker leaves: sends all that other nodes need of its pushes.
  void FinishPushes();

  Postoffice postoffice_;
  FlightRecorder recorder_;
  StoreContext context_;
  StoreCounters counters_;
  PendingOperations pending_;
  RequestTable requests_;
  FetchTable fetches_;
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
  std::set<NodeId> linked_;  // workers that this one exchanges gradients with, and worker 0
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
