#include "kvstore/worker/bucket.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "operator/contrib/kernels.h"

namespace hipress {
namespace {

/// The fusion buffer goes first: it takes little time, and the optimizer waits for all.
constexpr int kFusionPriority = 1;

/// Largest bucket that is checked as a whole, in elements: 4 MiB of float32, which takes a fraction
/// of a millisecond.
constexpr int64_t kWholeCheckElements = 1 << 20;

LowRankShape ShapeOf(const HipressLowRank& matrix) {
  return {matrix.rows, matrix.cols, matrix.rank};
}

const LowRankKernels& Passes() { return ActiveKernels().low_rank; }

/// Calls `add` with the first and the number of rows, or columns, of each part of about
/// kJobElements.
template <typename Function>
void EachPart(int64_t length, int64_t width, int64_t granularity, const Function& add) {
  const int64_t each = std::max<int64_t>(1, Executor::kJobElements / std::max<int64_t>(1, width));
  const int64_t step = (each + granularity - 1) / granularity * granularity;
  for (int64_t begin = 0; begin < length; begin += step) add(begin, std::min(step, length - begin));
}

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
      bucket_->store_->FailJob(error.what());  // this step then ends with that error
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
      // Never in the arena: memory that is shared with a peer is freed when the peer releases it,
      // and this step must end if the peer dies before.
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

  /// `next` when all results are here; nothing if the job has failed.
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

  // ---- Low rank: project, sum P, orthonormalize P, make Q, sum Q, expand, keep ----

  using Matrix = HipressLowRank;

  /// Jobs of a pass: `add` adds those of one matrix. Then `next`.
  template <typename Function>
  void EachMatrix(const Function& add, void (Step::*next)()) {
    Jobs jobs;
    for (Matrix* matrix : bucket_->low_rank_.matrices) add(matrix, &jobs);
    InParallel(std::move(jobs), next);
  }

  /// A matrix's gradient from this row on.
  uint8_t* RowOf(const Matrix& matrix, int64_t row) const {
    return static_cast<uint8_t*>(matrix.gradient) +
           row * matrix.cols * int64_t(SizeOf(bucket_->dtype_));
  }

  void BeginLowRank() {
    const LowRank& low_rank = bucket_->low_rank_;
    float* p = bucket_->p_.as<float>();
    float* q = bucket_->q_.as<float>();
    for (size_t i = 0; i < low_rank.matrices.size(); ++i) {
      Matrix& matrix = *low_rank.matrices[i];
      matrix.gradient = At(low_rank.offsets[i]);
      matrix.dtype = static_cast<int64_t>(bucket_->dtype_);
      matrix.p = p;
      matrix.q = q;
      p += matrix.rank * ShapeOf(matrix).row_pad();
      q += matrix.rank * ShapeOf(matrix).col_pad();
    }
    if (bucket_->fusion_.flow) bucket_->Pack(flat_, FusedGradients());
    EachMatrix([this](Matrix* m, Jobs* jobs) {
      const LowRankShape shape = ShapeOf(*m);
      EachPart(m->rows, shape.col_pad(), 2, [&](int64_t row, int64_t count) {
        jobs->push_back([this, m, shape, row, count] {
          const int64_t first = row * shape.col_pad();
          Passes().project(shape.Rows(count), RowOf(*m, row), bucket_->dtype_, m->last + first,
                           m->last_p + row, m->last_q, m->start_q, m->next + first, m->p + row);
        });
      });
    }, &Step::SendP);
  }

  void SendP() {
    std::vector<KVStoreDist::Transfer> transfers = {
        WithFactor(bucket_->low_rank_.p, bucket_->p_)};
    AddKeys(&transfers);
    Transfer(transfers, WithoutCheck(), &Step::AfterP);
  }

  void AfterP() {
    // The checked values have the same bits on all workers.
    if (!IsFinite(bucket_->low_rank_.p, bucket_->p_)) return EndNonFinite();
    for (const Key& key : bucket_->keys_) Check(key.offset, key.flow->elements());
    if (*non_finite_) return EndNonFinite();
    EachMatrix([](Matrix* m, Jobs* jobs) {
      jobs->push_back([m] {
        Passes().orthonormalize(m->p, m->rows, ShapeOf(*m).row_pad(), m->rank, false);
      });
    }, &Step::MakeQ);
  }

  void MakeQ() {
    EachMatrix([](Matrix* m, Jobs* jobs) {
      const LowRankShape shape = ShapeOf(*m);
      EachPart(m->cols, m->rows, LowRankShape::kPad, [&](int64_t column, int64_t count) {
        jobs->push_back([m, shape, column, count] {
          Passes().back(shape.Columns(count), m->next + column, m->p, m->own_q + column);
          const int64_t padded = LowRankShape::Padded(count);
          for (int64_t k = 0; k < m->rank; ++k) {
            const float* from = m->own_q + k * shape.col_pad() + column;
            std::copy(from, from + padded, m->q + k * shape.col_pad() + column);
          }
        });
      });
    }, &Step::SendQ);
  }

  void SendQ() {
    Transfer({WithFactor(bucket_->low_rank_.q, bucket_->q_)}, WithoutCheck(), &Step::AfterQ);
  }

  void AfterQ() {
    if (!IsFinite(bucket_->low_rank_.q, bucket_->q_)) return EndNonFinite();
    if (bucket_->fusion_.flow) bucket_->Unpack(FusedGradients(), flat_);
    EachMatrix([this](Matrix* m, Jobs* jobs) {
      const LowRankShape shape = ShapeOf(*m);
      EachPart(m->rows, shape.col_pad(), 1, [&](int64_t row, int64_t count) {
        jobs->push_back([this, m, shape, row, count] {
          Passes().expand(shape.Rows(count), m->p + row, m->q, RowOf(*m, row), bucket_->dtype_);
        });
      });
    }, &Step::Keep);
  }

  /// The residual is the part that this rank's own Q lacks. The next step begins with the summed Q.
  void Keep() {
    // A finite gradient and a finite residual can make a result that is not finite.
    if (bucket_->dtype_ == DType::kFloat16) {
      for (const Span& span : bucket_->all_) Check(span.offset, span.count);
      if (*non_finite_) return EndNonFinite();
    }
    EachMatrix([](Matrix* m, Jobs* jobs) {
      jobs->push_back([m] {
        const LowRankShape shape = ShapeOf(*m);
        std::swap(m->last, m->next);
        std::swap(m->last_q, m->own_q);
        std::copy(m->p, m->p + m->rank * shape.row_pad(), m->last_p);
        std::copy(m->q, m->q + m->rank * shape.col_pad(), m->start_q);
        Passes().orthonormalize(m->start_q, m->cols, shape.col_pad(), m->rank, true);
      });
    }, &Step::End);
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

  /// The fused gradients, which follow P.
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
  bool ended_ = false;         ///< without an error
  bool checks_first_ = false;
  bool next_started_ = false;  ///< the next step has begun
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
