/*!
 * \file store_host.h
 * \brief Services that the stores of workers and of servers have in common, for the flows of their
 * keys.
 */
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/flow.h"
#include "kvstore/config_table.h"
#include "kvstore/fused.h"
#include "kvstore/protocol.h"
#include "membership/postoffice.h"

namespace hipress {

/// A node's services for the flows of its store, and how it sends messages.
struct StoreContext {
  using FailFn = std::function<void(const std::string& sentence)>;

  /// Sets the members to those of a node.
  void Connect(Postoffice* postoffice, FlightRecorder* recorder, Executor* executor, FailFn fail);
  /// ConfigTable::Announce, sent by this node.
  uint64_t Announce(NodeId to, const CodecPtr& codec);
  /// Sends a text in as many messages as it needs (protocol.h).
  void SendText(NodeId to, const MessageHeader& header, std::string text);

  std::function<NodeId()> self;
  std::function<void(NodeId to, Message message, int priority, std::function<void(bool)> done)> send;
  FailFn fail;  ///< the job cannot continue
  ConfigTable configs;
  Outbox outbox{[this](NodeId to, Message message, int priority) {
    send(to, std::move(message), priority, nullptr);
  }};
  Executor* executor = nullptr;
  FlightRecorder* recorder = nullptr;
  uint8_t timeline_node = 0;
  size_t piece_bytes = kTextPieceBytes;
};

/// The part of a FlowHost that is the same on workers and servers.
class StoreHost : public FlowHost {
 public:
  explicit StoreHost(StoreContext* context) : context_(context) {}

  NodeId Self() const override { return context_->self(); }
  FlightRecorder* recorder() override { return context_->recorder; }
  uint8_t timeline_node() const override { return context_->timeline_node; }
  CodecPtr CodecOf(NodeId from, const MessageHeader& header) override {
    return context_->configs.Find(header.config);
  }
  void SendValue(const Flow& flow, const Task& task, const Value& value, uint64_t iteration,
                 int priority, std::function<void(bool)> done) override;
  bool SendSmall(const Flow& flow, const Task& task, const Value& value, uint64_t iteration,
                 int priority) override;
  void OnFailure(const Flow& flow, const std::string& sentence) override { context_->fail(sentence); }

 protected:
  /// ReplyPolicy of the messages that this node sends.
  virtual uint8_t reply_policy() const { return 0; }

 private:
  MessageHeader DataHeader(const Flow& flow, const Task& task, const Value& value,
                           uint64_t iteration);

  StoreContext* const context_;
};

/// The keys of these flows, and what they wait for, as a JSON array for debug dumps.
std::string DescribeFlows(const std::vector<std::shared_ptr<Flow>>& flows);
/// Adds the last events to the JSON object of a debug dump.
void DescribeEvents(const FlightRecorder& recorder, JsonWriter* json);

}  // namespace hipress
