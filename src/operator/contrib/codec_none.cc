/*!
 * \file codec_none.cc
 * \brief `none`: the identity. A payload is the gradient itself in the wire's element type.
 *
 *   payload[i] = wire(g[i])          conversions round to nearest even
 *   sum[i]     = (p0[i] + p1[i]) + p2[i] ...   in float32, whatever the wire's type
 *
 * NaN and Inf pass through. There is no residual: what a narrower wire type rounds off is lost, as
 * in any mixed-precision all-reduce. A residual left by another codec is added once and dropped, so
 * switching compression off in mid-training loses nothing.
 */
#include "operator/contrib/codec_param.h"
#include "operator/contrib/error_feedback.h"
#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

struct NoneParam : public dmlc::Parameter<NoneParam> {
  DMLC_DECLARE_PARAMETER(NoneParam) {}
};
DMLC_REGISTER_PARAMETER(NoneParam);

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

HIPRESS_REGISTER_CODEC(none, {"none", "no compression: the gradient in its own type",
                              ParamNames<NoneParam>(), DocumentParams<NoneParam>(),
                              [](const ParamList& params) -> CodecPtr {
                                NoneParam param;
                                ParseParams("compression type none", params, &param);
                                return std::make_shared<NoneCodec>();
                              }});

}  // namespace
}  // namespace hipress
