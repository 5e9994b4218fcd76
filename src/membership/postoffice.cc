#include "membership/postoffice.h"

#include <algorithm>
#include <climits>

#include "base/debug_dumps.h"
#include "base/interrupt.h"
#include "base/lock_for.h"
#include "base/log.h"
#include "transport/address.h"

namespace hipress {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

/// Failure reports overtake gradients.
constexpr int kReportPriority = INT_MAX - 1;
/// A node that ends waits for its failure reports to be sent, this long at most: on a slow network
/// they wait behind what the kernel has.
constexpr milliseconds kMaxReportTime{2000};
/// A node that aborts waits so long for its peers to close. In an elastic job they wait for it in
/// the next view, its membership has told them what happened, and who is silent does not close.
constexpr milliseconds kElasticAbortLinger{50};

void Names(const std::set<NodeId>& nodes, JsonWriter* json) {
  json->Array();
  for (const NodeId node : nodes) json->Text(node.ToString());
  json->EndArray();
}

}  // namespace

Postoffice::Postoffice(JobOptions options, std::shared_ptr<Van> van)
    : options_(std::move(options)),
      van_(van ? std::move(van) : MakeTcpVan(options_.van)),
      self_(NodeId{options_.role, kUnnamedRank}.Packed()) {
  if (options_.role != Role::kScheduler) return;
  self_ = Scheduler().Packed();
  state_ = std::make_unique<SchedulerState>(
      options_, &members_, [this](NodeId to, Message m) { SendReport(to, std::move(m), 0); },
      [this](NodeId from, NodeId to) { van_->RenamePeer(from, to); });
}

Postoffice::~Postoffice() {
  const interrupt::Suspended suspended;
  Stop();
}

// ---- How a job forms

void Postoffice::ThrowIfStartFailed() {
  if (!start_failure_.empty()) throw Error(start_failure_);
  ThrowIfDead();
  if (stopping_) throw Error("this node is being stopped");
}

template <typename Predicate>
void Postoffice::AwaitStart(std::unique_lock<std::mutex>* lock, SteadyTime deadline,
                                  Predicate done) {
  const BlockingCalls::Scope scope(&calls_, "start", "");
  const auto over = [&] {
    return done() || !start_failure_.empty() || !members_.deaths.empty() || stopping_;
  };
  if (!interrupt::WaitUntil(&changed_, lock, deadline, over)) {
    SendBarrier(kReadyBarrier, 1, kQueryFlag);
    changed_.wait_for(*lock, seconds(2), [&] { return over() || !barrier_missing_.empty(); });
  }
  if (done()) return;
  ThrowIfStartFailed();
  const std::string late = barrier_missing_.empty()
                               ? options_.van.names(Scheduler()) + " at " + root_address_ + ", which does not answer"
                               : barrier_missing_;
  lock->unlock();
  debug_dumps::GiveUp("waited " + std::to_string(options_.start_timeout.count()) + " s for " + late);
}

void Postoffice::Start(PostofficeReceiver* receiver) {
  receiver_ = receiver;
  const auto deadline = steady_clock::now() + options_.start_timeout;
  try {
    if (options_.role == Role::kScheduler) {
      StartScheduler(deadline);
    } else {
      StartNode(deadline);
    }
  } catch (...) {
    // The scheduler's last message must reach all nodes; a node's failure also concerns them.
    Leave(options_.role == Role::kScheduler);
    throw;
  }
}

void Postoffice::StartScheduler(SteadyTime deadline) {
  SetLogName("scheduler");
  root_address_ = van_->Start(Scheduler(), options_.root_uri, options_.root_port, this);
  if (options_.on_listen) options_.on_listen(root_address_);
  std::unique_lock<std::mutex> lock(mutex_);
  member_check_ = true;
  const auto settled = [&] {
    return state_->phase() == SchedulerState::Phase::kRunning ||
           state_->phase() == SchedulerState::Phase::kFailed || stopping_;
  };
  if (!interrupt::WaitUntil(&changed_, &lock, deadline, settled)) {
    const std::string why = "waited " + std::to_string(options_.start_timeout.count()) + " s for " +
                            state_->Missing();
    lock.unlock();
    debug_dumps::Request(why);
    lock.lock();
    state_->GiveUp(why);
  }
  if (stopping_) throw Error("the scheduler is being stopped");
  if (state_->phase() == SchedulerState::Phase::kFailed) throw Error(state_->failure());
}

/// In short tries, so that a failure report ends it.
void Postoffice::ConnectInTries(NodeId peer, const std::string& address, SteadyTime deadline) {
  // A try that fails this long before its end would not succeed with more time.
  constexpr milliseconds kEarlyFailure{300};
  constexpr seconds kTry{4};  // as long as a handshake may take on a long link
  while (true) {
    const auto until = std::min(deadline, steady_clock::now() + kTry);
    try {
      return van_->Connect(peer, address, until);
    } catch (const Error&) {
      if (until == deadline || steady_clock::now() + kEarlyFailure < until) throw;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    ThrowIfStartFailed();
  }
}

void Postoffice::StartNode(SteadyTime deadline) {
  SetLogName(NameOf(options_.role));
  std::string host = options_.node_host;
  if (host.empty()) {
    host = options_.van.interface.empty()
               ? AddressTowards(options_.root_uri)
               : AddressOfInterface(options_.van.interface, Resolve(options_.root_uri, 0).family());
  }
  root_address_ = JoinAddress(options_.root_uri, options_.root_port);
  Registration registration;
  registration.address = van_->Start(self(), host, 0, this);
  van_->Connect(Scheduler(), root_address_,
                std::min(deadline, steady_clock::now() + options_.van.connect_timeout));
  registration.role = options_.role;
  registration.wanted_rank = options_.wanted_rank;
  registration.num_workers = options_.num_workers;
  registration.num_servers = options_.num_servers;
  van_->Send(Scheduler(), Message(MessageKind::kRegister, registration.ToText()));

  std::unique_lock<std::mutex> lock(mutex_);
  // The scheduler, which times out first, has better knowledge of the missing nodes.
  const auto patience = deadline + milliseconds(300);
  AwaitStart(&lock, patience, [&] { return member_check_.load(); });
  const NodeId me = self();
  for (const auto& [peer, address] : members_.addresses) {
    if (me.role != Role::kWorker || peer.role != Role::kServer) continue;
    lock.unlock();
    ConnectInTries(peer, address, deadline);
    lock.lock();
  }
  SendBarrier(kReadyBarrier, 1, kPlainFlag);
  AwaitStart(&lock, patience, [&] { return released_[kReadyBarrier] >= 1; });
  started_ = true;
  timeline_.Begin();
}

void Postoffice::OnRoster(const Message& message) {
  if (message.header.flags == kRefusalFlag) {
    if (!started_) start_failure_ = PrintableTextIn(message);
    return;
  }
  if (member_check_) throw ProtocolError("a second roster");
  Roster roster = Roster::Parse(PrintableTextIn(message));
  if (roster.self.role != options_.role) throw ProtocolError("the roster names another role");
  // Layers above count on ranks below these numbers.
  const auto count = size_t(options_.num_workers) + size_t(options_.num_servers);
  const bool ranks = std::all_of(
      roster.addresses.begin(), roster.addresses.end(), [this](const auto& entry) {
        const NodeId id = entry.first;
        return id.rank < (id.role == Role::kWorker ? options_.num_workers : options_.num_servers);
      });
  if (!ranks || roster.addresses.size() != count) {
    throw ProtocolError("the roster is of a job of another size");
  }
  members_.addresses = std::move(roster.addresses);
  self_ = roster.self.Packed();
  van_->Rename(roster.self);
  SetLogName(roster.self.ToString());
  member_check_.store(true, std::memory_order_release);
}

// ---- Barriers, links and messages

void Postoffice::Barrier(bool with_servers, seconds timeout) {
  const uint64_t kind = with_servers ? kAllBarrier : kWorkersBarrier;
  std::lock_guard<std::recursive_mutex> one_at_a_time(barrier_mutex_);
  std::unique_lock<std::mutex> lock(mutex_);
  const auto deadline = steady_clock::now() + timeout;
  // After a timeout, a node enters the same barrier again, which may be complete now.
  uint64_t& begun = begun_[kind];
  if (begun == 0) begun = released_[kind] + 1;
  const uint64_t number = begun;
  const BlockingCalls::Scope scope(&calls_, "barrier", NameOfBarrier(kind, number));
  barrier_failure_.clear();
  barrier_missing_.clear();
  ThrowIfBroken(kind);
  if (released_[kind] < number) SendBarrier(kind, number, kPlainFlag);
  const auto over = [&] {
    return released_[kind] >= number || !barrier_failure_.empty() || stopping_ ||
           Obstacle(kind) != nullptr;
  };
  if (!interrupt::WaitUntil(&changed_, &lock, deadline, over)) {
    SendBarrier(kind, number, kQueryFlag);
    changed_.wait_for(lock, seconds(2), [&] { return over() || !barrier_missing_.empty(); });
  }
  if (released_[kind] >= number) {
    begun = 0;
    return;
  }
  ThrowIfBroken(kind);
  const std::string late =
      barrier_missing_.empty() ? options_.van.names(Scheduler()) + ", which does not answer" : barrier_missing_;
  lock.unlock();
  debug_dumps::GiveUp("waited " + std::to_string(timeout.count()) + " s at a barrier for " + late);
}

void Postoffice::Link(NodeId peer) {
  const auto deadline = steady_clock::now() + options_.van.connect_timeout;
  auto patience = seconds(1);
  while (true) {
    std::string address;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (up_.count(peer) != 0) return;
      ThrowIfDead();
      if (members_.left.count(peer) != 0) {
        throw Error(options_.van.names(peer) + " has left the job", Cause::kLeft, peer);
      }
      if (stopping_) throw Error("this node is being stopped");
      const auto it = members_.addresses.find(peer);
      if (it == members_.addresses.end()) throw Error("there is no " + options_.van.names(peer));
      address = it->second;
    }
    // In short tries, so that a failure report ends it; longer ones for slow handshakes.
    const auto until = std::min(deadline, steady_clock::now() + patience);
    patience = std::min(2 * patience, seconds(4));
    try {
      return van_->Connect(peer, address, until);
    } catch (const Error&) {
      if (until == deadline) throw;
    }
  }
}

void Postoffice::Send(NodeId to, Message message, int priority, Van::SendDone done) {
  if (any_dead_.load(std::memory_order_relaxed)) {
    std::lock_guard<std::mutex> lock(mutex_);
    // A name that no van knows gets done(false) in the usual way.
    if (members_.IsDead(to)) to = NodeId{to.role, kUnnamedRank};
  }
  van_->Send(to, std::move(message), priority, std::move(done));
}

Buffer Postoffice::OnHeader(NodeId from, const MessageHeader& header) {
  if (header.kind >= MessageKind::kCodecConfig) {
    CheckMember(from);
    return receiver_->OnHeader(from, header);
  }
  if (header.payload_bytes > kMaxMembershipBytes) {
    throw ProtocolError("a membership message of " + std::to_string(header.payload_bytes) +
                        " bytes is too large");
  }
  return Buffer();
}

void Postoffice::OnMessage(NodeId from, Message message) {
  if (message.header.kind >= MessageKind::kCodecConfig) {
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
  NotifyReceiver();
}

void Postoffice::OnUp(NodeId peer) {
  std::lock_guard<std::mutex> lock(mutex_);
  up_.insert(peer);
}

void Postoffice::SendBarrier(uint64_t kind, uint64_t number, uint8_t flags) {
  timeline_.Again();
  Message message(MessageKind::kBarrier);
  message.header.key = kind;
  message.header.iteration = static_cast<uint32_t>(number);
  message.header.flags = flags;
  van_->Send(Scheduler(), std::move(message));
}

void Postoffice::CheckMember(NodeId from) {
  const bool member = member_check_.load(std::memory_order_acquire) &&
                      (state_ ? from.rank < kFirstProvisionalRank
                              : from == Scheduler() || members_.addresses.count(from) != 0);
  if (!member) throw ProtocolError("it comes from a node that is no member of the job");
}

void Postoffice::AtScheduler(NodeId from, const Message& message) {
  switch (message.header.kind) {
    case MessageKind::kRegister: return state_->OnRegister(from, message);
    case MessageKind::kBarrier: return state_->OnBarrier(from, message);
    case MessageKind::kNodeDown: {
      const NodeId node = NodeId::Unpack(static_cast<uint32_t>(message.header.key));
      if (members_.addresses.count(from) == 0) {
        throw ProtocolError("it reports a death but is no member of the job");
      }
      if (members_.addresses.count(node) == 0) {
        throw ProtocolError("it reports the death of a node that does not exist");
      }
      if (!members_.Lives(node) || members_.IsDead(from)) return;
      return OnFailureReport(node, from, PrintableTextIn(message).substr(0, 500) + " (" +
                                             options_.van.names(from) + " says so)");
    }
    case MessageKind::kTimeline: CheckMember(from); return timeline_.AtScheduler(from, message);
    default: throw ProtocolError("a scheduler takes no such membership message");
  }
}

void Postoffice::AtNode(NodeId from, const Message& message) {
  const MessageHeader& header = message.header;
  if (header.kind == MessageKind::kNodeDown) {
    if (!member_check_) return;  // of a peer that knew the roster first; the scheduler's follows
    CheckMember(from);
    const NodeId node = NodeId::Unpack(static_cast<uint32_t>(header.key));
    if (node != Scheduler() && members_.addresses.count(node) == 0) {
      throw ProtocolError("a failure report about a node that does not exist");
    }
    return OnFailureReport(node, from, PrintableTextIn(message));
  }
  if (from != Scheduler()) throw ProtocolError("only the scheduler sends membership messages");
  switch (header.kind) {
    case MessageKind::kRoster: return OnRoster(message);
    case MessageKind::kRelease: return OnRelease(message);
    case MessageKind::kTimeline: return timeline_.AtNode(message);
    default: throw ProtocolError("a node takes no such membership message");
  }
}

void Postoffice::OnRelease(const Message& message) {
  const uint64_t kind = message.header.key;
  if (kind >= kBarrierKinds) throw ProtocolError("a release from a barrier of unknown kind");
  switch (message.header.flags) {
    case kPlainFlag: ++released_[kind]; return;
    case kQueryFlag: barrier_missing_ = PrintableTextIn(message); return;
    case kFailureFlag: barrier_failure_ = PrintableTextIn(message); return;
    default: throw ProtocolError("a release with unknown flags");
  }
}

const std::pair<NodeId, std::string>* Postoffice::Obstacle(uint64_t kind) const {
  for (const auto& [node, _] : members_.deaths) {
    // The first death is behind the later ones: a scheduler ends when a server has died.
    if (node.role != Role::kServer || kind != kWorkersBarrier) return &members_.deaths.front();
  }
  return nullptr;
}

void Postoffice::ThrowIfDead() const {
  if (members_.deaths.empty()) return;
  const auto& [node, what] = members_.deaths.front();
  throw Error(what, Cause::kDied, node);
}

void Postoffice::ThrowIfBroken(uint64_t kind) const {
  if (const auto* death = Obstacle(kind)) {
    throw Error("a barrier cannot be completed: " + death->second, Cause::kDied, death->first);
  }
  if (!barrier_failure_.empty()) throw Error("a barrier cannot be completed: " + barrier_failure_);
  if (stopping_) throw Error("a barrier was given up because this node is being stopped");
}

// ---- How nodes leave and die

void Postoffice::Leave(bool goodbye) {
  if (getpid() != creator_) return;  // a forked child has neither the threads nor the connections
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!goodbye) AwaitReports(&lock);
    if (!goodbye && options_.view > 0 && started_ && !stopping_) timeline_.WriteOwn(self());
    if (goodbye && started_ && !stopping_) timeline_.Ship();
    aborted_ = aborted_ || (!goodbye && !stopping_);
    stopping_ = true;
    // A failing node sends none, whatever is called during its end; the scheduler of a failed view
    // also sends none.
    goodbye = goodbye && !aborted_ && (options_.view == 0 || members_.deaths.empty());
    changed_.notify_all();
  }
  if (goodbye) {
    van_->Stop();
  } else if (options_.view > 0) {
    van_->Abort(kElasticAbortLinger);
  } else {
    van_->Abort();
  }
}

std::string Postoffice::WaitForEnd() {
  std::unique_lock<std::mutex> lock(mutex_);
  interrupt::WaitUntil(&changed_, &lock, SteadyTime::max(),
                       [&] { return stopping_ || !members_.deaths.empty() || AllWorkersLeft(); });
  if (state_) {  // servers leave, and send what they recorded, after the workers
    interrupt::WaitUntil(&changed_, &lock, steady_clock::now() + seconds(10), [this] {
      return stopping_ || !members_.deaths.empty() ||
             !timeline_.Lacks(options_.num_workers + options_.num_servers);
    });
    timeline_.Write();
  }
  if (AllWorkersLeft() || members_.deaths.empty()) return "";
  AwaitReports(&lock);
  return members_.deaths.front().second;
}

std::vector<NodeId> Postoffice::Dead() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<NodeId> dead;
  for (const auto& death : members_.deaths) dead.push_back(death.first);
  if (aborted_ && !members_.IsDead(self())) dead.push_back(self());  // as all others see it
  return dead;
}

std::vector<NodeId> Postoffice::Left() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {members_.left.begin(), members_.left.end()};
}

void Postoffice::OnDown(NodeId peer, bool graceful, const std::string& reason) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    up_.erase(peer);
    if (stopping_ || members_.IsDead(self())) return;
    const bool lost = !graceful && members_.Lives(peer);
    const std::string held_up = lost && member_check_ ? van_->HeldUp() : "";
    if (!held_up.empty()) {
      // Others took this node for dead, and leave because of it: it must not blame them.
      const std::string what = Describe(self()) + " died: it was held up for " + held_up;
      Die(self(), what);
    } else if (!JudgeByConnection(peer, graceful, reason)) {
      LostPeer(peer, graceful, reason);
    }
    changed_.notify_all();
  }
  NotifyReceiver();
}

void Postoffice::OnTick() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (suspicions_.empty() || stopping_) return;
    JudgeSuspicions();
    changed_.notify_all();
  }
  NotifyReceiver();
}

void Postoffice::OnFailureReport(NodeId node, NodeId from, const std::string& what) {
  const bool own = node == from || node == self();  // the best source
  if (!own && IsConsequence(node, from)) return;
  if (own || members_.IsDead(node) || !van_->Silence(node)) return Die(node, what);
  const bool known = std::any_of(suspicions_.begin(), suspicions_.end(), [&](const Suspicion& suspicion) {
    return suspicion.node == node && suspicion.from == from;
  });
  if (!known) suspicions_.push_back({node, from, what, steady_clock::now(), ""});
}

bool Postoffice::IsConsequence(NodeId node, NodeId from) const {
  return std::any_of(suspicions_.begin(), suspicions_.end(), [&](const Suspicion& suspicion) {
    const bool went = suspicion.from == node && !suspicion.lost.empty();
    // Only the one that it took for dead knows better.
    return (went && suspicion.node != from) || (suspicion.from == from && suspicion.node != node);
  });
}

bool Postoffice::JudgeByConnection(NodeId peer, bool graceful, const std::string& reason) {
  // The oldest one is the cause: of two nodes that have parted each reports the other.
  const auto it = std::find_if(suspicions_.begin(), suspicions_.end(), [peer](const Suspicion& suspicion) {
    return suspicion.node == peer || suspicion.from == peer;
  });
  if (it == suspicions_.end()) return false;
  if (it->node == peer) {
    const Suspicion suspicion = *it;
    if (!graceful) Die(peer, suspicion.what);
    Drop(suspicion);
    return !graceful;
  }
  if (graceful) return false;
  it->lost = reason;  // its own report ended it, or it is cut off
  return true;
}

void Postoffice::Drop(const Suspicion& suspicion) {
  suspicions_.erase(std::remove_if(suspicions_.begin(), suspicions_.end(),
                                [&](const Suspicion& other) {
                                  return other.node == suspicion.node && other.from == suspicion.from;
                                }),
                 suspicions_.end());
  if (suspicion.lost.empty() || members_.IsDead(suspicion.from)) return;
  if (!JudgeByConnection(suspicion.from, false, suspicion.lost)) LostPeer(suspicion.from, false, suspicion.lost);
}

void Postoffice::JudgeSuspicions() {
  const auto now = steady_clock::now();
  for (const Suspicion& suspicion : std::vector<Suspicion>(suspicions_)) {
    if (now - suspicion.since < options_.van.heartbeat_timeout) continue;
    const auto silence = van_->Silence(suspicion.node);
    if (silence && *silence > 2 * options_.van.heartbeat_interval) continue;  // soon it is given up
    if (silence) {
      Die(suspicion.from, Describe(suspicion.from) + " died: it is cut off from " +
                              options_.van.names(suspicion.node) + ", which is alive");
    }
    Drop(suspicion);
  }
}

std::string Postoffice::Describe(NodeId node) const {
  const auto it = members_.addresses.find(node);
  const std::string address = node == Scheduler()              ? root_address_
                              : it == members_.addresses.end() ? ""
                                                              : it->second;
  return options_.van.names(node) + (address.empty() ? "" : " (" + address + ")");
}

void Postoffice::LostPeer(NodeId peer, bool graceful, const std::string& reason) {
  using Phase = SchedulerState::Phase;
  if (state_ && state_->phase() == Phase::kRegistering) return state_->OnApplicantDown(peer, reason);
  if (!members_.Lives(peer)) return;
  if (!graceful || (state_ && state_->phase() == Phase::kConnecting)) {
    return Die(peer, Describe(peer) + " died: it " + reason);
  }
  // A worker leaves normally only after the start, even if this node has not been notified of the
  // start's end. Workers alone need no scheduler once they have started.
  const bool done = peer == Scheduler() && started_ && options_.num_servers == 0;
  const bool needed = !state_ && peer.role != Role::kWorker && !done &&
                      (options_.role == Role::kWorker || !started_);
  if (needed) {
    return Die(peer,
               Describe(peer) + " left the job before " + options_.van.names(self()) + " had finished");
  }
  members_.left.insert(peer);
  events_.push_back({peer, ""});
  if (state_) state_->OnLeave();
}

void Postoffice::Die(NodeId node, const std::string& what) {
  if (members_.IsDead(node) || members_.left.count(node) != 0) return;
  members_.deaths.emplace_back(node, what);
  any_dead_ = true;
  events_.push_back({node, what});
  if (state_) return state_->OnDeath(node, what);
  for (const NodeId peer : up_) {
    if (members_.Lives(peer)) SendReport(peer, NodeDown(node, what), kReportPriority);
  }
}

void Postoffice::SendReport(NodeId to, Message message, int priority) {
  {
    std::lock_guard<std::mutex> lock(reports_mutex_);
    ++unsent_reports_;
  }
  van_->Send(to, std::move(message), priority, [this](bool) {
    std::lock_guard<std::mutex> lock(reports_mutex_);
    if (--unsent_reports_ == 0) reports_sent_.notify_all();
  });
}

void Postoffice::AwaitReports(std::unique_lock<std::mutex>* lock) {
  lock->unlock();
  {
    std::unique_lock<std::mutex> reports(reports_mutex_);
    reports_sent_.wait_for(reports, kMaxReportTime, [this] { return unsent_reports_ == 0; });
  }
  lock->lock();
}

void Postoffice::NotifyReceiver() {
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

bool Postoffice::AllWorkersLeft() const {
  const auto workers = std::count_if(members_.left.begin(), members_.left.end(),
                                     [](NodeId node) { return node.role == Role::kWorker; });
  return workers >= options_.num_workers;
}

// ---- Debug dumps

std::string Postoffice::Name() const {
  const NodeId me = self();
  return me.rank == kUnnamedRank ? std::string("a ") + NameOf(me.role) : me.ToString();
}

void Postoffice::Describe(JsonWriter* json) {
  const std::string given = JoinAddress(options_.root_uri, options_.root_port);
  json->Name("node").Text(Name());
  json->Name("workers").Number(options_.num_workers).Name("servers").Number(options_.num_servers);
  json->Name("ranks").Text(options_.ranks).Name("view").Number(options_.view);
  json->Name("timeout").Number(options_.wait_timeout.count());
  std::set<NodeId> up;
  {
    const auto lock = LockFor(&mutex_);
    json->Name("locked").Bool(!lock);
    if (lock) {
      json->Name("job").Text(options_.root_port == 0 ? root_address_ : given);
      json->Name("started").Bool(started_ || (state_ && state_->phase() == SchedulerState::Phase::kRunning));
      json->Name("leaving").Bool(stopping_);
      json->Name("left");
      Names(members_.left, json);
      json->Name("dead").Array();
      for (const auto& [node, what] : members_.deaths) {
        json->Object().Name("node").Text(node.ToString()).Name("what").Text(what).EndObject();
      }
      json->EndArray();
      if (state_) {
        json->Name("scheduler").Object();
        state_->Describe(json);
        json->EndObject();
      }
      up = up_;
      if (state_) {  // its peers have got other names since
        up.clear();
        for (const auto& [node, _] : members_.addresses) {
          if (members_.Lives(node)) up.insert(node);
        }
      }
    }
  }
  json->Name("calls");
  calls_.Describe(json);
  json->Name("links").Array();
  for (const NodeId peer : up) {
    const auto silence = van_->Silence(peer);
    json->Object().Name("node").Text(peer.ToString());
    if (silence) json->Name("silent").Seconds(std::chrono::duration<double>(*silence).count());
    json->EndObject();
  }
  json->EndArray();
}

}  // namespace hipress
