// Codecs selected by text, and payloads that they refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "operator/contrib/codec.h"
#include "operator/contrib/half.h"

namespace hipress {
namespace {

const char* const kConfigs[] = {"type=none", "type=2bit threshold=0.5",
                                "type=1bit threshold=0.125 scale=0.75", "type=onebit"};
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// A configuration's parameters, without its type and the digest of its text.
std::string Params(const Codec& codec) {
  const std::string config = codec.Config();
  return config.substr(config.find(' ', config.find(" spec=") + 1) + 1);
}

TEST(CodecConfig, ListsWhatIsAllowed) {
  const struct {
    const char* config;
    const char* sentence;
  } cases[] = {
      {"type=3bit",
       "unknown compression type \"3bit\"; allowed: 1bit, 2bit, bf16, dct, dgc, fp16, graddrop, "
       "lossless, maxmin, maxminef, natural, none, onebit, randomk, sparseloco, stc, tbq, ternary, "
       "terngrad, topk"},
      {"type=2bit threshold=0",
       "threshold of compression type 2bit must be a finite number > 0, not \"0\""},
      {"type=2bit threshold=-0.5",
       "threshold of compression type 2bit must be a finite number > 0, not \"-0.5\""},
      {"type=2bit threshold=nan",
       "threshold of compression type 2bit must be a finite number > 0, not \"nan\""},
      {"type=2bit threshold=inf",
       "threshold of compression type 2bit must be a finite number > 0, not \"inf\""},
      {"type=2bit threshold=1e40",
       "threshold of compression type 2bit must be a finite number > 0, not \"1e40\""},
      {"type=2bit threshold=half",
       "threshold of compression type 2bit must be a finite number > 0, not \"half\""},
      {"type=2bit threshold=", "threshold of compression type 2bit must be a finite number > 0, not \"\""},
      {"type=2bit threshold=1 threshold=2",
       "parameter threshold of compression type 2bit is given twice; give it once"},
      {"type=2bit rate=1",
       "compression type 2bit has no parameter \"rate\"; its parameters: threshold (default 0.5)"},
      {"type=1bit threshold=nan",
       "threshold of compression type 1bit must be a finite number, not \"nan\""},
      {"type=1bit scale=0", "scale of compression type 1bit must be a finite number > 0, not \"0\""},
      {"type=onebit threshold=1",
       "compression type onebit has no parameter \"threshold\"; its parameters: none"},
      {"threshold=1", "a codec's configuration must begin with its type, unlike \"threshold=1\""},
      {"2bit", "a compression's configuration must be name=value pairs, not \"2bit\""},
  };
  for (const auto& item : cases) {
    try {
      MakeCodec(std::string(item.config));
      ADD_FAILURE() << item.config << " was accepted";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), item.sentence);
    }
  }
}

TEST(CodecConfig, ConfigReadsBackExactly) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    const float value = std::fabs(FloatOf(random()));
    if (!std::isfinite(value) || value == 0) continue;
    const CodecPtr codec = MakeCodec("2bit", {{"threshold", ExactText(value)}});
    EXPECT_EQ(MakeCodec(codec->Config())->Config(), codec->Config());
    // One element of exactly the threshold is sent, one a float below is not.
    const float gradient[2] = {value, std::nextafter(value, 0.0f)};
    CodecState state;
    uint8_t payload[4];
    codec->Encode(gradient, DType::kFloat32, 2, &state, payload, DType::kFloat32);
    EXPECT_EQ(payload[0], 0xc0) << codec->Config();
  }
  EXPECT_EQ(Params(*MakeCodec("2bit", {{"threshold", "+0.50"}})), "threshold=0.5");
  EXPECT_EQ(Params(*MakeCodec("1bit", {})), "threshold=0 scale=1");
  EXPECT_NE(Digest("type=onebit"), Digest("type=none"));
}

TEST(CodecConfig, ScalesForSums) {
  EXPECT_EQ(Params(*MakeCodec("2bit", {{"threshold", "0.1"}})->ForSumOf(4)), "threshold=0.4");
  EXPECT_EQ(Params(*MakeCodec("1bit", {{"threshold", "0.25"}})->ForSumOf(3)),
            "threshold=0.75 scale=3");
  EXPECT_EQ(Params(*MakeCodec("2bit", {{"threshold", "3e38"}})->ForSumOf(4)),
            "threshold=3.4028235e+38");
  EXPECT_EQ(MakeCodec("onebit", {})->ForSumOf(4), nullptr);
  EXPECT_EQ(IdentityCodec()->ForSumOf(4), nullptr);
}

TEST(CodecConfig, RefusesMalformedPayloads) {
  std::vector<uint8_t> bytes(1024);
  for (const std::string config : kConfigs) {
    const CodecPtr codec = MakeCodec(config);
    for (const size_t n : {size_t(0), size_t(1), size_t(33), size_t(100)}) {
      const size_t right = codec->MaxPayloadBytes(n, DType::kFloat32);
      for (const size_t size : {size_t(0), right - 1, right + 1, right + 4, size_t(1024)}) {
        if (size == right || size > bytes.size()) continue;
        EXPECT_THROW(codec->Check({bytes.data(), size}, n, DType::kFloat32), ProtocolError)
            << config << " n=" << n << " bytes=" << size;
      }
    }
    EXPECT_THROW(codec->Check({bytes.data(), 0}, std::numeric_limits<size_t>::max(), DType::kFloat32),
                 ProtocolError);
    EXPECT_THROW(codec->Check({bytes.data(), 4}, size_t(1) << 62, DType::kFloat32), ProtocolError);
  }
  const CodecPtr codec = MakeCodec("onebit", {});
  const float bad[][2] = {{0.5f, 1}, {-1, -0.5f}, {kNaN, 1}, {-1, kNaN}, {-1, kInf}, {-kInf, 1}};
  for (const auto& values : bad) {
    std::memcpy(bytes.data(), values, 8);
    EXPECT_THROW(codec->Check({bytes.data(), 12}, 20, DType::kFloat32), ProtocolError)
        << values[0] << " " << values[1];
  }
  const float good[][2] = {{-1, 1}, {0, 0}, {-0.0f, 3}, {kNaN, kNaN}};
  for (const auto& values : good) {
    std::memcpy(bytes.data(), values, 8);
    EXPECT_NO_THROW(codec->Check({bytes.data(), 12}, 20, DType::kFloat32));
  }
}

}  // namespace
}  // namespace hipress
