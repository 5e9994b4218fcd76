#include "van/postoffice.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <condition_variable>
#include <mutex>
#include <set>

#include "common/log.h"
#include "van/roster.h"
#include "van/scheduler.h"
#include "van/socket.h"
#include "van/timeline_exchange.h"

namespace hipress {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// News of a death overtakes gradients.
constexpr int kNewsPriority = INT_MAX - 1;

class Postoffice::Impl final : public VanReceiver {
 public:
  Impl(JobOptions options, std::unique_ptr<Van> van)
      : options_(std::move(options)),
        van_(van ? std::move(van) : MakeTcpVan(options_.van)),
        self_(NodeId{options_.role, kUnnamedRank}.Packed()) {
    if (options_.role != Role::kScheduler) return;
    self_ = Scheduler().Packed();
    state_ = std::make_unique<SchedulerState>(
        options_, SchedulerState::Hooks{
                      [this](NodeId to, Message m) { van_->Send(to, std::move(m)); },
                      [this](NodeId from, NodeId to) { van_->RenamePeer(from, to); },
                      [this](NodeId node, const std::string& what) { Die(node, what); },
                      [this](NodeId node) { left_.insert(node); events_.push_back({node, ""}); }});
  }

  void Start(PostofficeReceiver* receiver) {
    receiver_ = receiver;
    const auto deadline = steady_clock::now() + options_.start_timeout;
    try {
      if (options_.role == Role::kScheduler) {
        StartScheduler(deadline);
      } else {
        StartNode(deadline);
      }
    } catch (...) {
      // The scheduler's parting words must reach the others; a node's failure is theirs as well.
      Leave(options_.role == Role::kScheduler);
      throw;
    }
  }

  void Leave(bool goodbye) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!goodbye) AwaitTold(&lock);
      if (goodbye && started_ && !stopping_) timeline_.Ship();
      stopping_ = true;
      changed_.notify_all();
    }
    if (goodbye) {
      van_->Stop();
    } else {
      van_->Abort();
    }
  }

  void Barrier(uint64_t kind, seconds timeout) {
    std::lock_guard<std::mutex> one_at_a_time(barrier_mutex_);
    std::unique_lock<std::mutex> lock(mutex_);
    const auto deadline = steady_clock::now() + timeout;
    const uint32_t number = released_[kind] + 1;
    barrier_failure_.clear();
    barrier_missing_.clear();
    ThrowIfBroken(kind);
    SendBarrier(kind, number, kPlainFlag);
    const auto over = [&] {
      return released_[kind] >= number || !barrier_failure_.empty() || stopping_ ||
             !Obstacle(kind).empty();
    };
    if (!changed_.wait_until(lock, deadline, over)) {
      SendBarrier(kind, number, kQueryFlag);
      changed_.wait_for(lock, seconds(2), [&] { return over() || !barrier_missing_.empty(); });
    }
    if (released_[kind] >= number) return;
    ThrowIfBroken(kind);
    throw Error("waited " + std::to_string(timeout.count()) + " s at a barrier for " +
                (barrier_missing_.empty() ? "the scheduler, which does not answer" : barrier_missing_));
  }

  void Link(NodeId peer) {
    const auto deadline = steady_clock::now() + options_.van.connect_timeout;
    while (true) {
      std::string address;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (up_.count(peer) != 0) return;
        if (!deaths_.empty()) throw Error(deaths_.front().second);
        if (left_.count(peer) != 0) throw Error(peer.ToString() + " has left the job");
        if (stopping_) throw Error("this node is being stopped");
        const auto it = roster_.addresses.find(peer);
        if (it == roster_.addresses.end()) throw Error("there is no " + peer.ToString());
        address = it->second;
      }
      // In short tries, so that news of a death ends it.
      const auto until = std::min(deadline, steady_clock::now() + seconds(1));
      try {
        return van_->Connect(peer, address, until);
      } catch (const Error&) {
        if (until == deadline) throw;
      }
    }
  }

  void Send(NodeId to, Message message, int priority, Van::SendDone done) {
    if (any_dead_.load(std::memory_order_relaxed)) {
      std::lock_guard<std::mutex> lock(mutex_);
      // A name that no van knows gets done(false) in the usual way.
      if (IsDead(to)) to = NodeId{to.role, kUnnamedRank};
    }
    van_->Send(to, std::move(message), priority, std::move(done));
  }

  std::string WaitForEnd() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || !deaths_.empty() || AllWorkersLeft(); });
    if (state_) WriteTimeline(&lock);
    if (AllWorkersLeft() || deaths_.empty()) return "";
    AwaitTold(&lock);
    return deaths_.front().second;
  }

  std::vector<NodeId> Dead() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<NodeId> dead;
    for (const auto& death : deaths_) dead.push_back(death.first);
    return dead;
  }
  NodeId self() const { return NodeId::Unpack(self_); }
  const JobOptions& options() const { return options_; }
  Van& van() { return *van_; }

  // VanReceiver
  Buffer OnHeader(NodeId from, const MessageHeader& header) override {
    if (header.kind >= static_cast<uint16_t>(MessageKind::kCodecConfig)) {
      CheckMember(from);
      return receiver_->OnHeader(from, header);
    }
    if (header.payload_bytes > kMaxMembershipBytes) {
      throw ProtocolError("a membership message of " + std::to_string(header.payload_bytes) +
                          " bytes is too large");
    }
    return Buffer();
  }

  void OnMessage(NodeId from, Message message) override {
    if (message.header.kind >= static_cast<uint16_t>(MessageKind::kCodecConfig)) {
      return receiver_->OnMessage(from, std::move(message));
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (state_) {
        AtScheduler(from, message);
      } else {
        AtNode(from, message);
      }
      changed_.notify_all();
    }
    Tell();
  }

  void OnUp(NodeId peer) override {
    std::lock_guard<std::mutex> lock(mutex_);
    up_.insert(peer);
  }

  void OnDown(NodeId peer, bool graceful, const std::string& reason) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      up_.erase(peer);
      if (stopping_) return;
      if (state_) {
        state_->OnDown(peer, graceful, reason);
      } else {
        LostPeer(peer, graceful, reason);
      }
      changed_.notify_all();
    }
    Tell();
  }

 private:
  /// A leave (empty text) or a death that the receiver is still to hear of.
  struct Event {
    NodeId node;
    std::string death;
  };

  void StartScheduler(SteadyTime deadline) {
    SetLogName("scheduler");
    van_->Start(Scheduler(), options_.root_uri, options_.root_port, this);
    std::unique_lock<std::mutex> lock(mutex_);
    member_check_ = true;
    const auto settled = [&] {
      return state_->phase() == SchedulerState::Phase::kRunning ||
             state_->phase() == SchedulerState::Phase::kFailed || stopping_;
    };
    if (!changed_.wait_until(lock, deadline, settled)) {
      state_->GiveUp("waited " + std::to_string(options_.start_timeout.count()) + " s for " +
                     state_->Missing());
    }
    if (stopping_) throw Error("the scheduler is being stopped");
    if (state_->phase() == SchedulerState::Phase::kFailed) throw Error(state_->failure());
  }

  void StartNode(SteadyTime deadline) {
    SetLogName(NameOf(options_.role));
    std::string host = options_.node_host;
    if (host.empty()) {
      host = options_.van.interface.empty() ? AddressTowards(options_.root_uri)
                                            : AddressOfInterface(options_.van.interface);
    }
    root_address_ = options_.root_uri + ":" + std::to_string(options_.root_port);
    Registration registration;
    registration.address = van_->Start(self(), host, 0, this);
    van_->Connect(Scheduler(), root_address_,
                  std::min(deadline, steady_clock::now() + options_.van.connect_timeout));
    registration.role = options_.role;
    registration.wanted_rank = options_.wanted_rank;
    registration.num_workers = options_.num_workers;
    registration.num_servers = options_.num_servers;
    van_->Send(Scheduler(), TextMessage(MessageKind::kRegister, registration.ToText()));

    std::unique_lock<std::mutex> lock(mutex_);
    // The scheduler, whose time runs out first, knows better who is missing.
    const auto patience = deadline + milliseconds(300);
    AwaitStart(&lock, patience, [&] { return member_check_.load(); });
    const NodeId me = self();
    for (const auto& [peer, address] : roster_.addresses) {
      if (me.role != Role::kWorker || peer.role != Role::kServer) continue;
      lock.unlock();
      van_->Connect(peer, address, deadline);
      lock.lock();
      ThrowIfStartFailed();
    }
    SendBarrier(kReadyBarrier, 1, kPlainFlag);
    AwaitStart(&lock, patience, [&] { return released_[kReadyBarrier] >= 1; });
    started_ = true;
    timeline_.Begin();
  }

  void ThrowIfStartFailed() {
    if (!start_failure_.empty()) throw Error(start_failure_);
    if (!deaths_.empty()) throw Error(deaths_.front().second);
    if (stopping_) throw Error("this node is being stopped");
  }

  template <typename Predicate>
  void AwaitStart(std::unique_lock<std::mutex>* lock, SteadyTime deadline, Predicate done) {
    const auto over = [&] {
      return done() || !start_failure_.empty() || !deaths_.empty() || stopping_;
    };
    if (!changed_.wait_until(*lock, deadline, over)) {
      SendBarrier(kReadyBarrier, 1, kQueryFlag);
      changed_.wait_for(*lock, seconds(2), [&] { return over() || !barrier_missing_.empty(); });
    }
    if (done()) return;
    ThrowIfStartFailed();
    throw Error("waited " + std::to_string(options_.start_timeout.count()) + " s for " +
                (barrier_missing_.empty() ? "the scheduler at " + root_address_ + ", which does not answer"
                                          : barrier_missing_));
  }

  void SendBarrier(uint64_t kind, uint32_t number, uint8_t flags) {
    timeline_.Again();
    Message message = TextMessage(MessageKind::kBarrier, "");
    message.header.key = kind;
    message.header.iteration = number;
    message.header.flags = flags;
    van_->Send(Scheduler(), std::move(message));
  }

  /// Gradients and commands come only from members of a formed job.
  void CheckMember(NodeId from) {
    const bool member = member_check_.load(std::memory_order_acquire) &&
                        (state_ ? from.rank < kFirstProvisionalRank
                                : from == Scheduler() || roster_.addresses.count(from) != 0);
    if (!member) throw ProtocolError("it comes from a node that is no member of the job");
  }

  void AtScheduler(NodeId from, const Message& message) {
    switch (static_cast<MessageKind>(message.header.kind)) {
      case MessageKind::kRegister: return state_->OnRegister(from, message);
      case MessageKind::kBarrier: return state_->OnBarrier(from, message);
      case MessageKind::kNodeDown: return state_->OnReport(from, message);
      case MessageKind::kTimeline: CheckMember(from); return timeline_.AtScheduler(from, message);
      default: throw ProtocolError("a scheduler takes no such membership message");
    }
  }

  void AtNode(NodeId from, const Message& message) {
    const MessageHeader& header = message.header;
    if (header.kind == static_cast<uint16_t>(MessageKind::kNodeDown)) {
      if (!member_check_) return;  // of a peer that knew the roster first; the scheduler's follows
      CheckMember(from);
      const NodeId node = NodeId::Unpack(static_cast<uint32_t>(header.key));
      if (node != Scheduler() && roster_.addresses.count(node) == 0) {
        throw ProtocolError("news of a node that does not exist");
      }
      return Die(node, TextOf(message));
    }
    if (from != Scheduler()) throw ProtocolError("only the scheduler sends membership messages");
    switch (static_cast<MessageKind>(header.kind)) {
      case MessageKind::kRoster: return OnRoster(message);
      case MessageKind::kRelease: return OnRelease(message);
      case MessageKind::kTimeline: return timeline_.AtNode(message);
      default: throw ProtocolError("a node takes no such membership message");
    }
  }

  void OnRoster(const Message& message) {
    if (message.header.flags == kRefusalFlag) {
      if (!started_) start_failure_ = TextOf(message);
      return;
    }
    if (member_check_) throw ProtocolError("a second roster");
    roster_ = Roster::Parse(TextOf(message));
    if (roster_.self.role != options_.role) throw ProtocolError("the roster names another role");
    self_ = roster_.self.Packed();
    van_->Rename(roster_.self);
    SetLogName(roster_.self.ToString());
    member_check_.store(true, std::memory_order_release);
  }

  void OnRelease(const Message& message) {
    const uint64_t kind = message.header.key;
    if (kind >= kBarrierKinds) throw ProtocolError("a release from a barrier of unknown kind");
    switch (message.header.flags) {
      case kPlainFlag: ++released_[kind]; return;
      case kQueryFlag: barrier_missing_ = TextOf(message); return;
      case kFailureFlag: barrier_failure_ = TextOf(message); return;
      default: throw ProtocolError("a release with unknown flags");
    }
  }

  std::string Describe(NodeId node) const {
    const auto it = roster_.addresses.find(node);
    const std::string address = node == Scheduler()              ? root_address_
                                : it == roster_.addresses.end() ? ""
                                                                : it->second;
    return node.ToString() + (address.empty() ? "" : " (" + address + ")");
  }

  void LostPeer(NodeId peer, bool graceful, const std::string& reason) {
    if (peer != Scheduler() && roster_.addresses.count(peer) == 0) return;
    if (IsDead(peer) || left_.count(peer) != 0) return;
    const bool needed = peer.role != Role::kWorker && options_.role == Role::kWorker;
    if (graceful && (needed || !started_)) {
      return Die(peer, Describe(peer) + " left the job before " + self().ToString() + " had finished");
    }
    if (graceful) {
      left_.insert(peer);
      events_.push_back({peer, ""});
      return;
    }
    if (peer != Scheduler()) SendNews(Scheduler(), NodeDown(peer, reason));
    Die(peer, Describe(peer) + " died: it " + reason);
  }

  void Die(NodeId node, const std::string& what) {
    if (IsDead(node) || left_.count(node) != 0) return;
    deaths_.emplace_back(node, what);
    any_dead_ = true;
    events_.push_back({node, what});
    if (!state_) TellPeers(node, what);
  }

  /// This process will probably end over the death. Its peers must hear of the cause before they see
  /// that, or they would name this node. (The scheduler's news may come later, and its own death
  /// nobody else announces.)
  void TellPeers(NodeId node, const std::string& what) {
    for (const auto& [peer, address] : roster_.addresses) {
      if (up_.count(peer) == 0 || IsDead(peer) || left_.count(peer) != 0) continue;
      SendNews(peer, NodeDown(node, what));
    }
  }

  void SendNews(NodeId to, Message message) {
    ++untold_;
    van_->Send(to, std::move(message), kNewsPriority, [this](bool) {
      --untold_;
      changed_.notify_all();
    });
  }

  void AwaitTold(std::unique_lock<std::mutex>* lock) {
    changed_.wait_for(*lock, milliseconds(500), [this] { return untold_ == 0; });
  }

  bool IsDead(NodeId node) const {
    return std::any_of(deaths_.begin(), deaths_.end(),
                       [node](const auto& death) { return death.first == node; });
  }

  /// Tells the receiver what has happened, without the lock.
  void Tell() {
    std::vector<Event> events;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      events.swap(events_);
    }
    for (const Event& event : events) {
      if (event.death.empty()) {
        receiver_->OnLeave(event.node);
      } else {
        receiver_->OnDeath(event.node, event.death);
      }
    }
  }

  /// Servers leave, and tell what they recorded, after the workers.
  void WriteTimeline(std::unique_lock<std::mutex>* lock) {
    const int nodes = options_.num_workers + options_.num_servers;
    changed_.wait_for(*lock, seconds(10), [&] {
      return stopping_ || !deaths_.empty() || !timeline_.Lacks(nodes);
    });
    timeline_.Write();
  }

  bool AllWorkersLeft() const {
    const auto workers = std::count_if(left_.begin(), left_.end(),
                                       [](NodeId node) { return node.role == Role::kWorker; });
    return workers >= options_.num_workers;
  }

  /// Why a barrier of this kind cannot be completed, if a death is the reason.
  std::string Obstacle(uint64_t kind) const {
    for (const auto& [node, what] : deaths_) {
      if (node.role != Role::kServer || kind != kWorkersBarrier) return what;
    }
    return "";
  }

  void ThrowIfBroken(uint64_t kind) const {
    const std::string obstacle = Obstacle(kind);
    if (!obstacle.empty()) throw Error("a barrier cannot be completed: " + obstacle);
    if (!barrier_failure_.empty()) throw Error("a barrier cannot be completed: " + barrier_failure_);
    if (stopping_) throw Error("a barrier was given up because this node is being stopped");
  }

  const JobOptions options_;
  const std::unique_ptr<Van> van_;
  PostofficeReceiver* receiver_ = nullptr;
  std::atomic<uint32_t> self_;
  std::string root_address_;
  std::atomic<bool> member_check_{false};  ///< roster_ is there, and no longer changes
  std::atomic<bool> any_dead_{false};
  std::atomic<int> untold_{0};  ///< news of deaths still on their way out
  std::mutex barrier_mutex_;

  mutable std::mutex mutex_;  ///< guards all below (roster_ only until member_check_)
  std::condition_variable changed_;
  Roster roster_;
  std::unique_ptr<SchedulerState> state_;  ///< only at the scheduler
  bool started_ = false;
  bool stopping_ = false;
  std::string start_failure_;
  std::vector<std::pair<NodeId, std::string>> deaths_;
  std::set<NodeId> up_;  ///< connected to this node
  std::set<NodeId> left_;
  std::vector<Event> events_;
  uint32_t released_[kBarrierKinds] = {};
  std::string barrier_failure_, barrier_missing_;
  TimelineExchange timeline_{[this](NodeId to, Message m) { van_->Send(to, std::move(m)); }};
  const pid_t creator_ = getpid();

  friend class Postoffice;
};

Postoffice::Postoffice(JobOptions options, std::unique_ptr<Van> van)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(van))) {}

Postoffice::~Postoffice() {
  // In a forked child nothing of this is alive, and nothing may be touched.
  if (getpid() != impl_->creator_) {
    static_cast<void>(impl_.release());
    return;
  }
  Stop();
}

void Postoffice::Start(PostofficeReceiver* receiver) { impl_->Start(receiver); }
void Postoffice::Stop() {
  if (getpid() == impl_->creator_) impl_->Leave(true);
}
void Postoffice::Abort() {
  if (getpid() == impl_->creator_) impl_->Leave(false);
}
NodeId Postoffice::self() const { return impl_->self(); }
int Postoffice::num_workers() const { return impl_->options().num_workers; }
int Postoffice::num_servers() const { return impl_->options().num_servers; }
void Postoffice::Barrier(bool with_servers, seconds timeout) {
  impl_->Barrier(with_servers ? kAllBarrier : kWorkersBarrier, timeout);
}
void Postoffice::Link(NodeId peer) { impl_->Link(peer); }
void Postoffice::Send(NodeId to, Message message, int priority, Van::SendDone done) {
  impl_->Send(to, std::move(message), priority, std::move(done));
}
std::vector<NodeId> Postoffice::Dead() const { return impl_->Dead(); }
std::string Postoffice::WaitForEnd() { return impl_->WaitForEnd(); }
const VanCounters& Postoffice::counters() const { return impl_->van().counters(); }

}  // namespace hipress
