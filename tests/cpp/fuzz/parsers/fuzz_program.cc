// Programs of task graphs, as worker 0 sends them to servers.
#include "../../flow_fixture.h"
#include "fuzz.h"

using namespace hipress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const auto n = input.Take<int64_t>();
  const Buffer flat = input.Rest();
  try {
    const auto program = Program::Parse(flat.as<int64_t>(), int64_t(flat.size / 8), n);
    program->WithPeer(Worker(3));
    for (const Task& task : program->tasks()) program->FindRecv(task.peer, task.partition, task.step);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> Seeds() {
  FlatProgram plain(1000, 3);
  const int64_t received = plain.Add(Op::kRecv, 0, PackedId(Role::kWorker, 0), {});
  const int64_t merged = plain.Add(Op::kMerge, 0, -1, {received, -1});
  plain.Add(Op::kDecode, 0, -1, {plain.Add(Op::kUpdate, 0, -1, {merged})});
  FlatProgram sends(7, 7);
  for (int p = 0; p < 7; ++p) {
    sends.Add(Op::kSend, p, PackedId(Role::kServer, 0), {sends.Add(Op::kEncode, p, -1, {-1})});
  }
  return {BytesOf(int64_t(1000)) + BytesOf(plain.Flat()), BytesOf(int64_t(7)) + BytesOf(sends.Flat())};
}
