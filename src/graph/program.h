/*!
 * \file program.h
 * \brief One node's part of the task graph of one key, as Python built it.
 *
 * A program is a list of tasks in an order in which each task comes after its inputs. A task's
 * result is known by the task's index, so `inputs` name tasks; kGradient names what the user
 * pushed. python/hipress/topology/flat_program.py writes the flat form that Parse reads and
 * documents its layout.
 */
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/types.h"

namespace hipress {

/// The primitives of CaSync. The numbers are part of the flat form.
enum class Op : int32_t {
  kEncode = 0,  ///< one dense input -> payload; keeps the residual of this place
  kDecode = 1,  ///< one payload or dense input -> the user's output
  kMerge = 2,   ///< payloads or dense inputs, in the order given -> float32 sum
  kSend = 3,    ///< one payload -> peer
  kRecv = 4,    ///< peer -> payload
  kUpdate = 5,  ///< sum -> weight, through the optimizer; passes the sum on if there is none
};

struct Task {
  Op op;
  int32_t partition;
  int32_t step;              ///< distinguishes sends of one partition between the same two nodes
  NodeId peer;               ///< of kSend and kRecv
  /// Of kEncode: gradients summed in its input; kPlain: never compressed. Of kRecv: kNoUpstream if
  /// the peer needs no other node to send it.
  int32_t num_summands = 1;
  std::vector<int32_t> inputs;     ///< task indices, or kGradient
  std::vector<int32_t> consumers;  ///< tasks that have this one as input (derived)
};

/// Elements [offset, offset + count) of the gradient.
struct Partition {
  int64_t offset;
  int64_t count;
};

class Program {
 public:
  static constexpr int32_t kGradient = -1;
  static constexpr int32_t kPlain = 0;
  static constexpr int32_t kNoUpstream = 0;

  /// Reads and checks the flat form for a gradient of n elements.
  /// \throw Error naming the first thing that cannot be right
  static std::shared_ptr<const Program> Parse(const int64_t* flat, int64_t length, int64_t n);

  /// The same program with another peer in every send and receive (asynchronous servers run one
  /// copy per worker).
  std::shared_ptr<const Program> WithPeer(NodeId peer) const;

  const std::vector<Partition>& partitions() const { return partitions_; }
  const std::vector<Task>& tasks() const { return tasks_; }
  /// True if a separate copy runs for the pushes of each worker, independent of other workers'
  /// pushes.
  bool per_worker() const { return per_worker_; }
  /// Partitions that some task of this node touches, ascending.
  const std::vector<int32_t>& local_partitions() const { return local_partitions_; }
  /// The range of elements that they cover.
  Partition shard() const { return shard_; }
  int num_updates() const { return num_updates_; }
  /// Per task, at the beginning of an iteration: inputs that other tasks make, and tasks that read
  /// it.
  const std::vector<int32_t>& missing_inputs() const { return missing_inputs_; }
  const std::vector<int32_t>& readers() const { return readers_; }
  /// Inputs that are the gradient, and tasks that write the output.
  int gradient_reads() const { return gradient_reads_; }
  int output_writes() const { return output_writes_; }
  /// True if workers send to this node, so that an iteration may begin here with their message.
  bool receives_from_workers() const { return receives_from_workers_; }
  /// The receive task for a message, or -1.
  int FindRecv(NodeId from, int32_t partition, int32_t step) const;

 private:
  void Derive();
  void Check() const;

  bool per_worker_ = false;
  std::vector<Partition> partitions_;
  std::vector<Task> tasks_;
  std::vector<int32_t> local_partitions_;
  Partition shard_{0, 0};
  int num_updates_ = 0;
  std::vector<int32_t> missing_inputs_, readers_;
  int gradient_reads_ = 0, output_writes_ = 0;
  bool receives_from_workers_ = false;
  std::unordered_map<uint64_t, int> recv_;
};

}  // namespace hipress
