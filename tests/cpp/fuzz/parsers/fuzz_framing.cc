// Headers of messages, sealed or not.
#include "fuzz.h"
#include "transport/message.h"

using namespace hipress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  MessageHeader header = input.Take<MessageHeader>();
  for (const bool sealed : {false, true}) {
    try {
      if (sealed) {  // what only a member can send
        Message message(header, input.Rest());
        message.header.payload_bytes = message.payload.size;
        Seal(&message);
        header = message.header;
      }
      CheckHeader(header, 1 << 20);
      CheckPayload(header, header.payload_checksum);
      NameOf(header.kind);
      IsData(header);
    } catch (const Error&) {
    }
  }
  return 0;
}

std::vector<std::string> Seeds() {
  MessageHeader header;
  header.kind = MessageKind::kData;
  Message message(header, AllocateBuffer(0));
  Seal(&message);
  return {BytesOf(message.header), BytesOf(message.header) + "payload"};
}
