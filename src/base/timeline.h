/*!
 * \file timeline.h
 * \brief Records what every task of this process did and when, if HIPRESS_TIMELINE names a file.
 *
 * When a node leaves the job, it sends its events to the scheduler
 * (membership/timeline_exchange.h), which writes the file for Perfetto and Chrome. Without a file,
 * a task costs one test of a constant.
 */
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace hipress {

/// Kind of an event. The numbers go over the wire.
enum class TimelineOp : uint8_t {
  kEncode = 0,
  kDecode = 1,
  kMerge = 2,
  kSend = 3,      ///< from the hand-over to the transport until the payload is released
  kReceive = 4,   ///< from the header's arrival until the payload is complete
  kUpdate = 5,
  kGradient = 6,  ///< a whole gradient, from its push until its result is ready
};
constexpr int kTimelineOps = 7;
const char* NameOf(TimelineOp op);

/// One task of one iteration, sent in memory order (little-endian, like message headers).
struct TimelineEvent {
  int64_t begin;       ///< nanoseconds of the steady clock of this host
  int64_t end;
  uint64_t key;
  uint64_t bytes;      ///< of the payload made, read, sent or received
  uint64_t elements;   ///< of the partition, or of the gradient
  uint32_t iteration;
  uint32_t partition;
  uint32_t peer;       ///< NodeId::Packed(), or kNoPeer
  uint16_t thread;     ///< of this process, counted as they came
  uint8_t op;          ///< TimelineOp
  uint8_t node;        ///< of this process, while it exists; 0 in the result of Take
};
static_assert(sizeof(TimelineEvent) == 56, "events travel as they lie in memory");

namespace timeline {

constexpr uint32_t kNoPeer = UINT32_MAX;

/// True if this process records. Read once, when the library is loaded.
extern const bool kOn;

/// Nanoseconds of the steady clock; 0 if this process does not record.
int64_t Now();
/// A number for a node of this process, which distinguishes its events from other nodes' events.
uint8_t NewNode();
/// Records an event that ends now, if this process records. Events after a million are counted.
void Record(TimelineOp op, uint64_t key, uint32_t partition, uint32_t iteration, uint64_t bytes,
            uint64_t elements, int64_t begin, uint32_t peer = kNoPeer, uint8_t node = 0);
/// Sets the name of a key.
void NameKey(uint64_t key, const std::string& name);

/// Removes and returns a node's events, and all names, as bytes that TimelineFile::Add reads.
std::string Take(uint8_t node = 0);

}  // namespace timeline

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
