#include "casync/executor.h"

#include <algorithm>
#include <cstdlib>

namespace hipress {
namespace {

int DefaultThreads() {
  if (const char* text = std::getenv("HIPRESS_NUM_THREADS")) {
    const int threads = std::atoi(text);
    if (threads > 0) return std::min(threads, 256);
  }
  return std::max(1, std::min(4, int(std::thread::hardware_concurrency())));
}

}  // namespace

Executor::Executor(int threads) {
  if (threads <= 0) threads = DefaultThreads();
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

Executor::~Executor() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Executor::Submit(int priority, std::function<void()> work) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stop_) return;
    queue_.push({priority, sequence_++, std::move(work)});
  }
  ready_.notify_one();
}

void Executor::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ready_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    std::function<void()> work = std::move(const_cast<Item&>(queue_.top()).work);
    queue_.pop();
    lock.unlock();
    work();
    work = nullptr;  // what it holds must not outlive it until the next item comes
    lock.lock();
  }
}

}  // namespace hipress
