/*!
 * \file bucket.h
 * \brief Synchronizes the gradients of one flat tensor in one call.
 *
 * Large gradients are sent in place, each by its own key. Small ones are packed into a fusion
 * buffer, which is one key. Matrices may be sent as their two factors (PowerSGD), one after the
 * other. A step ends for the whole bucket at once: if any worker's gradient has a NaN or Inf, all
 * results of the bucket are NaN on every worker, and the step leaves no shared momentum. The NaN
 * enters no residual. Partitions that a worker encoded before it received the NaN keep their new
 * residuals.
 */
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "hipress/c_api.h"
#include "kvstore/worker/kvstore_dist.h"

namespace hipress {

class Bucket : public std::enable_shared_from_this<Bucket> {
 public:
  /// Elements [offset, offset + count) of the flat tensor.
  struct Span {
    int64_t offset;
    int64_t count;
  };
  /// A gradient that is sent in place; its first element is `offset` of the flat tensor.
  struct Key {
    std::shared_ptr<Flow> flow;
    int64_t offset;
  };
  /// Gradients that are adjacent in a separate buffer, of the flow's type.
  struct Fusion {
    std::shared_ptr<Flow> flow;
    std::vector<Span> spans;
  };
  /// Matrices that are sent as factors: P, followed by the fusion buffer's gradients, and then Q.
  /// The bucket sets each matrix's gradient, dtype, p and q.
  struct LowRank {
    std::shared_ptr<Flow> p, q;
    std::vector<HipressLowRank*> matrices;
    std::vector<int64_t> offsets;  ///< of each matrix in the flat tensor
  };

  /// \param dtype of the flat tensor
  /// \param all spans of all its gradients
  /// \param checked whether it is checked for a NaN or Inf
  Bucket(KVStoreDist* store, DType dtype, std::vector<Span> all, bool checked);

  // Sent data; before the first Run.
  void Add(Key key) { keys_.push_back(std::move(key)); }
  void Set(Fusion fusion) { fusion_ = std::move(fusion); }
  void Set(LowRank low_rank);

  /*!
   * \brief Replaces the gradients in `flat` by their sums, or means. Asynchronous.
   *
   * Steps of one bucket are its keys' iterations in the order of the calls, which is the same on
   * all workers. Several may run at once. With low rank or momentum a step waits for the one before
   * it.
   * \param transaction number by which the step's changes can be rolled back (StateBefore), or 0
   * \param non_finite set to 1 if results are NaN because of a NaN or Inf; valid until `done`
   * \param done called at the end, with the first error
   */
  void Run(void* flat, uint64_t transaction, int* non_finite, Done done);

 private:
  class Step;
  /// Whether the gradients are checked for a NaN or Inf before any is encoded: in a short bucket,
  /// so that no residual of this worker changes, and if some worker does not get all results.
  /// Otherwise each partition is checked before its encode, which then finds it in the cache: one
  /// pass over memory fewer.
  bool ChecksFirst() const;
  /// Whether a step needs the end of the one before it.
  bool NeedsPrevious() const;
  /// Begins the next step, if there is one.
  void Next();
  void Pack(const uint8_t* flat, uint8_t* buffer) const;
  void Unpack(const uint8_t* buffer, uint8_t* flat) const;

  KVStoreDist* const store_;
  const DType dtype_;
  const std::vector<Span> all_;
  const bool checked_;
  std::vector<Key> keys_;
  Fusion fusion_;
  LowRank low_rank_;
  Buffer p_, q_;

  std::mutex mutex_;
  bool busy_ = false;  ///< a step has not pushed its gradients yet
  std::deque<std::shared_ptr<Step>> waiting_;
};

}  // namespace hipress
