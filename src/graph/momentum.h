/*!
 * \file momentum.h
 * \brief The momentum that all workers of a key share: each gradient gets `weight` times the last
 *        result before it is encoded (1-bit Adam: Tang et al., ICML 2021, arXiv:2102.02888,
 *        algorithm 1).
 *
 * A result is kept as the payloads that it was decoded from, which costs less memory traffic than
 * the decoded values. A result with a NaN or Inf, whose step a loss scaler skips, is not kept.
 */
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/program.h"
#include "base/buffer.h"
#include "operator/contrib/codec.h"

namespace hipress {

struct Value;

class Momentum {
 public:
  /// \param dtype element type of gradients and results
  Momentum(std::shared_ptr<const Program> program, DType dtype, float weight);

  /// gradient += weight * the last result, in one partition. \return whether all of it is finite
  /// then
  bool AddTo(int32_t partition, uint8_t* gradient) const;
  /// A partition's result: `payload`, and the elements that it was decoded into.
  void Keep(int32_t partition, const Value& payload, const uint8_t* result);
  /// Ends an iteration. The kept results of all partitions become the last result, unless `drop`,
  /// or a partition was not finite.
  /// \param transaction number by which that can be rolled back, or 0
  void Commit(bool drop, uint64_t transaction = 0);
  /// Restores the last result from before this transaction, or a later one, and drops
  /// the kept results of an iteration that has not ended. No iteration may be running.
  void RollBack(uint64_t transaction);

  /// The last result, float32, partition after partition.
  void Get(float* out) const;
  void Set(const float* values);

 private:
  /// A partition of a result: a payload, or float32 if `codec` is null.
  struct Part {
    CodecPtr codec;
    DType wire = DType::kFloat32;
    Buffer data;
  };

  const std::shared_ptr<const Program> program_;
  const DType dtype_;
  const float weight_;
  std::vector<Part> last_, next_;
  std::vector<Part> before_;  ///< last_ before the transaction; parts are never written to
  uint64_t transaction_ = 0;  ///< of before_; 0: there is none
};

}  // namespace hipress
