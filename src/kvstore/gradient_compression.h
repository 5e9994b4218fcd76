/*!
 * \file gradient_compression.h
 * \brief The settings of `kv.set_gradient_compression({...})`: codec, smallest key, directions.
 *
 * An immutable value, shared by pointer. A change of compression during training replaces the
 * pointer. Running operations keep the object, and so the parameters, with which they began.
 */
#pragma once

#include <cstddef>
#include <memory>

#include "operator/contrib/codec.h"

namespace hipress {

class GradientCompression;
using GradientCompressionPtr = std::shared_ptr<const GradientCompression>;

class GradientCompression {
 public:
  /// Which replies of a server are compressed.
  enum class Pull {
    kAuto,  ///< where servers hold sums of gradients, not where they hold weights
    kNone,  ///< never, as in stock MXNet
    kSame,  ///< always, weights too
  };

  /*!
   * \brief From the user's name=value pairs. Known names, apart from the codec's own parameters:
   *        type (default none), min_size (1024), pull (auto); and topology, devices_per_host and
   *        plan, which the builder of the graphs checks: here they are any text.
   * \throw Error in one sentence that lists what is allowed
   */
  static GradientCompressionPtr Make(const ParamList& params);
  /// No compression: a store's initial setting.
  static GradientCompressionPtr None();

  Pull pull() const { return pull_; }
  /// The codec for pushes of a key of n elements: the identity below min_size.
  CodecPtr ForKey(size_t n) const { return n < min_size_ ? IdentityCodec() : codec_; }

 private:
  GradientCompression() = default;
  CodecPtr codec_;
  size_t min_size_ = 0;
  Pull pull_ = Pull::kAuto;
};

}  // namespace hipress
