#include "base/parallel.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/thread_name.h"

namespace hipress {
namespace {

using Task = void (*)(void*, int64_t);

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Pool {
 public:
  /// Never destroyed: its threads may outlive static objects.
  static Pool& Get() {
    static Pool* pool = new Pool();
    return *pool;
  }

  void Run(int64_t count, Task task, void* context) {
    std::unique_lock<std::mutex> user(user_, std::try_to_lock);
    if (!user || getpid() != process_) {
      for (int64_t i = 0; i < count; ++i) task(context, i);
      return;
    }
    while (static_cast<int64_t>(workers_) < count - 1) {
      std::thread([this] {
        NameThisThread("hipress-codec");
        Work();
      }).detach();
      ++workers_;
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      task_ = task;
      context_ = context;
      count_ = count;
      next_ = 0;
      left_.store(count, std::memory_order_relaxed);
      round_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    // Any present thread takes the next task, so a late thread causes no delay.
    DoTasks();
    for (int spins = 0; left_.load(std::memory_order_acquire) != 0; ++spins) {
      if (spins < 4096) {
        Pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  void Work() {
    while (true) {
      const uint64_t seen = round_.load(std::memory_order_acquire);
      DoTasks();
      AwaitRound(seen);
    }
  }

  void DoTasks() {
    while (true) {
      Task task;
      void* context;
      int64_t i;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (next_ >= count_) return;
        i = next_++;
        task = task_;
        context = context_;
      }
      task(context, i);
      left_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  void AwaitRound(uint64_t seen) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
    do {
      for (int spins = 0; spins < 64; ++spins) {
        if (round_.load(std::memory_order_acquire) != seen) return;
        Pause();
      }
    } while (std::chrono::steady_clock::now() < end);
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait(lock, [&] { return round_.load(std::memory_order_relaxed) != seen; });
  }

  const pid_t process_ = getpid();
  std::mutex user_;  ///< held by the thread that uses the pool
  int64_t workers_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> round_{0};
  std::atomic<int64_t> left_{0};  ///< tasks of this round that are not done yet
  Task task_ = nullptr;
  void* context_ = nullptr;
  int64_t count_ = 0, next_ = 0;  ///< tasks of this call, and the first one not yet taken
};

}  // namespace

void ParallelRun(int64_t count, Task task, void* context) { Pool::Get().Run(count, task, context); }

}  // namespace hipress
