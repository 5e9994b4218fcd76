/*!
 * \file timeline.h
 * \brief Records what every task of this process did and when, if HIPRESS_TIMELINE names a file.
 *
 * A thread writes to its own buffer, without locks. When the node leaves the job its events go to the scheduler
 * (van/timeline_exchange.h), which writes those of all nodes to the file. Without a file, the cost is one test
 * of a constant per task.
 */
#pragma once

#include <cstdint>
#include <string>

#include "common/types.h"

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
/// Records an event of a node that ends now. Does nothing if this process does not record, or has recorded a
/// million events already (they are counted then).
void Record(TimelineOp op, uint64_t key, uint32_t partition, uint32_t iteration, uint64_t bytes,
            uint64_t elements, int64_t begin, uint32_t peer = kNoPeer, uint8_t node = 0);
/// Tells the name of a key.
void NameKey(uint64_t key, const std::string& name);

/// Everything that a node has recorded so far, and all names, as one text of bytes that
/// TimelineFile::Add reads; what has been taken is gone.
std::string Take(uint8_t node = 0);

}  // namespace timeline
}  // namespace hipress
