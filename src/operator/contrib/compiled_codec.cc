#include "operator/contrib/compiled_codec.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "base/scratch.h"
#include "operator/contrib/codec.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

constexpr size_t kMaxElements = std::numeric_limits<int32_t>::max();

bool IsFloat(const CompllParam& param) { return std::strcmp(param.type, "float") == 0; }

std::string ValueText(const CompllParam& param, double value) {
  if (IsFloat(param)) return ExactText(static_cast<float>(value));
  return std::to_string(static_cast<int64_t>(value));
}

bool IsAllowed(const CompllParam& param, double value) {
  if (!std::isfinite(value)) return false;
  if (!IsFloat(param) && value != std::floor(value)) return false;
  if (param.num_choices > 0) {
    const double* const end = param.choices + param.num_choices;
    return std::find(param.choices, end, value) != end;
  }
  if (value < param.low || (param.low_open && value == param.low)) return false;
  if (value > param.high || (param.high_open && value == param.high)) return false;
  return param.multiple <= 1 || std::fmod(value, static_cast<double>(param.multiple)) == 0;
}

/// Reads a whole text as float32 (so that every place has the same value) or as an integer.
bool ReadValue(const CompllParam& param, const std::string& text, double* value) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (end - begin > 1 && *begin == '+' && begin[1] != '-') ++begin;
  const auto read = [&](auto number) {
    const auto result = std::from_chars(begin, end, number);
    *value = static_cast<double>(number);
    return result.ec == std::errc() && result.ptr == end;
  };
  return IsFloat(param) ? read(0.0f) : read(int64_t(0));
}

std::string ListParams(const CompllAlgorithm& algorithm) {
  std::string list;
  for (int p = 0; p < algorithm.num_params; ++p) {
    const CompllParam& param = algorithm.params[p];
    list += (list.empty() ? "" : ", ") + std::string(param.name);
    if (param.has_default) list += " (default " + ValueText(param, param.default_value) + ")";
  }
  return list.empty() ? "none" : list;
}

int TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return COMPLL_FLOAT16;
    case DType::kBFloat16: return COMPLL_BFLOAT16;
    default: return COMPLL_FLOAT32;
  }
}

class CompiledCodec : public Codec {
 public:
  CompiledCodec(const CompllAlgorithm* algorithm, std::vector<double> params, int threads = 1)
      : algorithm_(algorithm), params_(std::move(params)), threads_(threads) {}

  std::string Name() const override { return algorithm_->name; }

  std::string Config() const override {
    std::string text = "type=" + Name() + " " + kSpecParam + "=" + algorithm_->spec;
    for (int p = 0; p < algorithm_->num_params; ++p) {
      const CompllParam& param = algorithm_->params[p];
      text += " " + std::string(param.name) + "=" + ValueText(param, params_[p]);
    }
    return text;
  }

  size_t Granularity() const override {
    return static_cast<size_t>(algorithm_->granularity(params_.data()));
  }
  bool HasResidual() const override { return algorithm_->residual >= 0; }
  bool FixedSize() const override { return algorithm_->fixed_size != 0; }
  bool Dense() const override { return algorithm_->dense != 0; }

  std::vector<std::string> StateNames() const override {
    return {algorithm_->states, algorithm_->states + algorithm_->num_states};
  }

  bool UsesStep() const override { return algorithm_->uses_step != 0; }

  std::vector<Buffer*> States(CodecState* state) const override {
    const auto count = static_cast<size_t>(algorithm_->num_states);
    if (state->extra_of != algorithm_ || state->extra.size() != count) {
      state->extra.assign(count, Buffer());
      state->extra_of = algorithm_;
    }
    std::vector<Buffer*> places;
    for (Buffer& buffer : state->extra) places.push_back(&buffer);
    if (HasResidual()) places[static_cast<size_t>(algorithm_->residual)] = &state->residual;
    return places;
  }

  size_t MaxPayloadBytes(size_t n, DType wire) const override {
    const auto most = static_cast<size_t>(
        algorithm_->max_bytes(static_cast<int64_t>(n), params_.data()));
    return algorithm_->exact ? most - n * (sizeof(float) - SizeOf(wire)) : most;
  }

  size_t Encode(const void* gradient, DType dtype, size_t n, CodecState* state, uint8_t* payload,
                DType wire) const override {
    CheckCount<Error>(n);
    if (state->lazy != algorithm_) Settle(state, n);
    // What is to keep all its bits is encoded as "none" sends it: in the wire's type.
    const DType type = algorithm_->exact ? wire : DType::kFloat32;
    Buffer sum;
    if (!HasResidual() && state->residual) {
      // What another codec left unsaid is added once.
      sum = AllocateBuffer(n * SizeOf(type));
      ActiveKernels().add(gradient, dtype, ResidualOf(state, n), n, sum.data, type);
      state->residual = Buffer();
    } else if (algorithm_->exact && dtype != wire) {
      sum = AllocateBuffer(n * SizeOf(type));
      ActiveKernels().convert(gradient, dtype, n, sum.data, type);
    }
    TakenStates taken(static_cast<size_t>(algorithm_->num_states));
    TakeStates(state, n, &taken);
    CompllEncodeCall call = {};
    call.gradient = sum ? sum.data : gradient;
    call.gradient_type = TypeOf(sum ? type : dtype);
    call.n = static_cast<int64_t>(n);
    call.params = params_.data();
    call.states = taken.states.data();
    call.before = taken.before.data();
    call.lazy = state->lazy != nullptr;
    call.lazy_values = state->lazy_values;
    call.step = state->step++;
    call.stream = state->stream;
    call.threads = threads_;
    call.parallel = ParallelRun;
    call.payload = payload;
    const int64_t written = algorithm_->encode(&call);
    state->lazy = call.lazy ? algorithm_ : nullptr;
    return static_cast<size_t>(written);
  }

  void Check(const Payload& payload, size_t n, DType wire) const override {
    CheckCount<ProtocolError>(n);
    Codec::Check(payload, n, wire);
    Run(&payload, 1, n, nullptr, COMPLL_FLOAT32, true);
  }

  void Decode(const Payload& payload, size_t n, DType, void* out, DType dtype) const override {
    const bool aligned = reinterpret_cast<uintptr_t>(out) % sizeof(float) == 0;
    if (algorithm_->dense || (dtype == DType::kFloat32 && aligned)) {
      Run(&payload, 1, n, out, TypeOf(dtype), false);
      return;
    }
    const Buffer wide = AllocateBuffer(n * sizeof(float));
    Run(&payload, 1, n, wide.data, COMPLL_FLOAT32, false);
    ActiveKernels().convert(wide.data, DType::kFloat32, n, out, dtype);
  }

  void DecodeSum(const Payload* payloads, size_t count, size_t n, DType, float* sum) const override {
    Run(payloads, count, n, sum, COMPLL_FLOAT32, false);
  }

  CodecPtr OnThreads(int threads) const override {
    return std::make_shared<CompiledCodec>(algorithm_, params_, threads);
  }

  CodecPtr ForSumOf(int count) const override {
    constexpr double kMax = std::numeric_limits<float>::max();
    std::vector<double> scaled(params_.size());
    algorithm_->for_sum(params_.data(), count, scaled.data());
    for (int p = 0; p < algorithm_->num_params; ++p) {
      const CompllParam& param = algorithm_->params[p];
      if (IsFloat(param)) scaled[p] = std::clamp(scaled[p], -kMax, kMax);
      if (!IsAllowed(param, scaled[p])) {
        throw Error(std::string(param.name) + " of " + Name() + " would be " +
                    ValueText(param, scaled[p]) + " for a sum of " + std::to_string(count) +
                    " payloads, but it must be " + param.allowed);
      }
    }
    if (scaled == params_) return nullptr;
    return std::make_shared<CompiledCodec>(algorithm_, scaled, threads_);
  }

 private:
  template <typename E>
  void CheckCount(size_t n) const {
    if (n <= kMaxElements) return;
    throw E(Name() + " handles partitions of at most " + std::to_string(kMaxElements) +
            " elements, not " + std::to_string(n));
  }

  /// Where a call reads states and writes them: float32[n] each, if in use.
  struct TakenStates {
    explicit TakenStates(size_t count) : states(count), before(count), shared(count) {}
    Scratch<float*> states;
    Scratch<const float*> before;
    Scratch<Buffer> shared;  ///< shared with other owners: it is not written
  };

  /// Takes each state: the residual, and those only we know of.
  void TakeStates(CodecState* state, size_t n, TakenStates* taken) const {
    const size_t bytes = n * sizeof(float), count = taken->states.size();
    bool fits = state->extra_of == algorithm_ && state->extra.size() == count;
    for (const Buffer& buffer : state->extra) fits = fits && (!buffer || buffer.size == bytes);
    if (!fits) {
      state->extra.assign(count, Buffer());
      state->extra_of = algorithm_;
    }
    const auto is_residual = [&](size_t s) { return static_cast<int>(s) == algorithm_->residual; };
    const auto buffer_of = [&](size_t s) -> Buffer& {
      return is_residual(s) ? state->residual : state->extra[s];
    };
    const int64_t used = algorithm_->used_states(params_.data());
    for (size_t s = 0; s < count; ++s) {
      Buffer& buffer = buffer_of(s);
      if (is_residual(s)) {
        ResidualOf(state, n);
      } else if ((used >> s & 1) == 0) {
        buffer = Buffer();  // what was left in it, with other parameters, is out of date
      } else if (!buffer) {
        buffer = ZeroState(n);
      }
    }
    // Only then: an error above must not leave a state without values.
    for (size_t s = 0; s < count; ++s) {
      Buffer& buffer = buffer_of(s);
      if (!buffer) continue;
      taken->before[s] = buffer.as<float>();
      taken->shared[s] = Unshare(&buffer);
      taken->states[s] = buffer.as<float>();
    }
  }

  void Run(const Payload* payloads, size_t count, size_t n, void* out, int type,
           bool check_only) const {
    char error[256] = "is malformed";
    Scratch<const uint8_t*> data(count);
    Scratch<int64_t> bytes(count);
    for (size_t k = 0; k < count; ++k) {
      data[k] = payloads[k].data;
      bytes[k] = static_cast<int64_t>(payloads[k].bytes);
    }
    CompllDecodeCall call = {};
    call.payloads = data.data();
    call.bytes = bytes.data();
    call.count = static_cast<int64_t>(count);
    call.n = static_cast<int64_t>(n);
    call.params = params_.data();
    call.out = out;
    call.out_type = type;
    call.check_only = check_only;
    call.threads = threads_;
    call.parallel = ParallelRun;
    call.error = error;
    call.error_size = sizeof(error);
    if (algorithm_->decode(&call) != 0) {
      throw ProtocolError("a " + Name() + " payload of " + std::to_string(n) + " elements and " +
                          std::to_string(payloads[0].bytes) + " bytes is refused: it " + error);
    }
  }

  const CompllAlgorithm* const algorithm_;
  const std::vector<double> params_;
  const int threads_;
};

CodecPtr Make(const CompllAlgorithm* algorithm, const ParamList& pairs) {
  const std::string whose = "compression type " + std::string(algorithm->name);
  std::vector<double> values(static_cast<size_t>(algorithm->num_params));
  std::vector<bool> given(values.size());
  for (const auto& pair : pairs) {
    if (pair.first == kSpecParam) {
      if (pair.second == algorithm->spec) continue;
      throw Error(whose + " was compiled from another text elsewhere (spec " + pair.second +
                  ") than here (" + algorithm->spec + "); give every node the same file");
    }
    int p = 0;
    while (p < algorithm->num_params && pair.first != algorithm->params[p].name) ++p;
    if (p == algorithm->num_params) {
      throw Error(whose + " has no parameter \"" + pair.first + "\"; its parameters: " +
                  ListParams(*algorithm));
    }
    const CompllParam& param = algorithm->params[p];
    if (given[p]) {
      throw Error("parameter " + pair.first + " of " + whose + " is given twice; give it once");
    }
    if (!ReadValue(param, pair.second, &values[p]) || !IsAllowed(param, values[p])) {
      throw Error(pair.first + " of " + whose + " must be " + param.allowed + ", not \"" +
                  pair.second + "\"");
    }
    given[p] = true;
  }
  for (int p = 0; p < algorithm->num_params; ++p) {
    const CompllParam& param = algorithm->params[p];
    if (given[p]) continue;
    if (!param.has_default) {
      throw Error(whose + " needs the parameter " + param.name + ": " + param.allowed);
    }
    values[p] = IsFloat(param) ? static_cast<float>(param.default_value) : param.default_value;
  }
  return std::make_shared<CompiledCodec>(algorithm, std::move(values));
}

/// \param choose finds the algorithm when a codec is made, when the instruction set is known
CodecInfo Describe(const CompllAlgorithm& algorithm,
                   std::function<const CompllAlgorithm*()> choose) {
  CodecInfo info;
  info.name = algorithm.name;
  info.summary = algorithm.summary;
  for (int p = 0; p < algorithm.num_params; ++p) {
    const CompllParam& param = algorithm.params[p];
    info.params.push_back(param.name);
    info.param_doc += std::string(param.name) + " (" + param.type;
    if (param.has_default) info.param_doc += ", default=" + ValueText(param, param.default_value);
    info.param_doc += "): " + std::string(param.allowed);
    if (*param.doc != '\0') info.param_doc += ": " + std::string(param.doc);
    info.param_doc += "\n";
  }
  info.make = [choose](const ParamList& params) { return Make(choose(), params); };
  info.spec = algorithm.spec;
  return info;
}

/// One of the variants that this CPU runs; null if it runs none.
CompllEntry AnyVariant(const CompiledVariants& variants) {
  if (FindKernels("baseline") != nullptr) return variants.baseline;
  if (FindKernels("avx2") != nullptr) return variants.avx2;
  if (FindKernels("avx512") != nullptr) return variants.avx512;
  return nullptr;
}

}  // namespace

bool RegisterBuiltin(const CompiledVariants& variants) {
  auto choose = [variants] {
    const std::string name = ActiveKernels().name;
    const CompllEntry entry = name == "avx512" ? variants.avx512
                              : name == "avx2" ? variants.avx2
                                               : variants.baseline;
    // Tests activate kernels that this build has no codecs for; any codec gives the same bits.
    return entry != nullptr ? entry() : AnyVariant(variants)();
  };
  // A build for one kind of CPU has codecs that another CPU cannot run, not even to describe them.
  const CompllEntry any = AnyVariant(variants);
  return any != nullptr && RegisterCodec(Describe(*any(), choose));
}

std::string LoadCompiledCodec(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error("cannot load " + path + ": " + dlerror());
  void* symbol = dlsym(library, COMPLL_ENTRY_NAME);
  if (symbol == nullptr) {
    dlclose(library);
    throw Error(path + " is not a library that CompLL compiled");
  }
  const CompllAlgorithm* algorithm = reinterpret_cast<CompllEntry>(symbol)();
  if (algorithm->abi_version != COMPLL_ABI_VERSION) {
    throw Error(path + " was compiled by another version of CompLL; compile it again");
  }
  const std::string name = algorithm->name;
  if (algorithm->encode == nullptr || algorithm->decode == nullptr) {
    throw Error("compression type " + name + " needs both an encoder and a decoder");
  }
  RegisterCodec(Describe(*algorithm, [algorithm] { return algorithm; }));
  return name;
}

}  // namespace hipress
