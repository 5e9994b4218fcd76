#include "kvstore/bucket.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

/// The fusion buffer goes first: it takes little time, and the optimizer waits for all.
constexpr int kFusionPriority = 1;

/// Elements of a bucket that is checked as a whole, at most: 4 MiB of float32, which takes a fraction of a
/// millisecond.
constexpr int64_t kWholeCheckElements = 1 << 20;

}  // namespace

Bucket::Bucket(KVStoreDist* store, DType dtype, std::vector<Span> all, bool checked)
    : store_(store), dtype_(dtype), all_(std::move(all)), checked_(checked) {}

void Bucket::Set(LowRank low_rank) {
  low_rank_ = std::move(low_rank);
  p_ = AllocateState(size_t(low_rank_.p->elements()) * sizeof(float));
  q_ = AllocateState(size_t(low_rank_.q->elements()) * sizeof(float));
  std::fill_n(p_.as<float>(), low_rank_.p->elements(), 0.0f);  // factors are padded with zeros
  std::fill_n(q_.as<float>(), low_rank_.q->elements(), 0.0f);
}

void Bucket::Pack(const uint8_t* flat, uint8_t* buffer) const {
  const DType dtype = fusion_.flow->wire();
  for (const Span& span : fusion_.spans) {
    ActiveKernels().convert(flat + span.offset * SizeOf(dtype_), dtype_, size_t(span.count), buffer,
                            dtype);
    buffer += span.count * SizeOf(dtype);
  }
}

void Bucket::Unpack(const uint8_t* buffer, uint8_t* flat) const {
  const DType dtype = fusion_.flow->wire();
  for (const Span& span : fusion_.spans) {
    ActiveKernels().convert(buffer, dtype, size_t(span.count), flat + span.offset * SizeOf(dtype_),
                            dtype_);
    buffer += span.count * SizeOf(dtype);
  }
}

bool Bucket::ChecksFirst() const {
  int64_t elements = 0;
  for (const Span& span : all_) elements += span.count;
  const bool all_comes_back = std::all_of(keys_.begin(), keys_.end(), [](const Key& key) {
    const Program& program = key.flow->program();
    return program.output_writes() == int(program.partitions().size());
  });
  return checked_ && (elements <= kWholeCheckElements || !all_comes_back);
}

bool Bucket::NeedsPrevious() const {
  return low_rank_.p || std::any_of(keys_.begin(), keys_.end(), [](const Key& key) {
           return key.flow->momentum() != nullptr;
         });
}

/// One step of a bucket. Its destructor notifies the user, also where work is dropped.
class Bucket::Step : public std::enable_shared_from_this<Step> {
 public:
  Step(std::shared_ptr<Bucket> bucket, uint8_t* flat, uint64_t transaction, int* non_finite, Done done)
      : bucket_(std::move(bucket)),
        flat_(flat),
        transaction_(transaction),
        result_(non_finite),
        done_(std::move(done)) {}

  ~Step() {
    *result_ = non_finite_->load() ? 1 : 0;
    if (!ended_ && error_.empty()) error_ = bucket_->store_->Failure();
    if (!ended_ && error_.empty()) error_ = "the key-value store has been closed";
    Notify(done_, error_);
    StartNext();
  }

  void Begin() {
    if (bucket_->low_rank_.p) return Submit(&Step::BeginLowRank);
    checks_first_ = bucket_->ChecksFirst();
    if (!checks_first_) return Submit(&Step::Exchange);
    Jobs jobs;
    for (const Span& span : bucket_->all_) {
      for (int64_t begin = 0; begin < span.count; begin += Executor::kJobElements) {
        const int64_t count = std::min<int64_t>(Executor::kJobElements, span.count - begin);
        jobs.push_back([this, at = span.offset + begin, count] { Check(at, count); });
      }
    }
    InParallel(std::move(jobs), &Step::Exchange);
  }

 private:
  Executor& executor() const { return bucket_->store_->executor(); }

  void Submit(void (Step::*work)()) {
    executor().Submit(0, [self = shared_from_this(), work] {
      self->Guarded([&] { (self.get()->*work)(); });
    });
  }

  using Jobs = std::vector<std::function<void()>>;

  /// `next` when all jobs are done.
  void InParallel(Jobs jobs, void (Step::*next)()) {
    if (jobs.empty()) return Submit(next);
    left_ = int64_t(jobs.size());
    for (auto& job : jobs) {
      executor().Submit(0, [self = shared_from_this(), job = std::move(job), next] {
        self->Guarded([&] {
          job();
          if (--self->left_ == 0) (self.get()->*next)();
        });
      });
    }
  }

  template <typename Work>
  void Guarded(const Work& work) {
    try {
      work();
    } catch (const std::exception& error) {
      bucket_->store_->FailJob(error.what());  // which is what this step then ends with
    }
  }

  void Check(int64_t at, int64_t count) {
    if (!ActiveKernels().finite(At(at), bucket_->dtype_, size_t(count))) *non_finite_ = true;
  }

  void Exchange() {
    PushMode mode = WithoutCheck();
    mode.check_finite = bucket_->checked_ && !checks_first_;
    mode.non_finite = *non_finite_;
    mode.found_non_finite = non_finite_;
    std::vector<KVStoreDist::Transfer> transfers;
    const Fusion& fusion = bucket_->fusion_;
    if (fusion.flow) {
      // Never in the arena: what is shared with a peer is let go of when that releases it, and this step
      // must end if it dies before.
      packed_ = AllocateState(size_t(fusion.flow->elements()) * SizeOf(fusion.flow->wire()));
      bucket_->Pack(flat_, packed_.data);
      transfers.push_back({fusion.flow, packed_.data, packed_.data, kFusionPriority});
    }
    AddKeys(&transfers);
    Transfer(transfers, mode, &Step::Finish);
    if (!bucket_->NeedsPrevious()) StartNext();
  }

  void StartNext() {
    if (!std::exchange(next_started_, true)) bucket_->Next();
  }

  void AddKeys(std::vector<KVStoreDist::Transfer>* transfers) const {
    for (const Key& key : bucket_->keys_) {
      transfers->push_back({key.flow, At(key.offset), At(key.offset), 0});
    }
  }

  /// `next` when all is there; nothing if the job has failed.
  void Transfer(const std::vector<KVStoreDist::Transfer>& transfers, const PushMode& mode,
                void (Step::*next)()) {
    bucket_->store_->PushPull(transfers, mode, [self = shared_from_this(), next](const char* error) {
      if (error != nullptr) {
        self->error_ = error;
      } else {
        self->Submit(next);
      }
    });
  }

  void Finish() {
    for (const Key& key : bucket_->keys_) {
      if (key.flow->momentum() != nullptr) key.flow->momentum()->Commit(*non_finite_, transaction_);
    }
    if (*non_finite_) return EndNonFinite();
    if (bucket_->fusion_.flow) bucket_->Unpack(packed_.data, flat_);
    ended_ = true;
  }

  void EndNonFinite() {
    *non_finite_ = true;
    ended_ = true;
    for (const Span& span : bucket_->all_) {
      FillWithNaN(At(span.offset), bucket_->dtype_, size_t(span.count));
    }
  }

  // ---- Low rank ----

  void BeginLowRank() {
    const LowRank& low_rank = bucket_->low_rank_;
    low_rank.bind(flat_, bucket_->p_.as<float>(), bucket_->q_.as<float>());
    if (bucket_->fusion_.flow) bucket_->Pack(flat_, FusedGradients());
    InParallel(low_rank.project, &Step::SendP);
  }

  void SendP() {
    std::vector<KVStoreDist::Transfer> transfers = {
        WithFactor(bucket_->low_rank_.p, bucket_->p_)};
    AddKeys(&transfers);
    Transfer(transfers, WithoutCheck(), &Step::AfterP);
  }

  void AfterP() {
    // What is looked at has the same bits on all workers.
    if (!IsFinite(bucket_->low_rank_.p, bucket_->p_)) return EndNonFinite();
    for (const Key& key : bucket_->keys_) Check(key.offset, key.flow->elements());
    if (*non_finite_) return EndNonFinite();
    InParallel(bucket_->low_rank_.orthonormalize, &Step::MakeQ);
  }

  void MakeQ() { InParallel(bucket_->low_rank_.back, &Step::SendQ); }

  void SendQ() {
    Transfer({WithFactor(bucket_->low_rank_.q, bucket_->q_)}, WithoutCheck(), &Step::AfterQ);
  }

  void AfterQ() {
    if (!IsFinite(bucket_->low_rank_.q, bucket_->q_)) return EndNonFinite();
    if (bucket_->fusion_.flow) bucket_->Unpack(FusedGradients(), flat_);
    InParallel(bucket_->low_rank_.expand, &Step::Keep);
  }

  void Keep() {
    // A gradient and a residual that fit can make a result that does not.
    if (bucket_->dtype_ == DType::kFloat16) {
      for (const Span& span : bucket_->all_) Check(span.offset, span.count);
      if (*non_finite_) return EndNonFinite();
    }
    InParallel(bucket_->low_rank_.keep, &Step::End);
  }

  void End() { ended_ = true; }

  static KVStoreDist::Transfer WithFactor(const std::shared_ptr<Flow>& flow, const Buffer& factor) {
    return {flow, factor.data, factor.data, kFusionPriority};
  }

  PushMode WithoutCheck() const {
    PushMode mode;
    mode.keep = false;
    mode.transaction = transaction_;
    return mode;
  }

  static bool IsFinite(const std::shared_ptr<Flow>& flow, const Buffer& factor) {
    return ActiveKernels().finite(factor.data, DType::kFloat32, size_t(flow->elements()));
  }

  /// The fused gradients, which lie behind P.
  uint8_t* FusedGradients() const {
    int64_t count = 0;
    for (const Span& span : bucket_->fusion_.spans) count += span.count;
    return bucket_->p_.data + (bucket_->low_rank_.p->elements() - count) * int64_t(sizeof(float));
  }

  uint8_t* At(int64_t element) const { return flat_ + element * int64_t(SizeOf(bucket_->dtype_)); }

  const std::shared_ptr<Bucket> bucket_;
  uint8_t* const flat_;
  const uint64_t transaction_;
  int* const result_;
  const Done done_;
  std::atomic<int64_t> left_{0};
  const std::shared_ptr<std::atomic<bool>> non_finite_ = std::make_shared<std::atomic<bool>>(false);
  Buffer packed_;
  std::string error_;
  bool ended_ = false;     ///< all has been done
  bool checks_first_ = false;
  bool next_started_ = false;  ///< the next step has been let in
};

void Bucket::Run(void* flat, uint64_t transaction, int* non_finite, Done done) {
  auto step = std::make_shared<Step>(shared_from_this(), static_cast<uint8_t*>(flat), transaction,
                                     non_finite, store_->pending().Count(std::move(done)));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (busy_) {
      waiting_.push_back(std::move(step));
      return;
    }
    busy_ = true;
  }
  step->Begin();
}

void Bucket::Next() {
  std::shared_ptr<Step> next;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.empty()) {
      busy_ = false;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  next->Begin();
}

}  // namespace hipress
