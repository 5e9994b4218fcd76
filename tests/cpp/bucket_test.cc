// Buckets over three workers: all keys of a step end together, and so do their states.
#include "kvstore/worker/bucket.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "operator/contrib/half.h"
#include "operator/contrib/kernels.h"
#include "workers_fixture.h"

namespace hipress::testing {
namespace {

using Floats = std::vector<float>;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kFirst = 1000, kSecond = 65;  ///< elements of two keys
/// The flat tensor: a gap, the first key, three small gradients, the second key.
const std::vector<Bucket::Span> kSmall = {{1003, 1}, {1004, 17}, {1030, 5}};
constexpr int64_t kSecondAt = 1040, kAll = kSecondAt + kSecond;
constexpr float kUntouched = 9.0f;

/// What a worker's elements are: small integers, so that sums are exact.
Floats Gradients(int worker, int step) {
  Floats flat(kAll, kUntouched);
  const auto fill = [&](int64_t offset, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      flat[offset + i] = float((i * 7 + offset + worker * 31 + step * 5) % 64) - 20;
    }
  };
  fill(3, kFirst);
  for (const auto& span : kSmall) fill(span.offset, span.count);
  fill(kSecondAt, kSecond);
  return flat;
}

class BucketTest : public ::testing::Test {
 protected:
  /// Two keys and a fusion buffer, on all workers.
  void Make(const KeyOptions& options) {
    dtype_ = options.dtype;
    KeyOptions small = options;
    small.codec = IdentityCodec();
    small.momentum = 0;
    const auto errors = workers_.Together([&](int w, KVStoreDist& store) {
      first_[w] = BoundKey(&store, w, 1, kFirst, options);
      second_[w] = BoundKey(&store, w, 2, kSecond, options);
      fusion_[w] = BoundKey(&store, w, 3, 23, small);
      std::vector<Bucket::Span> all = kSmall;
      all.push_back({3, kFirst});
      all.push_back({kSecondAt, kSecond});
      buckets_[w] = std::make_shared<Bucket>(&store, options.dtype, all, true);
      buckets_[w]->Add({first_[w].flow, 3});
      buckets_[w]->Add({second_[w].flow, kSecondAt});
      buckets_[w]->Set(Bucket::Fusion{fusion_[w].flow, kSmall});
    });
    for (const std::string& error : errors) ASSERT_EQ(error, "");
  }
  void Make(ProgramKind kind, DType dtype = DType::kFloat32, bool average = false) {
    KeyOptions options;
    options.kind = kind;
    options.dtype = dtype;
    options.average = average;
    Make(options);
  }
  /// One step of all workers, from what is in flats_ to the same.
  void Run() {
    Calls calls;
    std::vector<std::vector<uint8_t>> memory(kWorkers);
    for (int w = 0; w < kWorkers; ++w) {
      memory[w].resize(size_t(kAll) * SizeOf(dtype_));
      ActiveKernels().convert(flats_[w].data(), DType::kFloat32, kAll, memory[w].data(), dtype_);
      non_finite_[w] = -1;
      buckets_[w]->Run(memory[w].data(), 0, &non_finite_[w], calls.Expect());
    }
    ASSERT_TRUE(calls.Wait());
    ASSERT_EQ(calls.error(), "");
    for (int w = 0; w < kWorkers; ++w) {
      ActiveKernels().convert(memory[w].data(), dtype_, kAll, flats_[w].data(), DType::kFloat32);
    }
  }
  void Step(int step) {
    for (int w = 0; w < kWorkers; ++w) flats_[w] = Gradients(w, step);
    Run();
  }
  Floats Expected(int step, float factor = 1) {
    Floats sum(kAll, kUntouched);
    for (int64_t i = 0; i < kAll; ++i) {
      if (!IsOurs(i)) continue;
      sum[i] = 0;
      for (int w = 0; w < kWorkers; ++w) sum[i] += Gradients(w, step)[i];
      sum[i] *= factor;
    }
    return sum;
  }
  static bool IsOurs(int64_t i) {
    bool ours = (i >= 3 && i < 3 + kFirst) || i >= kSecondAt;
    for (const auto& span : kSmall) ours |= i >= span.offset && i < span.offset + span.count;
    return ours;
  }
  /// The whole bucket is NaN everywhere, and no other memory has been touched.
  void ExpectSpoilt() {
    for (int w = 0; w < kWorkers; ++w) {
      EXPECT_EQ(non_finite_[w], 1);
      for (int64_t i = 0; i < kAll; ++i) {
        if (IsOurs(i)) {
          ASSERT_TRUE(std::isnan(flats_[w][i])) << w << " " << i;
        } else {
          ASSERT_EQ(flats_[w][i], kUntouched);
        }
      }
    }
  }

  Workers workers_;
  DType dtype_ = DType::kFloat32;
  BoundKey first_[kWorkers], second_[kWorkers], fusion_[kWorkers];
  std::shared_ptr<Bucket> buckets_[kWorkers];
  Floats flats_[kWorkers];
  int non_finite_[kWorkers];
};

// Steps that are begun without waiting are the keys' iterations in the order of the calls, on every
// worker.
TEST_F(BucketTest, ConcurrentStepsDoNotMixGradients) {
  constexpr int kSteps = 40;
  Make(ProgramKind::kColocated);
  Calls calls;
  std::vector<Floats> flats[kWorkers];
  std::vector<int> non_finite(kWorkers * kSteps, -1);
  for (int w = 0; w < kWorkers; ++w) {
    for (int step = 0; step < kSteps; ++step) flats[w].push_back(Gradients(w, step));
  }
  for (int step = 0; step < kSteps; ++step) {
    for (int w = 0; w < kWorkers; ++w) {
      buckets_[w]->Run(flats[w][step].data(), 0, &non_finite[w * kSteps + step], calls.Expect());
    }
  }
  ASSERT_TRUE(calls.Wait());
  ASSERT_EQ(calls.error(), "");
  for (int step = 0; step < kSteps; ++step) {
    for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(flats[w][step], Expected(step)) << step;
  }
}

TEST_F(BucketTest, SumsKeysAndAFusionBufferInOneStep) {
  Make(ProgramKind::kColocated);
  for (int step = 0; step < 5; ++step) {
    Step(step);
    for (int w = 0; w < kWorkers; ++w) {
      EXPECT_EQ(flats_[w], Expected(step)) << w;
      EXPECT_EQ(non_finite_[w], 0);
    }
  }
}

TEST_F(BucketTest, MeansAreSumsTimesAFactor) {
  Make(ProgramKind::kChain, DType::kFloat32, true);
  Step(3);
  for (int w = 0; w < kWorkers; ++w) EXPECT_EQ(flats_[w], Expected(3, 1.0f / 3)) << w;
}

TEST_F(BucketTest, PartialSumsOf16BitGradientsTravelUnrounded) {
  Make(ProgramKind::kChain, DType::kFloat16);
  // 2048 + 1 is 2048 in float16, and 2050 is there.
  for (int w = 0; w < kWorkers; ++w) {
    flats_[w] = Floats(kAll, kUntouched);
    for (int64_t i = 0; i < kAll; ++i) flats_[w][i] = !IsOurs(i) ? kUntouched : w == 0 ? 2048 : 1;
  }
  Run();
  for (int w = 0; w < kWorkers; ++w) {
    for (int64_t i = 0; i < kAll; ++i) {
      ASSERT_EQ(flats_[w][i], IsOurs(i) ? 2050 : kUntouched) << w << " " << i;
    }
  }
}

TEST_F(BucketTest, MeansOf16BitTypesAreRoundedOnce) {
  Make(ProgramKind::kColocated, DType::kBFloat16, true);
  Step(1);
  const Floats want = Expected(1, 1.0f / 3);
  for (int w = 0; w < kWorkers; ++w) {
    for (int64_t i = 0; i < kAll; ++i) {
      BFloat16 rounded;
      FromFloat(want[i], &rounded);
      ASSERT_EQ(flats_[w][i], ToFloat(rounded)) << i;
    }
  }
}

TEST_F(BucketTest, ANaNAnywhereSpoilsAllOfItAndTheCulpritsResidualStays) {
  KeyOptions options;
  options.codec = MakeCodec("onebit", {});
  Make(options);
  const auto residual = [&](const BoundKey& key, size_t encode, int64_t count) {
    CodecState& state = *key.states[encode];
    options.codec->SettleResidual(&state, size_t(count));
    const float* values = state.residual.as<float>();
    return Floats(values, values + count);
  };
  Step(0);
  for (const int64_t where : {int64_t(3 + 500), kSmall[1].offset, kAll - 1}) {
    const int culprit = 1;
    // Its encodes of gradients: of the first and of the third part.
    const Floats before = residual(first_[culprit], 0, 334);
    for (int w = 0; w < kWorkers; ++w) flats_[w] = Gradients(w, 1);
    flats_[culprit][where] = where == kAll - 1 ? -1 / 0.0f : kNaN;
    Run();
    ExpectSpoilt();
    EXPECT_EQ(residual(first_[culprit], 0, 334), before);
    Step(2);
    for (int w = 0; w < kWorkers; ++w) {
      EXPECT_EQ(non_finite_[w], 0);
      EXPECT_EQ(flats_[w], flats_[0]);
      EXPECT_TRUE(std::isfinite(flats_[w][3]));
    }
  }
}

TEST_F(BucketTest, RankWithoutSumsCompletes) {
  Make(ProgramKind::kReduce);
  for (const bool non_finite : {false, true, false}) {
    for (int w = 0; w < kWorkers; ++w) flats_[w] = Gradients(w, 4);
    if (non_finite) flats_[2][kAll - 1] = kNaN;
    Run();
    EXPECT_EQ(non_finite_[0], non_finite);
    EXPECT_EQ(non_finite_[1], 0);  // it has no result that could be NaN
    if (non_finite) {
      EXPECT_TRUE(std::isnan(flats_[0][3]));
      EXPECT_TRUE(std::isnan(flats_[2][3]));
    } else {
      EXPECT_EQ(flats_[0], Expected(4));
      for (int64_t i = 0; i < kFirst; ++i) ASSERT_EQ(flats_[1][3 + i], Gradients(1, 4)[3 + i]);
    }
  }
}

TEST_F(BucketTest, RunningStepsFailWithTheJob) {
  Make(ProgramKind::kColocated);
  Calls calls;
  for (int w = 0; w < 2; ++w) {
    flats_[w] = Gradients(w, 0);
    buckets_[w]->Run(flats_[w].data(), 0, &non_finite_[w], calls.Expect());
  }
  workers_.store(2).FailJob("worker 2 gave up: it is tired");
  ASSERT_TRUE(calls.Wait());
  EXPECT_EQ(calls.error(), "worker 2 gave up: it is tired");
  // And later ones at once.
  Calls late;
  for (int w = 0; w < kWorkers; ++w) {
    buckets_[w]->Run(flats_[0].data(), 0, &non_finite_[w], late.Expect());
    ASSERT_TRUE(late.Wait());
    EXPECT_EQ(late.error(), "worker 2 gave up: it is tired");
  }
}

// ---- Momentum

TEST_F(BucketTest, MomentumIsAddedOncePerStep) {
  KeyOptions options;
  options.momentum = 0.5f;
  Make(options);
  Floats last(kFirst, 0);
  for (int step = 0; step < 4; ++step) {
    Step(step);
    const Floats sum = Expected(step);
    for (int w = 0; w < kWorkers; ++w) {
      for (int64_t i = 0; i < kFirst; ++i) {
        ASSERT_EQ(flats_[w][3 + i], sum[3 + i] + 3 * 0.5f * last[i]) << step << " " << i;
      }
      // What is in the fusion buffer has none.
      ASSERT_EQ(flats_[w][kSmall[0].offset], sum[kSmall[0].offset]);
    }
    last.assign(flats_[0].begin() + 3, flats_[0].begin() + 3 + kFirst);
  }
}

TEST_F(BucketTest, AStepWithANaNLeavesTheMomentumAsItWas) {
  KeyOptions options;
  options.codec = MakeCodec("onebit", {});
  options.momentum = 0.9f;
  Make(options);
  Floats before(kFirst), after(kFirst);
  Step(0);
  first_[1].flow->momentum()->Get(before.data());
  EXPECT_EQ(before, Floats(flats_[1].begin() + 3, flats_[1].begin() + 3 + kFirst));
  for (int w = 0; w < kWorkers; ++w) flats_[w] = Gradients(w, 1);
  flats_[2][kSecondAt] = kNaN;  // of another key
  Run();
  ExpectSpoilt();
  for (int w = 0; w < kWorkers; ++w) {
    first_[w].flow->momentum()->Get(after.data());
    EXPECT_EQ(after, before);
  }
}

TEST_F(BucketTest, AGradientThatOverflowsWithItsMomentumSpoilsTheStep) {
  KeyOptions options;
  options.dtype = DType::kFloat16;
  options.average = true;
  options.momentum = 1;
  Make(options);
  const float expected[] = {40000, kNaN, 30000};
  const float given[] = {40000, 40000, -10000};
  for (int step = 0; step < 3; ++step) {
    for (int w = 0; w < kWorkers; ++w) {
      flats_[w] = Floats(kAll, kUntouched);
      for (int64_t i = 0; i < kFirst; ++i) flats_[w][3 + i] = given[step];
    }
    Run();
    if (step == 1) {
      ExpectSpoilt();
      continue;
    }
    for (int w = 0; w < kWorkers; ++w) {
      EXPECT_EQ(non_finite_[w], 0);
      EXPECT_NEAR(flats_[w][3], expected[step], 32);
    }
  }
}

TEST_F(BucketTest, MomentumGoesOnFromWhereItWasSaved) {
  KeyOptions options;
  options.codec = MakeCodec("onebit", {});
  options.momentum = 0.9f;
  Make(options);
  Step(0);
  for (int w = 0; w < kWorkers; ++w) {
    for (BoundKey* key : {&first_[w], &second_[w]}) {
      Momentum& momentum = *key->flow->momentum();
      Floats saved(size_t(key->flow->elements())), again(saved.size());
      momentum.Get(saved.data());
      EXPECT_NE(saved, again);
      momentum.Set(again.data());
      momentum.Get(again.data());
      EXPECT_EQ(again, Floats(saved.size(), 0.0f));
      momentum.Set(saved.data());
      momentum.Get(again.data());
      EXPECT_EQ(again, saved);
    }
  }
  Step(1);
  for (int w = 1; w < kWorkers; ++w) EXPECT_EQ(flats_[w], flats_[0]);
}

}  // namespace
}  // namespace hipress::testing
