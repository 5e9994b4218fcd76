/*!
 * \file kvstore_messages.cc
 * \brief A worker's store between its flows and the transport: what comes in, and what flows send.
 */
#include "common/debug_dumps.h"
#include "kvstore/kvstore_dist.h"
#include "kvstore/protocol.h"

namespace hipress {
namespace {

uint8_t PolicyOf(GradientCompression::Pull pull) {
  switch (pull) {
    case GradientCompression::Pull::kAuto: return kReplySumsEncoded;
    case GradientCompression::Pull::kNone: return kReplyPlain;
    case GradientCompression::Pull::kSame: return kReplyEncoded;
  }
  return kReplyPlain;
}

}  // namespace

Buffer KVStoreDist::OnHeader(NodeId from, const MessageHeader& header) {
  switch (header.kind) {
    case MessageKind::kData: {
      auto flow = FindFlow(header.key);
      if (!flow) throw ProtocolError("data of an unknown key");
      return flow->OnHeader(from, header);
    }
    case MessageKind::kFetched: return fetches_.OnHeader(header);
    case MessageKind::kInitKey:
    case MessageKind::kCommand:
      if (from.role != Role::kWorker) throw ProtocolError("a message that only workers send");
      break;
    case MessageKind::kFused: return BufferForFused(header);
    case MessageKind::kCodecConfig:
    case MessageKind::kReply:
    case MessageKind::kFailure: break;
    default: throw ProtocolError("a message that a worker does not take");
  }
  return Buffer();
}

void KVStoreDist::OnMessage(NodeId from, Message message) {
  const MessageHeader header = message.header;
  switch (header.kind) {
    case MessageKind::kData: {
      counters_.pulled_bytes += sizeof(header) + header.payload_bytes;
      if (auto flow = FindFlow(header.key)) flow->OnMessage(from, std::move(message));
      break;
    }
    case MessageKind::kFused:
      counters_.pulled_bytes += sizeof(header) + header.payload_bytes;
      Unfuse(
          from, message,
          [this](const MessageHeader& part) {
            auto flow = FindFlow(part.key);
            if (!flow) throw ProtocolError("data of an unknown key");
            return flow;
          },
          &executor_);
      break;
    case MessageKind::kFetched: {
      counters_.pulled_bytes += sizeof(header) + header.payload_bytes;
      fetches_.OnMessage(std::move(message));
      break;
    }
    case MessageKind::kCodecConfig: configs_.OnAnnouncement(from, message); break;
    case MessageKind::kReply: requests_.OnReply(from, message); break;
    case MessageKind::kInitKey:
      OnInitRequest({from, header, InitKeyBody::Unpack(message.payload).name}, header.key);
      break;
    case MessageKind::kCommand: {  // from a worker that tests whether the link exists
      {
        std::lock_guard<std::mutex> lock(mutex_);
        linked_.insert(from);
      }
      postoffice_.Send(from, ReplyMessage(header.iteration, true, ""), kControlPriority);
      break;
    }
    case MessageKind::kFailure:
      if (from.role == Role::kWorker) {
        FailJob(FailureIn(message, from), FailureCause(header.flags));
      } else {
        if (header.flags == kTimedOut) debug_dumps::Request(TextIn(message));
        if (FailAll(FailureIn(message, from))) {  // which the server says to all workers
          std::lock_guard<std::mutex> lock(mutex_);
          job_failed_at_ = std::chrono::steady_clock::now();
        }
      }
      break;
    default: break;
  }
}

// ---- FlowHost -----------------------------------------------------------------------------------

CodecPtr KVStoreDist::CodecToEncode(const Flow& flow, const Task& task, const Value& sum,
                                    bool updated) {
  GradientCompressionPtr compression;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    compression = compression_;
  }
  const bool total = task.num_summands > 1 && task.num_summands == postoffice_.num_workers();
  if (total && compression->pull() == GradientCompression::Pull::kNone) {
    return configs_.Intern(IdentityCodec());  // what all workers are about to decode
  }
  const CodecPtr codec = configs_.Intern(compression->ForKey(size_t(flow.elements())));
  // A sum's codec differs even for one term: momentum, say, is of gradients only.
  const bool gradient = task.inputs.front() == Program::kGradient;
  return gradient ? codec : configs_.ForSumOf(codec, task.num_summands);
}

MessageHeader KVStoreDist::DataHeader(const Flow& flow, const Task& task, const Value& value,
                                      uint64_t iteration) {
  MessageHeader header = flow.HeaderOf(task, value, iteration);
  header.config = configs_.Announce(task.peer, value.codec, [this](NodeId to, Message m, int p) {
    postoffice_.Send(to, std::move(m), p);
  });
  std::lock_guard<std::mutex> lock(mutex_);
  header.flags |= PolicyOf(compression_->pull());
  return header;
}

bool KVStoreDist::SendSmall(const Flow& flow, const Task& task, const Value& value,
                            uint64_t iteration, int priority) {
  return Outbox::MayTake(value.data) &&
         outbox_.Take(task.peer, DataHeader(flow, task, value, iteration), value.data, priority);
}

void KVStoreDist::SendValue(const Flow& flow, const Task& task, const Value& value,
                            uint64_t iteration, int priority, std::function<void(bool)> done) {
  Message message;
  message.header = DataHeader(flow, task, value, iteration);
  message.payload = value.data;
  counters_.pushed_bytes += sizeof(message.header) + value.data.size;
  postoffice_.Send(task.peer, std::move(message), priority, std::move(done));
}

CodecPtr KVStoreDist::CodecOf(NodeId from, const MessageHeader& header) {
  return configs_.Find(header.config);
}

void KVStoreDist::OnOutput(const Flow& flow, int32_t partition, uint64_t iteration,
                           const Value& value, bool keep) {
  locals_.Put(flow, partition, iteration, value, keep);
}

}  // namespace hipress
