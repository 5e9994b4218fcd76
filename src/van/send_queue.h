/*!
 * \file send_queue.h
 * \brief Messages waiting for one peer: highest priority first, first come first served among equals.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "van/shared_payload.h"
#include "van/van.h"

namespace hipress {

/// A message on its way out.
struct SendItem {
  SendItem* next = nullptr;  ///< of those kept for reuse
  size_t end = 0;  ///< offset behind its last byte in the batch in which it is sent
  Message message;
  Van::SendDone done;
  bool share = false;  ///< to go by shared memory, if possible when it leaves
  bool copied = false;  ///< what is shared is a copy: the sender is done as soon as it has left
  SharedPayload shared{};  ///< of a payload that does
};

/// Not thread-safe: its owner holds a lock. Owns what is in it, and items kept for reuse.
class SendQueue {
 public:
  SendQueue() = default;
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;
  ~SendQueue() {
    while (SendItem* item = Pop()) delete item;
    while (free_ != nullptr) delete std::exchange(free_, free_->next);
  }

  /// A new or recycled item.
  SendItem* Make() {
    if (free_ == nullptr) return new SendItem();
    --free_count_;
    SendItem* item = std::exchange(free_, free_->next);
    item->next = nullptr;
    return item;
  }
  /// Takes back an item whose payload and callback have been cleared.
  void Recycle(SendItem* item) {
    if (free_count_ >= kMaxFree) {
      delete item;
      return;
    }
    item->next = free_;
    free_ = item;
    ++free_count_;
  }

  void Push(SendItem* item, int priority) {
    heap_.push_back({priority, sequence_++, item});
    std::push_heap(heap_.begin(), heap_.end());
  }
  /// The next in order, or null.
  SendItem* Pop() {
    if (heap_.empty()) return nullptr;
    std::pop_heap(heap_.begin(), heap_.end());
    SendItem* item = heap_.back().item;
    heap_.pop_back();
    return item;
  }
  bool empty() const { return heap_.empty(); }

 private:
  struct Entry {
    int priority;
    uint64_t sequence;
    SendItem* item;
    bool operator<(const Entry& other) const {
      return priority != other.priority ? priority < other.priority : sequence > other.sequence;
    }
  };
  static constexpr int kMaxFree = 1024;
  std::vector<Entry> heap_;
  uint64_t sequence_ = 0;
  SendItem* free_ = nullptr;
  int free_count_ = 0;
};

}  // namespace hipress
