/*!
 * \file place.h
 * \brief How one encode task of a flow encodes, where a front end decides that task by task.
 *
 * The store's keys ask their host for a codec and keep what encodes remember themselves. A front end
 * with bindings hands both over instead: the codec of every encode, the state that goes with it (which
 * the front end saves, loads and deals out anew by itself), and what a sum is multiplied by first.
 */
#ifndef HIPRESS_CASYNC_PLACE_H_
#define HIPRESS_CASYNC_PLACE_H_

#include <memory>
#include <vector>

#include "common/types.h"
#include "operator/contrib/codec.h"

namespace hipress {

struct Place {
  CodecPtr codec;
  std::shared_ptr<CodecState> state;
  /// What a sum is multiplied by before it is encoded: 1 / N where the result is a mean.
  float factor = 1;
  /// Element type of an uncompressed payload.
  DType wire = DType::kFloat32;
};

/// What a front end decides of a whole key.
struct Binding {
  std::vector<Place> places;  ///< by task; those that do not encode have no codec
  /// What a sum that nobody encodes is multiplied by when it is decoded into the output.
  float output_factor = 1;
};

}  // namespace hipress

#endif  // HIPRESS_CASYNC_PLACE_H_
