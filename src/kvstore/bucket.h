/*!
 * \file bucket.h
 * \brief Synchronizes the gradients of one flat tensor in one call.
 *
 * Large gradients travel in place, each by its own key. Small ones are packed into a fusion buffer, which
 * is one key. Matrices may travel as their two factors (PowerSGD), one after the other. A step ends for
 * the whole bucket at once: if any worker's gradient has a NaN or Inf, all results of the bucket are NaN
 * on every worker, and no shared momentum is kept of it. The NaN enters no residual. Partitions that were
 * encoded before the NaN was known, by other workers say, keep their new residuals.
 */
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "kvstore/kvstore_dist.h"

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
  struct LowRank {
    std::shared_ptr<Flow> p, q;
    /// Sets the memory of gradients, P and Q for the jobs below.
    std::function<void(uint8_t* flat, float* p, float* q)> bind;
    // Each a number of jobs that may run at the same time.
    std::vector<std::function<void()>> project;  ///< make P
    std::vector<std::function<void()>> orthonormalize;  ///< P's sum
    std::vector<std::function<void()>> back;     ///< make Q of that
    std::vector<std::function<void()>> expand;   ///< make gradients of both sums
    std::vector<std::function<void()>> keep;     ///< remember what this step has left unsent
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
   * Steps of one bucket are its keys' iterations in the order of the calls, which is the same on all workers.
   * Several may be under way, but for those of low rank or with momentum, which wait for the one before.
   * \param transaction number by which the step's changes can be rolled back (StateBefore), or 0
   * \param non_finite set to 1 if results are NaN because of a NaN or Inf; valid until `done`
   * \param done called at the end, with the first error
   */
  void Run(void* flat, uint64_t transaction, int* non_finite, Done done);

 private:
  class Step;
  /// Whether a NaN or Inf is looked for before anything is encoded: in a short bucket, so that nothing of
  /// that step stays behind here, and if some worker does not get all results. Else partition by partition,
  /// which are in the cache for the codec then: one pass over memory fewer.
  bool ChecksFirst() const;
  /// Whether a step begins with what the one before leaves.
  bool NeedsPrevious() const;
  /// Lets the next step begin, if there is one.
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
