// Messages of a worker to a server about a key: its initialization, gradients, alone and fused with
// others, and requests for its value; with and without an optimizer.
#include <climits>
#include <future>

#include "../../flow_fixture.h"
#include "fuzz.h"
#include "kvstore/fused.h"
#include "kvstore/server/server_key.h"

using namespace hipress;

namespace {

constexpr int kWorkers = 2;

/// A worker's message. Its fields lie at multiples of 8, where variants have numbers of that size.
std::string MessageBytes(uint64_t from, MessageHeader header, const std::string& payload) {
  header.payload_bytes = payload.size();
  return BytesOf(from) + BytesOf(header) + payload;
}

void Optimize(uint64_t, const std::string&, const float* sum, float* weight, int64_t n) {
  for (int64_t i = 0; i < n; ++i) weight[i] -= sum[i];
}

/// Waits until the tasks that messages have led to are done, and those that these led to.
void AwaitTasks(Executor* executor) {
  for (int round = 0; round < 8; ++round) {
    std::promise<void> idle;
    executor->Submit(INT_MIN, [&idle] { idle.set_value(); });
    idle.get_future().wait();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Executor executor(1);
  ServerContext context;
  context.num_workers = kWorkers;
  context.executor = &executor;
  context.self = [] { return Server(0); };
  context.send = [](NodeId, Message, int, std::function<void(bool)> done) {
    if (done) done(true);
  };
  context.fail = [](const std::string&) {};
  const auto key = std::make_shared<ServerKey>(7, &context);
  bool ready = false;
  Input input(data, size);
  if (input.Take<uint64_t>() % 2) {
    context.updater = std::make_shared<const UpdateFn>(Optimize);
    context.has_updater = true;
  }
  while (!input.AtEnd()) {
    const NodeId from = Worker(int(input.Take<uint64_t>() % kWorkers));
    Message message;
    message.header = input.Take<MessageHeader>();
    MessageHeader& header = message.header;
    header.key = 7;
    header.elements %= 4097;  // memory that is really there, many times a second
    message.payload = input.TakeBuffer(header.payload_bytes % 65536);
    header.payload_bytes = message.payload.size;
    try {
      switch (static_cast<MessageKind>(uint16_t(header.kind) % 32)) {
        case MessageKind::kInitKey:
          if (key->OnInitKey(from, message)) ready = key->FinishInit().empty();
          break;
        case MessageKind::kInitData:
          if (key->OnInitData(from, message)) ready = key->FinishInit().empty();
          break;
        case MessageKind::kData:
          if (ready) {
            key->OnDataHeader(from, header);
            key->OnData(from, std::move(message));
          }
          break;
        case MessageKind::kFused:
          if (ready) {
            const auto flow_of = [&](const MessageHeader&) { return key->FlowOf(from); };
            Unfuse(from, message, flow_of, &executor);
          }
          break;
        case MessageKind::kFetch:
          if (ready) key->OnFetch(from, header);
          break;
        default: context.configs.OnAnnouncement(from, message); break;
      }
    } catch (const Error&) {
    }
  }
  AwaitTasks(&executor);
  if (ready) key->Fail("the input is over");
  executor.Stop();
  return 0;
}

std::vector<std::string> Seeds() {
  constexpr int64_t n = 40;
  FlatProgram program(n, 2);
  for (int64_t p = 0; p < 2; ++p) {
    std::vector<int64_t> received;
    for (int w = 0; w < kWorkers; ++w) {
      received.push_back(program.Add(Op::kRecv, p, PackedId(Role::kWorker, w), {}));
    }
    const int64_t updated = program.Add(Op::kUpdate, p, -1, {program.Add(Op::kMerge, p, -1, received)});
    const int64_t payload = program.Add(Op::kEncode, p, -1, {updated});
    for (int w = 0; w < kWorkers; ++w) {
      program.Add(Op::kSend, p, PackedId(Role::kWorker, w), {payload});
    }
  }
  std::string init, seed, fused;
  for (uint64_t worker = 0; worker < kWorkers; ++worker) {
    MessageHeader header;
    header.kind = MessageKind::kInitKey;
    header.elements = n;
    InitKeyBody body{"w", worker == 0 ? program.Flat() : std::vector<int64_t>()};
    const Buffer packed = body.Pack();
    init += MessageBytes(worker, header,
                         std::string(reinterpret_cast<char*>(packed.data), packed.size));
  }
  for (uint32_t p = 0; p < 2; ++p) {
    MessageHeader header;
    header.kind = MessageKind::kInitData;
    header.elements = 20;
    header.partition = p;
    init += MessageBytes(0, header, std::string(80, '\0'));
  }
  for (uint64_t worker = 0; worker < kWorkers; ++worker) {
    std::string parts;
    for (uint32_t p = 0; p < 2; ++p) {
      MessageHeader header;
      header.kind = MessageKind::kData;
      header.elements = 20;
      header.partition = p;
      header.iteration = 1;
      header.config = Digest(IdentityCodec()->Config());
      seed += MessageBytes(worker, header, std::string(80, '\1'));
      const FusedPart part = {7, header.config, 20, 80, 1, p, 0, 0, 0, 0};
      parts += BytesOf(part) + std::string(80, '\1');
    }
    MessageHeader header;
    header.kind = MessageKind::kFused;
    header.elements = 2;
    fused += MessageBytes(worker, header, parts);
    header.kind = MessageKind::kFetch;
    header.iteration = 0;
    fused += MessageBytes(worker, header, "");
  }
  std::vector<std::string> seeds;
  for (const uint64_t optimizer : {0, 1}) {
    for (const std::string& pushes : {seed, fused, seed + fused}) {
      seeds.push_back(BytesOf(optimizer) + init + pushes);
    }
  }
  return seeds;
}
