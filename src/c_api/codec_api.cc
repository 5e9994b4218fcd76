/*!
 * \file codec_api.cc
 * \brief The "Codecs" section of c_api.h: encode and decode in this process, no job needed.
 */
#include <cstring>

#include "c_api/error.h"
#include "hipress/c_api.h"
#include "operator/contrib/codec.h"
#include "operator/contrib/compiled_codec.h"

using hipress::Codec;
using hipress::CodecPtr;
using hipress::DType;
using hipress::DTypeFromFlag;
using hipress::Error;
using hipress::Payload;

struct HipressCodec {
  CodecPtr codec;
  hipress::CodecState state;
};

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

}  // namespace

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
  *out = new HipressCodec{hipress::MakeCodec(type, params), {}};
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
  *bytes = static_cast<int64_t>(codec->codec->Encode(gradient, type, CheckedSize(n), &codec->state,
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

int HipressCodecGetResidual(HipressCodecHandle codec, int64_t n, float* out) {
  API_BEGIN();
  const size_t bytes = CheckedSize(n) * sizeof(float);
  auto& state = codec->state;
  if (!state.residual) {
    std::memset(out, 0, bytes);
  } else {
    codec->codec->SettleResidual(&state, CheckedSize(n));
    if (state.residual.size != bytes) {
      throw Error("the residual has " + std::to_string(state.residual.size / sizeof(float)) +
                  " elements, not " + std::to_string(n));
    }
    std::memcpy(out, state.residual.data, bytes);
  }
  API_END();
}

int HipressCodecSetResidual(HipressCodecHandle codec, int64_t n, const float* in) {
  API_BEGIN();
  const size_t bytes = CheckedSize(n) * sizeof(float);
  codec->state.residual = hipress::AllocateState(bytes);
  codec->state.lazy = nullptr;
  std::memcpy(codec->state.residual.data, in, bytes);
  API_END();
}
