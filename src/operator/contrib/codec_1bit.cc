/*!
 * \file codec_1bit.cc
 * \brief `1bit`: sign quantisation around a threshold with error feedback, in MXNet 2.0's format.
 *
 *   r += g;   r > t: bit 1, r -= s;   else bit 0, r += s        (scale s = 1 is MXNet's)
 *   decoded: bit 1 -> +s, bit 0 -> -s
 *   merge of N payloads: (number of ones minus number of zeros) * s, with one rounding
 *
 * Eight values a byte, the first in the top bit; zero-padded to a multiple of 32 values. 32x.
 *
 * NaN and Inf: NaN encodes as 0 and stays in the residual; Inf encodes by its sign and stays.
 */
#include "operator/contrib/codec_param.h"
#include "operator/contrib/error_feedback.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

struct OneBitParam : public dmlc::Parameter<OneBitParam> {
  Real threshold, scale;
  DMLC_DECLARE_PARAMETER(OneBitParam) {
    DMLC_DECLARE_FIELD(threshold)
        .set_default(0.0f)
        .describe("a finite number: elements above it are sent as +scale, the others as -scale");
    DMLC_DECLARE_FIELD(scale)
        .set_default(1.0f)
        .set_lower_bound(kSmallestPositive)
        .describe("a finite number > 0: the magnitude that every element is decoded to");
  }
};
DMLC_REGISTER_PARAMETER(OneBitParam);

class OneBitCodec : public Codec {
 public:
  OneBitCodec(float threshold, float scale) : threshold_(threshold), scale_(scale) {}

  std::string Name() const override { return "1bit"; }
  std::string Config() const override {
    return "type=1bit threshold=" + ExactText(threshold_) + " scale=" + ExactText(scale_);
  }
  size_t Granularity() const override { return 32; }
  bool HasResidual() const override { return true; }
  size_t MaxPayloadBytes(size_t n, DType) const override { return (n + 31) / 32 * 4; }

  size_t Encode(const void* gradient, DType dtype, size_t n, CodecState* state, uint8_t* payload,
                DType wire) const override {
    Settle(state, n);
    ActiveKernels().one_bit_encode(gradient, dtype, n, threshold_, scale_, ResidualOf(state, n),
                                   payload);
    ++state->step;
    return MaxPayloadBytes(n, wire);
  }

  void Decode(const Payload& payload, size_t n, DType, void* out, DType dtype) const override {
    ActiveKernels().one_bit_decode(payload.data, n, scale_, out, dtype);
  }

  void DecodeSum(const Payload* payloads, size_t count, size_t n, DType, float* sum) const override {
    std::vector<const uint8_t*> data(count);
    for (size_t k = 0; k < count; ++k) data[k] = payloads[k].data;
    ActiveKernels().one_bit_sum(data.data(), count, n, scale_, sum);
  }

  CodecPtr ForSumOf(int count) const override {
    return MakeCodec("1bit", {{"threshold", ExactText(ScaledForSum(threshold_, count))},
                              {"scale", ExactText(ScaledForSum(scale_, count))}});
  }

 private:
  const float threshold_, scale_;
};

HIPRESS_REGISTER_CODEC(one_bit, {"1bit", "two levels, +-scale, with error feedback; 32x",
                                 ParamNames<OneBitParam>(), DocumentParams<OneBitParam>(),
                                 [](const ParamList& params) -> CodecPtr {
                                   OneBitParam param;
                                   ParseParams("compression type 1bit", params, &param);
                                   return std::make_shared<OneBitCodec>(param.threshold, param.scale);
                                 }});

}  // namespace
}  // namespace hipress
