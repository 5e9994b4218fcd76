/*!
 * \file kvstore_group.cc
 * \brief Several keys pushed and pulled in one call: what is small travels together (fused.h).
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
constexpr size_t kKeysTogether = 128;

/// What several operations end with; the last end is its own.
class Together {
 public:
  Together(size_t operations, Done done) : left_(operations), done_(std::move(done)) {}
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

void KVStoreDist::PushPull(const std::vector<Wish>& wishes, Done done) {
  std::vector<std::shared_ptr<Flow>> flows;
  flows.reserve(wishes.size());
  for (const Wish& wish : wishes) {
    flows.push_back(Checked(wish.key, wish.n, wish.dtype, "push and pull"));
  }
  if (wishes.empty()) return done(nullptr);
  // Neither allocates: a function of one pointer.
  auto* const together = new Together(2 * wishes.size(), Counted(std::move(done)));
  const auto end = [together](const char* error) { together->End(error); };
  PushMode mode;
  mode.keep = false;
  for (size_t i = 0; i < wishes.size();) {
    Batch batch;  // as long as one large gradient takes
    const size_t last = std::min(wishes.size(), i + kKeysTogether);
    for (int64_t elements = 0; i < last && elements < Executor::kJobElements; ++i) {
      const Wish& wish = wishes[i];
      Push(flows[i], wish.gradient, wish.priority, end, mode);
      Pull(flows[i], wish.out, wish.priority, end);
      elements += wish.n;
    }
  }
}

}  // namespace hipress
