/*!
 * \file codec_api.cc
 * \brief Sections of c_api.h that need no job: codecs, and PowerSGD's passes over one matrix.
 */
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "bindings/codec.h"
#include "bindings/error.h"
#include "base/simd.h"
#include "operator/contrib/compiled_codec.h"
#include "operator/contrib/kernels.h"

using namespace hipress;

// python/hipress/torch/low_rank.py has the same fields.
static_assert(sizeof(HipressLowRank) == 104 && offsetof(HipressLowRank, q) == 96, "packed");

namespace {

std::string JsonString(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += {'\\', c};
    } else if (c == '\n') {
      json += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += ' ';
    } else {
      json += c;
    }
  }
  return json + "\"";
}

size_t CheckedSize(int64_t n) {
  if (n < 0) throw Error("an element count must be 0 or more, not " + std::to_string(n));
  return static_cast<size_t>(n);
}

Payload CheckedPayload(const Codec& codec, const void* data, int64_t bytes, size_t n, DType wire) {
  const Payload payload = {static_cast<const uint8_t*>(data), CheckedSize(bytes)};
  codec.Check(payload, n, wire);
  return payload;
}

/// The place of a state by its name. Every codec takes a residual over, if only once.
Buffer* FindState(HipressCodecHandle codec, const std::string& name) {
  if (name == "residual") return &codec->state->residual;
  const auto& names = codec->state_names;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error("compression type " + codec->name + " has no state \"" + name + "\"");
  }
  return codec->codec->States(codec->state.get())[static_cast<size_t>(found - names.begin())];
}

}  // namespace

int HipressInstructionSets(const char** compiled, const char** used) {
  return Guarded([&] {
    static const auto* names = new std::string(CompiledSimd());
    *used = ActiveKernels().name;
    *compiled = names->c_str();
  });
}

int HipressListCodecs(const char** json) {
  return Guarded([&] {
    std::string list;
    for (const auto& info : Codecs()) {
      std::string params;
      for (const auto& name : info.params) params += (params.empty() ? "" : ", ") + JsonString(name);
      list += (list.empty() ? "" : ", ");
      list += "{\"name\": " + JsonString(info.name) + ", \"summary\": " + JsonString(info.summary) +
              ", \"params\": [" + params + "], \"doc\": " + JsonString(info.param_doc) + "}";
    }
    *json = KeepString("[" + list + "]");
  });
}

int HipressCodecNames(const char** names) {
  return Guarded([&] {
    std::string list;
    for (const auto& info : Codecs()) list += (list.empty() ? "" : "\n") + info.name;
    *names = KeepString(list);
  });
}

int HipressLoadCodec(const char* path, const char** name) {
  return Guarded([&] { *name = KeepString(LoadCompiledCodec(path)); });
}

int HipressCodecCreate(int num, const char** keys, const char** vals, HipressCodecHandle* out) {
  return Guarded([&] {
    std::string type;
    ParamList params;
    for (int i = 0; i < num; ++i) {
      if (std::strcmp(keys[i], "type") == 0) {
        type = vals[i];
      } else {
        params.emplace_back(keys[i], vals[i]);
      }
    }
    *out = new HipressCodec(MakeCodec(type, params));
  });
}

int HipressCodecForSumOf(HipressCodecHandle codec, int count, HipressCodecHandle* out) {
  return Guarded([&] {
    if (count < 1) throw Error("a sum has 1 gradient or more, not " + std::to_string(count));
    const auto scaled = codec->codec->ForSumOf(count);
    *out = new HipressCodec(scaled ? scaled : codec->codec);
  });
}

int HipressCodecFree(HipressCodecHandle codec) {
  return Guarded([&] { delete codec; });
}

int HipressCodecSetThreads(HipressCodecHandle codec, int threads) {
  return Guarded([&] {
    if (threads < 1 || threads > 64) {
      throw Error("threads must be from 1 to 64, not " + std::to_string(threads));
    }
    const CodecPtr changed = codec->codec->OnThreads(threads);
    if (changed != nullptr) codec->codec = changed;
  });
}

int HipressCodecMaxBytes(HipressCodecHandle codec, int64_t n, int dtype, int64_t* bytes) {
  return Guarded([&] {
    const size_t most = codec->codec->MaxPayloadBytes(CheckedSize(n), DTypeFromFlag(dtype));
    *bytes = static_cast<int64_t>(most);
  });
}

int HipressCodecEncode(HipressCodecHandle codec, const void* gradient, int64_t n, int dtype,
                       void* payload, int64_t* bytes) {
  return Guarded([&] {
    const DType type = DTypeFromFlag(dtype);
    *bytes = static_cast<int64_t>(codec->codec->Encode(gradient, type, CheckedSize(n),
                                                       codec->state.get(),
                                                       static_cast<uint8_t*>(payload), type));
  });
}

int HipressCodecDecode(HipressCodecHandle codec, const void* payload, int64_t bytes, int64_t n,
                       int dtype, void* out) {
  return Guarded([&] {
    const DType type = DTypeFromFlag(dtype);
    const size_t size = CheckedSize(n);
    codec->codec->Decode(CheckedPayload(*codec->codec, payload, bytes, size, type), size, type, out,
                         type);
  });
}

int HipressCodecDecodeSum(HipressCodecHandle codec, int count, const void** payloads,
                          const int64_t* bytes, int64_t n, int dtype, float* sum) {
  return Guarded([&] {
    if (count < 1) throw Error("a sum needs 1 payload or more, not " + std::to_string(count));
    const DType type = DTypeFromFlag(dtype);
    const size_t size = CheckedSize(n);
    std::vector<Payload> checked;
    for (int k = 0; k < count; ++k) {
      checked.push_back(CheckedPayload(*codec->codec, payloads[k], bytes[k], size, type));
    }
    codec->codec->DecodeSum(checked.data(), checked.size(), size, type, sum);
  });
}

int HipressCodecEncodeWith(HipressCodecHandle codec, const void* gradient, int64_t n, int dtype,
                           int num_states, float* const* states, uint64_t step, uint32_t stream,
                           void* payload, int64_t* bytes) {
  return Guarded([&] {
    const Codec& type = *codec->codec;
    const DType element = DTypeFromFlag(dtype);
    const size_t size = CheckedSize(n);
    CodecState state;
    state.step = step;
    state.stream = stream;
    const std::vector<Buffer*> places = type.States(&state);
    if (static_cast<size_t>(num_states) != places.size()) {
      throw Error(type.Name() + " needs " + std::to_string(places.size()) + " states, not " +
                  std::to_string(num_states));
    }
    for (size_t s = 0; s < places.size(); ++s) {
      *places[s] = Buffer::Unowned(states[s], size * sizeof(float));
    }
    *bytes = static_cast<int64_t>(
        type.Encode(gradient, element, size, &state, static_cast<uint8_t*>(payload), element));
    type.SettleResidual(&state, size);
    // A codec may put another buffer in a state's place.
    const std::vector<Buffer*> after = type.States(&state);
    for (size_t s = 0; s < after.size(); ++s) {
      if (*after[s] && size > 0 && after[s]->as<float>() != states[s]) {
        std::memcpy(states[s], after[s]->data, size * sizeof(float));
      }
    }
  });
}

int HipressCodecDescribe(HipressCodecHandle codec, HipressCodecDescription* out) {
  return Guarded([&] {
    out->name = codec->name.c_str();
    out->config = codec->config.c_str();
    out->num_states = static_cast<int>(codec->names.size());
    out->states = codec->names.data();
    out->uses_step = codec->codec->UsesStep();
    out->fixed_size = codec->codec->FixedSize();
    out->dense = codec->codec->Dense();
    out->granularity = static_cast<int64_t>(codec->codec->Granularity());
  });
}

int HipressCodecGetState(HipressCodecHandle codec, const char* name, int64_t n, float* out) {
  return Guarded([&] {
    const size_t bytes = CheckedSize(n) * sizeof(float);
    codec->codec->SettleResidual(codec->state.get(), CheckedSize(n));
    const Buffer& state = *FindState(codec, name);
    if (!state) {
      std::memset(out, 0, bytes);
    } else if (state.size != bytes) {
      throw Error("the " + std::string(name) + " has " + std::to_string(state.size / sizeof(float)) +
                  " elements, not " + std::to_string(n));
    } else {
      std::memcpy(out, state.data, bytes);
    }
  });
}

int HipressCodecSetState(HipressCodecHandle codec, const char* name, int64_t n, const float* in) {
  return Guarded([&] {
    const size_t bytes = CheckedSize(n) * sizeof(float);
    Buffer* state = FindState(codec, name);
    *state = AllocateState(bytes);
    if (state == &codec->state->residual) codec->state->lazy = nullptr;
    std::memcpy(state->data, in, bytes);
  });
}

int HipressCodecGetStep(HipressCodecHandle codec, uint64_t* step, uint32_t* stream) {
  return Guarded([&] {
    *step = codec->state->step;
    *stream = codec->state->stream;
  });
}

int HipressCodecSetStep(HipressCodecHandle codec, uint64_t step, uint32_t stream) {
  return Guarded([&] {
    codec->state->step = step;
    codec->state->stream = stream;
  });
}

int HipressCodecRollBack(HipressCodecHandle codec, uint64_t transaction) {
  return Guarded([&] { codec->before->RollBack(codec->state.get(), transaction); });
}

// ---- Low rank -----------------------------------------------------------------------------------

int HipressLowRankStart(HipressLowRank* matrix) {
  return Guarded([&] {
    const LowRankShape shape = {matrix->rows, matrix->cols, matrix->rank};
    ActiveKernels().low_rank.orthonormalize(matrix->start_q, matrix->cols, shape.col_pad(),
                                            matrix->rank, true);
  });
}

int HipressLowRankResidual(const HipressLowRank* matrix, float* out) {
  return Guarded([&] {
    ActiveKernels().low_rank.residual({matrix->rows, matrix->cols, matrix->rank}, matrix->last,
                                      matrix->last_p, matrix->last_q, out);
  });
}
