/*!
 * \file postoffice_end.cc
 * \brief How nodes leave and die, and who is notified.
 */
#include <algorithm>
#include <climits>

#include "common/interrupt.h"
#include "van/postoffice-inl.h"

namespace hipress {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

/// Failure reports overtake gradients.
constexpr int kReportPriority = INT_MAX - 1;
/// A node that ends waits for its failure reports to be sent, this long at most: on a slow network they
/// wait behind what the kernel has.
constexpr milliseconds kMaxReportTime{2000};
/// A node that aborts waits so long for its peers to close. In an elastic job they wait for it in the
/// next view, its membership has told them what happened, and who is silent does not close.
constexpr milliseconds kElasticAbortLinger{50};

}  // namespace

void Postoffice::Impl::Leave(bool goodbye) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!goodbye) AwaitReports(&lock);
    if (!goodbye && options_.view > 0 && started_ && !stopping_) timeline_.WriteOwn(self());
    if (goodbye && started_ && !stopping_) timeline_.Ship();
    aborted_ = aborted_ || (!goodbye && !stopping_);
    stopping_ = true;
    // A failing node sends none, whatever is called during its end; the scheduler of a failed view also sends
    // none.
    goodbye = goodbye && !aborted_ && (options_.view == 0 || deaths_.empty());
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

std::string Postoffice::Impl::WaitForEnd() {
  std::unique_lock<std::mutex> lock(mutex_);
  interrupt::WaitUntil(&changed_, &lock, SteadyTime::max(),
                       [&] { return stopping_ || !deaths_.empty() || AllWorkersLeft(); });
  if (state_) WriteTimeline(&lock);
  if (AllWorkersLeft() || deaths_.empty()) return "";
  AwaitReports(&lock);
  return deaths_.front().second;
}

std::vector<NodeId> Postoffice::Impl::Dead() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<NodeId> dead;
  for (const auto& death : deaths_) dead.push_back(death.first);
  if (aborted_ && !IsDead(self())) dead.push_back(self());  // as all others see it
  return dead;
}

std::vector<NodeId> Postoffice::Impl::Left() {
  std::lock_guard<std::mutex> lock(mutex_);
  return {left_.begin(), left_.end()};
}

void Postoffice::Impl::OnDown(NodeId peer, bool graceful, const std::string& reason) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    up_.erase(peer);
    if (stopping_ || IsDead(self())) return;
    const bool lost = !graceful && (state_ ? state_->Lives(peer) : Lives(peer));
    const std::string held_up = lost && member_check_ ? van_->HeldUp() : "";
    if (!held_up.empty()) {
      // Others took this node for dead, and leave because of it: it must not blame them.
      const std::string what = Describe(self()) + " died: it was held up for " + held_up;
      Lose(self(), what);
    } else if (!Settle(peer, graceful, reason)) {
      state_ ? state_->OnDown(peer, graceful, reason) : LostPeer(peer, graceful, reason);
    }
    changed_.notify_all();
  }
  NotifyReceiver();
}

void Postoffice::Impl::OnTick() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (suspicions_.empty() || stopping_) return;
    JudgeSuspicions();
    changed_.notify_all();
  }
  NotifyReceiver();
}

void Postoffice::Impl::Lose(NodeId node, const std::string& what) {
  state_ ? state_->Die(node, what) : Die(node, what);
}

void Postoffice::Impl::OnFailureReport(NodeId node, NodeId from, const std::string& what) {
  const bool own = node == from || node == self();  // the best source
  if (!own && IsConsequence(node, from)) return;
  if (own || IsDead(node) || !van_->Silence(node)) return Lose(node, what);
  const bool known = std::any_of(suspicions_.begin(), suspicions_.end(), [&](const Suspicion& suspicion) {
    return suspicion.node == node && suspicion.from == from;
  });
  if (!known) suspicions_.push_back({node, from, what, steady_clock::now(), ""});
}

bool Postoffice::Impl::IsConsequence(NodeId node, NodeId from) const {
  return std::any_of(suspicions_.begin(), suspicions_.end(), [&](const Suspicion& suspicion) {
    const bool went = suspicion.from == node && !suspicion.lost.empty();
    // Only the one that it took for dead knows better.
    return (went && suspicion.node != from) || (suspicion.from == from && suspicion.node != node);
  });
}

bool Postoffice::Impl::Settle(NodeId peer, bool graceful, const std::string& reason) {
  // The oldest one is the cause: of two nodes that have parted each reports the other.
  const auto it = std::find_if(suspicions_.begin(), suspicions_.end(), [peer](const Suspicion& suspicion) {
    return suspicion.node == peer || suspicion.from == peer;
  });
  if (it == suspicions_.end()) return false;
  if (it->node == peer) {
    const Suspicion suspicion = *it;
    if (!graceful) Lose(peer, suspicion.what);
    Drop(suspicion);
    return !graceful;
  }
  if (graceful) return false;
  it->lost = reason;  // its own report ended it, or it is cut off
  return true;
}

void Postoffice::Impl::Drop(const Suspicion& suspicion) {
  suspicions_.erase(std::remove_if(suspicions_.begin(), suspicions_.end(),
                                [&](const Suspicion& other) {
                                  return other.node == suspicion.node && other.from == suspicion.from;
                                }),
                 suspicions_.end());
  if (suspicion.lost.empty() || IsDead(suspicion.from)) return;
  if (Settle(suspicion.from, false, suspicion.lost)) return;
  state_ ? state_->OnDown(suspicion.from, false, suspicion.lost)
         : LostPeer(suspicion.from, false, suspicion.lost);
}

void Postoffice::Impl::JudgeSuspicions() {
  const auto now = steady_clock::now();
  for (const Suspicion& suspicion : std::vector<Suspicion>(suspicions_)) {
    if (now - suspicion.since < options_.van.heartbeat_timeout) continue;
    const auto silence = van_->Silence(suspicion.node);
    if (silence && *silence > 2 * options_.van.heartbeat_interval) continue;  // soon it is given up
    if (silence) {
      Lose(suspicion.from, Describe(suspicion.from) + " died: it is cut off from " +
                            options_.van.names(suspicion.node) + ", which is alive");
    }
    Drop(suspicion);
  }
}

std::string Postoffice::Impl::Describe(NodeId node) const {
  const auto it = roster_.addresses.find(node);
  const std::string address = node == Scheduler()              ? root_address_
                              : it == roster_.addresses.end() ? ""
                                                              : it->second;
  return options_.van.names(node) + (address.empty() ? "" : " (" + address + ")");
}

bool Postoffice::Impl::Lives(NodeId peer) const {
  return (peer == Scheduler() || roster_.addresses.count(peer) != 0) && !IsDead(peer) &&
         left_.count(peer) == 0;
}

void Postoffice::Impl::LostPeer(NodeId peer, bool graceful, const std::string& reason) {
  if (!Lives(peer)) return;
  // A worker leaves normally only after the start, even if this node has not been notified of the start's end.
  // Workers alone need no scheduler once they have started.
  const bool done = peer == Scheduler() && started_ && options_.num_servers == 0;
  const bool needed =
      peer.role != Role::kWorker && !done && (options_.role == Role::kWorker || !started_);
  if (graceful && needed) {
    return Die(peer,
               Describe(peer) + " left the job before " + options_.van.names(self()) + " had finished");
  }
  if (graceful) {
    left_.insert(peer);
    events_.push_back({peer, ""});
    return;
  }
  Die(peer, Describe(peer) + " died: it " + reason);
}

void Postoffice::Impl::Die(NodeId node, const std::string& what) {
  if (IsDead(node) || left_.count(node) != 0) return;
  deaths_.emplace_back(node, what);
  any_dead_ = true;
  events_.push_back({node, what});
  if (!state_) NotifyPeers(node, what);
}

void Postoffice::Impl::NotifyPeers(NodeId node, const std::string& what) {
  for (const NodeId peer : up_) {
    if (Lives(peer)) SendReport(peer, NodeDown(node, what), kReportPriority);
  }
}

void Postoffice::Impl::SendReport(NodeId to, Message message, int priority) {
  {
    std::lock_guard<std::mutex> lock(reports_mutex_);
    ++unsent_reports_;
  }
  van_->Send(to, std::move(message), priority, [this](bool) {
    std::lock_guard<std::mutex> lock(reports_mutex_);
    if (--unsent_reports_ == 0) reports_sent_.notify_all();
  });
}

void Postoffice::Impl::AwaitReports(std::unique_lock<std::mutex>* lock) {
  lock->unlock();
  {
    std::unique_lock<std::mutex> reports(reports_mutex_);
    reports_sent_.wait_for(reports, kMaxReportTime, [this] { return unsent_reports_ == 0; });
  }
  lock->lock();
}

bool Postoffice::Impl::IsDead(NodeId node) const {
  return std::any_of(deaths_.begin(), deaths_.end(),
                     [node](const auto& death) { return death.first == node; });
}

void Postoffice::Impl::NotifyReceiver() {
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

void Postoffice::Impl::WriteTimeline(std::unique_lock<std::mutex>* lock) {
  const int nodes = options_.num_workers + options_.num_servers;
  interrupt::WaitUntil(&changed_, lock, steady_clock::now() + seconds(10), [&] {
    return stopping_ || !deaths_.empty() || !timeline_.Lacks(nodes);
  });
  timeline_.Write();
}

bool Postoffice::Impl::AllWorkersLeft() const {
  const auto workers = std::count_if(left_.begin(), left_.end(),
                                     [](NodeId node) { return node.role == Role::kWorker; });
  return workers >= options_.num_workers;
}

}  // namespace hipress
