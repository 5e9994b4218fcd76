// Clock readings and timelines that nodes send to the scheduler.
#include "fuzz.h"
#include "van/timeline_exchange.h"

using namespace hipress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  TimelineExchange exchange([](NodeId, Message) {}, "");
  while (!input.AtEnd()) {
    Message message;
    const auto who = input.Take<uint8_t>();
    message.header.kind = uint16_t(MessageKind::kTimeline);
    message.header.key = input.Take<uint64_t>();
    message.header.flags = input.Take<uint8_t>();
    message.header.elements = input.Take<uint64_t>();
    message.header.iteration = input.Take<uint32_t>();
    message.payload = input.TakeBuffer(input.Take<uint16_t>());
    message.header.payload_bytes = message.payload.size;
    try {
      if (who % 2) {
        exchange.AtNode(message);
      } else {
        exchange.AtScheduler(Worker(who / 2), message);
      }
    } catch (const Error&) {
    }
  }
  return 0;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (uint8_t flags = 0; flags < 4; ++flags) {
    std::string seed;
    for (uint8_t who : {0, 1}) {
      seed += BytesOf(who) + BytesOf(uint64_t(5)) + BytesOf(flags) + BytesOf(uint64_t(1)) +
              BytesOf(uint32_t(1)) + BytesOf(uint16_t(48)) + std::string(48, '\1');
    }
    seeds.push_back(seed);
  }
  return seeds;
}
