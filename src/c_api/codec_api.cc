/*!
 * \file codec_api.cc
 * \brief The "Codecs" section of c_api.h: encode and decode in this process, no job needed.
 */
#include <algorithm>
#include <cstring>

#include "c_api/codec.h"
#include "c_api/error.h"
#include "common/simd.h"
#include "operator/contrib/compiled_codec.h"
#include "operator/contrib/kernels.h"

using hipress::Buffer;
using hipress::Codec;
using hipress::CodecPtr;
using hipress::DType;
using hipress::DTypeFromFlag;
using hipress::Error;
using hipress::Payload;

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
  API_BEGIN();
  static const auto* names = new std::string(hipress::CompiledSimd());
  *used = hipress::ActiveKernels().name;
  *compiled = names->c_str();
  API_END();
}

int HipressListCodecs(const char** json) {
  API_BEGIN();
  std::string list;
  for (const auto& info : hipress::Codecs()) {
    std::string params;
    for (const auto& name : info.params) params += (params.empty() ? "" : ", ") + JsonString(name);
    list += (list.empty() ? "" : ", ");
    list += "{\"name\": " + JsonString(info.name) + ", \"summary\": " + JsonString(info.summary) +
            ", \"params\": [" + params + "], \"doc\": " + JsonString(info.param_doc) + "}";
  }
  *json = hipress::KeepString("[" + list + "]");
  API_END();
}

int HipressCodecNames(const char** names) {
  API_BEGIN();
  std::string list;
  for (const auto& info : hipress::Codecs()) list += (list.empty() ? "" : "\n") + info.name;
  *names = hipress::KeepString(list);
  API_END();
}

int HipressLoadCodec(const char* path, const char** name) {
  API_BEGIN();
  *name = hipress::KeepString(hipress::LoadCompiledCodec(path));
  API_END();
}

int HipressCodecCreate(int num, const char** keys, const char** vals, HipressCodecHandle* out) {
  API_BEGIN();
  std::string type;
  hipress::ParamList params;
  for (int i = 0; i < num; ++i) {
    if (std::strcmp(keys[i], "type") == 0) {
      type = vals[i];
    } else {
      params.emplace_back(keys[i], vals[i]);
    }
  }
  *out = new HipressCodec(hipress::MakeCodec(type, params));
  API_END();
}

int HipressCodecForSumOf(HipressCodecHandle codec, int count, HipressCodecHandle* out) {
  API_BEGIN();
  if (count < 1) throw Error("a sum has 1 gradient or more, not " + std::to_string(count));
  const auto scaled = codec->codec->ForSumOf(count);
  *out = new HipressCodec(scaled ? scaled : codec->codec);
  API_END();
}

int HipressCodecFree(HipressCodecHandle codec) {
  API_BEGIN();
  delete codec;
  API_END();
}

int HipressCodecSetThreads(HipressCodecHandle codec, int threads) {
  API_BEGIN();
  if (threads < 1 || threads > 64) {
    throw Error("threads must be from 1 to 64, not " + std::to_string(threads));
  }
  const CodecPtr changed = codec->codec->OnThreads(threads);
  if (changed != nullptr) codec->codec = changed;
  API_END();
}

int HipressCodecMaxBytes(HipressCodecHandle codec, int64_t n, int dtype, int64_t* bytes) {
  API_BEGIN();
  *bytes = static_cast<int64_t>(codec->codec->MaxPayloadBytes(CheckedSize(n), DTypeFromFlag(dtype)));
  API_END();
}

int HipressCodecEncode(HipressCodecHandle codec, const void* gradient, int64_t n, int dtype,
                       void* payload, int64_t* bytes) {
  API_BEGIN();
  const DType type = DTypeFromFlag(dtype);
  *bytes = static_cast<int64_t>(codec->codec->Encode(gradient, type, CheckedSize(n),
                                                     codec->state.get(),
                                                     static_cast<uint8_t*>(payload), type));
  API_END();
}

int HipressCodecDecode(HipressCodecHandle codec, const void* payload, int64_t bytes, int64_t n,
                       int dtype, void* out) {
  API_BEGIN();
  const DType type = DTypeFromFlag(dtype);
  const size_t size = CheckedSize(n);
  codec->codec->Decode(CheckedPayload(*codec->codec, payload, bytes, size, type), size, type, out,
                       type);
  API_END();
}

int HipressCodecDecodeSum(HipressCodecHandle codec, int count, const void** payloads,
                          const int64_t* bytes, int64_t n, int dtype, float* sum) {
  API_BEGIN();
  if (count < 1) throw Error("a sum needs 1 payload or more, not " + std::to_string(count));
  const DType type = DTypeFromFlag(dtype);
  const size_t size = CheckedSize(n);
  std::vector<Payload> checked;
  for (int k = 0; k < count; ++k) {
    checked.push_back(CheckedPayload(*codec->codec, payloads[k], bytes[k], size, type));
  }
  codec->codec->DecodeSum(checked.data(), checked.size(), size, type, sum);
  API_END();
}

int HipressCodecEncodeWith(HipressCodecHandle codec, const void* gradient, int64_t n, int dtype,
                           int num_states, float* const* states, uint64_t step, uint32_t stream,
                           void* payload, int64_t* bytes) {
  API_BEGIN();
  const Codec& type = *codec->codec;
  const DType element = DTypeFromFlag(dtype);
  const size_t size = CheckedSize(n);
  hipress::CodecState state;
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
  API_END();
}

int HipressCodecDescribe(HipressCodecHandle codec, HipressCodecDescription* out) {
  API_BEGIN();
  out->name = codec->name.c_str();
  out->config = codec->config.c_str();
  out->num_states = static_cast<int>(codec->names.size());
  out->states = codec->names.data();
  out->uses_step = codec->codec->UsesStep();
  out->fixed_size = codec->codec->FixedSize();
  out->dense = codec->codec->Dense();
  out->granularity = static_cast<int64_t>(codec->codec->Granularity());
  API_END();
}

int HipressCodecGetState(HipressCodecHandle codec, const char* name, int64_t n, float* out) {
  API_BEGIN();
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
  API_END();
}

int HipressCodecSetState(HipressCodecHandle codec, const char* name, int64_t n, const float* in) {
  API_BEGIN();
  const size_t bytes = CheckedSize(n) * sizeof(float);
  Buffer* state = FindState(codec, name);
  *state = hipress::AllocateState(bytes);
  if (state == &codec->state->residual) codec->state->lazy = nullptr;
  std::memcpy(state->data, in, bytes);
  API_END();
}

int HipressCodecGetStep(HipressCodecHandle codec, uint64_t* step, uint32_t* stream) {
  API_BEGIN();
  *step = codec->state->step;
  *stream = codec->state->stream;
  API_END();
}

int HipressCodecSetStep(HipressCodecHandle codec, uint64_t step, uint32_t stream) {
  API_BEGIN();
  codec->state->step = step;
  codec->state->stream = stream;
  API_END();
}

int HipressCodecRollBack(HipressCodecHandle codec, uint64_t transaction) {
  API_BEGIN();
  codec->before->RollBack(codec->state.get(), transaction);
  API_END();
}
