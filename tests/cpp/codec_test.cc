// Codecs against a naive reference written here from the definitions, on every instruction set.
#include "codec_testing.h"

namespace hipress {
namespace {

const char* const kConfigs[] = {"type=none", "type=2bit threshold=0.5",
                                "type=1bit threshold=0.125 scale=0.75", "type=onebit"};
/// What an encode does, by the book: payload, decoded values, plain residual.
struct Reference {
  std::vector<uint8_t> payload;
  std::vector<float> decoded, residual;

  Reference(const std::string& config, const void* gradient, DType dtype, size_t n,
            std::vector<float> old)
      : decoded(n), residual(std::move(old)) {
    residual.resize(n);
    std::vector<float> x(n);
    for (size_t i = 0; i < n; ++i) x[i] = residual[i] + Get(gradient, dtype, i);
    if (config == "type=none") {
      payload.resize(n * SizeOf(dtype));
      if (n != 0) std::memcpy(payload.data(), gradient, payload.size());
      for (size_t i = 0; i < n; ++i) decoded[i] = Get(payload.data(), dtype, i);
    } else if (config == "type=2bit threshold=0.5") {
      payload.assign((n + 15) / 16 * 4, 0);
      for (size_t i = 0; i < n; ++i) {
        const unsigned code = x[i] >= 0.5f ? 3 : x[i] <= -0.5f ? 2 : 0;
        decoded[i] = code == 3 ? 0.5f : code == 2 ? -0.5f : 0.0f;
        residual[i] = code == 0 ? x[i] : x[i] - decoded[i];
        payload[i / 4] |= code << (6 - 2 * (i % 4));
      }
    } else if (config == "type=1bit threshold=0.125 scale=0.75") {
      payload.assign((n + 31) / 32 * 4, 0);
      for (size_t i = 0; i < n; ++i) {
        decoded[i] = x[i] > 0.125f ? 0.75f : -0.75f;
        residual[i] = x[i] - decoded[i];
        if (x[i] > 0.125f) payload[i / 8] |= 0x80 >> (i % 8);
      }
    } else {
      OneBit(x);
    }
  }

  void OneBit(const std::vector<float>& x) {
    const size_t n = x.size();
    payload.assign(8 + (n + 31) / 32 * 4, 0);
    double sum[2] = {0, 0};
    size_t count[2] = {0, 0};
    for (size_t begin = 0; begin < n; begin += 4096) {
      float lanes[2][32] = {};
      for (size_t i = begin; i < std::min(n, begin + 4096); ++i) {
        const bool bit = x[i] >= 0;
        lanes[bit][i % 32] += x[i];
        ++count[bit];
        if (bit) payload[8 + i / 8] |= 1 << (i % 8);
      }
      for (int part = 0; part < 2; ++part) {
        for (int half = 16; half > 0; half /= 2) {
          for (int j = 0; j < half; ++j) lanes[part][j] += lanes[part][j + half];
        }
        sum[part] += lanes[part][0];
      }
    }
    float mean[2] = {0, 0};
    for (int part = 0; part < 2; ++part) {
      if (count[part] != 0) mean[part] = static_cast<float>(sum[part] / count[part]);
    }
    std::memcpy(payload.data(), mean, 8);
    for (size_t i = 0; i < n; ++i) {
      decoded[i] = mean[x[i] >= 0];
      residual[i] = x[i] - decoded[i];
    }
  }
};

class CodecOnEveryTable : public OnEveryTable {};
INSTANTIATE_TEST_SUITE_P(Tables, CodecOnEveryTable, testing::ValuesIn(kTables),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(CodecOnEveryTable, EncodesAndDecodesByTheBook) {
  for (const std::string config : kConfigs) {
    const CodecPtr codec = MakeCodec(config);
    for (const DType dtype : kTypes) {
      for (const size_t n : kSizes) {
        for (const size_t offset : {size_t(0), SizeOf(dtype)}) {
          const std::string what = config + " " + NameOf(dtype) + " n=" + std::to_string(n) +
                                   " offset=" + std::to_string(offset);
          Memory gradient(n * SizeOf(dtype), offset);
          CodecState state;
          std::vector<float> residual(n);
          for (unsigned step = 0; step < 3; ++step) {
            FillGradient(gradient.data, dtype, n, step + 1);
            const Reference expected(config, gradient.data, dtype, n, residual);
            const size_t limit = codec->MaxPayloadBytes(n, dtype);
            Memory payload(limit, offset);
            const size_t bytes = codec->Encode(gradient.data, dtype, n, &state, payload.data, dtype);
            ASSERT_EQ(bytes, expected.payload.size()) << what;
            ASSERT_EQ(bytes, limit) << what;
            ExpectSameBits(payload.data, expected.payload.data(), bytes, what + " payload");
            EXPECT_EQ(payload.data[bytes], 0xa5) << what << " wrote past the payload";

            const Payload received = {payload.data, bytes};
            codec->Check(received, n, dtype);
            for (const DType out_type : kTypes) {
              Memory out(n * SizeOf(out_type), offset);
              std::vector<uint8_t> wanted(n * SizeOf(out_type));
              for (size_t i = 0; i < n; ++i) Put(wanted.data(), out_type, i, expected.decoded[i]);
              codec->Decode(received, n, dtype, out.data, out_type);
              ExpectSameBits(out.data, wanted.data(), wanted.size(),
                             what + " decoded to " + NameOf(out_type));
              EXPECT_EQ(out.data[wanted.size()], 0xa5) << what << " wrote past the output";
            }
            if (codec->HasResidual()) {
              CodecState settled = state;
              settled.residual = AllocateBuffer(n * 4);
              if (n != 0) std::memcpy(settled.residual.data, state.residual.data, n * 4);
              codec->SettleResidual(&settled, n);
              EXPECT_FALSE(settled.lazy);
              ExpectSameBits(settled.residual.data, expected.residual.data(), n * 4,
                             what + " residual");
            }
            residual = expected.residual;
            if (!codec->HasResidual()) residual.assign(n, 0);
            if (testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(CodecOnEveryTable, SumsInOrder) {
  for (const std::string config : kConfigs) {
    const CodecPtr codec = MakeCodec(config);
    for (const size_t n : {size_t(1), size_t(64), size_t(1000), size_t(4099)}) {
      for (const size_t count : {1, 2, 3, 8, 127, 128, 300}) {
        const std::string what = config + " n=" + std::to_string(n) + " x" + std::to_string(count);
        std::vector<Memory> memory;
        std::vector<Payload> payloads;
        std::vector<float> expected(n);
        std::vector<int> levels(n);
        Memory gradient(n * 4), decoded(n * 4);
        for (size_t k = 0; k < count; ++k) {
          FillGradient(gradient.data, DType::kFloat32, n, k + 1);
          CodecState state;
          memory.emplace_back(codec->MaxPayloadBytes(n, DType::kFloat32), k % 4);
          const size_t bytes = codec->Encode(gradient.data, DType::kFloat32, n, &state,
                                             memory.back().data, DType::kFloat32);
          payloads.push_back({memory.back().data, bytes});
          codec->Decode(payloads.back(), n, DType::kFloat32, decoded.data, DType::kFloat32);
          for (size_t i = 0; i < n; ++i) {
            const float value = decoded.floats()[i];
            expected[i] = k == 0 ? value : expected[i] + value;
            levels[i] += (value > 0) - (value < 0);
          }
        }
        if (codec->Name() == "2bit" || codec->Name() == "1bit") {
          const float unit = codec->Name() == "2bit" ? 0.5f : 0.75f;
          for (size_t i = 0; i < n; ++i) expected[i] = static_cast<float>(levels[i]) * unit;
        }
        Memory sum(n * 4, 4);
        codec->DecodeSum(payloads.data(), count, n, DType::kFloat32, sum.floats());
        ExpectSameBits(sum.data, expected.data(), n * 4, what);
        EXPECT_EQ(sum.data[n * 4], 0xa5) << what << " wrote past the sum";
      }
    }
  }
}

TEST_P(CodecOnEveryTable, SumsNarrowWireTypesInFloat32) {
  const CodecPtr codec = IdentityCodec();
  const size_t n = 1001;
  for (const DType wire : {DType::kFloat16, DType::kBFloat16}) {
    Memory first(n * 2), second(n * 2), sum(n * 4);
    FillGradient(first.data, wire, n, 1);
    FillGradient(second.data, wire, n, 2);
    const Payload payloads[] = {{first.data, n * 2}, {second.data, n * 2}};
    codec->DecodeSum(payloads, 2, n, wire, sum.floats());
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(sum.floats()[i], Get(first.data, wire, i) + Get(second.data, wire, i)) << i;
    }
  }
}

TEST_P(CodecOnEveryTable, KeepsNonFiniteValuesWhereTheFormatCannotSayThem) {
  const CodecPtr codec = MakeCodec("2bit", {});
  std::vector<float> gradient(130, 0.1f), decoded(130);
  gradient[3] = gradient[129] = kNaN;
  gradient[5] = kInf;
  CodecState state;
  Memory payload(codec->MaxPayloadBytes(130, DType::kFloat32));
  const size_t bytes = codec->Encode(gradient.data(), DType::kFloat32, 130, &state, payload.data,
                                     DType::kFloat32);
  codec->Decode({payload.data, bytes}, 130, DType::kFloat32, decoded.data(), DType::kFloat32);
  EXPECT_EQ(decoded[3], 0.0f);
  EXPECT_EQ(decoded[129], 0.0f);
  EXPECT_EQ(decoded[5], 0.5f);
  EXPECT_TRUE(std::isnan(state.residual.as<float>()[3]));
  EXPECT_TRUE(std::isnan(state.residual.as<float>()[129]));
  EXPECT_EQ(state.residual.as<float>()[5], kInf);
}

TEST_P(CodecOnEveryTable, OneBitShowsAnOverflowOnceAndRecovers) {
  const CodecPtr codec = MakeCodec("onebit", {});
  for (const float bad : {kNaN, kInf, -kInf}) {
    const size_t n = 4200;
    std::vector<float> gradient(n, 0.25f), decoded(n);
    for (size_t i = 0; i < n; i += 3) gradient[i] = -0.5f;
    gradient[4150] = bad;
    CodecState state;
    Memory payload(codec->MaxPayloadBytes(n, DType::kFloat32));
    const Payload received = {payload.data, codec->MaxPayloadBytes(n, DType::kFloat32)};
    codec->Encode(gradient.data(), DType::kFloat32, n, &state, payload.data, DType::kFloat32);
    codec->Check(received, n, DType::kFloat32);
    codec->Decode(received, n, DType::kFloat32, decoded.data(), DType::kFloat32);
    for (const float value : decoded) ASSERT_TRUE(std::isnan(value));

    std::fill(gradient.begin(), gradient.end(), 0.0f);
    codec->Encode(gradient.data(), DType::kFloat32, n, &state, payload.data, DType::kFloat32);
    codec->Check(received, n, DType::kFloat32);
    codec->Decode(received, n, DType::kFloat32, decoded.data(), DType::kFloat32);
    codec->SettleResidual(&state, n);
    for (size_t i = 0; i < n; ++i) {
      const float total = decoded[i] + state.residual.as<float>()[i];
      ASSERT_NEAR(total, i == 4150 ? 0.0f : i % 3 == 0 ? -0.5f : 0.25f, 1e-6) << i;
    }
  }
}

TEST_P(CodecOnEveryTable, DecodesAnyBytesThatPassTheCheck) {
  std::mt19937 random(13);
  const size_t n = 333;
  std::vector<float> out(n);
  for (const std::string config : kConfigs) {
    const CodecPtr codec = MakeCodec(config);
    for (int trial = 0; trial < 50; ++trial) {
      // Exactly as long as needed, on the heap, so that a sanitizer finds any read past the end.
      std::vector<uint8_t> bytes(codec->MaxPayloadBytes(n, DType::kFloat32));
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
      const float means[2] = {-1, 2};
      if (codec->Name() == "onebit") std::memcpy(bytes.data(), means, sizeof(means));
      const Payload payload = {bytes.data(), bytes.size()};
      codec->Check(payload, n, DType::kFloat32);
      codec->Decode(payload, n, DType::kFloat32, out.data(), DType::kFloat32);
      if (codec->Name() == "2bit") {
        for (const float value : out) ASSERT_TRUE(value == 0 || std::fabs(value) == 0.5f);
      } else if (codec->Name() == "1bit") {
        for (const float value : out) ASSERT_EQ(std::fabs(value), 0.75f);
      } else if (codec->Name() == "onebit") {
        for (const float value : out) ASSERT_TRUE(value == -1 || value == 2);
      }
      const Payload twice[] = {payload, payload};
      codec->DecodeSum(twice, 2, n, DType::kFloat32, out.data());
    }
  }
}

TEST(Codec, LosesNothingWhenSwitched) {
  const size_t n = 300;
  std::vector<float> gradient(n), decoded(n);
  const float zero[n] = {};
  for (const std::string from : kConfigs) {
    for (const std::string to : kConfigs) {
      const CodecPtr first = MakeCodec(from), second = MakeCodec(to);
      CodecState state;
      Memory payload(n * 4);
      std::vector<double> sent(n);
      FillGradient(gradient.data(), DType::kFloat32, n, 11);
      auto send = [&](const CodecPtr& codec, const float* data) {
        const size_t bytes =
            codec->Encode(data, DType::kFloat32, n, &state, payload.data, DType::kFloat32);
        codec->Decode({payload.data, bytes}, n, DType::kFloat32, decoded.data(), DType::kFloat32);
        for (size_t i = 0; i < n; ++i) sent[i] += decoded[i];
      };
      send(first, gradient.data());
      send(second, zero);
      if (second->HasResidual()) {
        second->SettleResidual(&state, n);
        for (size_t i = 0; i < n; ++i) sent[i] += state.residual.as<float>()[i];
      } else {
        EXPECT_FALSE(state.residual);
      }
      for (size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(sent[i], gradient[i], 1e-6) << from << " then " << to << " at " << i;
      }
    }
  }
}

TEST(Codec, RefusesAResidualOfAnotherSize) {
  const CodecPtr codec = MakeCodec("2bit", {});
  const float gradient[64] = {};
  uint8_t payload[64];
  CodecState state;
  codec->Encode(gradient, DType::kFloat32, 64, &state, payload, DType::kFloat32);
  EXPECT_THROW(codec->Encode(gradient, DType::kFloat32, 32, &state, payload, DType::kFloat32), Error);
  EXPECT_THROW(IdentityCodec()->Encode(gradient, DType::kFloat32, 16, &state, payload,
                                       DType::kFloat32), Error);
}

}  // namespace
}  // namespace hipress
