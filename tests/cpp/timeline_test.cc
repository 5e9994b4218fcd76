/*!
 * \file timeline_test.cc
 * \brief What a node records comes out on the scheduler's clock; what is no timeline is refused.
 */
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/timeline.h"

namespace hipress {
namespace {

// The library reads the environment when it is loaded, before any test runs.
const bool kAsked = [] { return std::getenv("HIPRESS_TIMELINE") != nullptr; }();

std::string Recorded(const std::vector<TimelineEvent>& events, const std::string& name = "key") {
  TimelineHeader header;
  header.events = events.size();
  header.names = 1;
  std::string out(reinterpret_cast<const char*>(&header), sizeof(header));
  const uint64_t key = 7;
  const uint32_t size = uint32_t(name.size());
  out.append(reinterpret_cast<const char*>(&key), sizeof(key));
  out.append(reinterpret_cast<const char*>(&size), sizeof(size));
  out += name;
  for (const TimelineEvent& event : events) {
    out.append(reinterpret_cast<const char*>(&event), sizeof(event));
  }
  return out;
}

TimelineEvent Event(int64_t begin, int64_t end, TimelineOp op = TimelineOp::kEncode) {
  return {begin, end, 7, 100, 400, 1, 0, timeline::kNoPeer, 0, uint8_t(op), 0};
}

TEST(Timeline, NothingIsRecordedUnlessAskedFor) {
  if (kAsked) GTEST_SKIP() << "HIPRESS_TIMELINE is set";
  EXPECT_FALSE(timeline::kOn);
  EXPECT_EQ(timeline::Now(), 0);
  timeline::Record(TimelineOp::kEncode, 1, 0, 1, 10, 10, 0);
  TimelineFile file;
  file.Add(Worker(0), timeline::Take(), {});
  EXPECT_EQ(file.num_events(), 0u);
}

TEST(Timeline, NodesAreOnOneClock) {
  TimelineFile file;
  file.Add(Worker(0), Recorded({Event(5000, 6000)}), {-4000, 10});
  file.Add(Worker(1), Recorded({Event(1500, 2500, TimelineOp::kMerge)}), {0, 20});
  const std::string json = file.ToJson();
  // Worker 0's event began at 1000 of the scheduler's clock, which is time 0.
  EXPECT_NE(json.find("\"name\":\"encode\",\"pid\":1,\"tid\":0,\"ts\":0.000,\"dur\":1.000"),
            std::string::npos);
  EXPECT_NE(json.find("\"name\":\"merge\",\"pid\":2,\"tid\":0,\"ts\":0.500,\"dur\":1.000"),
            std::string::npos);
}

TEST(Timeline, SaysWhichJobsItIs) {
  TimelineFile file({3, "a1b2"});
  file.Add(Worker(0), Recorded({Event(5000, 6000)}), {-2000, 10});
  const char* about = "\"recorded\":true,\"view\":3,\"job\":\"a1b2\",\"begin_us\":3.000,";
  EXPECT_NE(file.ToJson().find(about), std::string::npos);
  EXPECT_EQ(TimelineFile().ToJson().find("view"), std::string::npos);
}

TEST(Timeline, MessagesThatOverlapGetRowsOfTheirOwn) {
  TimelineFile file;
  const auto send = TimelineOp::kSend;
  file.Add(Worker(0), Recorded({Event(0, 9, send), Event(3, 5, send), Event(9, 12, send)}), {});
  const std::string json = file.ToJson();
  EXPECT_NE(json.find("\"tid\":103001"), std::string::npos);
  EXPECT_EQ(json.find("\"tid\":103002"), std::string::npos);
}

TEST(Timeline, NamesAreEscaped) {
  TimelineFile file;
  file.Add(Worker(0), Recorded({Event(0, 1)}, "a\"\\\n\xff"), {});
  EXPECT_NE(file.ToJson().find("\"key\":\"a\\u0022\\u005c\\u000a\\u00ff\""), std::string::npos);
}

TEST(Timeline, WhatIsNoTimelineIsRefused) {
  TimelineFile file;
  const std::string good = Recorded({Event(0, 1)});
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(file.Add(Worker(0), good.substr(0, size), {}), ProtocolError) << size;
  }
  EXPECT_THROW(file.Add(Worker(0), good + "x", {}), ProtocolError);
  EXPECT_THROW(file.Add(Worker(0), Recorded({Event(2, 1)}), {}), ProtocolError);
  EXPECT_THROW(file.Add(Worker(0), Recorded({Event(0, 1, TimelineOp(kTimelineOps))}), {}),
               ProtocolError);
  // Numbers whose sums would overflow.
  EXPECT_THROW(file.Add(Worker(0), Recorded({Event(INT64_MIN, 1)}), {}), ProtocolError);
  EXPECT_THROW(file.Add(Worker(0), Recorded({Event(0, INT64_MAX)}), {}), ProtocolError);
  for (const int64_t offset : {INT64_MIN, INT64_MAX}) {
    EXPECT_THROW(file.Add(Worker(0), good, {offset, 0}), ProtocolError);
  }
  std::string many = good;
  const uint32_t names = UINT32_MAX;
  std::memcpy(&many[offsetof(TimelineHeader, names)], &names, sizeof(names));
  EXPECT_THROW(file.Add(Worker(0), many, {}), ProtocolError);
  EXPECT_EQ(file.num_events(), 0u);
}

}  // namespace
}  // namespace hipress
