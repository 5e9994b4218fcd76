/*!
 * \file timeline_file.h
 * \brief Puts the timelines of all nodes together and writes them for Perfetto and Chrome.
 */
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/timeline.h"

namespace hipress {

/// Offset of a node's clock from the scheduler's.
struct ClockOffset {
  int64_t offset = 0;      ///< nanoseconds to add to the node's clock
  int64_t round_trip = 0;  ///< of the exchange that measured it: half of it bounds the error
};

/// Begins what timeline::Take returns: then come names (key, uint32 length, text) and events.
struct TimelineHeader {
  uint64_t events = 0;
  uint64_t dropped = 0;
  uint32_t names = 0;
  uint32_t reserved = 0;
};

class TimelineFile {
 public:
  /// Which job's it is; files of one job are its parts.
  struct About {
    int view = 0;  ///< of an elastic job; 0: of none
    std::string job;
  };

  TimelineFile() = default;
  explicit TimelineFile(About about) : about_(std::move(about)) {}

  /// Adds what a node recorded.
  /// \throw ProtocolError if the bytes are not what timeline::Take returns
  void Add(NodeId node, const std::string& taken, ClockOffset clock);

  /// Trace Event Format (JSON): a process per node, whose rows are its threads, its sends and its
  /// receives, with time 0 at the first event, which was at begin_us of the scheduler's clock.
  std::string ToJson() const;
  size_t num_events() const;

 private:
  struct Part {
    std::vector<TimelineEvent> events;  // on the scheduler's clock
    uint64_t dropped = 0;
    ClockOffset clock;
  };
  About about_;
  std::map<NodeId, Part> parts_;
  std::map<uint64_t, std::string> names_;
};

}  // namespace hipress
