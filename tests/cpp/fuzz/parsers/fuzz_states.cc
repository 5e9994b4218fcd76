// Saved states of compression: a file that may have been changed.
#include "../../flow_fixture.h"
#include "base/bytes.h"
#include "fuzz.h"
#include "kvstore/key_states.h"

using namespace hipress;

namespace {

class Host : public FlowHost {
 public:
  NodeId Self() const override { return Worker(0); }
  CodecPtr CodecToEncode(const Flow&, const Task&, const Value&, bool) override {
    return IdentityCodec();
  }
  void SendValue(const Flow&, const Task&, const Value&, uint64_t, int,
                 std::function<void(bool)>) override {}
  CodecPtr CodecOf(NodeId, const MessageHeader&) override { return IdentityCodec(); }
  void OnFailure(const Flow&, const std::string&) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Host host;
  static Executor executor(1);
  static const auto flow = std::make_shared<Flow>(5, "w", 64, 0, WorkerProgram(64, 2),
                                                  DType::kFloat32, &host, &executor);
  const FlowsByKey flows = {{5, {flow}}};
  const std::string bytes = Input(data, size).Text();
  try {
    LoadStates(flows, {0, UINT64_MAX}, bytes, std::chrono::seconds(1));
    LoadStates(flows, {0, UINT64_MAX}, SaveStates(flows, std::chrono::seconds(1)),
               std::chrono::seconds(1));
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const char* config : {"type=none", "type=2bit", "type=onebit", "type=terngrad", "type=dgc"}) {
    const CodecPtr codec = MakeCodec(config);
    ByteWriter flow, key;
    flow.Number<uint64_t>(64);
    flow.Number<uint8_t>(0);
    const auto program = WorkerProgram(64, 2);
    flow.Number<uint64_t>(program->tasks().size());
    for (uint64_t t = 0; t < program->tasks().size(); ++t) {
      if (program->tasks()[t].op != Op::kEncode) continue;
      flow.Number<uint64_t>(t);
      flow.Number<uint64_t>(32);
      flow.Number<uint64_t>(3);
      flow.Text(codec->Config());
      const size_t vectors = codec->StateNames().size() + (codec->HasResidual() ? 0 : 1);
      flow.Number<uint64_t>(vectors);
      for (size_t v = 0; v < vectors; ++v) flow.Text(std::string(128, '\0'));
    }
    key.Number<uint64_t>(5);
    key.Text(std::string("w"));
    key.Number<uint64_t>(1);
    key.Text(flow.Take());
    seeds.push_back(key.Take());
  }
  return seeds;
}
