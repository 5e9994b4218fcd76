#include "van/lanes.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <utility>

#include "common/interrupt.h"
#include "van/tls.h"

namespace hipress {
namespace {

/// For a socket's handshake, and for all sockets of a connection to be there.
constexpr std::chrono::seconds kOpening{5};

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
  const Deadline soon = deadline.AtMost(std::chrono::steady_clock::now() + kOpening);
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
  // All at the same time: each takes some round trips. The listener drops a group that is not complete soon.
  std::atomic<bool> cancelled{false};
  Deadline soon = deadline.AtMost(std::chrono::steady_clock::now() + kOpening);
  if (soon.cancelled == nullptr) soon.cancelled = &cancelled;
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
    cancelled = true;
    throw;
  }
  for (auto& other : others) opened.lanes.push_back(other.get());
  return opened;
}

}  // namespace

Opened OpenLanes(const Call& call, const VanOptions& options, const SocketAddress& listens,
                 const Deadline& deadline, int* error) {
  // A packet that nothing answers is sent for minutes: the caller may say so, and tries again.
  const Deadline soon = deadline.AtMost(std::chrono::steady_clock::now() + kOpening);
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

bool Probe(const Call& call, const VanOptions& options, LaneId id, const Deadline& deadline, int* error) {
  const Lane lane = Dial(call, options, deadline, error);
  const int fd = lane.fd.get();
  if (fd < 0) return false;
  id.purpose = Purpose::kProbe;
  id.lanes = 1;
  const bool tls = WantsTls(options.tls, LocalAddress(fd), RemoteAddress(fd));
  CallerHandshake(fd, options.secret, call.self, call.peer, tls, deadline, id);
  return true;
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
