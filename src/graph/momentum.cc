#include "graph/momentum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/flow.h"
#include "operator/contrib/kernels.h"

namespace hipress {

Momentum::Momentum(std::shared_ptr<const Program> program, DType dtype, float weight)
    : program_(std::move(program)),
      dtype_(dtype),
      weight_(weight),
      last_(program_->partitions().size()),
      next_(program_->partitions().size()) {}

bool Momentum::AddTo(int32_t partition, uint8_t* gradient) const {
  const size_t n = size_t(program_->partitions()[partition].count);
  const Part& part = last_[partition];
  const Kernels& kernels = ActiveKernels();
  if (!part.data) return kernels.finite(gradient, dtype_, n);
  if (part.codec == nullptr) {
    return kernels.accumulate(part.data.data, DType::kFloat32, weight_, n, gradient, dtype_);
  }
  const Buffer decoded = AllocateBuffer(n * SizeOf(dtype_));  // with the rounding of the result
  part.codec->Decode({part.data.data, part.data.size}, n, part.wire, decoded.data, dtype_);
  return kernels.accumulate(decoded.data, dtype_, weight_, n, gradient, dtype_);
}

void Momentum::Keep(int32_t partition, const Value& payload, const uint8_t* result) {
  Part part;
  const size_t n = size_t(program_->partitions()[partition].count);
  if (!payload.non_finite && ActiveKernels().finite(result, dtype_, n)) {
    part.codec = payload.codec;
    part.wire = payload.wire;
    part.data = payload.data;
    if (part.codec == nullptr || part.codec->IsIdentity()) {  // it may lie in the user's memory
      part.data = AllocateBuffer(payload.data.size);
      std::memcpy(part.data.data, payload.data.data, payload.data.size);
    }
  }
  std::swap(next_[partition], part);
}

void Momentum::Commit(bool drop, uint64_t transaction) {
  if (transaction != transaction_) {
    before_ = transaction != 0 ? last_ : std::vector<Part>();
    transaction_ = transaction;
  }
  const auto& partitions = program_->partitions();
  for (size_t p = 0; p < next_.size(); ++p) {
    drop = drop || (!next_[p].data && partitions[p].count > 0);
  }
  if (!drop) last_.swap(next_);
  std::fill(next_.begin(), next_.end(), Part());
}

void Momentum::RollBack(uint64_t transaction) {
  if (transaction_ != 0 && transaction_ >= transaction) {
    last_ = std::exchange(before_, {});
    transaction_ = 0;
  }
  std::fill(next_.begin(), next_.end(), Part());
}

void Momentum::Get(float* out) const {
  for (size_t p = 0; p < last_.size(); ++p) {
    const size_t n = size_t(program_->partitions()[p].count);
    const Part& part = last_[p];
    if (!part.data) {
      std::memset(out, 0, n * sizeof(float));
    } else if (part.codec == nullptr) {
      std::memcpy(out, part.data.data, n * sizeof(float));
    } else {
      const Buffer decoded = AllocateBuffer(n * SizeOf(dtype_));
      part.codec->Decode({part.data.data, part.data.size}, n, part.wire, decoded.data, dtype_);
      ActiveKernels().convert(decoded.data, dtype_, n, out, DType::kFloat32);
    }
    out += n;
  }
}

void Momentum::Set(const float* values) {
  for (size_t p = 0; p < last_.size(); ++p) {
    const size_t bytes = size_t(program_->partitions()[p].count) * sizeof(float);
    last_[p] = {nullptr, DType::kFloat32, AllocateState(bytes)};
    std::memcpy(last_[p].data.data, values, bytes);
    values += program_->partitions()[p].count;
  }
}

}  // namespace hipress
