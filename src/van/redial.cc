#include "van/redial.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "common/log.h"
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
/// For which another machine must refuse all calls until it is believed.
constexpr milliseconds kRefusals{500};

}  // namespace

Redial::Redial(const Call& call, LaneId id, bool caller, bool same_host, const VanOptions& options, Hooks hooks)
    : call_(call), id_(id), caller_(caller), same_host_(same_host), options_(options), hooks_(std::move(hooks)) {
  thread_ = std::thread([this] {
    NameThisThread("hipress-redial");
    try {
      Run();
    } catch (const std::exception& error) {  // the connection is closed after its time limit
      LogWarning("no longer calls " + call_.peer.ToString() + ": " + error.what());
    }
  });
}

Redial::~Redial() {
  cancelled_ = true;
  thread_.join();
}

void Redial::Run() {
  milliseconds pause = kFirstPause, patience = kFirstPatience;
  std::optional<SteadyTime> refused_since;
  while (!cancelled_) {
    const Answer answer = Try({steady_clock::now() + patience, &cancelled_});
    if (answer == Answer::kOpened) return;
    const auto now = steady_clock::now();
    if (answer != Answer::kRefused) {
      refused_since.reset();
    } else if (!refused_since) {
      refused_since = now;
    }
    const bool refused = refused_since && (same_host_ || now - *refused_since >= kRefusals);
    if (refused || answer == Answer::kGone) return hooks_.refused();
    while (!cancelled_ && steady_clock::now() < now + pause) std::this_thread::sleep_for(kFirstPause);
    pause = std::min(2 * pause, kLongestPause);
    patience = std::min(2 * patience, kLongestPatience);
  }
}

Redial::Answer Redial::Try(const Deadline& deadline) {
  int error = 0;
  try {
    if (caller_) {
      ++id_.generation;
      Opened opened = ReopenLanes(call_, options_, id_, deadline, &error);
      if (!opened.lanes.empty()) {
        hooks_.opened(std::move(opened));
        return Answer::kOpened;
      }
    } else {
      Probe(call_, options_, id_, deadline, &error);
    }
  } catch (const HandshakeBroken&) {
    return Answer::kNone;
  } catch (const Error&) {  // another process listens there, or one that has given this one up
    return Answer::kGone;
  } catch (const std::exception&) {  // there is no thread or memory for it just now
    return Answer::kNone;
  }
  return error == ECONNREFUSED ? Answer::kRefused : Answer::kNone;
}

}  // namespace hipress
