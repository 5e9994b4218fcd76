// Clock readings and timelines that nodes send to the scheduler.
#include <cstdlib>

#include "base/timeline.h"
#include "fuzz.h"
#include "membership/timeline_exchange.h"

using namespace hipress;

namespace {

/// Before the library looks for it, when it is loaded: only who records takes timelines.
__attribute__((constructor(101))) void AskForTimeline() { setenv("HIPRESS_TIMELINE", "/dev/null", 1); }

enum Flag : uint8_t { kTime = 0, kPiece = 1, kLastPiece = 2 };  // as in timeline_exchange.cc

std::string MessageBytes(bool to_node, uint8_t from, Flag flag, uint64_t key, uint64_t elements,
                         const std::string& payload) {
  return BytesOf(uint8_t(to_node)) + BytesOf(from) + BytesOf(uint8_t(flag)) + std::string(5, '\0') +
         BytesOf(key) + BytesOf(elements) + BytesOf(uint64_t(payload.size())) + payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  TimelineExchange exchange([](NodeId, Message) {}, "", {});
  TimelineFile file;
  std::string pieces;
  while (!input.AtEnd()) {
    Message message;
    const bool to_node = input.Take<uint8_t>() % 2;
    const NodeId from = Worker(input.Take<uint8_t>() % 4);
    message.header.kind = MessageKind::kTimeline;
    message.header.flags = input.Take<uint8_t>();
    for (int i = 0; i < 5; ++i) input.Take<uint8_t>();
    message.header.key = input.Take<uint64_t>();
    message.header.elements = input.Take<uint64_t>();
    message.payload = input.TakeBuffer(input.Take<uint64_t>() % 65536);
    message.header.payload_bytes = message.payload.size;
    try {
      to_node ? exchange.AtNode(message) : exchange.AtScheduler(from, message);
    } catch (const Error&) {
    }
    // What the scheduler makes of it when it writes, without the file.
    pieces.append(message.payload.as<char>(), message.payload.size);
    if (message.header.flags != kLastPiece) continue;
    try {
      file.Add(from, pieces, {int64_t(message.header.key), int64_t(message.header.elements)});
    } catch (const Error&) {
    }
    pieces.clear();
  }
  file.ToJson();
  return 0;
}

std::vector<std::string> Seeds() {
  if (!timeline::kOn) std::abort();  // nothing would be tried
  TimelineHeader header;
  header.events = 2;
  header.names = 1;
  const TimelineEvent encode = {5, 8, 7, 100, 400, 1, 0, timeline::kNoPeer, 0,
                                uint8_t(TimelineOp::kEncode), 0};
  TimelineEvent send = encode;
  send.op = uint8_t(TimelineOp::kSend);
  send.peer = Server(0).Packed();
  const std::string taken = BytesOf(header) + BytesOf(uint64_t(7)) + BytesOf(uint32_t(4)) + "name" +
                            BytesOf(encode) + BytesOf(send);
  const std::string cut = taken.substr(0, 50), rest = taken.substr(50);
  return {MessageBytes(false, 0, kTime, 5, 0, "") + MessageBytes(true, 0, kTime, 5, 1, ""),
          MessageBytes(false, 0, kLastPiece, 3, 9, taken),
          MessageBytes(false, 0, kPiece, 3, 9, cut) + MessageBytes(false, 0, kLastPiece, 3, 9, rest) +
              MessageBytes(false, 1, kLastPiece, 4, 9, taken)};
}
