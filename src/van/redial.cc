#include "van/redial.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/thread_name.h"

namespace hipress {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{250};
/// For one try; doubled, because over a long link a handshake takes several round trips.
constexpr milliseconds kFirstPatience{1000};
constexpr milliseconds kLongestPatience{4000};

}  // namespace

Redial::Redial(const Call& call, LaneId id, bool caller, const VanOptions& options, Hooks hooks)
    : call_(call), id_(id), caller_(caller), options_(options), hooks_(std::move(hooks)) {
  thread_ = std::thread([this] {
    NameThisThread("hipress-redial");
    Run();
  });
}

Redial::~Redial() {
  cancelled_ = true;
  thread_.join();
}

void Redial::Run() {
  milliseconds pause = kFirstPause, patience = kFirstPatience;
  while (!cancelled_ && !Try({steady_clock::now() + patience, &cancelled_})) {
    const auto until = steady_clock::now() + pause;
    while (!cancelled_ && steady_clock::now() < until) std::this_thread::sleep_for(kFirstPause);
    pause = std::min(2 * pause, kLongestPause);
    patience = std::min(2 * patience, kLongestPatience);
  }
}

bool Redial::Try(const Deadline& deadline) {
  int error = 0;
  try {
    if (caller_) {
      ++id_.generation;
      Opened opened = ReopenLanes(call_, options_, id_, deadline, &error);
      if (!opened.lanes.empty()) {
        hooks_.opened(std::move(opened));
        return true;
      }
    } else {
      Probe(call_, options_, id_, deadline, &error);
    }
  } catch (const HandshakeBroken&) {
    return false;
  } catch (const Error&) {  // another process listens there, or one that has given this one up
    error = ECONNREFUSED;
  } catch (const std::exception&) {  // there is no thread or memory for it just now
    return false;
  }
  if (error != ECONNREFUSED) return false;
  hooks_.refused();
  return true;
}

}  // namespace hipress
