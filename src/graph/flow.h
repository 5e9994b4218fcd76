/*!
 * \file flow.h
 * \brief Runs one key's program, iteration after iteration: the native executor of CaSync graphs.
 *
 * Every push starts an iteration: one run of the key's program. A task of an iteration runs when
 *  - its inputs exist,
 *  - the same task of the previous iteration is done, so that residuals, weights and messages keep
 *    their order,
 *  - the user's memory that it needs is known: the gradient (push) or the output (pull).
 * No thread waits for any of these. The last event that a task needs starts it.
 *
 * Several iterations and all partitions are in flight at once. A gradient is read only while its
 * iteration is in the *window*, the oldest kFlowWindow iterations that have not ended:
 *
 *     iteration     7     8     9    10  |  11    12          push 13 appends an iteration here
 *                   <-- the window ---->  <- pushed, wait ->
 *     encode      done  done  runs   .   |   .     .
 *     receive     done  here    .    .   |   .     .
 *     decode      runs    .     .    .   |   .     .          when 7 ends, 11 enters the window
 *
 * A peer may be a few iterations ahead, so a message can create an iteration before its push.
 *
 * A merge decodes and adds all its inputs in one pass over memory. Payloads of one codec go to
 * Codec::DecodeSum together, which keeps a block of the sum in registers or in the cache:
 *
 *     rank 0   [payload]--.
 *     rank 1   [payload]---+--> DecodeSum --> float32 sum, in rank order
 *     rank 2   [payload]--'
 *
 * Memory of the user is not copied where the identity codec allows: sends read the gradient in
 * place and receives write the output in place. An External guards it: the user's callback runs
 * when the last reader or writer has released it.
 */
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph/executor.h"
#include "graph/momentum.h"
#include "graph/program.h"
#include "base/flight_recorder.h"
#include "base/timeline.h"
#include "operator/contrib/codec.h"
#include "operator/contrib/state_before.h"
#include "transport/message.h"

namespace hipress {

/// Codec and state of one encode task that a front end has bound.
struct EncodeBinding {
  CodecPtr codec;
  std::shared_ptr<CodecState> state;
  /// Where the state is saved for transactions; null: it takes no part in them.
  std::shared_ptr<StateBefore> before;
  /// Factor of a sum before it is encoded: 1 / N where the result is a mean.
  float factor = 1;
  /// Element type of an uncompressed payload.
  DType wire = DType::kFloat32;
};

/// Encode tasks of a key whose codecs and states a front end chooses, saves and reshards itself. A
/// flow without a binding requests codecs from its store and keeps the states.
struct Binding {
  std::vector<EncodeBinding> encodes;  ///< by task; other tasks have no codec
  /// Factor of a sum without an encode, when it is decoded into the output.
  float output_factor = 1;
};

/// error null: done.
using Done = std::function<void(const char* error)>;
/// Calls `done`, with null if `error` is empty, and logs an exception: destructors call this.
void Notify(const Done& done, const std::string& error) noexcept;

/// Result of a task: a payload (codec set) or dense float32 (codec null).
struct Value {
  CodecPtr codec;
  DType wire = DType::kFloat32;  ///< element type of an uncompressed payload
  bool non_finite = false;       ///< a gradient of some worker has a NaN or Inf: there are no data
  Buffer data;
  /// Codec and reply policy of the contributions to a sum: they determine a server's reply.
  CodecPtr source;
  uint8_t reply_policy = 0;
};

/// Fills a result for which a worker's gradient has a NaN or Inf.
void FillWithNaN(uint8_t* out, DType dtype, size_t n);

/// Options of one iteration.
struct PushMode {
  bool plain = false;  ///< nothing is compressed
  bool keep = true;    ///< the result is kept for a later pull, not just for this iteration's
  // The following are for flows with a Binding.
  /// The gradient has a NaN or Inf: its messages have kNonFiniteFlag and no payload, all workers
  /// get a result of NaN, and no residual changes.
  bool non_finite = false;
  /// Number by which the changes of its encodes can be rolled back (StateBefore), or 0.
  uint64_t transaction = 0;
  /// Each partition of the gradient is checked for a NaN or Inf before it is used.
  bool check_finite = false;
  /// Set when a partition of this iteration has a NaN or Inf.
  std::shared_ptr<std::atomic<bool>> found_non_finite;
};

class Flow;

/// Services of a store for its flows. Called without the flow's lock held.
class FlowHost {
 public:
  virtual ~FlowHost() = default;
  virtual NodeId Self() const = 0;
  /// The codec for an encode. `sum`: the dense input's origin, for servers.
  virtual CodecPtr CodecToEncode(const Flow& flow, const Task& task, const Value& sum,
                                 bool updated) = 0;
  /// Hands a payload to the transport; `done` as Van::SendDone.
  virtual void SendValue(const Flow& flow, const Task& task, const Value& value, uint64_t iteration,
                         int priority, std::function<void(bool)> done) = 0;
  /// Hands a copy of a small payload to the transport, which may send it with others.
  /// \return false if it does not: then SendValue does
  virtual bool SendSmall(const Flow& flow, const Task& task, const Value& value,
                         uint64_t iteration, int priority) {
    return false;
  }
  /// The codec a message's payload was encoded with. \throw ProtocolError if it was not announced
  virtual CodecPtr CodecOf(NodeId from, const MessageHeader& header) = 0;
  /// True if sums go through an optimizer from now on. Called with the flow's lock held.
  virtual bool HasUpdater() const { return false; }
  /// Applies the optimizer to the shard's sum (float32, all local partitions). \return the shard's
  /// weights, which do not change while the buffer is held
  virtual Buffer Update(const Flow& flow, Buffer sum) { return sum; }
  /// A result of this node is ready for other nodes to fetch.
  virtual void OnResult(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value) {}
  /// A worker has a partition's result (codec null: float32). Without `keep` it is not requested
  /// again.
  virtual void OnOutput(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value,
                        bool keep) {}
  /// Recorder of the node's last events; null: none.
  virtual FlightRecorder* recorder() { return nullptr; }
  /// This node's number for timeline::Record.
  virtual uint8_t timeline_node() const { return 0; }
  /// The job cannot continue: an optimizer has thrown an exception, for example.
  virtual void OnFailure(const Flow& flow, const std::string& sentence) = 0;
};

class Flow : public std::enable_shared_from_this<Flow> {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// \param channel which of a key's flows this is (0, or the worker's rank in asynchronous mode)
  /// \param elements of the whole gradient
  /// \param wire element type of gradients and results
  Flow(uint64_t key, std::string name, int64_t elements, int channel,
       std::shared_ptr<const Program> program, DType wire, FlowHost* host, Executor* executor);
  ~Flow();

  uint64_t key() const { return key_; }
  const std::string& name() const { return name_; }
  int64_t elements() const { return elements_; }
  int channel() const { return channel_; }
  DType wire() const { return wire_; }
  const Program& program() const { return *program_; }
  /// A front end provides codecs and states of encodes; before the first Push.
  void Bind(Binding binding) { binding_ = std::move(binding); }
  /// Adds a momentum to gradients, which must be committed after every iteration.
  void SetMomentum(std::unique_ptr<Momentum> momentum) { momentum_ = std::move(momentum); }
  Momentum* momentum() const { return momentum_.get(); }
  /// Header of this send's kData message, without its codec.
  MessageHeader HeaderOf(const Task& task, const Value& value, uint64_t iteration) const;

  // ---- Calls of the user (workers) ----
  /// Starts an iteration with this gradient. `done` when its memory may change.
  void Push(const void* gradient, int priority, Done done, PushMode mode = {});
  /// Sets the output of the latest iteration. \return false, with `done` untouched, if there is
  /// none without an output: the caller then fetches the value
  bool Pull(void* out, Done* done);
  /// Pushes so far.
  uint64_t iteration() const;
  /// Sets the number of the first iteration, for tests with large numbers; before the first Push.
  void StartAt(uint64_t iteration);
  /// Lets every iteration end without a pull. \return true when all pushed ones have ended
  bool EndWithoutPulls();
  /// \return true when no send of an existing payload waits for the send before it
  bool HasHandedOver() const;

  // ---- Calls of the transport (on its thread) ----
  Buffer OnHeader(NodeId from, const MessageHeader& header);
  void OnMessage(NodeId from, Message message);
  /// Checks a payload of a fused message. Arrive follows, on any thread. \throw ProtocolError
  Value Expect(NodeId from, const MessageHeader& header, Buffer payload);
  void Arrive(NodeId from, const MessageHeader& header, Value value);

  // ---- States of encodes: residuals, other vectors of codecs, counts of encodes ----
  /// Saved state of one encode task.
  struct EncodeState {
    int task;
    CodecPtr codec;  ///< that wrote the state
    CodecState state;
  };
  /// Whether every encode of this and earlier iterations is done.
  bool HasEncoded(uint64_t iteration) const;
  /// The sum of squares of all vectors that SaveStates saves.
  double SquareOfStates(Deadline deadline);
  /// Waits until all that has been pushed here is encoded. \throw Error after the deadline or a
  /// failure
  void AwaitEncodes(Deadline deadline) { LockAfterEncodes(deadline); }
  /// States as bytes, after AwaitEncodes.
  std::string SaveStates(Deadline deadline);
  /// Checks bytes of SaveStates of the same flow in another job of the same shape.
  /// \throw Error with a sentence about the key
  std::vector<EncodeState> CheckStates(const std::string& bytes) const;
  /// Encodes continue from there.
  void LoadStates(std::vector<EncodeState> states, Deadline deadline);

  /// Ends every iteration with this error, now and later.
  void Fail(const std::string& sentence);
  /// The oldest iteration with something to receive, and what it waits for.
  struct Wait {
    uint64_t iteration = 0;     ///< 0: it waits for no peer
    bool unpushed = false;      ///< peers have begun it and wait for this node's push
    bool updating = false;      ///< all messages are here, and the optimizer runs
    std::vector<NodeId> peers;  ///< that have not sent all yet
    std::vector<NodeId> first_hand;  ///< of these, those that need no other node to send
  };
  Wait WaitingFor() const;
  /// The key, and what each of its iterations waits for, as a JSON object.
  void Describe(JsonWriter* json) const;

 private:
  class External;
  struct Instance;
  class Effects;
  using InstancePtr = std::shared_ptr<Instance>;

  // Under the lock. Actions that need it released are left in `effects`.
  InstancePtr NewInstance();
  /// Completes the low 32 bits of a header's iteration: the nearest to the next iteration here.
  uint64_t IterationOf(const MessageHeader& header) const;
  InstancePtr Find(uint64_t iteration) const;
  bool InWindow(const Instance& instance) const;
  void TryStart(const InstancePtr& instance, int task, Effects* effects);
  void TryStartAll(const InstancePtr& instance, Effects* effects);
  void Complete(const InstancePtr& instance, int task, Value value, Effects* effects);
  void DropOutput(const InstancePtr& instance, Effects* effects);
  void Retire(Effects* effects);
  /// Marks a message as expected no more. \return its iteration
  InstancePtr BeginReceive(int task, const MessageHeader& header);
  /// Locks when no encode of pushed gradients is waiting or running.
  std::unique_lock<std::mutex> LockAfterEncodes(Deadline deadline);

  int CheckedRecv(NodeId from, const MessageHeader& header) const;
  /// Checks the payload's size. \return its codec
  CodecPtr CheckedCodec(NodeId from, const MessageHeader& header) const;
  Value CheckedValue(const MessageHeader& header, CodecPtr codec, Buffer payload) const;

  // Without the lock, on a compute thread.
  /// Runs a ready task, or submits it. An error fails the job.
  void Begin(const InstancePtr& instance, int task);
  void SendTask(const InstancePtr& instance, int task);
  void Run(const InstancePtr& instance, int task);
  Value Encode(const Instance& instance, int task);
  Value Merge(Instance& instance, int task);
  void AddOneByOne(const Instance& instance, const Task& task, float* out) const;
  void Decode(const Instance& instance, int task);
  void UpdateShard(const InstancePtr& instance);
  void Finish(const InstancePtr& instance, int task, Value value);
  CodecPtr CodecToEncode(const Instance& instance, int task) const;
  /// Codec of all inputs of a merge; null if they are a mixture: of scales, with a gradient, or
  /// after a change of compression.
  CodecPtr CommonCodec(const Instance& instance, const Task& task) const;
  /// Whether some input of a task has a NaN or Inf, and so its result. Also adds the momentum to
  /// the gradient, if the task reads it: each partition of it is read by one task.
  bool IsNonFinite(const Instance& instance, const Task& task) const;
  /// True if handing it to a compute thread would take longer than the task, and it may run here.
  bool IsTrivial(const Instance& instance, int task) const;
  /// Elements that a task processes: those of its partition, by each input.
  int64_t WorkOf(const Task& task) const;
  bool bound() const { return !binding_.encodes.empty(); }
  /// Reports an exception of this key's work, which fails the job.
  void OnError(const std::exception& error) const;

  /// Writes to the flight recorder.
  void Note(FlightState state, const Task& task, uint64_t iteration) const;
  void NoteGradient(FlightState state, uint64_t iteration) const;
  /// Writes to the timeline.
  void Trace(int task, uint64_t iteration, size_t bytes, int64_t began) const;
  void DescribeInstance(const Instance& instance, bool pushes, JsonWriter* json) const;

  const uint64_t key_;
  const std::string name_;
  const int64_t elements_;
  const int channel_;
  const std::shared_ptr<const Program> program_;
  const DType wire_;
  FlowHost* const host_;
  Executor* const executor_;
  FlightRecorder* const recorder_;
  const uint8_t timeline_node_;
  Binding binding_;
  std::unique_ptr<Momentum> momentum_;

  mutable std::mutex mutex_;
  std::atomic<int> handing_over_{0};  ///< sends that have begun, and that the host does not have yet
  std::deque<InstancePtr> live_;        // by iteration, without gaps
  std::vector<InstancePtr> spare_;      // to be used again
  uint64_t next_iteration_ = 1;         // the next one to be created
  uint64_t pushed_ = 0;
  std::vector<uint64_t> last_done_;     // per task: the last iteration in which it is done
  std::vector<CodecState> states_;      // per task; encodes use it one at a time thanks to last_done_
  std::vector<CodecPtr> state_owners_;  // the codec that wrote states_[task]
  std::string failure_;
};

}  // namespace hipress
