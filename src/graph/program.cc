#include "graph/program.h"

#include <algorithm>
#include <set>
#include <string>

namespace hipress {
namespace {

constexpr int64_t kFlatVersion = 2;
constexpr int64_t kHeaderFields = 5;
constexpr int64_t kTaskFields = 7;
// A partition of one element each of the largest gradient would still be under this.
constexpr int64_t kMaxItems = int64_t(1) << 28;
// Of a gradient. No machine holds it, and its bytes, and any codec's payload of it, fit 64 bits.
constexpr int64_t kMaxElements = int64_t(1) << 48;
constexpr int64_t kMaxPartitionElements = int64_t(1) << 30;

[[noreturn]] void Malformed(const std::string& what) {
  throw Error("malformed task program: " + what);
}

/// Whether an operation can read what `from` makes (null: the gradient). Others find no codec
/// there, or fewer bytes than they read.
bool CanRead(Op op, const Op* from) {
  const bool payload = from != nullptr && (*from == Op::kEncode || *from == Op::kRecv);
  const bool sum = from != nullptr && (*from == Op::kMerge || *from == Op::kUpdate);
  switch (op) {
    case Op::kEncode: return sum || from == nullptr;
    case Op::kDecode: return sum || payload;
    case Op::kMerge: return sum || payload || from == nullptr;
    case Op::kSend: return payload;
    case Op::kUpdate: return from != nullptr && *from == Op::kMerge;
    case Op::kRecv: return false;
  }
  return false;
}

uint64_t RecvKey(NodeId from, int32_t partition, int32_t step) {
  // Steps and ranks are 16-bit on the wire; partitions 32-bit, roles 2-bit.
  return uint64_t(uint32_t(partition)) << 32 | uint64_t(uint16_t(step)) << 16 |
         uint64_t(uint16_t(from.rank) ^ uint16_t(uint16_t(from.role) << 14));
}

}  // namespace

std::shared_ptr<const Program> Program::Parse(const int64_t* flat, int64_t length, int64_t n) {
  if (length < kHeaderFields || flat[0] != kFlatVersion) Malformed("unknown version");
  if (n < 0 || n > kMaxElements) Malformed("the gradient's size is out of range");
  const int64_t num_partitions = flat[2], num_tasks = flat[3], num_inputs = flat[4];
  for (int64_t count : {num_partitions, num_tasks, num_inputs}) {
    if (count < 0 || count > kMaxItems) Malformed("a count is out of range");
  }
  if (length != kHeaderFields + 2 * num_partitions + kTaskFields * num_tasks + num_inputs) {
    Malformed("its length does not match its counts");
  }
  auto program = std::make_shared<Program>();
  program->per_worker_ = flat[1] != 0;
  const int64_t* at = flat + kHeaderFields;
  for (int64_t i = 0; i < num_partitions; ++i, at += 2) {
    const Partition p = {at[0], at[1]};
    if (p.offset < 0 || p.count < 0 || p.offset > n || p.count > n - p.offset) {
      Malformed("a partition lies outside the gradient");
    }
    // Uncompressed, as in a warm-up, it is one message.
    if (p.count > kMaxPartitionElements) {
      throw Error("a partition of " + std::to_string(p.count) + " elements is larger than a message, of 4 GiB: "
                  "cut the gradient into more partitions");
    }
    program->partitions_.push_back(p);
  }
  const int64_t* inputs = at + kTaskFields * num_tasks;
  for (int64_t i = 0; i < num_tasks; ++i, at += kTaskFields) {
    Task task;
    if (at[0] < 0 || at[0] > int64_t(Op::kUpdate)) Malformed("unknown operation");
    task.op = static_cast<Op>(at[0]);
    if (at[1] < 0 || at[1] >= num_partitions) Malformed("a task names a partition that is not there");
    task.partition = static_cast<int32_t>(at[1]);
    if (at[2] < 0 || at[2] > 0xffff) Malformed("a step is out of range");
    task.step = static_cast<int32_t>(at[2]);
    if (at[3] >= 0) task.peer = NodeId::Unpack(static_cast<uint32_t>(at[3]));
    if (at[4] < 0 || at[4] > 0xffff) Malformed("a number of summands is out of range");
    task.num_summands = static_cast<int32_t>(at[4]);
    if (at[5] < 0 || at[6] < 0 || at[5] > num_inputs || at[6] > num_inputs - at[5]) {
      Malformed("inputs are out of range");
    }
    for (int64_t j = 0; j < at[6]; ++j) {
      const int64_t input = inputs[at[5] + j];
      if (input != kGradient && (input < 0 || input >= i)) Malformed("an input comes after its task");
      task.inputs.push_back(static_cast<int32_t>(input));
    }
    program->tasks_.push_back(std::move(task));
  }
  program->Derive();
  program->Check();
  return program;
}

std::shared_ptr<const Program> Program::WithPeer(NodeId peer) const {
  auto copy = std::make_shared<Program>(*this);
  for (Task& task : copy->tasks_) {
    task.consumers.clear();
    task.peer = peer;
  }
  copy->Derive();
  return copy;
}

void Program::Derive() {
  std::set<int32_t> local;
  recv_.clear();
  num_updates_ = 0;
  receives_from_workers_ = false;
  missing_inputs_.assign(tasks_.size(), 0);
  readers_.assign(tasks_.size(), 0);
  gradient_reads_ = output_writes_ = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i];
    local.insert(task.partition);
    if (task.op == Op::kUpdate) ++num_updates_;
    if (task.op == Op::kRecv && task.peer.role == Role::kWorker) receives_from_workers_ = true;
    if (task.op == Op::kRecv &&
        !recv_.emplace(RecvKey(task.peer, task.partition, task.step), int(i)).second) {
      Malformed("two receives expect the same message");
    }
    if (task.op == Op::kDecode) ++output_writes_;
    for (int32_t input : task.inputs) {
      if (input == kGradient) {
        ++gradient_reads_;
      } else {
        tasks_[input].consumers.push_back(int32_t(i));
        ++readers_[input];
        ++missing_inputs_[i];
      }
    }
  }
  local_partitions_.assign(local.begin(), local.end());
  int64_t begin = INT64_MAX, end = 0;
  for (int32_t p : local_partitions_) {
    begin = std::min(begin, partitions_[p].offset);
    end = std::max(end, partitions_[p].offset + partitions_[p].count);
  }
  shard_ = local_partitions_.empty() ? Partition{0, 0} : Partition{begin, end - begin};
}

void Program::Check() const {
  for (const Task& task : tasks_) {
    const size_t arity = task.inputs.size();
    const bool ok = task.op == Op::kRecv    ? arity == 0
                    : task.op == Op::kMerge ? arity >= 1
                                            : arity == 1;
    if (!ok) Malformed("a task has the wrong number of inputs");
    for (int32_t input : task.inputs) {
      if (!CanRead(task.op, input == kGradient ? nullptr : &tasks_[input].op)) {
        Malformed("a task has an input that it cannot read");
      }
      if (input != kGradient && tasks_[input].partition != task.partition) {
        Malformed("a task has another partition's result as input");
      }
    }
  }
}

int Program::FindRecv(NodeId from, int32_t partition, int32_t step) const {
  auto it = recv_.find(RecvKey(from, partition, step));
  return it == recv_.end() ? -1 : it->second;
}

}  // namespace hipress
