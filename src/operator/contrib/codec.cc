#include "operator/contrib/codec.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <mutex>
#include <sstream>

#include "operator/contrib/compll/abi.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

/// All codecs, in name order. A function static, because static initializers of any file may
/// register.
std::vector<CodecInfo>& Registry() {
  static auto* registry = new std::vector<CodecInfo>();
  return *registry;
}

std::mutex& RegistryMutex() {
  static auto* mutex = new std::mutex();
  return *mutex;
}

/// Removes the parameter that adds the entropy stage from `params`, and returns its value.
bool TakeEntropy(const std::string& type, ParamList* params) {
  auto is_entropy = [](const auto& pair) { return pair.first == kEntropyParam; };
  const auto param = std::find_if(params->begin(), params->end(), is_entropy);
  if (param == params->end()) return false;
  const std::string value = param->second;
  params->erase(param);
  if (std::any_of(params->begin(), params->end(), is_entropy)) {
    throw Error("parameter entropy of compression type " + type + " is given twice; give it once");
  }
  if (value == "1" || value == "True" || value == "true") return true;
  if (value == "0" || value == "False" || value == "false") return false;
  throw Error("entropy of compression type " + type + " must be 0 or 1, not \"" + value + "\"");
}

void CheckSize(const CodecState& state, size_t n) {
  if (state.residual.size != n * sizeof(float)) {
    throw Error("the residual belongs to a gradient of " +
                std::to_string(state.residual.size / sizeof(float)) + " elements, not " +
                std::to_string(n));
  }
}

/*!
 * \brief `none`: the identity. A payload is the gradient itself in the wire's element type.
 *
 *   payload[i] = wire(g[i])          conversions round to nearest even
 *   sum[i]     = (p0[i] + p1[i]) + p2[i] ...   in float32, whatever the wire's type
 *
 * NaN and Inf are kept. There is no residual: what a narrower wire type rounds off is lost, as in
 * any mixed-precision all-reduce. A residual of another codec is added once and discarded, so
 * switching compression off during training loses nothing.
 */
class NoneCodec : public Codec {
 public:
  std::string Name() const override { return "none"; }
  std::string Config() const override { return "type=none"; }
  bool IsIdentity() const override { return true; }
  size_t MaxPayloadBytes(size_t n, DType wire) const override { return n * SizeOf(wire); }

  size_t Encode(const void* gradient, DType dtype, size_t n, CodecState* state, uint8_t* payload,
                DType wire) const override {
    if (state->residual) {
      Settle(state, n);
      ActiveKernels().add(gradient, dtype, ResidualOf(state, n), n, payload, wire);
      state->residual = Buffer();
    } else {
      ActiveKernels().convert(gradient, dtype, n, payload, wire);
    }
    ++state->step;
    return MaxPayloadBytes(n, wire);
  }

  void Decode(const Payload& payload, size_t n, DType wire, void* out, DType dtype) const override {
    ActiveKernels().convert(payload.data, wire, n, out, dtype);
  }

  void DecodeSum(const Payload* payloads, size_t count, size_t n, DType wire,
                 float* sum) const override {
    std::vector<const uint8_t*> data(count);
    for (size_t k = 0; k < count; ++k) data[k] = payloads[k].data;
    ActiveKernels().sum(data.data(), wire, count, n, sum);
  }
};

const bool registered = RegisterCodec(
    {"none", "no compression: the gradient in its own type", {}, "",
     [](const ParamList& params) -> CodecPtr {
       if (params.empty()) return std::make_shared<NoneCodec>();
       throw Error("compression type none has no parameter \"" + params[0].first +
                   "\"; its parameters: none");
     },
     ""});

}  // namespace

Buffer ZeroState(size_t n) {
  Buffer state = AllocateState(n * sizeof(float));
  std::memset(state.data, 0, state.size);
  return state;
}

float* ResidualOf(CodecState* state, size_t n) {
  if (!state->residual) {
    state->residual = ZeroState(n);
    state->lazy = nullptr;
  }
  CheckSize(*state, n);
  return state->residual.as<float>();
}

Buffer Unshare(Buffer* vector) {
  if (vector->owner.use_count() < 2) return {};
  return std::exchange(*vector, AllocateState(vector->size));
}

void Settle(CodecState* state, size_t n) {
  if (!state->residual || state->lazy == nullptr) return;
  CheckSize(*state, n);
  if (const Buffer shared = Unshare(&state->residual)) {
    std::memcpy(state->residual.data, shared.data, shared.size);
  }
  std::vector<float*> states(static_cast<size_t>(state->lazy->num_states));
  states[static_cast<size_t>(state->lazy->residual)] = state->residual.as<float>();
  CompllSettleCall call = {};
  call.states = states.data();
  call.lazy_values = state->lazy_values;
  call.n = static_cast<int64_t>(n);
  call.threads = 1;
  state->lazy->settle(&call);
  state->lazy = nullptr;
}

std::vector<CodecInfo> Codecs() {
  std::lock_guard<std::mutex> lock(RegistryMutex());
  return Registry();
}

bool RegisterCodec(CodecInfo info) {
  std::lock_guard<std::mutex> lock(RegistryMutex());
  auto& registry = Registry();
  auto less = [](const CodecInfo& a, const CodecInfo& b) { return a.name < b.name; };
  auto place = std::lower_bound(registry.begin(), registry.end(), info, less);
  if (place != registry.end() && place->name == info.name) {
    if (place->spec.empty()) {
      throw Error("compression type " + info.name + " is registered already");
    }
    if (place->spec == info.spec) return false;
    throw Error("compression type " + info.name + " is loaded already, from another text; load each "
                "name once in a process");
  }
  for (const std::string& param : info.params) {
    if (param == kSpecParam || param == kEntropyParam) {
      throw Error("compression type " + info.name + ": a parameter cannot be called " + param +
                  ": all codecs have it");
    }
  }
  registry.insert(place, std::move(info));
  return true;
}

CodecPtr MakeCodec(const std::string& type, const ParamList& params) {
  for (const CodecInfo& info : Codecs()) {
    if (info.name != type) continue;
    ParamList own = params;
    const bool entropy = TakeEntropy(type, &own);
    CodecPtr codec = info.make(own);
    return entropy ? WithEntropy(std::move(codec)) : codec;
  }
  ActiveKernels();  // throws if this build's codecs are for other CPUs, so that none is registered
  std::string names;
  for (const CodecInfo& info : Codecs()) names += (names.empty() ? "" : ", ") + info.name;
  throw Error("unknown compression type \"" + type + "\"; allowed: " + names);
}

ParamList SplitConfig(const std::string& config) {
  std::istringstream words(config);
  std::string word;
  ParamList params;
  while (words >> word) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error("a compression's configuration must be name=value pairs, not \"" + config + "\"");
    }
    params.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return params;
}

CodecPtr MakeCodec(const std::string& config) {
  ParamList params = SplitConfig(config);
  if (params.empty() || params[0].first != "type") {
    throw Error("a codec's configuration must begin with its type, unlike \"" + config + "\"");
  }
  const std::string type = params[0].second;
  params.erase(params.begin());
  return MakeCodec(type, params);
}

CodecPtr IdentityCodec() {
  // Never destroyed: threads of the library may outlive static objects.
  static const auto* identity = new CodecPtr(MakeCodec("none", {}));
  return *identity;
}

void Codec::Check(const Payload& payload, size_t n, DType wire) const {
  // Far above any tensor, and low enough that no codec's size arithmetic overflows.
  constexpr size_t kMaxElements = size_t(1) << 48;
  if (n > kMaxElements) throw ProtocolError(std::to_string(n) + " elements are more than any tensor has");
  const size_t limit = MaxPayloadBytes(n, wire);
  if (payload.bytes == limit || (!FixedSize() && payload.bytes < limit)) return;
  throw ProtocolError("a " + Name() + " payload of " + std::to_string(n) + " elements must have " +
                      (FixedSize() ? "" : "at most ") + std::to_string(limit) + " bytes, not " +
                      std::to_string(payload.bytes));
}

std::string ExactText(float value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

uint64_t Digest(const std::string& config) { return XXH3_64bits(config.data(), config.size()); }

}  // namespace hipress
