/*!
 * \file protocol.h
 * \brief Bodies and flags of the messages between worker and server.
 */
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "transport/message.h"

namespace hipress {

/// Control messages go ahead of data, and keep their order among themselves.
constexpr int kControlPriority = 1 << 28;

/// Commands that servers answer themselves; all others are the controller's.
enum ServerCommand : int {
  kSaveStates = -1000001,  ///< body: KeyRange, then each key and its pushes by the worker (u64);
                           ///< answered with SaveStates when the server has encoded their results
  kLoadStates = -1000002,  ///< body: KeyRange, then an answer to kSaveStates
};

/// MessageHeader::flags of kData: what the sender wants of the reply to the sum it goes into.
enum ReplyPolicy : uint8_t {
  kReplyPlain = 0,       ///< never compressed
  kReplySumsEncoded = 1, ///< compressed if it is a sum, plain if it is a weight
  kReplyEncoded = 2,     ///< always compressed
};

/// MessageHeader::step of kCommand and kReply: the text continues in the sender's next message
/// about this request. Texts may have any length (saved states, for example), but messages may not.
constexpr uint16_t kTextGoesOn = 1;
/// Most bytes of a text in one message, so that other messages can be sent between the pieces.
constexpr size_t kTextPieceBytes = 16 << 20;
/// Priority of the pieces of a longer text: below all other messages except the goodbye, which has
/// INT_MIN.
constexpr int kTextPriority = INT_MIN + 1;

/// Sends a text in as many messages with this header as it needs, in order.
/// \param piece_bytes most bytes of the text in one message
void SendText(const MessageHeader& header, std::string text, size_t piece_bytes,
              const std::function<void(Message piece, int priority)>& send);

/// Texts of which some pieces have arrived. Not thread-safe.
class TextPieces {
 public:
  /// \return the text, if this is its last piece
  std::optional<std::string> Add(NodeId from, const Message& piece);
  /// Drops the unfinished texts of a node that has left or failed.
  void Forget(NodeId from);

 private:
  /// By sender, kind and request.
  std::map<std::tuple<NodeId, MessageKind, uint32_t>, std::string> texts_;
};

/// MessageHeader::flags of kReply.
enum ReplyStatus : uint8_t { kReplyOk = 0, kReplyError = 1 };

/// MessageHeader::flags of kFailure, or 0: a wait for other nodes was too long (Cause::kTimedOut).
/// All nodes write dumps then (debug_dumps.h).
constexpr uint8_t kTimedOutFlag = 1;

/// Payload of kInitKey. The header carries key, elements, dtype, the digest of all nodes' programs
/// in `config`, and the request id in `iteration`.
struct InitKeyBody {
  std::string name;
  std::vector<int64_t> program;  ///< of the receiving server; only rank 0 sends it

  Buffer Pack() const;
  /// \throw ProtocolError
  static InitKeyBody Unpack(const Buffer& payload);
};

/// Announcement of a key that a worker initializes.
struct InitRequest {
  NodeId from;
  uint32_t request;  ///< id to answer to
  int64_t elements;
  DType dtype;
  uint64_t digest;   ///< of the key's graph
  std::string name;

  InitRequest(NodeId from, const MessageHeader& header, std::string name);
};
/// "" if all agree with worker 0, else the sentence that all of them get.
std::string Disagreement(const std::vector<InitRequest>& requests, const NodeNames& names = {});
/// Sentence about nodes that left the job without one of these requests; empty if there are none.
std::string WhoWillNotInit(const std::vector<InitRequest>& requests, const std::set<NodeId>& left,
                           const NodeNames& names = {});

/// Header of the answer to a request: the result, or an error.
MessageHeader ReplyHeader(uint32_t request, bool ok);
/// An answer with a short text.
Message ReplyMessage(uint32_t request, bool ok, const std::string& text);
/// The error of a failure report. Of a wait that took too long, the message does not name the late
/// node.
Error FailureIn(const Message& message, NodeId from);
/// Failure report: why the job fails.
Message FailureMessage(const Error& error);

}  // namespace hipress
