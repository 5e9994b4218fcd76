/*!
 * \file kvstore_group.cc
 * \brief Pushes and pulls several keys in one call; their small payloads share messages (fused.h).
 */
#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "common/batch.h"
#include "kvstore/kvstore_dist.h"

namespace hipress {
namespace {

/// Keys that one call pushes before their messages leave.
constexpr size_t kMaxKeysPerBatch = 128;

/// Calls `done` when several operations have ended, and deletes itself then.
class JointCompletion {
 public:
  JointCompletion(size_t operations, Done done) : left_(operations), done_(std::move(done)) {}
  void End(const char* error) {
    if (error != nullptr) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (error_.empty()) error_ = error;
    }
    if (--left_ > 0) return;
    done_(error_.empty() ? nullptr : error_.c_str());
    delete this;
  }

 private:
  std::atomic<size_t> left_;
  const Done done_;
  std::mutex mutex_;
  std::string error_;
};

}  // namespace

void KVStoreDist::PushPull(const std::vector<PushPullRequest>& requests, Done done) {
  std::vector<Transfer> transfers;
  transfers.reserve(requests.size());
  for (const PushPullRequest& request : requests) {
    transfers.push_back({Checked(request.key, request.n, request.dtype, "push and pull"),
                         request.gradient, request.out, request.priority});
  }
  PushMode mode;
  mode.keep = false;
  PushPull(transfers, mode, std::move(done));
}

void KVStoreDist::PushPull(const std::vector<Transfer>& transfers, PushMode mode, Done done) {
  if (transfers.empty()) return done(nullptr);
  // Neither allocates: a function of one pointer.
  auto* const completion = new JointCompletion(2 * transfers.size(), pending_.Count(std::move(done)));
  const auto end = [completion](const char* error) { completion->End(error); };
  for (size_t i = 0; i < transfers.size();) {
    Batch batch;  // as long as one large gradient takes
    const size_t last = std::min(transfers.size(), i + kMaxKeysPerBatch);
    for (int64_t elements = 0; i < last && elements < Executor::kJobElements; ++i) {
      const Transfer& transfer = transfers[i];
      Push(transfer.flow, transfer.gradient, transfer.priority, end, mode);
      // Asynchronous keys also have a result: the servers' present values.
      if (transfer.flow->program().output_writes() > 0 || !Owners(*transfer.flow).empty()) {
        Pull(transfer.flow, transfer.out, transfer.priority, end);
      } else {  // a reduce-scatter of which this node gets nothing
        end(nullptr);
      }
      elements += transfer.flow->elements();
    }
  }
}

}  // namespace hipress
