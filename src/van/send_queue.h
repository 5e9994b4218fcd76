/*!
 * \file send_queue.h
 * \brief Messages waiting for one peer: highest priority first, first come first served among equals.
 */
#ifndef HIPRESS_VAN_SEND_QUEUE_H_
#define HIPRESS_VAN_SEND_QUEUE_H_

#include <map>
#include <utility>

#include "van/lending.h"
#include "van/van.h"

namespace hipress {

/// A message on its way out; the queue links items without allocating.
struct SendItem {
  SendItem* next = nullptr;
  size_t end = 0;  ///< offset behind its last byte in the batch it travels in
  Message message;
  Van::SendDone done;
  bool lend = false;  ///< to be lent if possible when it leaves
  bool copied = false;  ///< what is lent is a copy: the sender is done as soon as it has left
  LentPlace place{};  ///< of a payload that is
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
    Line& line = lines_[-static_cast<int64_t>(priority)];
    (line.first == nullptr ? line.first : line.last->next) = item;
    line.last = item;
  }
  /// The next in order, or null.
  SendItem* Pop() {
    if (lines_.empty()) return nullptr;
    const auto line = lines_.begin();
    SendItem* item = line->second.first;
    line->second.first = std::exchange(item->next, nullptr);
    if (line->second.first == nullptr) lines_.erase(line);
    return item;
  }
  bool empty() const { return lines_.empty(); }

 private:
  struct Line {
    SendItem* first = nullptr;
    SendItem* last = nullptr;
  };
  static constexpr int kMaxFree = 1024;
  std::map<int64_t, Line> lines_;  ///< by negated priority; no line is empty
  SendItem* free_ = nullptr;
  int free_count_ = 0;
};

}  // namespace hipress

#endif  // HIPRESS_VAN_SEND_QUEUE_H_
