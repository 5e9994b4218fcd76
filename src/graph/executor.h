/*!
 * \file executor.h
 * \brief The compute threads of a node: a ready queue ordered by priority.
 *
 * Small tasks that are ready together are one job of a thread: it takes several from the queue at
 * once, runs them in order, and then starts their consumers in one batch (base/batch.h).
 */
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

namespace hipress {

class Executor {
 public:
  /// Most elements that one job processes, unless it is one task: a partition of a large gradient
  /// (PARTITION_ELEMENTS in python/hipress/topology/graph.py). An urgent task then waits as long
  /// for small ones as for a large one.
  static constexpr int64_t kJobElements = 256 << 10;

  /// \param threads 0: the number of cores, at most 4
  /// \param on_error called with a sentence if work throws an exception; empty: it is logged
  explicit Executor(int threads, std::function<void(const std::string& sentence)> on_error = nullptr);
  ~Executor();

  /// Whether this is one of its threads.
  bool OnMyThread() const;

  /// Drops work that has not started, now and later, and waits for running work (unless that calls
  /// this). All work has been destroyed when this returns.
  void Stop();

  /// Runs `work` on some thread; higher priority first, in order of submission among equals.
  /// \param elements that it processes, as a measure of its time. The default runs alone
  /// \param next before its equals: its input is still in the cache, and the link waits for it
  void Submit(int priority, std::function<void()> work, int64_t elements = kJobElements,
              bool next = false);

 private:
  struct Item {
    int priority;
    uint64_t sequence;
    int64_t elements;
    std::function<void()> work;
    bool next;
    bool operator<(const Item& o) const {
      if (priority != o.priority) return priority < o.priority;
      return next != o.next ? o.next : sequence > o.sequence;
    }
  };
  /// Items that a batch of this thread has submitted, and their executor.
  struct Held {
    Executor* owner = nullptr;
    std::vector<Item> items;
  };
  void Release();
  void Loop();
  /// Runs an item, and catches its exceptions, which would end the process.
  void Run(Item* item) noexcept;
  // Under the lock.
  /// Does nothing after Stop: the destructor of the work may need locks.
  void Add(Item* item);
  /// Takes the next job's items off the queue.
  void TakeJob(std::vector<Item>* job);
  /// Wakes as many threads as there are jobs, without those that have been notified.
  void Wake();

  const std::function<void(const std::string& sentence)> on_error_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::priority_queue<Item> queue_;
  uint64_t sequence_ = 0;
  int64_t queued_elements_ = 0;
  int64_t idle_ = 0;    ///< threads that wait
  int64_t waking_ = 0;  ///< of these, notified to wake up
  bool stop_ = false;
  std::mutex stopping_;  ///< held while threads_ are waited for
  std::vector<std::thread> threads_;
};

}  // namespace hipress
