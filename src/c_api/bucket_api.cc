/*!
 * \file bucket_api.cc
 * \brief The section of c_api.h about buckets of gradients.
 */
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "c_api/codec.h"
#include "c_api/error.h"
#include "c_api/low_rank.h"
#include "c_api/node.h"
#include "hipress/c_api.h"
#include "kvstore/bucket.h"

using hipress::Bucket;
using hipress::DType;
using hipress::DTypeFromFlag;
using hipress::Error;
using hipress::Flow;
using hipress::KVStoreDist;

// Python passes NumPy arrays of such pairs.
static_assert(sizeof(HipressSpan) == 16, "packed");

struct HipressBucket {
  std::shared_ptr<KVStoreDist> store;  // outlives the bucket, even if the node is freed first
  std::shared_ptr<Bucket> bucket;
  DType dtype;
  const pid_t creator = getpid();
};

namespace {

std::vector<Bucket::Span> Spans(const HipressSpan* spans, int64_t num) {
  std::vector<Bucket::Span> found;
  for (int64_t i = 0; i < num; ++i) found.push_back({spans[i].offset, spans[i].count});
  return found;
}

hipress::Momentum& MomentumOf(HipressNodeHandle node, uint64_t key) {
  hipress::Momentum* momentum = node->AsWorker().KeyOf(key)->momentum();
  if (momentum == nullptr) throw Error("key " + std::to_string(key) + " has no momentum");
  return *momentum;
}

}  // namespace

int HipressAddKey(HipressNodeHandle node, uint64_t key, const char* name, int64_t n, int dtype,
                  const char* graph, const int64_t* program, int64_t length,
                  const HipressEncodeBinding* encodes, int64_t num_encodes, double output_factor,
                  double momentum) {
  API_BEGIN();
  KVStoreDist& store = node->AsWorker();
  const DType type = DTypeFromFlag(dtype);
  const std::vector<int64_t> flat(program, program + length);
  const auto parsed = hipress::Program::Parse(program, length, n);
  hipress::Binding binding;
  binding.encodes.resize(parsed->tasks().size() + 1);  // so that one without tasks is also bound
  binding.output_factor = static_cast<float>(output_factor);
  for (int64_t i = 0; i < num_encodes; ++i) {
    const HipressEncodeBinding& encode = encodes[i];
    if (encode.task < 0 || encode.task >= int64_t(parsed->tasks().size())) {
      throw Error("a binding of key '" + std::string(name) + "' names a task that is not there");
    }
    binding.encodes[encode.task] = {store.Intern(encode.codec->codec), encode.codec->state,
                                    encode.codec->before, static_cast<float>(encode.factor),
                                  DTypeFromFlag(static_cast<int>(encode.wire))};
  }
  for (size_t t = 0; t < parsed->tasks().size(); ++t) {
    if (parsed->tasks()[t].op == hipress::Op::kEncode && !binding.encodes[t].codec) {
      throw Error("task " + std::to_string(t) + " of key '" + name + "' encodes, and has no binding");
    }
  }
  store.AddKey(key, name, n, type, graph, flat, std::move(binding), static_cast<float>(momentum));
  API_END();
}

int HipressAwaitKeys(HipressNodeHandle node) {
  API_BEGIN();
  node->AsWorker().AwaitKeys();
  API_END();
}

int HipressDropKey(HipressNodeHandle node, uint64_t key) {
  API_BEGIN();
  node->AsWorker().DropKey(key);
  API_END();
}

int HipressGetMomentum(HipressNodeHandle node, uint64_t key, float* out) {
  API_BEGIN();
  MomentumOf(node, key).Get(out);
  API_END();
}

int HipressSetMomentum(HipressNodeHandle node, uint64_t key, const float* values) {
  API_BEGIN();
  MomentumOf(node, key).Set(values);
  API_END();
}

int HipressMomentumRollBack(HipressNodeHandle node, uint64_t key, uint64_t transaction) {
  API_BEGIN();
  MomentumOf(node, key).RollBack(transaction);
  API_END();
}

int HipressAwaitEncodes(HipressNodeHandle node) {
  API_BEGIN();
  node->AsWorker().AwaitEncodes();
  API_END();
}

int HipressBucketCreate(HipressNodeHandle node, int dtype, const HipressSpan* all, int64_t num_all,
                        const uint64_t* keys, const int64_t* offsets, int64_t num_keys,
                        uint64_t fusion, const HipressSpan* fused, int64_t num_fused, int checked,
                        HipressBucketHandle* out) {
  API_BEGIN();
  KVStoreDist& store = node->AsWorker();
  const DType type = DTypeFromFlag(dtype);
  auto bucket = std::make_shared<Bucket>(&store, type, Spans(all, num_all), checked != 0);
  for (int64_t i = 0; i < num_keys; ++i) bucket->Add({store.KeyOf(keys[i]), offsets[i]});
  if (num_fused > 0) bucket->Set(Bucket::Fusion{store.KeyOf(fusion), Spans(fused, num_fused)});
  *out = new HipressBucket{node->worker, std::move(bucket), type};
  API_END();
}

int HipressBucketSetLowRank(HipressBucketHandle bucket, HipressNodeHandle node, uint64_t p, uint64_t q,
                            HipressLowRank* const* matrices, const int64_t* offsets, int64_t num) {
  API_BEGIN();
  Bucket::LowRank low_rank = hipress::LowRankOf(matrices, offsets, num, bucket->dtype);
  low_rank.p = node->AsWorker().KeyOf(p);
  low_rank.q = node->AsWorker().KeyOf(q);
  bucket->bucket->Set(std::move(low_rank));
  API_END();
}

int HipressBucketRun(HipressBucketHandle bucket, void* flat, uint64_t transaction, int* non_finite,
                     HipressDone done, void* context) {
  API_BEGIN();
  if (getpid() != bucket->creator) throw Error("a forked child of a worker cannot run its steps");
  bucket->bucket->Run(flat, transaction, non_finite,
                      [done, context, store = bucket->store.get()](const char* error) {
                        hipress::Report(*store, error, done, context);
                      });
  API_END();
}

int HipressBucketFree(HipressBucketHandle bucket) {
  API_BEGIN();
  if (getpid() == bucket->creator) delete bucket;  // in a forked child its locks may be held forever
  API_END();
}
