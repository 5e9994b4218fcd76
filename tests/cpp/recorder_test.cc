/*!
 * \file recorder_test.cc
 * \brief A process that records is in one job after another, as an elastic job's is: what has been
 * taken makes room, and nothing of a node that is gone comes out under a later one's number.
 */
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/timeline.h"

namespace hipress {
namespace {

// The library reads the environment when it is loaded, before any test runs.
__attribute__((constructor(101))) void AskForTimeline() { setenv("HIPRESS_TIMELINE", "/dev/null", 1); }

void Record(uint8_t node, int events) {
  for (int i = 0; i < events; ++i) {
    timeline::Record(TimelineOp::kEncode, 1, 0, 1, 10, 10, timeline::Now(), timeline::kNoPeer, node);
  }
}

TimelineHeader Taken(uint8_t node) {
  const std::string taken = timeline::Take(node);
  TimelineHeader header;
  std::memcpy(&header, taken.data(), sizeof(header));
  return header;
}

TEST(Recorder, WhatHasBeenTakenMakesRoom) {
  constexpr int kEvents = 600'000;  // two times that are more than a process keeps
  for (int job = 0; job < 3; ++job) {
    Record(7, kEvents);
    const TimelineHeader header = Taken(7);
    EXPECT_EQ(header.events, uint64_t(kEvents)) << job;
    EXPECT_EQ(header.dropped, 0u) << job;
  }
}

TEST(Recorder, WhatHadNoPlaceIsCountedAndTakesNone) {
  Record(7, 1'500'000);
  const TimelineHeader header = Taken(7);
  EXPECT_EQ(header.events, uint64_t(1 << 20));
  EXPECT_EQ(header.dropped, 1'500'000u - (1 << 20));
  Record(7, 1'000'000);
  EXPECT_EQ(Taken(7).events, 1'000'000u);
}

TEST(Recorder, ANumberThatIsUsedAgainBeginsEmpty) {
  const uint8_t first = timeline::NewNode();
  Record(first, 3);  // and no process takes it
  uint8_t node = timeline::NewNode();
  while (node != first) node = timeline::NewNode();
  Record(node, 2);
  EXPECT_EQ(Taken(node).events, 2u);
}

}  // namespace
}  // namespace hipress
