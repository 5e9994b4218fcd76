#include "operator/contrib/entropy.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "operator/contrib/rans.h"

namespace hipress {
namespace {

constexpr size_t kCodedHeader = 1 + sizeof(uint32_t);

class EntropyCodec : public Codec {
 public:
  explicit EntropyCodec(CodecPtr codec) : codec_(std::move(codec)) {}

  std::string Name() const override { return codec_->Name(); }
  std::string Config() const override { return codec_->Config() + " " + kEntropyParam + "=1"; }
  size_t Granularity() const override { return codec_->Granularity(); }
  bool HasResidual() const override { return codec_->HasResidual(); }
  std::vector<std::string> StateNames() const override { return codec_->StateNames(); }
  bool UsesStep() const override { return codec_->UsesStep(); }
  std::vector<Buffer*> States(CodecState* state) const override { return codec_->States(state); }
  size_t MaxPayloadBytes(size_t n, DType wire) const override {
    return 1 + codec_->MaxPayloadBytes(n, wire);
  }
  bool FixedSize() const override { return false; }
  bool Dense() const override { return codec_->Dense(); }

  size_t Encode(const void* gradient, DType dtype, size_t n, CodecState* state, uint8_t* payload,
                DType wire) const override {
    const Buffer plain = AllocateBuffer(codec_->MaxPayloadBytes(n, wire));
    const size_t bytes = codec_->Encode(gradient, dtype, n, state, plain.data, wire);
    if (bytes > kCodedHeader && bytes <= std::numeric_limits<uint32_t>::max()) {
      const size_t packed =
          RansPack(plain.data, bytes, payload + kCodedHeader, bytes + 1 - kCodedHeader);
      if (packed != 0) {
        const auto length = static_cast<uint32_t>(bytes);
        payload[0] = 1;
        std::memcpy(payload + 1, &length, sizeof(length));
        return kCodedHeader + packed;
      }
    }
    payload[0] = 0;
    std::memcpy(payload + 1, plain.data, bytes);
    return 1 + bytes;
  }

  void Check(const Payload& payload, size_t n, DType wire) const override {
    Codec::Check(payload, n, wire);
    const Plain plain = Undo(payload, n, wire);
    codec_->Check(plain.payload, n, wire);
  }

  void Decode(const Payload& payload, size_t n, DType wire, void* out, DType dtype) const override {
    const Plain plain = Undo(payload, n, wire);
    codec_->Decode(plain.payload, n, wire, out, dtype);
  }

  void DecodeSum(const Payload* payloads, size_t count, size_t n, DType wire,
                 float* sum) const override {
    std::vector<Buffer> memory;
    std::vector<Payload> plain;
    for (size_t k = 0; k < count; ++k) {
      Plain one = Undo(payloads[k], n, wire);
      memory.push_back(std::move(one.memory));
      plain.push_back(one.payload);
    }
    codec_->DecodeSum(plain.data(), count, n, wire, sum);
  }

  CodecPtr ForSumOf(int count) const override { return With(codec_->ForSumOf(count)); }
  CodecPtr OnThreads(int threads) const override { return With(codec_->OnThreads(threads)); }

 private:
  /// A codec's payload before the stage, in place or in separate memory.
  struct Plain {
    Buffer memory;
    Payload payload;
  };

  /// \throw ProtocolError unless it has the form that entropy.h describes
  Plain Undo(const Payload& payload, size_t n, DType wire) const {
    const std::string what = "a " + Name() + " payload of " + std::to_string(n) + " elements and " +
                             std::to_string(payload.bytes) + " bytes is refused: it ";
    if (payload.bytes == 0 || payload.data[0] > 1) {
      throw ProtocolError(what + "does not say whether it is entropy-coded");
    }
    if (payload.data[0] == 0) return {Buffer(), {payload.data + 1, payload.bytes - 1}};
    if (payload.bytes < kCodedHeader) throw ProtocolError(what + "ends within its length");
    uint32_t length = 0;
    std::memcpy(&length, payload.data + 1, sizeof(length));
    if (length > codec_->MaxPayloadBytes(n, wire)) {
      throw ProtocolError(what + "would have " + std::to_string(length) + " bytes unpacked");
    }
    const Buffer memory = AllocateBuffer(length);
    const char* const error = RansUnpack(payload.data + kCodedHeader, payload.bytes - kCodedHeader,
                                         memory.data, length);
    if (error != nullptr) throw ProtocolError(what + error);
    return {memory, {memory.data, length}};
  }

  static CodecPtr With(const CodecPtr& codec) {
    return codec == nullptr ? nullptr : std::make_shared<EntropyCodec>(codec);
  }

  const CodecPtr codec_;
};

}  // namespace

bool TakeEntropy(const std::string& type, ParamList* params) {
  auto is_entropy = [](const auto& pair) { return pair.first == kEntropyParam; };
  const auto at = std::find_if(params->begin(), params->end(), is_entropy);
  if (at == params->end()) return false;
  const std::string value = at->second;
  params->erase(at);
  if (std::any_of(params->begin(), params->end(), is_entropy)) {
    throw Error("parameter entropy of compression type " + type + " is given twice; give it once");
  }
  if (value == "1" || value == "True" || value == "true") return true;
  if (value == "0" || value == "False" || value == "false") return false;
  throw Error("entropy of compression type " + type + " must be 0 or 1, not \"" + value + "\"");
}

CodecPtr WithEntropy(CodecPtr codec) {
  if (codec->IsIdentity()) {
    throw Error("compression type " + codec->Name() + " has no entropy stage: type lossless is what "
                "makes gradients shorter that are not compressed");
  }
  return std::make_shared<EntropyCodec>(std::move(codec));
}

}  // namespace hipress
