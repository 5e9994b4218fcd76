/*!
 * \file flow.h
 * \brief Runs one key's program, iteration after iteration: the native executor of CaSync graphs.
 *
 * Every push starts an instance of the program. A task of an instance runs when its inputs are
 * there, the same task of the previous instance is done (so residuals, weights and sends keep their
 * order), and what it needs of the user is there: the gradient (push) or the output (pull). Several
 * iterations and all partitions are in flight at once; nothing waits in a thread.
 *
 * Memory of the user is never copied where the identity codec allows: sends read the gradient in
 * place and receives write the output in place. An External guards it: the user's callback runs when
 * the last reader or writer, wherever it is, has let go.
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

#include "casync/executor.h"
#include "casync/momentum.h"
#include "casync/binding.h"
#include "casync/program.h"
#include "common/flight_recorder.h"
#include "common/timeline.h"
#include "operator/contrib/codec.h"
#include "van/message.h"

namespace hipress {

/// error null: done.
using Done = std::function<void(const char* error)>;
/// Calls `done`, with null if `error` is empty, and logs an exception: destructors call this.
void Notify(const Done& done, const std::string& error) noexcept;

/// Result of a task: a payload (codec set) or dense float32 (codec null).
struct Value {
  CodecPtr codec;
  DType wire = DType::kFloat32;  ///< what an uncompressed payload consists of
  bool non_finite = false;       ///< a gradient of some worker has a NaN or Inf: there are no data
  Buffer data;
  /// The codec of the contributions that went into a sum, and their reply policy: how a server
  /// decides what to encode the reply with.
  CodecPtr source;
  uint8_t reply_policy = 0;
};

/// Fills a result for which a worker's gradient has a NaN or Inf.
void FillWithNaN(uint8_t* out, DType dtype, size_t n);

/// Options of one iteration.
struct PushMode {
  bool plain = false;  ///< nothing is compressed
  bool keep = true;    ///< the result is kept for a later pull, not just for this iteration's
  // What follows is for flows with a Binding.
  /// The gradient has a NaN or Inf: messages without a payload say so (kNonFiniteFlag), all workers get
  /// a result of NaN, and no residual changes.
  bool non_finite = false;
  /// Number by which the changes of its encodes can be rolled back (StateBefore), or 0.
  uint64_t transaction = 0;
  /// Each partition of the gradient is checked for a NaN or Inf before it is used.
  bool check_finite = false;
  /// Set when a partition of this iteration turns out to have a NaN or Inf.
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
  /// Applies the optimizer to the shard's sum (float32, all local partitions) and returns the shard's weights,
  /// which do not change while the buffer is held.
  virtual Buffer Update(const Flow& flow, Buffer sum) { return sum; }
  /// A result of this node is ready for other nodes to fetch.
  virtual void OnResult(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value) {}
  /// A worker has a partition's result: `value` (of codec null: float32). Without `keep`, it is not requested
  /// again.
  virtual void OnOutput(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value,
                        bool keep) {}
  /// Recorder of the node's last events; null: none.
  virtual FlightRecorder* recorder() { return nullptr; }
  /// This node's number for timeline::Record.
  virtual uint8_t timeline_node() const { return 0; }
  /// Something failed that the job cannot go on after (an optimizer threw, say).
  virtual void OnFailure(const Flow& flow, const std::string& sentence) = 0;
};

class Flow : public std::enable_shared_from_this<Flow> {
 public:
  /// \param channel which of a key's flows this is (0, or the worker's rank in asynchronous mode)
  /// \param elements of the whole gradient
  Flow(uint64_t key, std::string name, int64_t elements, int channel,
       std::shared_ptr<const Program> program, DType wire, FlowHost* host, Executor* executor);
  ~Flow();

  uint64_t key() const { return key_; }
  const std::string& name() const { return name_; }
  int64_t elements() const { return elements_; }
  int channel() const { return channel_; }
  DType wire() const { return wire_; }
  const Program& program() const { return *program_; }
  /// The codecs and states of encodes are the front end's from now on; before the first Push.
  void Bind(Binding binding) { binding_ = std::move(binding); }
  /// Adds a momentum to gradients, which must be committed after every iteration.
  void SetMomentum(std::unique_ptr<Momentum> momentum) { momentum_ = std::move(momentum); }
  Momentum* momentum() const { return momentum_.get(); }
  /// Header of this send's kData message, but for its codec.
  MessageHeader HeaderOf(const Task& task, const Value& value, uint64_t iteration) const;

  // ---- What the user does (workers) ----
  /// Starts an iteration with this gradient. `done` when its memory may change.
  void Push(const void* gradient, DType dtype, int priority, Done done, PushMode mode = {});
  /// Binds the output of the latest iteration. \return false, with `done` untouched, if there is
  /// none that was not pulled yet: the caller then fetches the value.
  bool Pull(void* out, DType dtype, int priority, Done* done);
  /// Pushes so far.
  uint64_t iteration() const;
  /// Sets the number of the first iteration, for tests with large numbers; before the first Push.
  void StartAt(uint64_t iteration);
  /// Lets every iteration end without being pulled from now on. \return true when all pushed ones
  /// have ended
  bool Drain();
  /// \return true when no send waits for the one before it, of what is encoded already
  bool HasHandedOver() const;

  // ---- What the transport brings (on its thread) ----
  Buffer OnHeader(NodeId from, const MessageHeader& header);
  void OnMessage(NodeId from, Message message);
  /// Checks a payload that came in another message, as those two do. Arrive follows, on any
  /// thread. \throw ProtocolError
  Value Expect(NodeId from, const MessageHeader& header, Buffer payload);
  void Arrive(NodeId from, const MessageHeader& header, Value value);

  // ---- What encodes remember: residuals, other states of codecs, counts of encodes (flow_state.cc) --
  struct Memory;
  /// Whether every encode of this and earlier iterations is done.
  bool HasEncoded(uint64_t iteration) const;
  /// The sum of squares of all vectors that SaveStates saves.
  double SquareOfStates(std::chrono::steady_clock::time_point deadline);
  /// Waits for encodes of what has been pushed here. \throw Error if that takes too long, or the flow fails
  void AwaitEncodes(std::chrono::steady_clock::time_point deadline) { LockWhenQuiet(deadline); }
  /// States as bytes. Waits for encodes of what has been pushed here. \throw Error if that takes too long
  std::string SaveStates(std::chrono::steady_clock::time_point deadline);
  /// Checks bytes of SaveStates of the same flow in another job of the same shape.
  /// \throw Error with a sentence about the key
  std::vector<Memory> CheckStates(const std::string& bytes) const;
  /// Encodes go on from there.
  void LoadStates(std::vector<Memory> states, std::chrono::steady_clock::time_point deadline);

  /// Ends every iteration with this error, now and later.
  void Fail(const std::string& sentence);
  /// The oldest iteration with something to receive, and what it waits for.
  struct Wait {
    uint64_t iteration = 0;     ///< 0: it waits for no peer
    bool unpushed = false;      ///< others have begun it and wait for this node's push
    bool updating = false;      ///< all has come, and the optimizer runs
    std::vector<NodeId> peers;  ///< that have not sent all yet
    std::vector<NodeId> culprits;  ///< of these, those that need no other node to send
  };
  Wait WaitingFor() const;
  /// The key, and what each of its iterations waits for, as a JSON object (flow_debug.cc).
  void Describe(JsonWriter* json) const;

 private:
  class External;
  struct Instance;
  class Effects;
  using InstancePtr = std::shared_ptr<Instance>;

  // Under the lock; what they decide to do is left in `effects`, done after it.
  InstancePtr NewInstance();
  /// Completes the low 32 bits of a header's iteration: the nearest to the next iteration here.
  uint64_t IterationOf(const MessageHeader& header) const;
  Instance* Find(uint64_t iteration) const;
  void TryStart(const InstancePtr& instance, int task, Effects* effects);
  void TryStartAll(const InstancePtr& instance, Effects* effects);
  void Complete(const InstancePtr& instance, int task, Value value, Effects* effects);
  void DropOutput(const InstancePtr& instance, Effects* effects);
  void Retire(Effects* effects);
  int64_t WorkOf(const Task& task) const;
  int CheckedRecv(NodeId from, const MessageHeader& header) const;
  /// Checks the payload's size. \return its codec
  CodecPtr CheckedCodec(NodeId from, const MessageHeader& header) const;
  Value CheckedValue(const MessageHeader& header, CodecPtr codec, Buffer payload) const;
  /// Under the lock: from now on the message is expected no more. \return whose it is
  Instance* BeginReceive(int task, const MessageHeader& header);

  /// Locks when no encode of what has been pushed is to come or under way.
  std::unique_lock<std::mutex> LockWhenQuiet(std::chrono::steady_clock::time_point deadline);

  // Without the lock, on a compute thread.
  void Run(const InstancePtr& instance, int task);
  Value Encode(const Instance& instance, int task);
  Value Merge(Instance& instance, int task);
  CodecPtr CommonCodec(const Instance& instance, const Task& task) const;
  void AddOneByOne(const Instance& instance, const Task& task, float* out) const;
  void Decode(const Instance& instance, int task);
  void UpdateShard(const InstancePtr& instance);
  void Finish(const InstancePtr& instance, int task, Value value);
  /// Tells the flight recorder.
  void Note(FlightState state, const Task& task, uint64_t iteration) const;
  void NoteGradient(FlightState state, uint64_t iteration) const;
  void DescribeInstance(const Instance& instance, bool pushes, JsonWriter* json) const;
  void Trace(TimelineOp op, int task, uint64_t iteration, size_t bytes, int64_t began) const;
  void SendTask(const InstancePtr& instance, int task);
  /// Runs a ready task, or submits it. An error fails the job.
  void Begin(const InstancePtr& instance, int task);
  void BeginTask(const InstancePtr& instance, int number, const Task& task);
  /// True if handing it to a compute thread would take longer than the task, and it may run here.
  bool IsTrivial(const Instance& instance, const Task& task) const;
  CodecPtr CodecToEncode(const Instance& instance, int task) const;
  /// Whether some input of a task has a NaN or Inf, so that its result has one, too. Makes the gradient
  /// ready for it, if it reads that: a partition of it is read by one task.
  bool IsNonFinite(const Instance& instance, const Task& task) const;
  bool GradientIsNonFinite(const Instance& instance, const Task& task) const;
  bool bound() const { return !binding_.encodes.empty(); }

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
  std::atomic<int> handing_over_{0};  ///< sends that have begun, and are not yet the host's
  std::deque<InstancePtr> live_;        // by iteration, without gaps
  std::vector<InstancePtr> spare_;      // to be used again
  uint64_t next_iteration_ = 1;         // the next one to be created
  uint64_t pushed_ = 0;
  std::vector<uint64_t> last_done_;     // per task: the last iteration in which it is done
  std::vector<CodecState> states_;      // per task; used by encodes, one at a time thanks to last_done_
  std::vector<CodecPtr> state_owners_;  // the codec that wrote states_[task]
  std::string failure_;
};

/// Saved state of one encode task.
struct Flow::Memory {
  int task;
  CodecPtr codec;  ///< that wrote the state
  CodecState state;
};

}  // namespace hipress
