/*!
 * \file codec_2bit.cc
 * \brief `2bit`: threshold quantisation with error feedback, in MXNet's format.
 *
 *   r += g;   r >= t: code 11, r -= t;   else r <= -t: code 10, r += t;   else code 00
 *   decoded: 11 -> +t, 10 -> -t, 00 (and 01) -> 0
 *   merge of N payloads: (number of +t minus number of -t) * t, with one rounding
 *
 * Four values a byte, the first in the top two bits; zero-padded to a multiple of 16 values. 16x.
 *
 * NaN and Inf: NaN encodes as 00 and stays in the residual; Inf encodes as +-t and stays. Training
 * in float16 with dynamic loss scaling is better served by `onebit`, which shows an overflow.
 *
 * Strom, "Scalable distributed DNN training using commodity GPU cloud computing", Interspeech 2015.
 */
#include "operator/contrib/codec_param.h"
#include "operator/contrib/error_feedback.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

struct TwoBitParam : public dmlc::Parameter<TwoBitParam> {
  Real threshold;
  DMLC_DECLARE_PARAMETER(TwoBitParam) {
    DMLC_DECLARE_FIELD(threshold)
        .set_default(0.5f)
        .set_lower_bound(kSmallestPositive)
        .describe("a finite number > 0: elements that reach it (in magnitude) are sent as "
                  "+-threshold, the rest stays in the residual");
  }
};
DMLC_REGISTER_PARAMETER(TwoBitParam);

class TwoBitCodec : public Codec {
 public:
  explicit TwoBitCodec(float threshold) : threshold_(threshold) {}

  std::string Name() const override { return "2bit"; }
  std::string Config() const override { return "type=2bit threshold=" + ExactText(threshold_); }
  size_t Granularity() const override { return 16; }
  bool HasResidual() const override { return true; }
  size_t MaxPayloadBytes(size_t n, DType) const override { return (n + 15) / 16 * 4; }

  size_t Encode(const void* gradient, DType dtype, size_t n, CodecState* state, uint8_t* payload,
                DType wire) const override {
    Settle(state, n);
    ActiveKernels().two_bit_encode(gradient, dtype, n, threshold_, ResidualOf(state, n), payload);
    ++state->step;
    return MaxPayloadBytes(n, wire);
  }

  void Decode(const Payload& payload, size_t n, DType, void* out, DType dtype) const override {
    ActiveKernels().two_bit_decode(payload.data, n, threshold_, out, dtype);
  }

  void DecodeSum(const Payload* payloads, size_t count, size_t n, DType, float* sum) const override {
    std::vector<const uint8_t*> data(count);
    for (size_t k = 0; k < count; ++k) data[k] = payloads[k].data;
    ActiveKernels().two_bit_sum(data.data(), count, n, threshold_, sum);
  }

  CodecPtr ForSumOf(int count) const override {
    return MakeCodec("2bit", {{"threshold", ExactText(ScaledForSum(threshold_, count))}});
  }

 private:
  const float threshold_;
};

HIPRESS_REGISTER_CODEC(two_bit, {"2bit", "three levels, +-threshold or 0, with error feedback; 16x",
                                 ParamNames<TwoBitParam>(), DocumentParams<TwoBitParam>(),
                                 [](const ParamList& params) -> CodecPtr {
                                   TwoBitParam param;
                                   ParseParams("compression type 2bit", params, &param);
                                   return std::make_shared<TwoBitCodec>(param.threshold);
                                 }});

}  // namespace
}  // namespace hipress
