/*!
 * \file executor.h
 * \brief The compute threads of a node: a ready queue ordered by priority.
 */
#ifndef HIPRESS_CASYNC_EXECUTOR_H_
#define HIPRESS_CASYNC_EXECUTOR_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

namespace hipress {

class Executor {
 public:
  /// \param threads 0: HIPRESS_NUM_THREADS, or else the number of cores, at most 4
  explicit Executor(int threads = 0);
  /// Work that has not started is dropped; work that has is waited for.
  ~Executor();

  /// Runs `work` on some thread; higher priority first, in order of submission among equals.
  void Submit(int priority, std::function<void()> work);

 private:
  struct Item {
    int priority;
    uint64_t sequence;
    std::function<void()> work;
    bool operator<(const Item& o) const {
      return priority != o.priority ? priority < o.priority : sequence > o.sequence;
    }
  };
  void Loop();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::priority_queue<Item> queue_;
  uint64_t sequence_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hipress

#endif  // HIPRESS_CASYNC_EXECUTOR_H_
