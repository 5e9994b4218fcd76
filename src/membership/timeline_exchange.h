/*!
 * \file timeline_exchange.h
 * \brief Collects the nodes' timelines at the scheduler, on its clock.
 *
 * A node requests the scheduler's time some times; the fastest answer gives the offset of the
 * clocks to within half of its round trip (Cristian 1989). When the node leaves, it sends its
 * events, and the scheduler writes the file that HIPRESS_TIMELINE names. In a failed view of an
 * elastic job, each surviving worker writes a part of the timeline itself.
 */
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/timeline.h"
#include "transport/message.h"

namespace hipress {

class TimelineExchange {
 public:
  using Send = std::function<void(NodeId to, Message message)>;
  /// \param path of the file that a scheduler writes, or a node that does not reach it any more
  TimelineExchange(Send send, std::string path, TimelineFile::About about)
      : send_(std::move(send)), path_(std::move(path)), file_(std::move(about)) {}

  /// This node's number for timeline::Record.
  uint8_t node() const { return node_; }

  // ---- A node ----
  /// Asks for the time, some times in a row; the answers come to AtNode. Does nothing if this
  /// process does not record.
  void Begin();
  /// Asks once more: a busy moment at the start must not distort the whole timeline.
  void Again();
  void AtNode(const Message& message);
  /// Sends everything recorded.
  void Ship();
  /// Writes everything recorded to a file of this node's own, as its job has failed.
  void WriteOwn(NodeId self);

  // ---- The scheduler ----
  void AtScheduler(NodeId from, const Message& message);
  /// True if this process is to write a file, and fewer than `nodes` timelines are complete.
  bool Lacks(int nodes) const;
  /// Writes the file, if there is one to be written.
  void Write();

 private:
  void Ask();

  const Send send_;
  const std::string path_;
  const uint8_t node_ = timeline::NewNode();
  int asked_ = 0;
  ClockOffset clock_{0, INT64_MAX};  // a node's best
  std::map<NodeId, std::string> arriving_;
  std::set<NodeId> complete_;
  TimelineFile file_;
};

}  // namespace hipress
