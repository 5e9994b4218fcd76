#include "base/debug_dumps.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "base/types.h"

namespace hipress::debug_dumps {
namespace {

// What the handler reads: it may run in any thread, at any time, and in a forked child.
std::atomic<pid_t> owner{0};
std::atomic<int> wake{-1};
struct sigaction before[NSIG];  // what the program had installed; set before our handler is

void OnSignal(int number, siginfo_t* info, void* context) {
  const int kept = errno;
  if (getpid() == owner.load(std::memory_order_relaxed)) {
    const ssize_t written = ::write(wake.load(std::memory_order_relaxed), "s", 1);
    static_cast<void>(written);  // a full pipe is one that is being read
  }
  const struct sigaction& program = before[number];
  if (program.sa_flags & SA_SIGINFO) {
    program.sa_sigaction(number, info, context);
  } else if (program.sa_handler != SIG_DFL && program.sa_handler != SIG_IGN) {
    program.sa_handler(number);
  }
  errno = kept;
}

/// A dump that is to be written.
struct File {
  std::string name, content;
};

std::string Folder(bool* named) {
  const char* chosen = std::getenv("HIPRESS_DEBUG_DIR");
  *named = chosen != nullptr && chosen[0] != '\0';
  if (*named) return chosen;
  const char* temporary = std::getenv("TMPDIR");
  return std::string(temporary != nullptr && temporary[0] != '\0' ? temporary : "/tmp") +
         "/hipress-debug-" + std::to_string(::geteuid());
}

/// Makes the folder, or finds it as it should be. \return "", or why it cannot be used
std::string Prepare(const std::string& folder, bool named) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return std::strerror(errno);
  struct stat status;
  // Any user may create a link in /tmp; a folder that the user names may be a link.
  if ((named ? ::stat : ::lstat)(folder.c_str(), &status) != 0) return std::strerror(errno);
  if (!S_ISDIR(status.st_mode)) return "it is no folder";
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return "it belongs to user " + std::to_string(status.st_uid);
  }
  if (status.st_mode & (S_IWGRP | S_IWOTH)) return "it can be written by other users";
  return "";
}

std::string HostName() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

/// A node's name as part of a file's name.
std::string Plain(std::string text) {
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '-';
  }
  return text;
}

class Dumper {
 public:
  Dumper() : host_(HostName()) {
    int pipe_fds[2];
    if (::pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) != 0) return;
    ::fcntl(pipe_fds[0], F_SETFL, 0);  // the thread waits for bytes, a handler never
    read_ = pipe_fds[0];
    write_ = pipe_fds[1];
    // Signals are for the program's own threads.
    sigset_t all, mask;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    std::thread([this] { Loop(); }).detach();
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  }

  int Add(Node node, int signal) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      nodes_[++last_] = std::move(node);
      folder_ = Folder(&named_);  // now, as a program may change its environment later
    }
    if (signal != 0) Install(signal);
    return last_;
  }

  void Remove(int number) {
    std::unique_lock<std::mutex> files(files_mutex_);
    written_.wait_for(files, std::chrono::seconds(5), [this] { return files_.empty() || write_ < 0; });
    files.unlock();
    std::lock_guard<std::mutex> lock(mutex_);
    nodes_.erase(number);
  }

  void Request(const std::string& reason) {
    std::vector<File> files = Collect(reason);
    if (files.empty()) return;
    std::lock_guard<std::mutex> lock(files_mutex_);
    std::move(files.begin(), files.end(), std::back_inserter(files_));
    const ssize_t written = ::write(write_, "f", 1);
    static_cast<void>(written);
  }

  void Begin(JsonWriter* json, const std::string& reason, size_t nodes) const {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    json->Object().Name("format").Text("hipress debug").Name("version").Number(1);
    json->Name("reason").Text(reason);
    json->Name("time").Seconds(std::chrono::duration<double>(now).count());
    json->Name("host").Text(host_).Name("pid").Number(::getpid());
    json->Name("process_nodes").Unsigned(nodes);
  }

 private:
  void Install(int signal) {
    std::lock_guard<std::mutex> lock(mutex_);
    wake = write_;
    owner = ::getpid();
    struct sigaction present;
    if (write_ < 0 || ::sigaction(signal, nullptr, &present) != 0) return;
    if ((present.sa_flags & SA_SIGINFO) && present.sa_sigaction == OnSignal) return;
    if (!(present.sa_flags & SA_SIGINFO) && present.sa_handler == SIG_IGN) {
      return LogInfo("signal " + std::to_string(signal) + " is ignored in this program, so it dumps "
                     "nothing on it; HIPRESS_DEBUG_SIGNAL chooses another one");
    }
    before[signal] = present;
    struct sigaction ours;
    std::memset(&ours, 0, sizeof(ours));
    ours.sa_sigaction = OnSignal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    ::sigaction(signal, &ours, nullptr);
  }

  std::vector<File> Collect(const std::string& reason) {
    std::vector<File> files;
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [number, node] : nodes_) {
      const std::string name = node.name();
      JsonWriter json;
      Begin(&json, reason, nodes_.size());
      node.describe(&json);
      json.EndObject();
      files.push_back({Plain(name) + "." + Plain(host_) + "." + std::to_string(::getpid()) + "." +
                           std::to_string(number) + ".json",
                       json.text() + "\n"});
    }
    return files;
  }

  void Loop() {
    NameThisThread("hipress-debug");
    while (true) {
      char what = 0;
      const ssize_t got = ::read(read_, &what, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got != 1) return;
      if (what == 's') {
        Write(Collect("the process got the signal that asks for it"));
        continue;
      }
      std::unique_lock<std::mutex> lock(files_mutex_);
      const std::vector<File> files = files_;
      lock.unlock();
      Write(files);
      lock.lock();
      files_.erase(files_.begin(), files_.begin() + std::ptrdiff_t(files.size()));
      written_.notify_all();
    }
  }

  void Write(const std::vector<File>& files) {
    if (files.empty()) return;
    std::string folder;
    bool named;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      folder = folder_;
      named = named_;
    }
    std::string why = Prepare(folder, named);
    for (const File& file : files) {
      if (why.empty()) why = ReplaceFile(folder + "/" + file.name, file.content);
    }
    if (!why.empty()) {
      return LogWarning("what its nodes wait for could not be written to " + folder + ": " + why +
                        "; HIPRESS_DEBUG_DIR names another folder");
    }
    LogWarning("what it waits for is in " + folder + "/" + files.front().name +
               (files.size() > 1 ? " and " + std::to_string(files.size() - 1) + " more" : "") +
               "; `hipress debug" + (named ? " " + folder : "") + "` reads such files of all nodes");
  }

  const std::string host_;
  int read_ = -1, write_ = -1;
  std::mutex mutex_;
  std::map<int, Node> nodes_;
  int last_ = 0;
  std::string folder_;
  bool named_ = false;  ///< by the user
  std::mutex files_mutex_;
  std::condition_variable written_;
  std::vector<File> files_;
};

/// This process's; null if it has none, or is a forked child of one that has.
std::atomic<Dumper*> current{nullptr};
std::atomic<pid_t> current_pid{0};

Dumper* Current() { return current_pid == ::getpid() ? current.load() : nullptr; }

/// Never destroyed: its thread waits until the process ends.
Dumper* Make() {
  static std::atomic<bool> making{false};
  while (making.exchange(true)) std::this_thread::yield();
  if (Current() == nullptr) {
    current = new Dumper;
    current_pid = ::getpid();
  }
  making = false;
  return current;
}

/// Status of a part that is no node. Its lock is held only for a copy, so that a hanging dump of
/// nodes does not block the part that sets its status.
struct Status {
  int number = 0;  ///< of Add; under the lock of all

  void Set(const std::string& json) {
    std::lock_guard<std::mutex> lock(mutex_);
    json_ = json;
    at_ = std::chrono::steady_clock::now();
  }
  void Describe(JsonWriter* writer) {
    std::lock_guard<std::mutex> lock(mutex_);
    const std::chrono::duration<double> age = std::chrono::steady_clock::now() - at_;
    writer->Name("age").Seconds(age.count()).Name("status").Raw(json_);
  }

 private:
  std::mutex mutex_;
  std::string json_;
  std::chrono::steady_clock::time_point at_;
};

struct Statuses {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Status>> by_name;
};

Statuses& TheStatuses() {
  static Statuses* statuses = new Statuses;
  return *statuses;
}

}  // namespace

int SignalOf(const std::string& text) {
  if (text.empty()) return SIGUSR1;
  if (text == "none" || text == "0") return 0;
  const std::string name = text.compare(0, 3, "SIG") == 0 ? text.substr(3) : text;
  // Such as end a process that does not handle them, and have no other meaning.
  for (const auto& [known, number] : {std::pair<const char*, int>{"USR1", SIGUSR1},
                                      {"USR2", SIGUSR2}, {"QUIT", SIGQUIT}, {"HUP", SIGHUP}}) {
    if (name == known || text == std::to_string(number)) return number;
  }
  throw Error("environment variable HIPRESS_DEBUG_SIGNAL is '" + text +
              "', but must be USR1, USR2, QUIT, HUP or none");
}

int Add(Node node, int signal) { return Make()->Add(std::move(node), signal); }

void Remove(int number) {
  if (Dumper* dumper = Current()) dumper->Remove(number);
}

void SetStatus(const std::string& name, const std::string& json, int signal) {
  Statuses& statuses = TheStatuses();
  std::unique_lock<std::mutex> lock(statuses.mutex);
  auto& status = statuses.by_name[name];
  if (json.empty()) {
    const int number = status ? status->number : 0;
    statuses.by_name.erase(name);
    lock.unlock();
    if (number != 0) debug_dumps::Remove(number);
    return;
  }
  const bool first = status == nullptr;
  if (first) status = std::make_shared<Status>();
  status->Set(json);
  if (!first) return;
  status->number = Add({[name] { return name; },
                        [kept = status](JsonWriter* writer) { kept->Describe(writer); }},
                       signal);
}

void Request(const std::string& reason) {
  if (Dumper* dumper = Current()) dumper->Request(reason);
}

void GiveUp(const std::string& sentence) {
  Request(sentence);
  throw Error(sentence, Cause::kTimedOut);
}

void Begin(JsonWriter* json, const std::string& reason) {
  if (const Dumper* dumper = Current()) {
    dumper->Begin(json, reason, 1);
  } else {
    json->Object();
  }
}

}  // namespace hipress::debug_dumps
