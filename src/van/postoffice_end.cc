/*!
 * \file postoffice_end.cc
 * \brief How nodes go: in peace, or dead, and who is told.
 */
#include <algorithm>
#include <climits>

#include "van/postoffice-inl.h"

namespace hipress {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/// News of a death overtakes gradients.
constexpr int kNewsPriority = INT_MAX - 1;

}  // namespace

void Postoffice::Impl::Leave(bool goodbye) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!goodbye) AwaitTold(&lock);
    if (goodbye && started_ && !stopping_) timeline_.Ship();
    aborted_ = aborted_ || (!goodbye && !stopping_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (goodbye) {
    van_->Stop();
  } else {
    van_->Abort();
  }
}

std::string Postoffice::Impl::WaitForEnd() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || !deaths_.empty() || AllWorkersLeft(); });
  if (state_) WriteTimeline(&lock);
  if (AllWorkersLeft() || deaths_.empty()) return "";
  AwaitTold(&lock);
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
      state_ ? state_->Die(self(), what) : Die(self(), what);
    } else if (state_) {
      state_->OnDown(peer, graceful, reason);
    } else {
      LostPeer(peer, graceful, reason);
    }
    changed_.notify_all();
  }
  Tell();
}

std::string Postoffice::Impl::Describe(NodeId node) const {
  const auto it = roster_.addresses.find(node);
  const std::string address = node == Scheduler()              ? root_address_
                              : it == roster_.addresses.end() ? ""
                                                              : it->second;
  return node.ToString() + (address.empty() ? "" : " (" + address + ")");
}

bool Postoffice::Impl::Lives(NodeId peer) const {
  return (peer == Scheduler() || roster_.addresses.count(peer) != 0) && !IsDead(peer) &&
         left_.count(peer) == 0;
}

void Postoffice::Impl::LostPeer(NodeId peer, bool graceful, const std::string& reason) {
  if (!Lives(peer)) return;
  // A worker leaves in peace only after the start, be it that this node has not heard of its end yet.
  const bool needed =
      peer.role != Role::kWorker && (options_.role == Role::kWorker || !started_);
  if (graceful && needed) {
    return Die(peer,
               Describe(peer) + " left the job before " + self().ToString() + " had finished");
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
  if (!state_) TellPeers(node, what);
}

void Postoffice::Impl::TellPeers(NodeId node, const std::string& what) {
  for (const NodeId peer : up_) {
    if (Lives(peer)) SendNews(peer, NodeDown(node, what), kNewsPriority);
  }
}

void Postoffice::Impl::SendNews(NodeId to, Message message, int priority) {
  ++untold_;
  van_->Send(to, std::move(message), priority, [this](bool) {
    --untold_;
    changed_.notify_all();
  });
}

void Postoffice::Impl::AwaitTold(std::unique_lock<std::mutex>* lock) {
  changed_.wait_for(*lock, milliseconds(500), [this] { return untold_ == 0; });
}

bool Postoffice::Impl::IsDead(NodeId node) const {
  return std::any_of(deaths_.begin(), deaths_.end(),
                     [node](const auto& death) { return death.first == node; });
}

void Postoffice::Impl::Tell() {
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
  changed_.wait_for(*lock, seconds(10), [&] {
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
