#include "van/postoffice.h"

#include "common/debug_dumps.h"
#include "common/interrupt.h"
#include "van/postoffice-inl.h"

namespace hipress {

using std::chrono::seconds;
using std::chrono::steady_clock;

void Postoffice::Impl::Barrier(uint64_t kind, seconds timeout) {
  std::lock_guard<std::recursive_mutex> one_at_a_time(barrier_mutex_);
  std::unique_lock<std::mutex> lock(mutex_);
  const auto deadline = steady_clock::now() + timeout;
  // A node that timed out at one enters the same one again, which may have been completed meanwhile.
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

void Postoffice::Impl::Link(NodeId peer) {
  const auto deadline = steady_clock::now() + options_.van.connect_timeout;
  auto patience = seconds(1);
  while (true) {
    std::string address;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (up_.count(peer) != 0) return;
      ThrowIfDead();
      if (left_.count(peer) != 0) {
        throw Error(options_.van.names(peer) + " has left the job", Cause::kLeft, peer);
      }
      if (stopping_) throw Error("this node is being stopped");
      const auto it = roster_.addresses.find(peer);
      if (it == roster_.addresses.end()) throw Error("there is no " + options_.van.names(peer));
      address = it->second;
    }
    // In short tries, so that a failure report ends it; in longer ones where a handshake takes so long.
    const auto until = std::min(deadline, steady_clock::now() + patience);
    patience = std::min(2 * patience, seconds(4));
    try {
      return van_->Connect(peer, address, until);
    } catch (const Error&) {
      if (until == deadline) throw;
    }
  }
}

void Postoffice::Impl::Send(NodeId to, Message message, int priority, Van::SendDone done) {
  if (any_dead_.load(std::memory_order_relaxed)) {
    std::lock_guard<std::mutex> lock(mutex_);
    // A name that no van knows gets done(false) in the usual way.
    if (IsDead(to)) to = NodeId{to.role, kUnnamedRank};
  }
  van_->Send(to, std::move(message), priority, std::move(done));
}

Buffer Postoffice::Impl::OnHeader(NodeId from, const MessageHeader& header) {
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

void Postoffice::Impl::OnMessage(NodeId from, Message message) {
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

void Postoffice::Impl::OnUp(NodeId peer) {
  std::lock_guard<std::mutex> lock(mutex_);
  up_.insert(peer);
}

void Postoffice::Impl::SendBarrier(uint64_t kind, uint64_t number, uint8_t flags) {
  timeline_.Again();
  Message message(MessageKind::kBarrier);
  message.header.key = kind;
  message.header.iteration = static_cast<uint32_t>(number);
  message.header.flags = flags;
  van_->Send(Scheduler(), std::move(message));
}

void Postoffice::Impl::CheckMember(NodeId from) {
  const bool member = member_check_.load(std::memory_order_acquire) &&
                      (state_ ? from.rank < kFirstProvisionalRank
                              : from == Scheduler() || roster_.addresses.count(from) != 0);
  if (!member) throw ProtocolError("it comes from a node that is no member of the job");
}

void Postoffice::Impl::AtScheduler(NodeId from, const Message& message) {
  switch (message.header.kind) {
    case MessageKind::kRegister: return state_->OnRegister(from, message);
    case MessageKind::kBarrier: return state_->OnBarrier(from, message);
    case MessageKind::kNodeDown:
      if (!state_->IsNewFailure(from, message)) return;
      return OnFailureReport(NodeId::Unpack(static_cast<uint32_t>(message.header.key)), from,
                    PrintableTextIn(message).substr(0, 500) + " (" + options_.van.names(from) + " says so)");
    case MessageKind::kTimeline: CheckMember(from); return timeline_.AtScheduler(from, message);
    default: throw ProtocolError("a scheduler takes no such membership message");
  }
}

void Postoffice::Impl::AtNode(NodeId from, const Message& message) {
  const MessageHeader& header = message.header;
  if (header.kind == MessageKind::kNodeDown) {
    if (!member_check_) return;  // of a peer that knew the roster first; the scheduler's follows
    CheckMember(from);
    const NodeId node = NodeId::Unpack(static_cast<uint32_t>(header.key));
    if (node != Scheduler() && roster_.addresses.count(node) == 0) {
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

void Postoffice::Impl::OnRelease(const Message& message) {
  const uint64_t kind = message.header.key;
  if (kind >= kBarrierKinds) throw ProtocolError("a release from a barrier of unknown kind");
  switch (message.header.flags) {
    case kPlainFlag: ++released_[kind]; return;
    case kQueryFlag: barrier_missing_ = PrintableTextIn(message); return;
    case kFailureFlag: barrier_failure_ = PrintableTextIn(message); return;
    default: throw ProtocolError("a release with unknown flags");
  }
}

const std::pair<NodeId, std::string>* Postoffice::Impl::Obstacle(uint64_t kind) const {
  for (const auto& [node, _] : deaths_) {
    // The first death is behind the later ones: a scheduler ends when a server has died.
    if (node.role != Role::kServer || kind != kWorkersBarrier) return &deaths_.front();
  }
  return nullptr;
}

void Postoffice::Impl::ThrowIfDead() const {
  if (!deaths_.empty()) throw Error(deaths_.front().second, Cause::kDied, deaths_.front().first);
}

void Postoffice::Impl::ThrowIfBroken(uint64_t kind) const {
  if (const auto* death = Obstacle(kind)) {
    throw Error("a barrier cannot be completed: " + death->second, Cause::kDied, death->first);
  }
  if (!barrier_failure_.empty()) throw Error("a barrier cannot be completed: " + barrier_failure_);
  if (stopping_) throw Error("a barrier was given up because this node is being stopped");
}

Postoffice::Postoffice(JobOptions options, std::unique_ptr<Van> van)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(van))) {}

Postoffice::~Postoffice() {
  // In a forked child nothing of this is alive, and nothing may be touched.
  if (getpid() != impl_->creator_) {
    static_cast<void>(impl_.release());
    return;
  }
  const interrupt::Suspended suspended;
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
const JobOptions& Postoffice::options() const { return impl_->options(); }
void Postoffice::Barrier(bool with_servers, seconds timeout) {
  impl_->Barrier(with_servers ? kAllBarrier : kWorkersBarrier, timeout);
}
void Postoffice::Link(NodeId peer) { impl_->Link(peer); }
void Postoffice::Send(NodeId to, Message message, int priority, Van::SendDone done) {
  impl_->Send(to, std::move(message), priority, std::move(done));
}
std::vector<NodeId> Postoffice::Dead() const { return impl_->Dead(); }
std::vector<NodeId> Postoffice::Left() const { return impl_->Left(); }
std::string Postoffice::WaitForEnd() { return impl_->WaitForEnd(); }
const VanCounters& Postoffice::counters() const { return impl_->van().counters(); }
void Postoffice::Describe(JsonWriter* json) { impl_->Describe(json); }
BlockingCalls& Postoffice::calls() { return impl_->calls(); }
std::string Postoffice::Name() const { return impl_->Name(); }
uint8_t Postoffice::timeline_node() const { return impl_->timeline_node(); }

}  // namespace hipress
