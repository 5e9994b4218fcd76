#include "van/lanes.h"

#include <algorithm>
#include <cstring>
#include <future>

#include "van/tls.h"

namespace hipress {
namespace {

/// For a socket's handshake, and for all sockets of a connection to be there.
constexpr std::chrono::seconds kOpening{5};

/// \return without a stream if nobody answers, with *error the errno
Lane Dial(const sockaddr_in& remote, const VanOptions& options, SteadyTime deadline, int* error) {
  Lane lane;
  lane.fd = ConnectOnce(remote, deadline, error);
  if (lane.fd.get() >= 0) Tune(lane.fd.get(), 2 * options.heartbeat_timeout);
  return lane;
}

/// Authenticates. \return what both ends have said
Transcript Join(Lane* lane, const VanOptions& options, NodeId self, NodeId peer, StripeId stripe,
                SteadyTime deadline) {
  const int fd = lane->fd.get();
  const auto soon = std::min(deadline, std::chrono::steady_clock::now() + kOpening);
  const bool tls = WantsTls(options.tls, LocalAddress(fd), RemoteAddress(fd));
  const Transcript transcript = CallerHandshake(fd, options.secret, self, peer, tls, soon, stripe);
  if (tls) {
    lane->stream = CallerTls(fd, TlsKey(options.secret, transcript), soon);
  } else {
    lane->stream = std::make_unique<PlainStream>(fd);
  }
  return transcript;
}

}  // namespace

Lanes OpenLanes(const sockaddr_in& remote, const VanOptions& options, NodeId self, NodeId peer,
                SteadyTime deadline, std::string* why) {
  int error = 0;
  Lanes lanes;
  lanes.push_back(Dial(remote, options, deadline, &error));
  if (lanes[0].fd.get() < 0) {
    *why = error == ECONNREFUSED ? "nothing listens there" : ErrnoText(error);
    return {};
  }
  const int wanted = options.streams > 0 ? options.streams : StreamsFor(lanes[0].fd.get());
  StripeId stripe = MakeStripeId(wanted);
  stripe.streams = Join(&lanes[0], options, self, peer, stripe, deadline).listener.stripe.streams;
  // All at the same time: each takes some round trips.
  std::vector<std::future<Lane>> others;
  for (uint8_t i = 1; i < stripe.streams; ++i) {
    stripe.stream = i;
    others.push_back(std::async(std::launch::async, [&, stripe] {
      int ignored = 0;
      Lane lane = Dial(remote, options, deadline, &ignored);
      if (lane.fd.get() < 0) throw HandshakeBroken("no longer answers");
      Join(&lane, options, self, peer, stripe, deadline);
      return lane;
    }));
  }
  for (auto& other : others) other.wait();
  for (auto& other : others) lanes.push_back(other.get());
  return lanes;
}

Lanes Gathering::Add(const Transcript& transcript, Lane lane, SteadyTime now) {
  const StripeId& stripe = transcript.listener.stripe;
  Lanes all;
  if (stripe.streams == 1) {
    all.push_back(std::move(lane));
    return all;
  }
  const auto key = std::make_pair(transcript.caller.from, stripe.group);
  Group& group = groups_.try_emplace(key, Group{Lanes(), now}).first->second;
  if (group.lanes.size() < stripe.streams) group.lanes.resize(stripe.streams);
  group.lanes[stripe.stream] = std::move(lane);
  const bool complete = std::all_of(group.lanes.begin(), group.lanes.end(),
                                    [](const Lane& one) { return one.stream != nullptr; });
  if (complete) {
    all = std::move(group.lanes);
    groups_.erase(key);
  }
  return all;
}

void Gathering::DropOld(SteadyTime now) {
  for (auto it = groups_.begin(); it != groups_.end();) {
    it = now - it->second.since > 2 * kOpening ? groups_.erase(it) : std::next(it);
  }
}

}  // namespace hipress
