#include "operator/contrib/scalar-inl.h"

namespace hipress {
namespace {

template <typename F>
void WithType(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat32: return f(float());
    case DType::kFloat16: return f(Float16());
    case DType::kBFloat16: return f(BFloat16());
  }
}

void Convert(const void* in, DType in_type, size_t n, void* out, DType out_type) {
  if (in_type == out_type) {
    std::memcpy(out, in, n * SizeOf(in_type));
    return;
  }
  WithType(in_type, [&](auto a) {
    WithType(out_type, [&](auto b) { ScalarConvert<decltype(a), decltype(b)>(in, 0, n, out); });
  });
}

void Add(const void* in, DType in_type, const float* residual, size_t n, void* out, DType out_type) {
  WithType(in_type, [&](auto a) {
    WithType(out_type, [&](auto b) { ScalarAdd<decltype(a), decltype(b)>(in, residual, 0, n, out); });
  });
}

void Sum(const uint8_t* const* in, DType in_type, size_t count, size_t n, float* sum) {
  WithType(in_type, [&](auto a) { ScalarSum<decltype(a)>(in, count, 0, n, sum); });
}

void TwoBitEncode(const void* gradient, DType dtype, size_t n, float threshold, float* residual,
                  uint8_t* payload) {
  WithType(dtype, [&](auto a) {
    ScalarTwoBitEncode<decltype(a)>(gradient, 0, n, threshold, residual, payload);
  });
}

void TwoBitDecode(const uint8_t* payload, size_t n, float threshold, void* out, DType dtype) {
  WithType(dtype, [&](auto a) { ScalarTwoBitDecode<decltype(a)>(payload, 0, n, threshold, out); });
}

void TwoBitSum(const uint8_t* const* payloads, size_t count, size_t n, float threshold, float* sum) {
  ScalarTwoBitSum(payloads, count, 0, n, threshold, sum);
}

void OneBitEncode(const void* gradient, DType dtype, size_t n, float threshold, float scale,
                  float* residual, uint8_t* payload) {
  WithType(dtype, [&](auto a) {
    ScalarOneBitEncode<decltype(a)>(gradient, 0, n, threshold, scale, residual, payload);
  });
}

void OneBitDecode(const uint8_t* payload, size_t n, float scale, void* out, DType dtype) {
  WithType(dtype, [&](auto a) { ScalarOneBitDecode<decltype(a)>(payload, 0, n, scale, out); });
}

void OneBitSum(const uint8_t* const* payloads, size_t count, size_t n, float scale, float* sum) {
  ScalarOneBitSum(payloads, count, 0, n, scale, sum);
}

void SignEncode(const void* gradient, DType dtype, size_t n, const float* values, float* residual,
                uint8_t* bits, PartSums* sums) {
  WithType(dtype, [&](auto a) {
    for (size_t begin = 0; begin < n; begin += kBlockOfSum) {
      const size_t end = n - begin < kBlockOfSum ? n : begin + kBlockOfSum;
      BlockSums block;
      ScalarSignEncode<decltype(a)>(gradient, begin, end, values, residual, bits, &block,
                                    &sums->nonnegative_count);
      block.AddTo(sums);
    }
  });
}

void SignDecode(const uint8_t* bits, size_t n, const float* values, void* out, DType dtype) {
  WithType(dtype, [&](auto a) { ScalarSignDecode<decltype(a)>(bits, 0, n, values, out); });
}

void SignSum(const uint8_t* const* bits, const float* values, size_t count, size_t n, float* sum) {
  ScalarSignSum(bits, values, count, 0, n, sum);
}

}  // namespace

const Kernels kBaselineKernels = {
    "baseline",   Convert,   Add,          Sum,          TwoBitEncode, TwoBitDecode, TwoBitSum,
    OneBitEncode, OneBitDecode, OneBitSum, SignEncode, SignDecode,   SignSum,
};

}  // namespace hipress
