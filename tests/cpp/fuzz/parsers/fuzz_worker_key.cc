// Everything that a worker of a job without servers takes from another about a key whose encodes
// are bound: contributions, sums and marks of a NaN, alone and fused with others, of 16-bit
// gradients.
#include <climits>
#include <cstdlib>
#include <future>

#include "../../programs_of_three.h"
#include "fuzz.h"
#include "kvstore/config_table.h"
#include "kvstore/fused.h"

using namespace hipress;

namespace {

constexpr int64_t kElements = 90;
constexpr int kSelf = 1;

class Host : public FlowHost {
 public:
  NodeId Self() const override { return Worker(kSelf); }
  CodecPtr CodecToEncode(const Flow&, const Task&, const Value&, bool) override {
    return IdentityCodec();
  }
  void SendValue(const Flow&, const Task&, const Value&, uint64_t, int,
                 std::function<void(bool)> done) override {
    done(true);
  }
  CodecPtr CodecOf(NodeId, const MessageHeader& header) override {
    return configs.Find(header.config);
  }
  /// What passed all checks must be decoded without a complaint.
  void OnFailure(const Flow&, const std::string&) override { std::abort(); }

  ConfigTable configs;
};

void AwaitTasks(Executor* executor) {
  for (int round = 0; round < 8; ++round) {
    std::promise<void> idle;
    executor->Submit(INT_MIN, [&idle] { idle.set_value(); });
    idle.get_future().wait();
  }
}

std::string MessageBytes(uint64_t from, MessageHeader header, const std::string& payload) {
  header.payload_bytes = payload.size();
  return BytesOf(from) + BytesOf(header) + payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Executor executor(1);
  Host host;
  Input input(data, size);
  const auto kind = static_cast<testing::ProgramKind>(input.Take<uint64_t>() % 3);
  const auto program = testing::ProgramOf(kind, kElements, kSelf).program.Parse(kElements);
  const auto flow = std::make_shared<Flow>(7, "w", kElements, 0, program, DType::kFloat16, &host,
                                           &executor);
  Binding binding;
  binding.encodes.resize(program->tasks().size());
  for (EncodeBinding& encode : binding.encodes) {
    encode.codec = host.configs.Intern(MakeCodec("onebit", {}));
    encode.state = std::make_shared<CodecState>();
    encode.wire = DType::kFloat16;
  }
  flow->Bind(std::move(binding));
  flow->SetMomentum(std::make_unique<Momentum>(program, DType::kFloat16, 0.5f));
  std::vector<uint16_t> gradients(size_t(kElements) * 2);
  for (int step = 0; step < 2; ++step) {
    uint16_t* gradient = gradients.data() + step * kElements;
    Done done = [](const char*) {};
    flow->Push(gradient, 0, done);
    if (program->output_writes() > 0) flow->Pull(gradient, &done);
  }
  while (!input.AtEnd()) {
    const NodeId from = Worker(int(input.Take<uint64_t>() % testing::kWorkers));
    Message message;
    message.header = input.Take<MessageHeader>();
    MessageHeader& header = message.header;
    header.key = 7;
    message.payload = input.TakeBuffer(header.payload_bytes % 65536);
    header.payload_bytes = message.payload.size;
    try {
      switch (static_cast<MessageKind>(uint16_t(header.kind) % 32)) {
        case MessageKind::kData: {
          const Buffer place = flow->OnHeader(from, header);
          if (place) {  // as the transport does: it writes to the given memory
            if (message.payload.size > 0) {
              std::memcpy(place.data, message.payload.data, message.payload.size);
            }
            message.payload = {place.data, message.payload.size, place.owner};
          }
          flow->OnMessage(from, std::move(message));
          break;
        }
        case MessageKind::kFused:
          Unfuse(from, message, [&](const MessageHeader&) { return flow; }, &executor);
          break;
        default: host.configs.OnAnnouncement(from, message); break;
      }
    } catch (const Error&) {
    }
  }
  AwaitTasks(&executor);
  flow->Fail("the input is over");
  executor.Stop();
  return 0;
}

std::vector<std::string> Seeds() {
  const CodecPtr codec = MakeCodec("onebit", {});
  const uint64_t onebit = Digest(codec->Config()), none = Digest(IdentityCodec()->Config());
  const std::string zeros(kElements * sizeof(float), '\0');
  const auto header_of = [&](uint64_t config, int64_t elements, uint32_t partition, uint16_t step,
                             DType dtype, bool non_finite) {
    MessageHeader header;
    header.kind = MessageKind::kData;
    header.elements = uint64_t(elements);
    header.partition = partition;
    header.step = step;
    header.iteration = 1;
    header.config = config;
    header.dtype = uint8_t(dtype);
    header.flags = non_finite ? kNonFiniteFlag : 0;
    return header;
  };
  std::vector<std::string> seeds;
  for (const uint64_t config : {none, onebit}) {
    for (const bool non_finite : {false, true}) {
      for (const DType dtype : {DType::kFloat16, DType::kFloat32}) {
        const auto payload = [&](int64_t n) {
          const size_t bytes = config == none ? size_t(n) * SizeOf(dtype)
                                              : codec->MaxPayloadBytes(size_t(n), dtype);
          return non_finite ? std::string() : zeros.substr(0, bytes);
        };
        // Colocated: part 1 of others, and what they made of parts 0 and 2.
        std::string colocated = BytesOf(uint64_t(testing::ProgramKind::kColocated)), parts;
        for (const uint64_t from : {0, 2}) {
          for (const uint32_t partition : {1u, uint32_t(from)}) {
            const MessageHeader header =
                header_of(config, 30, partition, partition == 1 ? 0 : 1, dtype, non_finite);
            const std::string bytes = payload(30);
            colocated += MessageBytes(from, header, bytes);
            if (from != 0) continue;
            const FusedPart part = {7, config, 30, uint32_t(bytes.size()), 1, partition, header.step,
                                    header.dtype, header.flags, 0};
            parts += BytesOf(part) + bytes + std::string((8 - bytes.size() % 8) % 8, '\0');
          }
        }
        seeds.push_back(colocated);
        MessageHeader fused;
        fused.kind = MessageKind::kFused;
        fused.elements = 2;
        seeds.push_back(BytesOf(uint64_t(testing::ProgramKind::kColocated)) + MessageBytes(0, fused, parts));
        // A chain: a partial sum from worker 0, and the result from worker 2.
        seeds.push_back(
            BytesOf(uint64_t(testing::ProgramKind::kChain)) +
            MessageBytes(0, header_of(config, kElements, 0, 0, dtype, non_finite), payload(kElements)) +
            MessageBytes(2, header_of(config, kElements, 0, 1, dtype, non_finite), payload(kElements)));
      }
    }
  }
  return seeds;
}
