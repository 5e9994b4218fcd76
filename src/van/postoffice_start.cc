/*!
 * \file postoffice_start.cc
 * \brief How a job forms: registration, roster, the workers' links to servers.
 */
#include <algorithm>

#include "common/debug_dumps.h"
#include "common/interrupt.h"
#include "common/log.h"
#include "van/postoffice-inl.h"

namespace hipress {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

void Postoffice::Impl::ThrowIfStartFailed() {
  if (!start_failure_.empty()) throw Error(start_failure_);
  ThrowIfDead();
  if (stopping_) throw Error("this node is being stopped");
}

template <typename Predicate>
void Postoffice::Impl::AwaitStart(std::unique_lock<std::mutex>* lock, SteadyTime deadline,
                                  Predicate done) {
  const BlockingCalls::Scope scope(&calls_, "start", "");
  const auto over = [&] {
    return done() || !start_failure_.empty() || !deaths_.empty() || stopping_;
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

void Postoffice::Impl::Start(PostofficeReceiver* receiver) {
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

void Postoffice::Impl::StartScheduler(SteadyTime deadline) {
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
void Postoffice::Impl::ConnectInTries(NodeId peer, const std::string& address, SteadyTime deadline) {
  constexpr milliseconds kOfItself{300};  // what ends so long before its time could not be mended by more of it
  constexpr seconds kTry{4};  // as long as a handshake may take on a long link
  while (true) {
    const auto until = std::min(deadline, steady_clock::now() + kTry);
    try {
      return van_->Connect(peer, address, until);
    } catch (const Error&) {
      if (until == deadline || steady_clock::now() + kOfItself < until) throw;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    ThrowIfStartFailed();
  }
}

void Postoffice::Impl::StartNode(SteadyTime deadline) {
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
  for (const auto& [peer, address] : roster_.addresses) {
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

void Postoffice::Impl::OnRoster(const Message& message) {
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
  roster_ = std::move(roster);
  self_ = roster_.self.Packed();
  van_->Rename(roster_.self);
  SetLogName(roster_.self.ToString());
  member_check_.store(true, std::memory_order_release);
}

}  // namespace hipress
