#include "graph/executor.h"

#include <algorithm>
#include <utility>

#include "base/batch.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "base/thread_object.h"

namespace hipress {
namespace {

int DefaultThreads() {
  return std::max(1, std::min(4, int(std::thread::hardware_concurrency())));
}

/// The executor whose thread this is.
thread_local const Executor* my_executor = nullptr;

}  // namespace

Executor::Executor(int threads, std::function<void(const std::string&)> on_error)
    : on_error_(std::move(on_error)) {
  if (threads <= 0) threads = DefaultThreads();
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, i] {
      NameThisThread("hipress-cpu-" + std::to_string(i));
      Loop();
    });
  }
}

Executor::~Executor() { Stop(); }

void Executor::Stop() {
  std::vector<Item> dropped;  // their destructors may need the lock
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    while (!queue_.empty()) TakeJob(&dropped);
  }
  ready_.notify_all();
  if (my_executor == this) return;
  std::lock_guard<std::mutex> lock(stopping_);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool Executor::OnMyThread() const { return my_executor == this; }

void Executor::Submit(int priority, std::function<void()> work, int64_t elements, bool next) {
  Held& held = ThreadObject<Held>();
  if (Batch::Open() && (held.owner == this || held.owner == nullptr)) {
    if (held.owner == nullptr) {
      held.owner = this;
      Batch::AtEnd([this] { Release(); });
    }
    held.items.push_back({priority, 0, elements, std::move(work), next});
    return;
  }
  Item item{priority, 0, elements, std::move(work), next};
  std::lock_guard<std::mutex> lock(mutex_);
  Add(&item);
  Wake();
}

void Executor::Release() {
  Held& held = ThreadObject<Held>();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Item& item : held.items) Add(&item);
    Wake();
  }
  held.owner = nullptr;
  held.items.clear();
}

void Executor::Add(Item* item) {
  if (stop_) return;
  item->elements = std::max<int64_t>(item->elements, 1);  // Wake counts by them
  item->sequence = sequence_++;
  queued_elements_ += item->elements;
  queue_.push(std::move(*item));
}

void Executor::Wake() {
  const int64_t jobs = (queued_elements_ + kJobElements - 1) / kJobElements;
  for (; waking_ < std::min(idle_, jobs); ++waking_) ready_.notify_one();
}

void Executor::TakeJob(std::vector<Item>* job) {
  int64_t elements = 0;
  do {
    elements += queue_.top().elements;
    job->push_back(std::move(const_cast<Item&>(queue_.top())));
    queue_.pop();
  } while (!queue_.empty() && elements + queue_.top().elements <= kJobElements);
  queued_elements_ -= elements;
}

void Executor::Run(Item* item) noexcept {
  try {
    item->work();
  } catch (const std::exception& error) {
    const std::string sentence = std::string("a task failed: ") + error.what();
    on_error_ ? on_error_(sentence) : LogWarning(sentence);
  }
  item->work = nullptr;  // frees its memory now, not when the next item comes
}

void Executor::Loop() {
  my_executor = this;
  std::vector<Item> job;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    while (queue_.empty() && !stop_) {
      ++idle_;
      ready_.wait(lock);
      --idle_;
      if (waking_ > 0) --waking_;
    }
    if (stop_) return;
    TakeJob(&job);
    Wake();
    lock.unlock();
    {
      Batch batch;
      for (Item& item : job) Run(&item);
      job.clear();
    }
    lock.lock();
  }
}

}  // namespace hipress
