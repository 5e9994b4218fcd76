#include "van/replay_buffer.h"

#include <algorithm>
#include <cstring>

namespace hipress {
void ReplayBuffer::Append(const void* data, size_t size) {
  const auto* from = static_cast<const uint8_t*>(data);
  while (size > 0) {
    const size_t at = static_cast<size_t>(end_ - first_);
    if (at == blocks_.size() * kBlockBytes) blocks_.push_back(AllocateBuffer(kBlockBytes));
    const size_t take = std::min(size, kBlockBytes - at % kBlockBytes);
    std::memcpy(blocks_[at / kBlockBytes].data + at % kBlockBytes, from, take);
    end_ += take;
    from += take;
    size -= take;
  }
}

void ReplayBuffer::DropBefore(uint64_t offset) {
  begin_ = offset;
  while (!blocks_.empty() && first_ + kBlockBytes <= begin_) {
    blocks_.pop_front();
    first_ += kBlockBytes;
  }
}

int ReplayBuffer::Find(uint64_t from, uint64_t to, iovec* pieces, int most) const {
  int count = 0;
  while (from < to && count < most) {
    const size_t at = static_cast<size_t>(from - first_);
    const size_t take = std::min<size_t>(to - from, kBlockBytes - at % kBlockBytes);
    pieces[count++] = {blocks_[at / kBlockBytes].data + at % kBlockBytes, take};
    from += take;
  }
  return count;
}

}  // namespace hipress
