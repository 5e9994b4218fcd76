#include "transport/lanes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <optional>
#include <utility>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "transport/tls.h"

namespace hipress {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

/// For a socket's handshake, and for all sockets of a connection to be there.
constexpr std::chrono::seconds kOpening{5};

// Of a Redial
constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{250};
/// For one try; doubled, because over a long link a handshake takes several round trips.
constexpr milliseconds kFirstPatience{1000};
constexpr milliseconds kLongestPatience{4000};
/// For which another machine must refuse all calls until it is believed.
constexpr milliseconds kRefusals{500};

/// \return without a stream if the peer does not answer, with *error the errno
Lane Dial(const Call& call, const VanOptions& options, const Deadline& deadline, int* error) {
  Lane lane;
  lane.fd = ConnectOnce(call.remote, deadline, error);
  if (lane.fd.get() >= 0) Tune(lane.fd.get(), 2 * options.heartbeat_timeout, options.congestion_control);
  return lane;
}

/// Authenticates. \return what both ends have said
Transcript Join(Lane* lane, const Call& call, const VanOptions& options, LaneId id,
                const Deadline& deadline) {
  const int fd = lane->fd.get();
  const Deadline soon = deadline.AtMost(steady_clock::now() + kOpening);
  const bool tls = WantsTls(options.tls, LocalAddress(fd), RemoteAddress(fd));
  const Transcript transcript =
      CallerHandshake(fd, options.secret, call.self, call.peer, tls, soon, id);
  if (tls) {
    lane->stream = CallerTls(fd, TlsKey(options.secret, transcript), soon);
  } else {
    lane->stream = std::make_unique<PlainStream>(fd);
  }
  return transcript;
}

/// Authenticates the first lane, and opens as many others as both ends want.
Opened OpenOthers(Lane first, const Call& call, const VanOptions& options, LaneId id,
                  const Deadline& deadline) {
  id.lanes = Join(&first, call, options, id, deadline).listener.lane.lanes;
  Opened opened;
  opened.id = id;
  opened.peer = call.remote;
  opened.lanes.push_back(std::move(first));
  // In parallel, because each takes some round trips, and the listener drops late groups.
  std::atomic<bool> canceled{false};
  Deadline soon = deadline.AtMost(steady_clock::now() + kOpening);
  if (soon.canceled == nullptr) soon.canceled = &canceled;
  std::vector<std::future<Lane>> others;
  for (uint8_t i = 1; i < id.lanes; ++i) {
    id.lane = i;
    others.push_back(std::async(std::launch::async, [&, id] {
      int ignored = 0;
      Lane lane = Dial(call, options, soon, &ignored);
      if (lane.fd.get() < 0) throw HandshakeBroken("no longer answers");
      Join(&lane, call, options, id, soon);
      return lane;
    }));
  }
  try {
    for (auto& other : others) interrupt::WaitUntil(other, SteadyTime::max());
  } catch (const interrupt::Interrupted&) {
    canceled = true;
    throw;
  }
  for (auto& other : others) opened.lanes.push_back(other.get());
  return opened;
}

}  // namespace

Opened OpenLanes(const Call& call, const VanOptions& options, const SocketAddress& listens,
                 const Deadline& deadline, int* error) {
  // A packet that nothing answers is sent for minutes: the caller may say so, and tries again.
  const Deadline soon = deadline.AtMost(steady_clock::now() + kOpening);
  Lane first = Dial(call, options, soon, error);
  const int fd = first.fd.get();
  if (fd < 0) return {};
  const int wanted = options.streams > 0 ? options.streams : StreamsFor(fd);
  // On one host nothing comes between two processes that live.
  const Purpose purpose = wanted > 1 || !IsSameHost(fd) ? Purpose::kResumable : Purpose::kPlain;
  return OpenOthers(std::move(first), call, options, MakeLaneId(wanted, purpose, listens), deadline);
}

Opened ReopenLanes(const Call& call, const VanOptions& options, LaneId id, const Deadline& deadline,
                   int* error) {
  Lane first = Dial(call, options, deadline, error);
  if (first.fd.get() < 0) return {};
  id.purpose = Purpose::kResume;
  return OpenOthers(std::move(first), call, options, id, deadline);
}

void Probe(const Call& call, const VanOptions& options, LaneId id, const Deadline& deadline, int* error) {
  const Lane lane = Dial(call, options, deadline, error);
  const int fd = lane.fd.get();
  if (fd < 0) return;
  id.purpose = Purpose::kProbe;
  id.lanes = 1;
  const bool tls = WantsTls(options.tls, LocalAddress(fd), RemoteAddress(fd));
  CallerHandshake(fd, options.secret, call.self, call.peer, tls, deadline, id);
}

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
  canceled_ = true;
  thread_.join();
}

void Redial::Run() {
  milliseconds pause = kFirstPause, patience = kFirstPatience;
  std::optional<SteadyTime> refused_since;
  while (!canceled_) {
    const Answer answer = Try({steady_clock::now() + patience, &canceled_});
    if (answer == Answer::kOpened) return;
    const auto now = steady_clock::now();
    if (answer != Answer::kRefused) {
      refused_since.reset();
    } else if (!refused_since) {
      refused_since = now;
    }
    const bool refused = refused_since && (same_host_ || now - *refused_since >= kRefusals);
    if (refused || answer == Answer::kGone) return hooks_.refused();
    while (!canceled_ && steady_clock::now() < now + pause) std::this_thread::sleep_for(kFirstPause);
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

Opened Gathering::Add(const Transcript& transcript, Lane lane, SteadyTime now) {
  Opened opened;
  opened.id = transcript.caller.lane;
  opened.id.lanes = transcript.listener.lane.lanes;
  opened.caller = false;
  opened.peer = ListensAt(opened.id);
  const auto key = std::make_tuple(transcript.caller.from, opened.id.connection, opened.id.generation);
  Group& group = groups_.try_emplace(key, Group{{}, now}).first->second;
  if (group.lanes.size() < opened.id.lanes) group.lanes.resize(opened.id.lanes);
  group.lanes[std::exchange(opened.id.lane, 0)] = std::move(lane);
  const bool complete = std::all_of(group.lanes.begin(), group.lanes.end(),
                                    [](const Lane& one) { return one.stream != nullptr; });
  if (complete) {
    opened.lanes = std::move(group.lanes);
    groups_.erase(key);
    if (!RemoteAddress(opened.lanes[0].fd.get()).IsSameHost(opened.peer)) opened.peer.set_port(0);
  }
  return opened;
}

void Gathering::DropOld(SteadyTime now) {
  for (auto it = groups_.begin(); it != groups_.end();) {
    it = now - it->second.since > 2 * kOpening ? groups_.erase(it) : std::next(it);
  }
}

}  // namespace hipress
