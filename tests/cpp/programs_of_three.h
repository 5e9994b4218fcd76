// Programs of three workers without servers, as front ends bind them.
#pragma once

#include <utility>
#include <vector>

#include "flow_fixture.h"

namespace hipress::testing {

/// How the three of them sum up a gradient.
enum class ProgramKind {
  kColocated,  ///< each worker sums a part
  kChain,      ///< worker 0 to 1 to 2, and back from there: 1 sends a partial sum
  kReduce,     ///< only worker 0 gets the sum
};
constexpr int kWorkers = 3;

/// Encodes of a program: which of them are of sums, and of how many gradients.
struct Encodes {
  FlatProgram program;
  std::vector<std::pair<int, int>> num_summands;  ///< task and number of gradients

  int64_t Add(int64_t partition, int64_t input, int gradients) {
    const int64_t t = program.Add(Op::kEncode, partition, -1, {input}, 0, gradients);
    num_summands.emplace_back(int(t), gradients);
    return t;
  }
};

inline Encodes ProgramOf(ProgramKind kind, int64_t n, int self) {
  Encodes all{FlatProgram(n, kind == ProgramKind::kColocated ? kWorkers : 1), {}};
  FlatProgram& program = all.program;
  const auto id = [](int worker) { return PackedId(Role::kWorker, worker); };
  if (kind == ProgramKind::kChain) {
    int64_t payload = -1;
    if (self == 0) {
      payload = all.Add(0, -1, 1);
    } else {
      const int64_t received = program.Add(Op::kRecv, 0, id(self - 1), {}, 0, self == 1 ? 0 : 1);
      payload = all.Add(0, program.Add(Op::kMerge, 0, -1, {received, -1}), self + 1);
    }
    if (self < 2) {
      program.Add(Op::kSend, 0, id(self + 1), {payload});
      payload = program.Add(Op::kRecv, 0, id(2), {}, 1);
    } else {
      for (int w = 0; w < 2; ++w) program.Add(Op::kSend, 0, id(w), {payload}, 1);
    }
    program.Add(Op::kDecode, 0, -1, {payload});
    return all;
  }
  const int64_t parts = int64_t(program.partitions.size() / 2);
  for (int64_t p = 0; p < parts; ++p) {
    if (p != self) {
      program.Add(Op::kSend, p, id(int(p)), {all.Add(p, -1, 1)});
      if (kind == ProgramKind::kReduce) continue;
      program.Add(Op::kDecode, p, -1, {program.Add(Op::kRecv, p, id(int(p)), {}, 1)});
      continue;
    }
    std::vector<int64_t> inputs;
    for (int w = 0; w < kWorkers; ++w) {
      inputs.push_back(w == self ? -1 : program.Add(Op::kRecv, p, id(w), {}, 0, 0));
    }
    const int64_t payload = all.Add(p, program.Add(Op::kMerge, p, -1, inputs), kWorkers);
    for (int w = 0; w < kWorkers && kind != ProgramKind::kReduce; ++w) {
      if (w != self) program.Add(Op::kSend, p, id(w), {payload}, 1);
    }
    program.Add(Op::kDecode, p, -1, {payload});
  }
  return all;
}

}  // namespace hipress::testing
