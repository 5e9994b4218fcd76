// Operations that follow one another enter together; none is kept forever, none overtakes another.
#include "bindings/mxnet/handover.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/batch.h"

namespace hipress::mxnet {
namespace {

constexpr auto kLong = std::chrono::minutes(10);  // tests end before it expires
constexpr int kBatchEnd = -1;

/// Operations 0, 1, ... that write down in which order they entered, and where a batch ended.
class HandoverTest : public ::testing::Test {
 protected:
  void Add(Handover* handover, int operation, int64_t elements = 1) {
    handover->Add([this, operation] { Enter(operation); }, elements, &followed_[operation]);
  }
  std::vector<int> Entered() { return std::exchange(entered_, {}); }

 private:
  void Enter(int operation) {
    if (!in_batch_) Batch::AtEnd([this] { in_batch_ = false, entered_.push_back(kBatchEnd); });
    in_batch_ = true;
    entered_.push_back(operation);
  }

  bool followed_[200] = {};
  bool in_batch_ = false;
  std::vector<int> entered_;
};

TEST_F(HandoverTest, WhatWasFollowedIsKeptUntilWhatFollows) {
  Handover handover(kLong);
  const std::vector<int> separate = {0, kBatchEnd, 1, kBatchEnd, 2, kBatchEnd};
  for (int operation : {0, 1, 2}) Add(&handover, operation);
  EXPECT_EQ(Entered(), separate);  // no process knew
  Add(&handover, 0);
  Add(&handover, 1);
  EXPECT_EQ(Entered(), std::vector<int>());
  Add(&handover, 3);
  EXPECT_EQ(Entered(), (std::vector<int>{0, 1, 3, kBatchEnd}));
}

TEST_F(HandoverTest, WhatNothingFollowedSoonEntersAtOnce) {
  Handover handover(std::chrono::nanoseconds(1));
  for (int i = 0; i < 3; ++i) {
    for (int operation : {0, 1}) {
      std::this_thread::sleep_for(std::chrono::microseconds(10));
      Add(&handover, operation);
    }
    EXPECT_EQ(Entered(), (std::vector<int>{0, kBatchEnd, 1, kBatchEnd}));
  }
}

TEST_F(HandoverTest, AFullBatchDoesNotWaitForMore) {
  Handover handover(kLong);
  for (int operation = 0; operation < 200; ++operation) Add(&handover, operation);
  Entered();
  for (int operation = 0; operation < 130; ++operation) Add(&handover, operation);
  EXPECT_EQ(Entered().size(), 129u);  // 128 and an end
  Add(&handover, 130, int64_t(1) << 30);
  EXPECT_EQ(Entered(), (std::vector<int>{128, 129, 130, kBatchEnd}));
}

TEST_F(HandoverTest, FlushAndStopKeepNothing) {
  Handover handover(kLong);
  for (int operation : {0, 1, 2}) Add(&handover, operation);
  Entered();
  Add(&handover, 0);
  handover.Flush();
  EXPECT_EQ(Entered(), (std::vector<int>{0, kBatchEnd}));
  Add(&handover, 0);
  handover.Stop();
  EXPECT_EQ(Entered(), (std::vector<int>{0, kBatchEnd}));
  Add(&handover, 0);
  EXPECT_EQ(Entered(), (std::vector<int>{0, kBatchEnd}));
}

TEST(Handover, WhatNothingFollowsThisTimeEntersAllTheSame) {
  bool followed = true, other = false;
  Handover handover(std::chrono::milliseconds(1));
  for (int i = 0; i < 20; ++i) {
    followed = true;  // unchanged since last time
    std::promise<void> entered;
    handover.Add([&entered] { entered.set_value(); }, 1, &followed);
    ASSERT_EQ(entered.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
    handover.Add([] {}, 1, &other);
  }
}

/// An operation that enters until it receives the signal to end.
class Slow {
 public:
  void Enter() {
    began_.set_value();
    ended_.get_future().wait();
  }
  void WaitUntilItEnters() { began_.get_future().wait(); }
  void End() { ended_.set_value(); }

 private:
  std::promise<void> began_, ended_;
};

TEST(Handover, WhatIsKeptWhileAnotherEntersFollowsIt) {
  Handover handover(std::chrono::milliseconds(1));
  Slow slow;
  bool first = false, followed = true;
  std::thread entering([&] { handover.Add([&slow] { slow.Enter(); }, 1, &first); });
  slow.WaitUntilItEnters();
  std::promise<void> entered;
  handover.Add([&entered] { entered.set_value(); }, 1, &followed);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // its deadline is long past
  slow.End();
  entering.join();
  EXPECT_EQ(entered.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

TEST(Handover, FlushAndStopWaitForWhatAnotherThreadEnters) {
  for (const bool stop : {false, true}) {
    Handover handover(kLong);
    Slow slow;
    bool first = false, followed = true, inside = false;
    std::atomic<bool> entered{false};
    std::thread entering([&] {
      handover.Add([&] {
        handover.Flush();  // from within: does not wait for itself
        inside = true;
        slow.Enter();
      }, 1, &first);
    });
    slow.WaitUntilItEnters();
    EXPECT_TRUE(inside);
    handover.Add([&entered] { entered = true; }, 1, &followed);
    auto flushed = std::async(std::launch::async, [&] {
      stop ? handover.Stop() : handover.Flush();
      return entered.load();
    });
    EXPECT_EQ(flushed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    slow.End();
    entering.join();
    EXPECT_TRUE(flushed.get());
  }
}

TEST(Handover, NoOperationOvertakesAnotherOfItsThread) {
  constexpr int kThreads = 4, kEach = 500;
  std::vector<int> entered[kThreads];  // each entered by one thread at a time
  bool followed[kThreads] = {};
  {
    Handover handover(std::chrono::microseconds(50));
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          handover.Add([&, t, i] {
            entered[t].push_back(i);
            // Longer than anything is kept, now and then.
            if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
          }, 1, &followed[t]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::vector<int>& one : entered) {
    ASSERT_EQ(one.size(), size_t(kEach));
    for (int i = 0; i < kEach; ++i) ASSERT_EQ(one[i], i);
  }
}

}  // namespace
}  // namespace hipress::mxnet
