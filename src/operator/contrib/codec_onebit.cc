/*!
 * \file codec_onebit.cc
 * \brief `onebit`: the sign of each element and two reconstruction values, with error feedback.
 *
 *   x = g + r;   a = mean of the negative x, b = mean of the others
 *   decoded: x >= 0 -> b, else a;   r = x - decoded
 *   merge of N payloads: (d0 + d1) + d2 ... in float32
 *
 * Payload: a and b as float32 (a part without elements has mean 0), then one bit per element, 1 for
 * x >= 0, element i in bit i % 8 (from the lowest) of byte i / 8, zero-padded to a multiple of 32
 * elements. Almost 32x.
 *
 * Means: float32 sums in 32 lanes (element i in lane i % 32) over blocks of 4096 elements, lanes
 * folded in halves (lane j += lane j + 16, 8, 4, 2, 1), blocks added in order in float64, divided and
 * rounded once. That order is the definition: every instruction set and device gives the same bits.
 *
 * The residual is lazy: the state keeps x, a and b, and the next encode forms r on the fly, which
 * saves a pass over memory and gives the same bits.
 *
 * NaN and Inf: if any element of x is not finite (or a sum overflows), a and b become NaN, so every
 * receiver sees the overflow and a loss scaler skips the step. The residual survives: r = x where x
 * is finite, 0 where not. A payload with NaN in both values is therefore valid; one with a single
 * NaN, an Inf, a > 0 or b < 0 is not.
 *
 * Seide et al., "1-bit stochastic gradient descent and its application to data-parallel distributed
 * training of speech DNNs", Interspeech 2014.
 */
#include <cmath>
#include <cstring>

#include "operator/contrib/codec_param.h"
#include "operator/contrib/error_feedback.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

struct SignParam : public dmlc::Parameter<SignParam> {
  DMLC_DECLARE_PARAMETER(SignParam) {}
};
DMLC_REGISTER_PARAMETER(SignParam);

/// Two floats: reconstruction values of the negative and of the non-negative part.
constexpr size_t kHeader = 2 * sizeof(float);

float Mean(double sum, size_t count) {
  return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
}

class SignCodec : public Codec {
 public:
  std::string Name() const override { return "onebit"; }
  std::string Config() const override { return "type=onebit"; }
  size_t Granularity() const override { return 32; }
  bool HasResidual() const override { return true; }
  size_t MaxPayloadBytes(size_t n, DType) const override { return kHeader + (n + 31) / 32 * 4; }

  size_t Encode(const void* gradient, DType dtype, size_t n, CodecState* state, uint8_t* payload,
                DType wire) const override {
    float* residual = ResidualOf(state, n);
    if (state->lazy && !std::isfinite(state->lazy_values[0])) Settle(state, n);
    PartSums sums;
    ActiveKernels().sign_encode(gradient, dtype, n, state->lazy ? state->lazy_values : nullptr,
                                residual, payload + kHeader, &sums);
    float values[2] = {Mean(sums.negative, n - sums.nonnegative_count),
                       Mean(sums.nonnegative, sums.nonnegative_count)};
    if (!std::isfinite(values[0]) || !std::isfinite(values[1])) {
      values[0] = values[1] = std::numeric_limits<float>::quiet_NaN();
    }
    std::memcpy(payload, values, kHeader);
    std::memcpy(state->lazy_values, values, sizeof(values));
    state->lazy = true;
    ++state->step;
    return MaxPayloadBytes(n, wire);
  }

  void Check(const Payload& payload, size_t n, DType wire) const override {
    Codec::Check(payload, n, wire);
    float values[2];
    std::memcpy(values, payload.data, kHeader);
    const bool overflow = std::isnan(values[0]) && std::isnan(values[1]);
    const bool means = std::isfinite(values[0]) && std::isfinite(values[1]) && values[0] <= 0 &&
                       values[1] >= 0;
    if (overflow || means) return;
    throw ProtocolError("the reconstruction values of a onebit payload must be finite, the first "
                        "<= 0 and the second >= 0, or both NaN, not " + ExactText(values[0]) +
                        " and " + ExactText(values[1]));
  }

  void Decode(const Payload& payload, size_t n, DType, void* out, DType dtype) const override {
    float values[2];
    std::memcpy(values, payload.data, kHeader);
    ActiveKernels().sign_decode(payload.data + kHeader, n, values, out, dtype);
  }

  void DecodeSum(const Payload* payloads, size_t count, size_t n, DType, float* sum) const override {
    std::vector<const uint8_t*> bits(count);
    std::vector<float> values(2 * count);
    for (size_t k = 0; k < count; ++k) {
      bits[k] = payloads[k].data + kHeader;
      std::memcpy(&values[2 * k], payloads[k].data, kHeader);
    }
    ActiveKernels().sign_sum(bits.data(), values.data(), count, n, sum);
  }
};

HIPRESS_REGISTER_CODEC(onebit, {"onebit",
                                "signs and two means, with error feedback; 32x (Seide et al. 2014)",
                                ParamNames<SignParam>(), DocumentParams<SignParam>(),
                                [](const ParamList& params) -> CodecPtr {
                                  SignParam param;
                                  ParseParams("compression type onebit", params, &param);
                                  return std::make_shared<SignCodec>();
                                }});

}  // namespace
}  // namespace hipress
