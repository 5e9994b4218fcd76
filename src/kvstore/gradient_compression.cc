#include "kvstore/gradient_compression.h"

#include <dmlc/parameter.h>

#include <algorithm>
#include <set>

namespace hipress {
namespace {

struct CompressionParam : public dmlc::Parameter<CompressionParam> {
  std::string type;
  int64_t min_size;
  std::string topology;
  int devices_per_host;
  std::string plan;
  int pull;
  DMLC_DECLARE_PARAMETER(CompressionParam) {
    DMLC_DECLARE_FIELD(type).set_default("none").describe(
        "a registered codec: the compression algorithm");
    // Below about 4 KiB a message costs more than its bytes, and the parameters that suffer most
    // from compression (biases, normalization) are that small.
    DMLC_DECLARE_FIELD(min_size).set_default(1024).set_lower_bound(0).describe(
        "an integer >= 0: gradients of fewer elements go uncompressed; 0 compresses all, as MXNet");
    DMLC_DECLARE_FIELD(topology).set_default("auto").describe(
        "auto, or a topology's name: how gradients travel; auto goes by whether the job has servers");
    DMLC_DECLARE_FIELD(devices_per_host).set_default(0).set_range(0, 65535).describe(
        "an integer >= 0: workers on each host, for topologies that tell hosts apart; 0: as launched");
    DMLC_DECLARE_FIELD(plan).set_default("").describe(
        "a file name: which gradients to compress, and into how many partitions to cut each");
    DMLC_DECLARE_FIELD(pull)
        .add_enum("auto", static_cast<int>(GradientCompression::Pull::kAuto))
        .add_enum("none", static_cast<int>(GradientCompression::Pull::kNone))
        .add_enum("same", static_cast<int>(GradientCompression::Pull::kSame))
        .set_default(static_cast<int>(GradientCompression::Pull::kAuto))
        .describe("auto, none or same: compress what is pulled if it is a sum of gradients (auto), "
                  "never (none), always (same)");
  }
};
DMLC_REGISTER_PARAMETER(CompressionParam);

/// "type (default none), min_size (default 1024), ..."
std::string ListParams() {
  std::string list;
  for (const auto& field : CompressionParam::__FIELDS__()) {
    const size_t start = field.type_info_str.find("default=");
    list += (list.empty() ? "" : ", ") + field.name + " (" +
            field.type_info_str.substr(start).replace(7, 1, " ") + ")";
  }
  return list;
}

/// Sets `param` from name=value pairs; a parameter that is not given has its default. An error
/// names the allowed values: describe()'s text up to the colon.
/// \return pairs that are not for CompressionParam
ParamList ParseParams(const ParamList& pairs, CompressionParam* param) {
  param->Init(ParamList());
  std::set<std::string> seen;
  ParamList unknown;
  for (const auto& pair : pairs) {
    if (!seen.insert(pair.first).second) {
      throw Error("parameter " + pair.first + " of gradient compression is given twice; give it once");
    }
    try {
      if (!param->UpdateAllowUnknown(ParamList{pair}).empty()) unknown.push_back(pair);
    } catch (const dmlc::Error&) {
      std::string allowed;
      for (const auto& field : CompressionParam::__FIELDS__()) {
        if (field.name == pair.first) allowed = field.description.substr(0, field.description.find(':'));
      }
      throw Error(pair.first + " of gradient compression must be " + allowed + ", not \"" + pair.second +
                  "\"");
    }
  }
  return unknown;
}

/// Complains about a parameter that neither the store nor the codec has, listing those of both.
void CheckNames(const std::string& type, const ParamList& codec_params) {
  for (const CodecInfo& info : Codecs()) {
    if (info.name != type) continue;
    for (const auto& pair : codec_params) {
      if (pair.first == kSpecParam || pair.first == kEntropyParam) continue;
      const auto& known = info.params;
      if (std::find(known.begin(), known.end(), pair.first) != known.end()) continue;
      std::string names;
      for (const auto& name : known) names += name + ", ";
      throw Error("gradient compression of type " + type + " has no parameter \"" + pair.first +
                  "\"; its parameters: " + names + ListParams());
    }
  }
}

}  // namespace

GradientCompressionPtr GradientCompression::Make(const ParamList& params) {
  CompressionParam param;
  const ParamList codec_params = ParseParams(params, &param);
  CheckNames(param.type, codec_params);
  std::shared_ptr<GradientCompression> made(new GradientCompression());
  made->codec_ = MakeCodec(param.type, codec_params);
  made->min_size_ = static_cast<size_t>(param.min_size);
  made->pull_ = static_cast<Pull>(param.pull);
  return made;
}

GradientCompressionPtr GradientCompression::None() {
  static const auto* none = new GradientCompressionPtr(Make({}));  // as IdentityCodec
  return *none;
}

}  // namespace hipress
