/*!
 * \file flow_state.cc
 * \brief Saves and loads what a flow's encodes remember, so that a job can go on with the same bits.
 *
 * Layout: elements (u64), wire type (u8), tasks (u64); then for each encode task that has run its
 * index (u64), elements (u64), encodes done (u64), its codec's configuration (text), the number of
 * vectors (u64) and each of them (text, float32; empty for zeros). The last vector is a residual that
 * the codec itself does not keep, left by another one before it.
 */
#include <algorithm>
#include <cstring>
#include <thread>

#include "casync/flow-inl.h"
#include "common/bytes.h"
#include "common/interrupt.h"

namespace hipress {
namespace {

/// The vectors of a state, the residual that its codec does not keep last.
std::vector<Buffer*> VectorsOf(const Codec& codec, CodecState* state) {
  std::vector<Buffer*> vectors = codec.States(state);
  if (!codec.HasResidual()) vectors.push_back(&state->residual);
  return vectors;
}

}  // namespace

std::unique_lock<std::mutex> Flow::LockWhenQuiet(std::chrono::steady_clock::time_point deadline) {
  const auto& tasks = program_->tasks();
  const auto busy = [&](const Instance& instance) {
    for (size_t t = 0; t < tasks.size(); ++t) {
      if (tasks[t].op != Op::kEncode || instance.states[t] == Instance::kDone) continue;
      if (instance.pushed || instance.states[t] == Instance::kRunning) return true;
    }
    return false;
  };
  interrupt::PolledCheck check_signals;
  while (true) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!failure_.empty()) throw Error(failure_);
    if (std::none_of(live_.begin(), live_.end(), [&](const auto& one) { return busy(*one); })) {
      return lock;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error("key '" + name_ + "' is still being pushed: its states cannot be saved or loaded");
    }
    lock.unlock();
    check_signals();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

bool Flow::HasEncoded(uint64_t iteration) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) throw Error(failure_);
  for (size_t t = 0; t < last_done_.size(); ++t) {
    if (program_->tasks()[t].op == Op::kEncode && last_done_[t] < iteration) return false;
  }
  return true;
}

std::string Flow::SaveStates(std::chrono::steady_clock::time_point deadline) {
  const auto lock = LockWhenQuiet(deadline);
  ByteWriter out;
  out.Number<uint64_t>(uint64_t(elements_));
  out.Number<uint8_t>(uint8_t(wire_));
  out.Number<uint64_t>(program_->tasks().size());
  for (size_t t = 0; t < states_.size(); ++t) {
    if (!state_owners_[t]) continue;
    const Codec& codec = *state_owners_[t];
    CodecState& state = states_[t];
    const int64_t count = program_->partitions()[program_->tasks()[t].partition].count;
    codec.SettleResidual(&state, size_t(count));
    const std::vector<Buffer*> vectors = VectorsOf(codec, &state);
    const auto empty = [](const Buffer* vector) { return !*vector; };
    if (state.step == 0 && std::all_of(vectors.begin(), vectors.end(), empty)) continue;
    out.Number<uint64_t>(t);
    out.Number<uint64_t>(uint64_t(count));
    out.Number<uint64_t>(state.step);
    out.Text(codec.Config());
    out.Number<uint64_t>(vectors.size());
    for (const Buffer* vector : vectors) out.Text(vector->data, *vector ? vector->size : 0);
  }
  return out.Take();
}

std::vector<Flow::Memory> Flow::CheckStates(const std::string& bytes) const {
  ByteReader in(bytes);
  const uint64_t elements = in.Number<uint64_t>();
  const uint8_t wire = in.Number<uint8_t>();
  if (elements != uint64_t(elements_) || wire != uint8_t(wire_)) {
    throw Error("key '" + name_ + "' had " + std::to_string(elements) + " elements of type " +
                std::to_string(wire) + " when states were saved, and has " +
                std::to_string(elements_) + " of type " + std::to_string(int(wire_)));
  }
  const auto& tasks = program_->tasks();
  const std::string otherwise = "key '" + name_ +
                                "' travelled otherwise when states were saved: with other numbers of "
                                "workers or servers, another topology, or cut into other pieces";
  if (in.Number<uint64_t>() != tasks.size()) throw Error(otherwise);
  std::vector<Memory> all;
  while (!in.AtEnd()) {
    const uint64_t t = in.Number<uint64_t>();
    const uint64_t count = in.Number<uint64_t>();
    if (t >= tasks.size() || tasks[t].op != Op::kEncode ||
        uint64_t(program_->partitions()[tasks[t].partition].count) != count) {
      throw Error(otherwise);
    }
    Memory memory{int(t), nullptr, {}};
    memory.state.step = in.Number<uint64_t>();
    memory.codec = MakeCodec(in.Text());
    const std::vector<Buffer*> vectors = VectorsOf(*memory.codec, &memory.state);
    if (in.Number<uint64_t>() != vectors.size()) {
      throw Error("saved states of key '" + name_ + "' are those of another " +
                  memory.codec->Name());
    }
    for (Buffer* vector : vectors) {
      const std::string values = in.Text();
      if (values.empty()) continue;
      if (values.size() != count * sizeof(float)) {
        throw Error("saved states of key '" + name_ + "' have another number of elements than it");
      }
      *vector = AllocateState(values.size());
      std::memcpy(vector->data, values.data(), values.size());
    }
    all.push_back(std::move(memory));
  }
  return all;
}

double Flow::SquareOfStates(std::chrono::steady_clock::time_point deadline) {
  double square = 0;
  for (Memory& memory : CheckStates(SaveStates(deadline))) {
    for (const Buffer* vector : VectorsOf(*memory.codec, &memory.state)) {
      const auto* values = vector->as<float>();
      for (size_t i = 0; *vector && i < vector->size / sizeof(float); ++i) square += double(values[i]) * values[i];
    }
  }
  return square;
}

void Flow::LoadStates(std::vector<Memory> states, std::chrono::steady_clock::time_point deadline) {
  const auto lock = LockWhenQuiet(deadline);
  std::fill(states_.begin(), states_.end(), CodecState());
  std::fill(state_owners_.begin(), state_owners_.end(), nullptr);
  for (Memory& memory : states) {
    states_[memory.task] = std::move(memory.state);
    state_owners_[memory.task] = std::move(memory.codec);
  }
}

}  // namespace hipress
