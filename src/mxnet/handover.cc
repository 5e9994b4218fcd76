#include "mxnet/handover.h"

#include <utility>

#include "casync/executor.h"
#include "common/batch.h"
#include "common/thread_name.h"

namespace hipress::mxnet {
namespace {

/// Operations that are kept at most; also, elements as one large gradient has.
constexpr size_t kMaxKeptOperations = 128;

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
  ++added_;
  elements_ += elements;
  if (!*followed || stopped_ || kept_.size() >= kMaxKeptOperations ||
      elements_ >= Executor::kJobElements) {
    return Enter(&lock);
  }
  if (kept_.size() > 1) return;
  deadline_ = now + patience_;
  if (watch_sleeps_) watched_.notify_one();
}

void Handover::Flush() {
  std::unique_lock<std::mutex> lock(mutex_);
  EnterAll(&lock);
}

void Handover::Stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  stopped_ = true;
  EnterAll(&lock);
  watched_.notify_one();
  if (!watch_.joinable()) return;
  std::thread watch = std::move(watch_);
  lock.unlock();
  watch.join();
}

/// One thread at a time, so that the order stays: if another one does so already, it goes on.
void Handover::Enter(std::unique_lock<std::mutex>* lock) {
  due_ = true;
  if (is_entering_) return;
  is_entering_ = true;
  enters_ = std::this_thread::get_id();
  while (due_) {
    due_ = false;
    elements_ = 0;
    entering_.swap(kept_);
    lock->unlock();
    {
      Batch batch;
      for (auto& enter : entering_) enter();
    }
    const size_t count = entering_.size();
    entering_.clear();
    lock->lock();
    entered_ += count;
    all_entered_.notify_all();
  }
  is_entering_ = false;
  if (watch_sleeps_ && !kept_.empty()) watched_.notify_one();
}

void Handover::EnterAll(std::unique_lock<std::mutex>* lock) {
  const uint64_t all = added_;
  Enter(lock);
  if (is_entering_ && enters_ == std::this_thread::get_id()) return;  // called by an operation
  all_entered_.wait(*lock, [this, all] { return entered_ >= all; });
}

void Handover::Watch() {
  NameThisThread("hipress-mxnet");
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    if (kept_.empty() || is_entering_) {  // the entering thread wakes this one if something is kept then
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

}  // namespace hipress::mxnet
