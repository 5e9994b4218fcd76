/*!
 * \file flight_recorder_test.cc
 * \brief The ring of last events: it wraps, many threads write to it, and it costs next to nothing.
 */
#include "base/flight_recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/blocking_calls.h"

namespace hipress {
namespace {

TEST(FlightRecorder, KeepsTheLastEventsInTheirOrder) {
  FlightRecorder recorder(8);
  for (uint32_t i = 0; i < 5; ++i) {
    recorder.Record(FlightState::kReady, TimelineOp::kEncode, 70 + i, i, i);
  }
  EXPECT_EQ(recorder.Events().size(), 5u);
  for (uint32_t i = 5; i < 21; ++i) {
    recorder.Record(FlightState::kDone, TimelineOp::kSend, 70 + i, i, 2 * i, Worker(3).Packed());
  }
  const auto events = recorder.Events();
  ASSERT_EQ(events.size(), 7u);  // the oldest one's slot is the next one's
  EXPECT_EQ(recorder.recorded(), 21u);
  for (size_t at = 0; at < events.size(); ++at) {
    const uint32_t i = uint32_t(14 + at);
    EXPECT_EQ(events[at].key, 70 + i);
    EXPECT_EQ(events[at].iteration, i);
    EXPECT_EQ(events[at].partition, 2 * i);
    EXPECT_EQ(events[at].peer, Worker(3).Packed());
    EXPECT_EQ(events[at].op, TimelineOp::kSend);
    EXPECT_EQ(events[at].state, FlightState::kDone);
    if (at > 0) {
      EXPECT_GE(events[at].time, events[at - 1].time - 1e-6);
    }
  }
}

TEST(FlightRecorder, TellsTimesOfTheDay) {
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  FlightRecorder recorder(4);
  const double first = now();
  recorder.Record(FlightState::kDone, TimelineOp::kMerge, 1, 1, 1);
  const uint64_t ticks = FlightRecorder::Ticks();
  const double second = now();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double third = now();
  const double since = recorder.Since(ticks);
  const double fourth = now();
  const double time = recorder.Events().at(0).time;
  EXPECT_GT(time, first - 0.05);
  EXPECT_LT(time, second + 0.05);
  EXPECT_GT(since, third - second - 0.05);
  EXPECT_LT(since, fourth - first + 0.05);
}

TEST(FlightRecorder, OffItKeepsNothing) {
  FlightRecorder recorder(0);
  recorder.Record(FlightState::kDone, TimelineOp::kMerge, 1, 1, 1);
  EXPECT_FALSE(recorder.on());
  EXPECT_TRUE(recorder.Events().empty());
  JsonWriter json;
  recorder.Describe(&json);
  EXPECT_EQ(json.text(), "[]");
}

/// Events that a reader gets while other threads write are as recorded: no mixtures of two events.
TEST(FlightRecorder, ReadersGetWholeEventsWhileThreadsWrite) {
  FlightRecorder recorder(64);
  std::atomic<bool> stop{false};
  std::atomic<int> full{0};  // rings
  std::vector<std::thread> writers;
  for (uint32_t w = 1; w <= 4; ++w) {
    writers.emplace_back([&recorder, &stop, &full, w] {
      for (uint32_t i = 0; !stop; ++i) {
        if (i == 64) ++full;
        recorder.Record(FlightState::kDone, TimelineOp::kSend, uint64_t(w) << 32 | i, i, w * 1000 + i,
                        w);
      }
    });
  }
  while (full < 4) std::this_thread::yield();
  size_t seen = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < until) {
    for (const FlightEvent& event : recorder.Events()) {
      const uint32_t w = uint32_t(event.key >> 32), i = uint32_t(event.key);
      ASSERT_TRUE(w >= 1 && w <= 4);
      ASSERT_EQ(event.iteration, i);
      ASSERT_EQ(event.partition, w * 1000 + i);
      ASSERT_EQ(event.peer, w);
      ++seen;
    }
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_GT(seen, 100u);
  EXPECT_EQ(recorder.Events().size(), 4u * 63u);
}

TEST(FlightRecorder, ThreadsThatEndedLeaveTheirEventsAndTheirRings) {
  FlightRecorder first(64), second(64);
  for (uint64_t key = 0; key < 20; ++key) {
    std::thread([&first, &second, key] {
      first.Record(FlightState::kDone, TimelineOp::kSend, key, 1, 1);
      second.Record(FlightState::kDone, TimelineOp::kSend, 100 + key, 1, 1);
      first.Record(FlightState::kDone, TimelineOp::kSend, key, 2, 1);
    }).join();
  }
  EXPECT_EQ(first.Events().size(), 40u);
  EXPECT_EQ(second.Events().size(), 20u);
  EXPECT_EQ(first.Events().back().key, 19u);
  EXPECT_EQ(second.Events().front().key, 100u);
}

TEST(FlightRecorder, CostsNextToNothing) {
  FlightRecorder recorder(4096);
  constexpr uint32_t kEvents = 1 << 20;
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < kEvents; ++i) {
    recorder.Record(FlightState::kDone, TimelineOp::kSend, i, i, i, i);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.1f ns an event\n", took.count() / kEvents);
  EXPECT_LT(took.count() / kEvents, 2000.0);  // sanitizers, and a machine that others use
}

TEST(BlockingCalls, AreThereForAsLongAsTheyLast) {
  BlockingCalls calls;
  {
    const BlockingCalls::Scope outer(&calls, "key", "a \"key\"");
    const BlockingCalls::Scope inner(&calls, "barrier", "workers 3");
    JsonWriter json;
    calls.Describe(&json);
    EXPECT_NE(json.text().find("\"about\":\"workers 3\""),
              std::string::npos) << json.text();
    EXPECT_NE(json.text().find("a \\u0022key\\u0022"), std::string::npos) << json.text();
  }
  JsonWriter json;
  calls.Describe(&json);
  EXPECT_EQ(json.text(), "[]");
}

}  // namespace
}  // namespace hipress
