// Transactions: the changes of a step are rolled back bit for bit, whether it has ended, failed or
// met a NaN.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "kvstore/worker/bucket.h"
#include "operator/contrib/codec.h"
#include "operator/contrib/state_before.h"
#include "workers_fixture.h"

namespace hipress::testing {
namespace {

using Floats = std::vector<float>;

Floats Gradient(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats values(n);
  for (float& value : values) value = normal(random);
  return values;
}

std::string Text(const Buffer& buffer) { return std::string(buffer.as<char>(), buffer.size); }

/// All of a state but what is lazy in it, which the next encode or Settle shows.
std::string BitsOf(const Codec& codec, CodecState state) {
  std::string bits(reinterpret_cast<const char*>(&state.step), sizeof(state.step));
  for (const Buffer* vector : codec.States(&state)) bits += *vector ? Text(*vector) : "none ";
  return bits;
}

// ---- One state

class StateBeforeTest : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr size_t kElements = 1003;  ///< not whole cache lines

  /// \return the payload
  std::string Encode(unsigned seed) {
    const Floats gradient = Gradient(kElements, seed);
    const Buffer payload = AllocateBuffer(codec_->MaxPayloadBytes(kElements, DType::kFloat32));
    const size_t bytes = codec_->Encode(gradient.data(), DType::kFloat32, kElements, &state_,
                                        payload.data, DType::kFloat32);
    return std::string(payload.as<char>(), bytes);
  }
  std::string Bits() { return BitsOf(*codec_, state_); }

  const CodecPtr codec_ = MakeCodec(GetParam());
  CodecState state_;
  StateBefore before_;
};

TEST_P(StateBeforeTest, RepeatsAStepWithTheSameBits) {
  for (uint64_t transaction = 1; transaction < 5; ++transaction) {
    const std::string had = Bits();
    before_.Save(state_, transaction);
    const std::string first = Encode(unsigned(transaction));
    before_.Save(state_, transaction);  // which it has
    Encode(77);
    EXPECT_NE(Bits(), had);
    ASSERT_TRUE(before_.RollBack(&state_, transaction));
    EXPECT_EQ(Bits(), had);
    EXPECT_FALSE(before_.RollBack(&state_, transaction)) << "it is put back once";
    before_.Save(state_, transaction);
    EXPECT_EQ(Encode(unsigned(transaction)), first);
  }
}

TEST_P(StateBeforeTest, OnlyWhatThatTransactionOrALaterOneHasChanged) {
  before_.Save(state_, 3);
  Encode(1);
  const std::string had = Bits();
  EXPECT_FALSE(before_.RollBack(&state_, 4));
  EXPECT_EQ(Bits(), had);
  before_.Save(state_, 6);
  Encode(2);
  EXPECT_TRUE(before_.RollBack(&state_, 4));
  EXPECT_EQ(Bits(), had);
}

TEST_P(StateBeforeTest, AResidualThatWasNoneIsNoneAgain) {
  before_.Save(state_, 1);
  Encode(1);
  before_.RollBack(&state_, 1);
  EXPECT_FALSE(state_.residual);
  EXPECT_EQ(state_.step, 0u);
  EXPECT_EQ(state_.lazy, nullptr);
}

TEST_P(StateBeforeTest, ACheckpointOfASavedStateDoesNotChangeIt) {
  Encode(1);
  before_.Save(state_, 1);
  const std::string second = Encode(2);
  before_.RollBack(&state_, 1);
  before_.Save(state_, 2);
  codec_->SettleResidual(&state_, kElements);
  before_.RollBack(&state_, 2);
  EXPECT_EQ(Encode(2), second);
}

TEST_P(StateBeforeTest, TwoPiecesOfMemoryForEachVectorTakeTurns) {
  std::set<const uint8_t*> used;
  for (uint64_t transaction = 1; transaction < 8; ++transaction) {
    before_.Save(state_, transaction);
    Encode(unsigned(transaction));
    if (transaction == 5) before_.RollBack(&state_, transaction);
    for (const Buffer* vector : codec_->States(&state_)) used.insert(vector->data);
  }
  EXPECT_LE(used.size(), 2 * codec_->States(&state_).size());
}

INSTANTIATE_TEST_SUITE_P(Codecs, StateBeforeTest,
                         ::testing::Values("type=onebit", "type=2bit threshold=0.5", "type=terngrad",
                                           "type=dgc ratio=0.05 momentum=0.9", "type=maxmin",
                                           "type=none"),
                         [](const auto& info) {
                           const size_t end = info.param.find(' ');
                           return info.param.substr(5, end == std::string::npos ? end : end - 5);
                         });

/// Every codec, by the bits that it leaves where it writes a state in place, and separate.
TEST(SeparateStates, HaveTheBitsOfStatesInPlace) {
  for (const CodecInfo& info : Codecs()) {
    for (const size_t n : {size_t(0), size_t(1), size_t(1003), size_t(70001)}) {
      SCOPED_TRACE(info.name + ", " + std::to_string(n) + " elements");
      const CodecPtr one = MakeCodec(info.name, {}), two = one->OnThreads(2), codec = two ? two : one;
      CodecState in_place, separate;
      const auto encode = [&](CodecState* state, unsigned seed) {
        const Floats gradient = Gradient(n, seed);
        Buffer payload = AllocateBuffer(codec->MaxPayloadBytes(n, DType::kFloat32));
        payload.size = codec->Encode(gradient.data(), DType::kFloat32, n, state, payload.data,
                                     DType::kFloat32);
        return Text(payload);
      };
      for (unsigned step = 0; step < 4; ++step) {
        const CodecState before = separate;
        const std::string had = BitsOf(*codec, before);
        ASSERT_EQ(encode(&separate, step), encode(&in_place, step));
        ASSERT_EQ(BitsOf(*codec, before), had);
        ASSERT_EQ(BitsOf(*codec, separate), BitsOf(*codec, in_place));
      }
    }
  }
}

// ---- Steps of a bucket

constexpr int64_t kCount = 3000;

class TransactionTest : public ::testing::TestWithParam<ProgramKind> {
 protected:
  void Make(const std::string& codec, float momentum) {
    KeyOptions options;
    options.kind = GetParam();
    options.codec = codec_ = MakeCodec(codec);
    options.momentum = momentum;
    options.average = true;
    const auto errors = workers_.Together([&](int w, KVStoreDist& store) {
      key_[w] = BoundKey(&store, w, 1, kCount, options);
      const std::vector<Bucket::Span> all = {{0, kCount}};
      buckets_[w] = std::make_shared<Bucket>(&store, DType::kFloat32, all, true);
      buckets_[w]->Add({key_[w].flow, 0});
    });
    for (const std::string& error : errors) ASSERT_EQ(error, "");
  }
  /// \return all workers' results
  std::vector<Floats> Step(unsigned seed, uint64_t transaction, bool finite = true) {
    std::vector<Floats> flats;
    for (int w = 0; w < kWorkers; ++w) flats.push_back(Gradient(kCount, seed * 10 + unsigned(w)));
    if (!finite) flats[1][kCount / 2] = std::numeric_limits<float>::quiet_NaN();
    Calls calls;
    int non_finite[kWorkers];
    for (int w = 0; w < kWorkers; ++w) {
      buckets_[w]->Run(flats[w].data(), transaction, &non_finite[w], calls.Expect());
    }
    EXPECT_TRUE(calls.Wait());
    EXPECT_EQ(calls.error(), "");
    return flats;
  }
  void RollBack(uint64_t transaction) {
    for (int w = 0; w < kWorkers; ++w) {
      workers_.store(w).AwaitEncodes();
      RolledBack(w, transaction);
    }
  }
  void RolledBack(int w, uint64_t transaction) {
    for (size_t i = 0; i < key_[w].states.size(); ++i) {
      key_[w].saved[i]->RollBack(key_[w].states[i].get(), transaction);
    }
    if (Momentum* momentum = key_[w].flow->momentum()) momentum->RollBack(transaction);
  }
  /// State of one worker, or of all of them.
  std::string Bits(int w) {
    std::string bits;
    for (const auto& state : key_[w].states) {
      bits += std::to_string(state->step) + " ";
      for (const Buffer* vector : codec_->States(state.get())) {
        if (vector == &state->residual) Settle(state.get(), state->residual.size / sizeof(float));
        bits += std::string(vector->as<char>(), *vector ? vector->size : 0);
      }
    }
    if (const Momentum* momentum = key_[w].flow->momentum()) {
      Floats last(kCount);
      momentum->Get(last.data());
      bits += std::string(reinterpret_cast<const char*>(last.data()), kCount * sizeof(float));
    }
    return bits;
  }
  uint64_t Pushed(int w) { return workers_.store(w).counters().pushed_bytes; }
  std::string Bits() { return Bits(0) + Bits(1) + Bits(2); }

  Workers workers_;
  CodecPtr codec_;
  BoundKey key_[kWorkers];
  std::shared_ptr<Bucket> buckets_[kWorkers];
};

TEST_P(TransactionTest, AStepThatHasEndedIsRepeated) {
  Make("type=onebit", 0.5f);
  Step(0, 0);
  Step(1, 1);
  const std::string had = Bits();
  const auto first = Step(2, 2);
  Step(3, 2);  // of the same transaction
  EXPECT_NE(Bits(), had);
  RollBack(2);
  EXPECT_EQ(Bits(), had);
  EXPECT_EQ(Step(2, 3), first);
}

TEST_P(TransactionTest, AStepWithANaNIsPutBack) {
  Make("type=terngrad", 0);
  Step(1, 1);
  const std::string had = Bits();
  Step(2, 2, false);
  EXPECT_NE(Bits(), had) << "its random numbers were used up";
  RollBack(2);
  EXPECT_EQ(Bits(), had);
}

TEST_P(TransactionTest, AStepWithoutANumberIsNotSaved) {
  Make("type=onebit", 0.5f);
  Step(1, 1);
  Step(2, 0);
  const std::string had = Bits();
  RollBack(2);
  EXPECT_EQ(Bits(), had);
}

TEST_P(TransactionTest, AStepThatFailsHalfwayIsPutBackOnSurvivors) {
  Make("type=onebit", 0.5f);
  Step(1, 1);
  const std::string had[] = {Bits(0), Bits(1)};
  const uint64_t pushed[] = {Pushed(0), Pushed(1)};
  Calls calls;
  Floats flats[2];
  int non_finite[2];
  for (int w = 0; w < 2; ++w) {
    flats[w] = Gradient(kCount, 20 + unsigned(w));
    buckets_[w]->Run(flats[w].data(), 2, &non_finite[w], calls.Expect());
  }
  for (int w = 0; w < 2; ++w) {  // both have encoded something without worker 2
    ASSERT_TRUE(Eventually([&] { return Pushed(w) > pushed[w]; }, seconds(5)));
  }
  workers_.store(2).Abort();
  ASSERT_TRUE(calls.Wait());
  EXPECT_NE(calls.error(), "");
  for (int w = 0; w < 2; ++w) {
    EXPECT_NE(ErrorOf([&] { workers_.store(w).AwaitEncodes(); }), "");
    workers_.store(w).Abort();
    EXPECT_NE(Bits(w), had[w]) << "it had begun";
    RolledBack(w, 2);
    EXPECT_EQ(Bits(w), had[w]);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, TransactionTest, ::testing::Values(ProgramKind::kColocated, ProgramKind::kChain),
                         [](const auto& info) {
                           return info.param == ProgramKind::kColocated ? "colocated" : "chain";
                         });

}  // namespace
}  // namespace hipress::testing
