#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <unistd.h>

#include <algorithm>
#include <future>
#include <thread>
#include <unordered_map>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "transport/acceptor.h"
#include "transport/connection.h"
#include "transport/lanes.h"
#include "transport/van.h"

namespace hipress {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ConnectionPtr = std::shared_ptr<Connection>;

/// Additional time for which a stopping van waits for bytes in transit to live peers.
constexpr milliseconds kMaxDelivery{3000};
/// Between checks of connections that are to deliver a goodbye.
constexpr milliseconds kCheckInterval{250};

/// How long a van's thread did not run: the process was stopped, or starved. On the van's thread.
class Pauses {
 public:
  using Duration = steady_clock::duration;

  explicit Pauses(const VanOptions& options) : options_(options) {}
  void Start() { last_tick_ = steady_clock::now(); }

  /// Notes a tick, which was due `interval` after the last one. \return how long this thread was
  /// stalled before it: the peers' silence of that time does not count, because their messages are
  /// still to be read
  Duration Tick(SteadyTime now, Duration interval) {
    auto stalled = now - last_tick_ - interval;
    if (stalled < options_.heartbeat_timeout / 4) stalled = stalled.zero();
    last_tick_ = now;
    // A short pause does not hide the long one that was just before it.
    const bool over = now - held_up_until_ >= options_.heartbeat_timeout;
    if (stalled > (over ? stalled.zero() : held_up_)) {
      held_up_ = stalled;
      held_up_until_ = now;
    }
    return stalled;
  }

  /// As Van::HeldUp.
  std::string Text() const {
    // Shorter than this, a pause and the heartbeat that was due make no silence that is death.
    const auto limit = options_.heartbeat_timeout - options_.heartbeat_interval;
    const auto now = steady_clock::now();
    if (now - last_tick_ > limit) return SecondsText(now - last_tick_);
    const bool recent = now - held_up_until_ < options_.heartbeat_timeout;
    return recent && held_up_ > limit ? SecondsText(held_up_) : "";
  }

 private:
  const VanOptions& options_;
  SteadyTime last_tick_;
  SteadyTime held_up_until_;  ///< the end of the last pause
  Duration held_up_{0};
};

class TcpVan final : public Van, public ConnectionOwner {
 public:
  explicit TcpVan(VanOptions options) : options_(std::move(options)), pauses_(options_), timer_(io_) {
    CheckTlsMode(options_.tls);
  }
  ~TcpVan() override {
    const interrupt::Suspended suspended;
    End(milliseconds(2000), true);
  }

  std::string Start(NodeId self, const std::string& host, int port, VanReceiver* receiver) override {
    const std::string from = host.empty() ? AddressOfInterface(
        options_.interface.empty() ? "lo" : options_.interface) : host;
    const SocketAddress address = Resolve(from, port);
    if (options_.secret.empty() && !address.IsLoopback()) {
      throw Error("a node that listens on " + from + " can be reached from other machines and needs "
                  "a job secret; set HIPRESS_SECRET to the same value on all nodes");
    }
    UniqueFd listener = Listen(address);
    listens_ = LocalAddress(listener.get());
    receiver_ = receiver;
    self_ = self.Packed();
    acceptor_ = std::make_unique<Acceptor>(
        io_, std::move(listener), options_, &counters_,
        Acceptor::Hooks{[this] { return NodeId::Unpack(self_); },
                        [this](const Hello& caller) { return Judge(caller); },
                        [this](const Transcript& transcript, Lane lane) {
                          Accepted(transcript, std::move(lane));
                        },
                        [this](const LaneId& lane) {
                          if (const ConnectionPtr c = Find(lane, true)) c->OnProbe(lane.generation);
                        }});
    acceptor_->Start();
    pauses_.Start();
    Tick();
    std::promise<void> ended;
    loop_ended_ = ended.get_future();
    thread_ = std::thread([this, ended = std::move(ended)]() mutable {
      NameThisThread("hipress-van");
      do {
        Guarded([this] { io_.run(); });
      } while (!io_.stopped());
      ended.set_value();
    });
    return listens_.ToText();
  }

  void Rename(NodeId self) override { self_ = self.Packed(); }

  void RenamePeer(NodeId from, NodeId to) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = peers_.find(from);
    if (it == peers_.end() || peers_.count(to) != 0) return;
    const ConnectionPtr connection = it->second;
    peers_.erase(it);
    peers_[to] = connection;
    connection->set_peer(to);
  }

  void Connect(NodeId peer, const std::string& address, SteadyTime deadline) override {
    const auto fail = [&](const std::string& why) {
      throw Error(self().rank == kUnnamedRank
                      ? "cannot connect to " + options_.names(peer) + " at " + address + ": " + why
                      : options_.names(self()) + " cannot connect to " + options_.names(peer) +
                            " at " + address + ": " + why);
    };
    const auto begin = steady_clock::now();
    bool warned = false;
    milliseconds pause{10};
    for (;;) {
      std::string why;
      try {
        if (ConnectOnce(peer, address, deadline, &why)) return;
      } catch (const HandshakeBroken& error) {
        why = std::string("it ") + error.what();
      } catch (const Error& error) {
        fail(error.what());
      }
      if (stopping_) fail("this node is being stopped");
      const auto now = steady_clock::now();
      if (now + pause >= deadline) {
        fail(why + " (tried for " + SecondsText(now - begin) + ")");
      }
      if (!warned && now >= begin + std::chrono::seconds(5)) {
        LogWarning("still tries to connect to " + peer.ToString() + " at " + address + ": " + why);
        warned = true;
      }
      std::this_thread::sleep_for(pause);
      interrupt::Check();
      pause = std::min(2 * pause, milliseconds(250));
    }
  }

  void Send(NodeId to, Message message, int priority, SendDone done) override {
    if (message.payload.size > options_.max_payload_bytes) {
      throw Error("a message of " + std::to_string(message.payload.size) + " bytes to " + to.ToString() +
                  " cannot be sent: the limit is " + std::to_string(options_.max_payload_bytes) + " bytes");
    }
    ConnectionPtr connection;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = peers_.find(to);
      if (it != peers_.end()) connection = it->second;
    }
    if (connection) {
      connection->Send(std::move(message), priority, std::move(done));
    } else if (done) {
      if (stopped_) return done(false);
      asio::post(io_, [this, done = std::move(done)] { Guarded([&] { done(false); }); });
    }
  }

  std::string HeldUp() const override { return pauses_.Text(); }

  std::optional<steady_clock::duration> Silence(NodeId peer) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = peers_.find(peer);
    if (it == peers_.end()) return {};
    return it->second->Silence(steady_clock::now());
  }

  const VanCounters& counters() const override { return counters_; }
  void Stop(milliseconds linger) override { End(linger, true); }
  void Abort(milliseconds linger) override { End(linger, false); }

 private:

  // ConnectionOwner
  NodeId self() const override { return NodeId::Unpack(self_); }
  Buffer OnHeader(NodeId from, const MessageHeader& header) override {
    return receiver_->OnHeader(from, header);
  }
  void OnMessage(NodeId from, Message message) override {
    receiver_->OnMessage(from, std::move(message));
  }
  void OnClosed(const ConnectionPtr& connection, bool graceful, const std::string& reason) override {
    bool last;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = peers_.find(connection->peer());
      if (it != peers_.end() && it->second == connection) peers_.erase(it);
      last = peers_.empty();
    }
    receiver_->OnDown(connection->peer(), graceful, reason);
    if (last && stopping_ && !finished_) Finish();
  }

  /// Runs a handler of the event loop. An exception, which would end the process, is logged and
  /// ends all connections, because it is unknown which work was left undone.
  template <typename Work>
  void Guarded(const Work& work) noexcept {
    try {
      work();
    } catch (const std::exception& error) {
      const std::string why = error.what();
      for (const ConnectionPtr& connection : Snapshot()) connection->Failed(why);
    }
  }

  void End(milliseconds linger, bool goodbye) {
    // A forked child has no thread, and must not write to its parent's sockets.
    if (getpid() != creator_ || stopping_.exchange(true) || !thread_.joinable()) return;
    asio::post(io_, [this, linger, goodbye] {
      try {
        Leave(linger, goodbye);
      } catch (const std::exception& error) {
        LogWarning(std::string("leaves its peers at once because of an error: ") + error.what());
        Finish();
      }
    });
    try {
      interrupt::WaitUntil(loop_ended_, SteadyTime::max());
    } catch (const interrupt::Interrupted&) {
      asio::post(io_, [this] { Finish(); });
      Join();
      throw;
    }
    Join();
  }

  void Leave(milliseconds linger, bool goodbye) {
    const std::vector<ConnectionPtr> all = Snapshot();
    const bool resume = goodbye && std::any_of(all.begin(), all.end(), [](const ConnectionPtr& connection) {
      return connection->CanBeResumed();
    });
    resume ? acceptor_->OnlyResume() : acceptor_->Stop();
    const auto now = steady_clock::now();
    Linger(now + linger, now + linger + kMaxDelivery, goodbye);
    for (const ConnectionPtr& connection : all) goodbye ? connection->Leave() : connection->HangUp();
    if (Snapshot().empty()) Finish();
  }

  /// Ends the thread, whose loop ends or has ended.
  void Join() {
    thread_.join();
    stopped_ = true;
    // Callbacks posted after the end of the loop still have to answer their callers.
    io_.restart();
    io_.poll();
  }

  bool ConnectOnce(NodeId peer, const std::string& address, SteadyTime deadline, std::string* why) {
    const auto [host, port] = SplitAddress(address);
    const SocketAddress remote = Resolve(host, port);
    if (options_.secret.empty() && !remote.IsLoopback()) {
      throw Error("connections between machines need a job secret; set HIPRESS_SECRET to the same "
                  "value on all nodes");
    }
    int error = 0;
    Opened opened = OpenLanes({remote, self(), peer}, options_, listens_, deadline, &error);
    if (opened.lanes.empty()) {
      *why = error == ECONNREFUSED ? "nothing listens there" : ErrnoText(error);
      return false;
    }
    const auto added = std::make_shared<std::promise<bool>>();
    auto result = added->get_future();
    asio::post(io_, [this, peer, opened = std::move(opened), added]() mutable {
      try {
        added->set_value(Add(peer, std::move(opened)));
      } catch (...) {
        added->set_exception(std::current_exception());
      }
    });
    // The loop may have ended meanwhile; then there will be no answer.
    while (!interrupt::WaitUntil(result, steady_clock::now() + milliseconds(50))) {
      if (stopped_) throw Error("this node is being stopped");
    }
    if (!result.get()) throw Error("a connection with it exists already");
    return true;
  }

  /// The connection to which a lane is to belong, or null.
  ConnectionPtr Find(const LaneId& lane, bool caller) {
    for (const ConnectionPtr& connection : Snapshot()) {
      if (connection->Is(lane, caller)) return connection;
    }
    return nullptr;
  }

  VerdictCode Judge(const Hello& caller) {
    const LaneId& lane = caller.lane;
    if (lane.purpose == Purpose::kProbe) {
      return Find(lane, true) ? VerdictCode::kAccepted : VerdictCode::kGone;
    }
    if (lane.purpose == Purpose::kResume) {
      const ConnectionPtr connection = Find(lane, false);
      const bool can_be = connection && connection->IsNewer(lane.generation);
      return can_be ? VerdictCode::kAccepted : VerdictCode::kGone;
    }
    const NodeId peer = NodeId::Unpack(caller.from);
    if (peer.rank == kUnnamedRank) return VerdictCode::kAccepted;
    std::lock_guard<std::mutex> lock(mutex_);
    const bool taken = peer.rank >= kFirstProvisionalRank || peers_.count(peer) != 0;
    return taken ? VerdictCode::kTaken : VerdictCode::kAccepted;
  }

  void Accepted(const Transcript& transcript, Lane lane) {
    Opened opened = gathering_.Add(transcript, std::move(lane), steady_clock::now());
    if (opened.lanes.empty()) return;
    if (opened.id.purpose == Purpose::kResume) {
      if (const ConnectionPtr connection = Find(opened.id, false)) connection->Resume(std::move(opened));
      return;
    }
    NodeId peer = NodeId::Unpack(transcript.caller.from);
    if (peer.rank == kUnnamedRank) peer.rank = NextProvisional(peer.role);
    Add(peer, std::move(opened));
  }

  uint16_t NextProvisional(Role role) {
    std::lock_guard<std::mutex> lock(mutex_);
    uint16_t rank;
    do {
      rank = provisional_;
      provisional_ = rank + 1 == kUnnamedRank ? kFirstProvisionalRank : rank + 1;
    } while (peers_.count({role, rank}) != 0);
    return rank;
  }

  bool Add(NodeId peer, Opened opened) {
    if (stopping_) return false;
    const auto connection =
        std::make_shared<Connection>(io_, std::move(opened), peer, options_, &counters_, this);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!peers_.emplace(peer, connection).second) return false;
    }
    LogInfo("connected to " + peer.ToString() + " (" + connection->address() + ")");
    connection->Guarded([&] {
      receiver_->OnUp(peer);
      connection->Start();
    });
    return true;
  }

  std::vector<ConnectionPtr> Snapshot() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<ConnectionPtr> all;
    for (const auto& entry : peers_) all.push_back(entry.second);
    return all;
  }

  void Tick() {
    const auto interval = std::clamp<milliseconds>(options_.heartbeat_interval / 4, milliseconds(5),
                                                   milliseconds(250));
    const auto now = steady_clock::now();
    const auto stalled = pauses_.Tick(now, interval);
    Guarded([&] {
      for (const ConnectionPtr& connection : Snapshot()) {
        connection->Guarded([&] { connection->Tick(now, stalled); });
      }
      gathering_.DropOld(now);
      if (!stopping_) receiver_->OnTick();
    });
    timer_.expires_at(now + interval);
    timer_.async_wait([this](const asio::error_code& error) {
      if (!error && !stopping_) Tick();
    });
  }

  /// Finishes at `from`, or, while what was sent is still on its way, later: until then, and, if it
  /// is `patient`, as long as bytes leave. \param undelivered so far; -1: not known
  void Linger(SteadyTime from, SteadyTime until, bool patient, int64_t undelivered = -1) {
    timer_.expires_at(std::min(from, steady_clock::now() + kCheckInterval));
    timer_.async_wait([this, from, until, patient, undelivered](const asio::error_code& error) {
      if (error) return;
      const auto now = steady_clock::now();
      int64_t bytes = 0;
      for (const ConnectionPtr& connection : Snapshot()) {
        connection->Guarded([&] {
          if (patient) connection->ReconnectNow(now);
          bytes += connection->UndeliveredBytes(now);
        });
      }
      if (now < from) return Linger(from, until, patient);
      // The size of the kernel's queue changes with each packet, as long as bytes leave.
      const bool moves = patient && bytes != undelivered;
      if (bytes == 0 || (now >= until && !moves)) return Finish();
      Linger(now + milliseconds(20), moves ? std::max(until, now + kMaxDelivery) : until, patient, bytes);
    });
  }

  /// Closes what is left and ends the loop.
  void Finish() {
    if (finished_) return;
    finished_ = true;
    timer_.cancel();
    acceptor_->Stop();
    for (const ConnectionPtr& connection : Snapshot()) connection->Close(true, "was left by this node");
    io_.stop();
  }

  const pid_t creator_ = getpid();
  const VanOptions options_;
  VanCounters counters_;
  VanReceiver* receiver_ = nullptr;
  std::atomic<uint32_t> self_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stopped_{false};
  bool finished_ = false;
  uint16_t provisional_ = kFirstProvisionalRank;
  Pauses pauses_;

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  asio::steady_timer timer_;
  SocketAddress listens_;
  std::unique_ptr<Acceptor> acceptor_;
  Gathering gathering_;
  mutable std::mutex mutex_;
  std::unordered_map<NodeId, ConnectionPtr> peers_;  ///< guarded by mutex_
  std::thread thread_;
  std::future<void> loop_ended_;
};

}  // namespace

std::shared_ptr<Van> MakeTcpVan(VanOptions options) {
  return {new TcpVan(std::move(options)), [creator = getpid()](Van* van) {
            if (getpid() == creator) delete van;
          }};
}

}  // namespace hipress
