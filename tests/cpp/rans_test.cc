/// The entropy coder: what it packs comes back, and in the same bytes on every table of kernels.
#include "operator/contrib/rans.h"

#include <vector>

#include "codec_testing.h"
#include "operator/contrib/codec.h"

namespace hipress {
namespace {

using Bytes = std::vector<uint8_t>;

/// Bytes of one kind each: of what a payload may look like, and of what is hard for a coder.
Bytes Sample(const std::string& kind, size_t n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::normal_distribution<float> normal(8, 2);
  auto nibble = [&] { return static_cast<unsigned>(std::clamp(normal(random), 0.0f, 15.0f)); };
  Bytes bytes(n);
  for (size_t i = 0; i < n; ++i) {
    const unsigned value = kind == "alike"    ? 7
                           : kind == "random" ? random()
                           : kind == "rare"   ? random() % 5000 == 0
                           : kind == "pairs"  ? (i % 2 ? nibble() : random())
                           : kind == "kinds"  ? random() % (i % 2 ? 60 : 5)
                                              : nibble() | nibble() << 4;
    bytes[i] = static_cast<uint8_t>(value);
  }
  return bytes;
}

Bytes Packed(const Bytes& plain) {
  Bytes packed(plain.size() + 1);
  packed.resize(RansPack(plain.data(), plain.size(), packed.data(), packed.size()));
  return packed;
}

class Rans : public OnEveryTable {};

TEST_P(Rans, WhatIsPackedComesBackOnEveryTable) {
  const Kernels& here = ActiveKernels();
  for (const char* kind : {"alike", "random", "rare", "pairs", "kinds", "nibbles"}) {
    for (const size_t n : {1, 31, 32, 33, 500, 4099, 131071, 131072, 131073, 300001}) {
      const Bytes plain = Sample(kind, n);
      SetActiveKernels(kBaselineKernels);
      const Bytes wanted = Packed(plain);
      SetActiveKernels(here);
      const Bytes packed = Packed(plain);
      ASSERT_EQ(packed, wanted) << kind << " " << n;
      if (packed.empty()) continue;
      Bytes out(n, 0xa5);
      const char* error = RansUnpack(packed.data(), packed.size(), out.data(), n);
      ASSERT_EQ(error, nullptr) << kind << " " << n << ": " << error;
      ASSERT_EQ(out, plain) << kind << " " << n;
      Bytes longer = packed;
      longer.push_back(0);
      EXPECT_NE(RansUnpack(longer.data(), longer.size(), out.data(), n), nullptr);
      EXPECT_NE(RansUnpack(packed.data(), packed.size() - 1, out.data(), n), nullptr);
    }
  }
}

TEST_P(Rans, ComesNearTheEntropy) {
  const size_t n = 131072;
  EXPECT_TRUE(Packed(Sample("random", n)).empty());
  EXPECT_LT(Packed(Sample("alike", n)).size(), 200u);
  EXPECT_LT(Packed(Sample("rare", n)).size(), n / 100);
  for (const char* kind : {"pairs", "nibbles"}) {
    const Bytes plain = Sample(kind, n);
    double bits = 0;
    const bool split = std::string(kind) == "pairs";
    for (size_t first = 0; first < (split ? 2 : 1); ++first) {
      std::vector<double> counts(256);
      const size_t step = split ? 2 : 1;
      for (size_t i = first; i < n; i += step) ++counts[plain[i]];
      for (const double count : counts) {
        if (count > 0) bits += count * std::log2(double(n / step) / count);
      }
    }
    EXPECT_LT(double(Packed(plain).size()), bits / 8 * 1.005 + 600) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(, Rans, testing::ValuesIn(kTables));

TEST(Entropy, IsAStageOfACodec) {
  const CodecPtr plain = MakeCodec("maxmin", {{"bits", "4"}});
  const CodecPtr coded = MakeCodec("maxmin", {{"bits", "4"}, {"entropy", "1"}});
  EXPECT_EQ(coded->Config(), plain->Config() + " entropy=1");
  EXPECT_EQ(MakeCodec(coded->Config())->Config(), coded->Config());
  EXPECT_EQ(MakeCodec("maxmin", {{"bits", "4"}, {"entropy", "0"}})->Config(), plain->Config());
  const CodecPtr sum = MakeCodec("2bit", {{"entropy", "true"}})->ForSumOf(3);
  EXPECT_EQ(sum->Config(), MakeCodec("2bit", {})->ForSumOf(3)->Config() + " entropy=1");
  EXPECT_EQ(plain->MaxPayloadBytes(5000, DType::kFloat32) + 1,
            coded->MaxPayloadBytes(5000, DType::kFloat32));
  for (const ParamList& params : {ParamList{{"entropy", "2"}}, {{"entropy", "1"}, {"entropy", "1"}}}) {
    EXPECT_THROW(MakeCodec("maxmin", params), Error);
  }
  EXPECT_THROW(MakeCodec("none", {{"entropy", "1"}}), Error);
}

TEST(Entropy, RefusesWhatWouldNotBeTheCodecsPayload) {
  const CodecPtr codec = MakeCodec("topk", {{"ratio", "0.1"}, {"entropy", "1"}});
  Memory gradient(4000);
  FillGradient(gradient.data, DType::kFloat32, 1000, 1);
  CodecState state;
  Bytes payload(codec->MaxPayloadBytes(1000, DType::kFloat32));
  const auto encoded = codec->Encode(gradient.data, DType::kFloat32, 1000, &state, payload.data(),
                                     DType::kFloat32);
  payload.resize(encoded);
  auto check = [&](const Bytes& bytes, size_t n) {
    codec->Check({bytes.data(), bytes.size()}, n, DType::kFloat32);
  };
  check(payload, 1000);
  EXPECT_THROW(check(payload, 10), ProtocolError);
  for (const Bytes& bytes : {Bytes(), {0}, {2, 0}, {1}, {1, 0, 0}, {1, 255, 255, 255, 255, 0},
                             {1, 4, 0, 0, 0}, {1, 4, 0, 0, 0, 1, 2, 3}}) {
    EXPECT_THROW(check(bytes, 1000), ProtocolError);
  }
}

}  // namespace
}  // namespace hipress
