/*!
 * \file kvstore_failure.cc
 * \brief How a worker's store fails, reports a failure to others, and detects that others are late.
 */
#include <algorithm>

#include "common/debug_dumps.h"
#include "common/interrupt.h"
#include "common/log.h"
#include "kvstore/kvstore_dist.h"
#include "kvstore/protocol.h"

namespace hipress {

void KVStoreDist::OnDeath(NodeId peer, const std::string& what) {
  FailAll(Error(what, Cause::kDied, peer));
}

void KVStoreDist::OnLeave(NodeId peer) {
  if (peer.role == Role::kWorker) {
    std::vector<std::pair<std::vector<InitRequest>, std::string>> refused;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      left_.insert(peer);
      for (auto it = init_requests_.begin(); it != init_requests_.end();) {
        const std::string error = WhoWillNotInit(it->second, left_, postoffice_.options().van.names);
        if (!error.empty()) refused.emplace_back(std::move(it->second), error);
        it = error.empty() ? std::next(it) : init_requests_.erase(it);
      }
    }
    for (const auto& [requests, error] : refused) AnswerInit(requests, error);
    if (peer == Worker(0) && postoffice_.num_servers() == 0) {  // it would answer all that is asked
      requests_.Fail(
          Error(NodeName(peer) + " has left the job, without which no key is initialised", Cause::kLeft, peer));
    }
  } else if (peer.role == Role::kScheduler && postoffice_.num_servers() == 0) {
    // Workers alone need it no more: its process is done, and theirs are perhaps not.
  } else if (!stopping_) {
    FailAll(Error(NodeName(peer) + " has left the job", Cause::kLeft, peer));
  }
}

bool KVStoreDist::FailAll(const Error& error) {
  const std::string sentence = error.what();
  std::vector<std::shared_ptr<Flow>> flows;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) return false;
    auto failure = std::make_shared<Error>(error);
    failure->of_job = true;
    std::atomic_store(&failure_, ErrorPtr(std::move(failure)));
    for (auto& [key, flow] : flows_) flows.push_back(flow);
  }
  if (!stopping_) KeepForDebugging(flows);
  fetches_.Fail(sentence);
  locals_.Fail(sentence);
  requests_.Fail(*failure_);
  for (auto& flow : flows) flow->Fail(sentence);
  return true;
}

void KVStoreDist::FailJob(const std::string& sentence, FailureCause cause) {
  FailJob(Error(sentence, Cause::kReported, postoffice_.self()), cause);
}

void KVStoreDist::FailJob(const Error& error, FailureCause cause) {
  const std::string sentence = error.what();
  if (cause == kTimedOut && !JobError()) debug_dumps::Request(sentence);
  if (!FailAll(error)) return;
  std::set<NodeId> linked;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    linked = linked_;
    unsent_reports_ += int(linked.size());
    if (!linked.empty()) job_failed_at_ = std::chrono::steady_clock::now();
  }
  for (NodeId peer : linked) {
    postoffice_.Send(peer, FailureMessage(sentence, cause), kControlPriority, [this](bool) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (--unsent_reports_ == 0) reports_sent_.notify_all();
    });
  }
}

std::string KVStoreDist::Failure() const {
  const ErrorPtr failure = JobError();
  return failure ? failure->what() : "";
}

Error KVStoreDist::ErrorOf(const std::string& sentence) const {
  Error error(sentence);
  if (const ErrorPtr failure = JobError()) {
    error.cause = failure->cause;
    error.node = failure->node;
    error.of_job = true;
  }
  return error;
}

void KVStoreDist::ThrowIfFailed() const {
  if (const ErrorPtr failure = JobError()) throw Error(*failure);
}

void KVStoreDist::OnFailure(const Flow& flow, const std::string& sentence) { FailJob(sentence); }

// ---- Watching progress, and leaving ------------------------------------------------------------------

void KVStoreDist::Watch() {
  const JobOptions& options = postoffice_.options();
  ProgressWatch watch(options.wait_timeout, options.timeout_hint, options.van.names);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!watch_stops_.wait_for(lock, std::chrono::seconds(1), [this] { return watch_stopped_; })) {
    std::vector<std::shared_ptr<Flow>> flows;
    for (auto& [key, flow] : flows_) {
      if (owners_[key].empty()) flows.push_back(flow);
    }
    const std::set<NodeId> left = left_;
    lock.unlock();
    const auto error = watch.Check(flows, postoffice_.self(), left);
    if (error) {
      LogWarning(error->what());
      FailJob(*error, error->cause == Cause::kTimedOut ? kTimedOut : kFailed);
    }
    lock.lock();
  }
}

void KVStoreDist::StopWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    watch_stopped_ = true;
    watch_stops_.notify_all();
  }
  if (watch_.joinable()) watch_.join();
}

/// A worker that leaves normally first does its part, for other workers, of all its pushes.
void KVStoreDist::Drain() {
  const auto deadline = std::chrono::steady_clock::now() + postoffice_.options().wait_timeout;
  std::unique_lock<std::mutex> lock(mutex_);
  if (stopping_) return;
  std::vector<std::shared_ptr<Flow>> flows, on_servers;
  for (auto& [key, flow] : flows_) {
    (owners_[key].empty() ? flows : on_servers).push_back(flow);
  }
  interrupt::PolledCheck check_signals;
  while (!failure_ && std::chrono::steady_clock::now() < deadline) {
    lock.unlock();
    check_signals();
    // Small payloads of a finished iteration may wait for their batch's end. Payloads for servers need only be
    // sent: the goodbye follows them.
    const bool drained = std::all_of(flows.begin(), flows.end(),
                                     [](const auto& flow) { return flow->Drain(); }) &&
                         std::all_of(on_servers.begin(), on_servers.end(),
                                     [](const auto& flow) { return flow->HasHandedOver(); }) &&
                         outbox_.empty();
    lock.lock();
    if (drained) return;
    watch_stops_.wait_for(lock, std::chrono::milliseconds(5));
  }
}

}  // namespace hipress
