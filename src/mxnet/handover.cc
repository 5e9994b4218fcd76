#include "mxnet/handover.h"

#include <utility>

#include "casync/executor.h"
#include "common/batch.h"

namespace hipress {
namespace mxnet {
namespace {

/// Operations that are kept at most; also, elements as one large gradient has.
constexpr size_t kMostKept = 128;

}  // namespace

Handover::Handover(Clock::duration patience) : patience_(patience), watch_([this] { Watch(); }) {}

Handover::~Handover() { Stop(); }

void Handover::Add(std::function<void()> enter, int64_t elements, bool* followed) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto now = Clock::now();
  if (last_ != nullptr) *last_ = now - last_at_ < patience_;
  last_ = followed;
  last_at_ = now;
  kept_.push_back(std::move(enter));
  elements_ += elements;
  if (!*followed || stopped_ || kept_.size() >= kMostKept || elements_ >= Executor::kJobElements) {
    return Enter(&lock);
  }
  if (kept_.size() > 1) return;
  deadline_ = now + patience_;
  if (watch_sleeps_) watched_.notify_one();
}

void Handover::Flush() {
  std::unique_lock<std::mutex> lock(mutex_);
  Enter(&lock);
}

void Handover::Stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  Enter(&lock);
  stopped_ = true;
  watched_.notify_one();
  if (!watch_.joinable()) return;
  std::thread watch = std::move(watch_);
  lock.unlock();
  watch.join();
}

/// One thread at a time, so that the order stays.
void Handover::Enter(std::unique_lock<std::mutex>* lock) {
  due_ = true;
  if (is_entering_) return;
  is_entering_ = true;
  while (due_) {
    due_ = false;
    elements_ = 0;
    entering_.swap(kept_);
    lock->unlock();
    {
      Batch batch;
      for (auto& enter : entering_) enter();
    }
    entering_.clear();
    lock->lock();
  }
  is_entering_ = false;
}

void Handover::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    if (kept_.empty()) {
      watch_sleeps_ = true;
      watched_.wait(lock);
      watch_sleeps_ = false;
    } else if (Clock::now() >= deadline_) {
      Enter(&lock);
    } else {
      watched_.wait_until(lock, deadline_);
    }
  }
}

}  // namespace mxnet
}  // namespace hipress
