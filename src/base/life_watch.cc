#include "base/life_watch.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/thread_name.h"

namespace hipress::life_watch {
namespace {

/// For the last words: what they are written to may be what hangs.
constexpr std::chrono::seconds kMaxWriteTime{2};

class Watch {
 public:
  static Watch& Get() {
    static Watch* watch = new Watch();  // its thread outlives static destructors
    return *watch;
  }

  void Renew(double seconds, int signal, int status, const std::string& words) {
    std::lock_guard<std::mutex> lock(mutex_);
    left_ = seconds;
    signal_ = signal;
    status_ = status;
    words_ = words;
    if (!runs_) std::thread([this] { Run(); }).detach();
    runs_ = true;
    if (!std::exchange(watches_, true)) changed_.notify_all();
  }

  void End() {
    std::lock_guard<std::mutex> lock(mutex_);
    watches_ = false;
    changed_.notify_all();
  }

 private:
  void Run() {
    NameThisThread("hipress-life");
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return watches_; });
      const double turn = std::clamp(left_ / 4, 0.01, 1.0);
      const bool ended = changed_.wait_for(lock, std::chrono::duration<double>(turn), [this] { return !watches_; });
      if (!ended && (left_ -= turn) <= 0) EndProcess();
    }
  }

  void EndProcess() {
    std::thread([words = words_, signal = signal_] {
      pollfd out = {STDERR_FILENO, POLLOUT, 0};
      if (::poll(&out, 1, 0) == 1 && ::write(STDERR_FILENO, words.data(), words.size()) > 0 && signal != 0) {
        pthread_kill(pthread_self(), signal);
      }
      std::lock_guard<std::mutex> lock(Get().written_mutex_);
      Get().written_ = true;
      Get().words_written_.notify_all();
    }).detach();
    std::unique_lock<std::mutex> lock(written_mutex_);
    words_written_.wait_for(lock, kMaxWriteTime, [this] { return written_; });
    ::_exit(status_);
  }

  std::mutex mutex_, written_mutex_;
  std::condition_variable changed_, words_written_;
  bool runs_ = false, watches_ = false, written_ = false;
  double left_ = 0;
  int signal_ = 0, status_ = 1;
  std::string words_;
};

}  // namespace

void Renew(double seconds, int signal, int status, const std::string& words) {
  Watch::Get().Renew(seconds, signal, status, words);
}
void End() { Watch::Get().End(); }

}  // namespace hipress::life_watch
