/*!
 * \file binding.h
 * \brief Binds a flow's encode tasks to codecs and error-feedback states of a front end.
 *
 * A flow without a binding asks its store for codecs and keeps the states itself. A front end with a
 * binding decides task by task: the codec, the state that goes with it (which the front end saves, loads
 * and reshards by itself), and the factor that a sum is multiplied by first.
 */
#pragma once

#include <memory>
#include <vector>

#include "common/types.h"
#include "operator/contrib/codec.h"
#include "operator/contrib/state_before.h"

namespace hipress {

/// Binding of one encode task.
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

/// Binding of a whole key.
struct Binding {
  std::vector<EncodeBinding> encodes;  ///< by task; those that do not encode have no codec
  /// Factor of a sum without an encode, when it is decoded into the output.
  float output_factor = 1;
};

}  // namespace hipress
