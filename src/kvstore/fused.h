/*!
 * \file fused.h
 * \brief Sends small partitions for one peer that are ready together as one message.
 *
 * Keys do not change. The messages that one batch of tasks (base/batch.h) has to send determine
 * each time which of them share a message. Therefore none waits for another, and a receiver treats
 * each as a separate message. The gain is the cost of messages in queues, sockets and threads,
 * which dominates for small gradients.
 *
 * The payload of a kFused message is a FusedPart and its payload, padded to 8 bytes, for each of
 * the header's `elements` parts.
 */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "graph/executor.h"
#include "graph/flow.h"
#include "transport/message.h"

namespace hipress {

// The planner and the simulator have the same limits (python/hipress/planning/cluster.py).
/// Payloads of up to so many bytes are fused: they are copied, which costs less than a message.
constexpr size_t kMaxFusedPayloadBytes = 4 << 10;
/// Largest payload of a fused message: less than payloads in shared memory (kMinSharedBytes), and
/// 0.3 ms of a 1 Gbit/s link, by which it may delay a more urgent message.
constexpr size_t kMaxFusedMessageBytes = 32 << 10;

/// Messages that a node sends to each peer when the current batch ends. Thread-safe; each thread's
/// batches have separate messages.
class Outbox {
 public:
  using SendFn = std::function<void(NodeId to, Message message, int priority)>;
  explicit Outbox(SendFn send) : send_(std::move(send)) {}

  /// Whether a payload is small and a batch is open, which Take checks first.
  static bool MayTake(const Buffer& payload);
  /// Takes a copy of a kData message of this header if MayTake allows it. It is then sent with the
  /// batch's other messages at the batch's end, at the highest of their priorities. \return whether
  /// it has; if so the payload may be released
  bool Take(NodeId to, const MessageHeader& header, const Buffer& payload, int priority);
  /// False while some thread's batch has something to send.
  bool empty() const { return held_ == 0; }

 private:
  /// A message that is being filled.
  struct FusedMessage {
    NodeId to;
    int priority;
    uint32_t parts;
    Buffer data;  ///< of kMaxFusedMessageBytes
    size_t size;
  };
  struct Held {
    Outbox* owner = nullptr;
    std::vector<FusedMessage> messages;
  };
  void Release();
  void Send(FusedMessage fused);

  const SendFn send_;
  std::atomic<int> held_{0};  ///< threads that have something
};

/// The flow that a part is for; null: it is of no interest any more. \throw ProtocolError
using FlowOfPart = std::function<std::shared_ptr<Flow>(const MessageHeader& part)>;

/// Memory for a fused message's payload: of this process, where no peer can change it
/// between its check and its use. \throw ProtocolError if it is larger than any can be
Buffer BufferForFused(const MessageHeader& header);

/// Checks a fused message, every part of it, and gives the parts to their flows: in one job of a
/// compute thread, before all else, because they take less time than they would wait.
/// \throw ProtocolError if anything is wrong with any of them
void Unfuse(NodeId from, const Message& fused, const FlowOfPart& flow_of, Executor* executor);

}  // namespace hipress
