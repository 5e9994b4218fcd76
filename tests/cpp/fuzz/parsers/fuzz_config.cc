// Configurations of codecs, as peers announce them.
#include "fuzz.h"
#include "kvstore/config_table.h"

using namespace hipress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = Input(data, size).Text();
  try {
    const CodecPtr codec = MakeCodec(text);
    if (MakeCodec(codec->Config())->Config() != codec->Config()) std::abort();
    codec->MaxPayloadBytes(1000, DType::kFloat32);
    codec->ForSumOf(7);
  } catch (const Error&) {
  }
  Message announcement;
  announcement.header.config = Digest(text);
  announcement.payload = Input(data, size).Rest();
  ConfigTable table;
  try {
    table.OnAnnouncement(Worker(1), announcement);
    table.Find(announcement.header.config);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const CodecInfo& info : Codecs()) {
    try {
      seeds.push_back(info.make({})->Config());
      seeds.push_back(seeds.back() + " entropy=1");
    } catch (const Error&) {  // needs parameters
    }
  }
  return seeds;
}
