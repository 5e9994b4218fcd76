#include "operator/contrib/codec.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <sstream>

#include "operator/contrib/entropy.h"
#include "operator/contrib/error_feedback.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

/// All codecs, in name order. A function static, because static initializers of any file may register.
std::vector<CodecInfo>& Registry() {
  static auto* registry = new std::vector<CodecInfo>();
  return *registry;
}

std::mutex& RegistryMutex() {
  static auto* mutex = new std::mutex();
  return *mutex;
}

std::string Names() {
  std::string names;
  for (const CodecInfo& info : Codecs()) names += (names.empty() ? "" : ", ") + info.name;
  return names;
}

}  // namespace

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
    throw Error("compression type " + info.name + " is registered already");
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
  throw Error("unknown compression type \"" + type + "\"; allowed: " + Names());
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

void Codec::SettleResidual(CodecState* state, size_t n) const { Settle(state, n); }

std::vector<std::string> Codec::StateNames() const {
  return HasResidual() ? std::vector<std::string>{"residual"} : std::vector<std::string>();
}

std::vector<Buffer*> Codec::States(CodecState* state) const {
  return HasResidual() ? std::vector<Buffer*>{&state->residual} : std::vector<Buffer*>();
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
