/*!
 * \file worker_api.cc
 * \brief The sections of c_api.h about a worker's store and about buckets of gradients.
 */
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/codec.h"
#include "bindings/node.h"
#include "base/batch.h"
#include "base/thread_object.h"
#include "kvstore/worker/bucket.h"

using namespace hipress;

// Python passes NumPy arrays of such pairs.
static_assert(sizeof(HipressSpan) == 16, "packed");

struct HipressBucket {
  std::shared_ptr<KVStoreDist> store;  // outlives the bucket, even if the node is freed first
  std::shared_ptr<Bucket> bucket;
  const pid_t creator = getpid();
};

namespace {

/// Reports the operations that end in this thread's batch at the batch's end.
void ReportLater(HipressDoneTogether together, void* context) {
  struct Ended {
    std::vector<void*> contexts;
    HipressDoneTogether whose = nullptr;
  };
  auto& ended = ThreadObject<Ended>();
  const bool first = ended.contexts.empty();
  if (!Batch::Open() || (!first && ended.whose != together)) return together(&context, 1);
  ended.whose = together;
  ended.contexts.push_back(context);
  if (!first) return;
  Batch::AfterAll([] {
    const Ended all = std::exchange(ThreadObject<Ended>(), {});
    all.whose(all.contexts.data(), static_cast<int64_t>(all.contexts.size()));
  });
}

Done ToDone(const HipressNode& node, HipressDone done, void* context) {
  if (done == nullptr) return nullptr;
  const auto together = done == node.reported_together ? node.together : nullptr;
  return [together, done, context, store = node.worker.get()](const char* error) {
    if (together == nullptr || error != nullptr) return Report(*store, error, done, context);
    ReportLater(together, context);
  };
}

/// Keeps the answer of a server, or saved states, until this thread's next call.
void KeepBytes(std::string bytes, const void** data, int64_t* size) {
  *size = int64_t(bytes.size());
  *data = KeepString(std::move(bytes));
}

std::vector<Bucket::Span> Spans(const HipressSpan* spans, int64_t num) {
  std::vector<Bucket::Span> converted;
  for (int64_t i = 0; i < num; ++i) converted.push_back({spans[i].offset, spans[i].count});
  return converted;
}

Momentum& MomentumOf(HipressNodeHandle node, uint64_t key) {
  Momentum* momentum = node->AsWorker().KeyOf(key)->momentum();
  if (momentum == nullptr) throw Error("key " + std::to_string(key) + " has no momentum");
  return *momentum;
}

}  // namespace

int HipressBarrier(HipressNodeHandle node) {
  return Guarded([&] { node->AsWorker().Barrier(); });
}

int HipressFailure(HipressNodeHandle node, const HipressError** error) {
  return Guarded([&] {
    const ErrorPtr failure = node->AsWorker().JobError();
    *error = failure ? KeepError(*failure) : nullptr;
  });
}

int HipressInit(HipressNodeHandle node, uint64_t key, const char* name, const void* data, int64_t n,
                int dtype, const char* graph, int num_programs, const uint32_t* nodes,
                const int64_t* const* programs, const int64_t* lengths) {
  return Guarded([&] {
    KVStoreDist::Programs all;
    for (int i = 0; i < num_programs; ++i) {
      all[NodeId::Unpack(nodes[i])].assign(programs[i], programs[i] + lengths[i]);
    }
    node->AsWorker().Init(key, name, data, n, DTypeFromFlag(dtype), graph, all);
  });
}

int HipressPush(HipressNodeHandle node, uint64_t key, const void* gradient, int64_t n, int dtype,
                int priority, HipressDone done, void* context) {
  return Guarded([&] {
    KVStoreDist& store = node->AsWorker();
    store.Push(store.Checked(key, n, DTypeFromFlag(dtype), "push"), gradient, priority,
               ToDone(*node, done, context));
  });
}

int HipressPull(HipressNodeHandle node, uint64_t key, void* out, int64_t n, int dtype, int priority,
                HipressDone done, void* context) {
  return Guarded([&] {
    KVStoreDist& store = node->AsWorker();
    store.Pull(store.Checked(key, n, DTypeFromFlag(dtype), "pull"), out, priority,
               ToDone(*node, done, context));
  });
}

int HipressPushPull(HipressNodeHandle node, uint64_t key, const void* gradient, void* out,
                    int64_t n, int dtype, int priority, HipressDone done, void* context) {
  return HipressPushPullAll(node, 1, &key, &gradient, &out, &n, &dtype, &priority, done, context);
}

int HipressPushPullAll(HipressNodeHandle node, int64_t count, const uint64_t* keys,
                       const void* const* gradients, void* const* outs, const int64_t* ns,
                       const int* dtypes, const int* priorities, HipressDone done, void* context) {
  return Guarded([&] {
    KVStoreDist& store = node->AsWorker();
    std::vector<KVStoreDist::Transfer> transfers;
    transfers.reserve(size_t(count));
    for (int64_t i = 0; i < count; ++i) {
      transfers.push_back({store.Checked(keys[i], ns[i], DTypeFromFlag(dtypes[i]), "push and pull"),
                           gradients[i], outs[i], priorities[i]});
    }
    PushMode mode;
    mode.keep = false;
    store.PushPull(transfers, mode, ToDone(*node, done, context));
  });
}

int HipressReportTogether(HipressNodeHandle node, HipressDone done, HipressDoneTogether together) {
  return Guarded([&] {
    node->reported_together = done;
    node->together = together;
  });
}

int HipressSetGradientCompression(HipressNodeHandle node, int num, const char** keys,
                                  const char** vals) {
  return Guarded([&] {
    ParamList params;
    for (int i = 0; i < num; ++i) params.emplace_back(keys[i], vals[i]);
    node->AsWorker().SetGradientCompression(GradientCompression::Make(params));
  });
}

int HipressSetSync(HipressNodeHandle node, int sync) {
  return Guarded([&] { node->AsWorker().SetSync(sync != 0); });
}

int HipressCommand(HipressNodeHandle node, int server, int head, const void* body,
                   int64_t body_bytes, const void** reply, int64_t* reply_bytes) {
  return Guarded([&] {
    const std::string text(static_cast<const char*>(body), size_t(body_bytes));
    KeepBytes(node->AsWorker().Command(server, head, text), reply, reply_bytes);
  });
}

int HipressSaveStates(HipressNodeHandle node, int server, uint64_t first, uint64_t last,
                      const void** states, int64_t* bytes) {
  return Guarded([&] {
    KeepBytes(node->AsWorker().SaveStates(server, {first, last}), states, bytes);
  });
}

int HipressNormOfStates(HipressNodeHandle node, uint64_t first, uint64_t last, double* norm) {
  return Guarded([&] { *norm = node->AsWorker().NormOfStates({first, last}); });
}

int HipressLoadStates(HipressNodeHandle node, int server, uint64_t first, uint64_t last,
                      const void* states, int64_t bytes) {
  return Guarded([&] {
    const std::string text(static_cast<const char*>(states), size_t(bytes));
    node->AsWorker().LoadStates(server, {first, last}, text);
  });
}

int HipressWaitAll(HipressNodeHandle node) {
  return Guarded([&] { node->AsWorker().WaitAll(); });
}

// ---- Buckets of gradients -----------------------------------------------------------------------

int HipressAddKey(HipressNodeHandle node, uint64_t key, const char* name, int64_t n, int dtype,
                  const char* graph, const int64_t* program, int64_t length,
                  const HipressEncodeBinding* encodes, int64_t num_encodes, double output_factor,
                  double momentum) {
  return Guarded([&] {
    KVStoreDist& store = node->AsWorker();
    const DType type = DTypeFromFlag(dtype);
    const auto parsed = Program::Parse(program, length, n);
    const auto& tasks = parsed->tasks();
    Binding binding;
    binding.encodes.resize(tasks.size() + 1);  // so that a program without tasks is also bound
    binding.output_factor = static_cast<float>(output_factor);
    for (int64_t i = 0; i < num_encodes; ++i) {
      const HipressEncodeBinding& encode = encodes[i];
      if (encode.task < 0 || encode.task >= int64_t(tasks.size())) {
        throw Error("a binding of key '" + std::string(name) + "' names a task that is not there");
      }
      binding.encodes[encode.task] = {store.Intern(encode.codec->codec), encode.codec->state,
                                      encode.codec->before, static_cast<float>(encode.factor),
                                      DTypeFromFlag(static_cast<int>(encode.wire))};
    }
    for (size_t t = 0; t < tasks.size(); ++t) {
      if (tasks[t].op != Op::kEncode || binding.encodes[t].codec) continue;
      throw Error("task " + std::to_string(t) + " of key '" + name + "' encodes, and has no binding");
    }
    store.AddKey(key, name, n, type, graph, {program, program + length}, std::move(binding),
                 static_cast<float>(momentum));
  });
}

int HipressAwaitKeys(HipressNodeHandle node) {
  return Guarded([&] { node->AsWorker().AwaitKeys(); });
}

int HipressDropKey(HipressNodeHandle node, uint64_t key) {
  return Guarded([&] { node->AsWorker().DropKey(key); });
}

int HipressGetMomentum(HipressNodeHandle node, uint64_t key, float* out) {
  return Guarded([&] { MomentumOf(node, key).Get(out); });
}

int HipressSetMomentum(HipressNodeHandle node, uint64_t key, const float* values) {
  return Guarded([&] { MomentumOf(node, key).Set(values); });
}

int HipressMomentumRollBack(HipressNodeHandle node, uint64_t key, uint64_t transaction) {
  return Guarded([&] { MomentumOf(node, key).RollBack(transaction); });
}

int HipressAwaitEncodes(HipressNodeHandle node) {
  return Guarded([&] { node->AsWorker().AwaitEncodes(); });
}

int HipressBucketCreate(HipressNodeHandle node, int dtype, const HipressSpan* all, int64_t num_all,
                        const uint64_t* keys, const int64_t* offsets, int64_t num_keys,
                        uint64_t fusion, const HipressSpan* fused, int64_t num_fused, int checked,
                        HipressBucketHandle* out) {
  return Guarded([&] {
    KVStoreDist& store = node->AsWorker();
    auto bucket = std::make_shared<Bucket>(&store, DTypeFromFlag(dtype), Spans(all, num_all),
                                           checked != 0);
    for (int64_t i = 0; i < num_keys; ++i) bucket->Add({store.KeyOf(keys[i]), offsets[i]});
    if (num_fused > 0) bucket->Set(Bucket::Fusion{store.KeyOf(fusion), Spans(fused, num_fused)});
    *out = new HipressBucket{node->worker, std::move(bucket)};
  });
}

int HipressBucketSetLowRank(HipressBucketHandle bucket, HipressNodeHandle node, uint64_t p, uint64_t q,
                            HipressLowRank* const* matrices, const int64_t* offsets, int64_t num) {
  return Guarded([&] {
    KVStoreDist& store = node->AsWorker();
    bucket->bucket->Set(Bucket::LowRank{store.KeyOf(p), store.KeyOf(q), {matrices, matrices + num},
                                        {offsets, offsets + num}});
  });
}

int HipressBucketRun(HipressBucketHandle bucket, void* flat, uint64_t transaction, int* non_finite,
                     HipressDone done, void* context) {
  return Guarded([&] {
    if (getpid() != bucket->creator) throw Error("a forked child of a worker cannot run its steps");
    bucket->bucket->Run(flat, transaction, non_finite,
                        [done, context, store = bucket->store.get()](const char* error) {
                          Report(*store, error, done, context);
                        });
  });
}

int HipressBucketFree(HipressBucketHandle bucket) {
  return Guarded([&] {
    if (getpid() == bucket->creator) delete bucket;  // in a forked child its locks may be held forever
  });
}
