/*!
 * \file worker_api.cc
 * \brief The section of c_api.h about a worker's store.
 */
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "c_api/error.h"
#include "c_api/node.h"
#include "common/batch.h"
#include "common/thread_object.h"
#include "hipress/c_api.h"

using hipress::Batch;
using hipress::Done;
using hipress::DTypeFromFlag;
using hipress::NodeId;
using hipress::ParamList;

namespace {

thread_local std::string command_reply;

/// Reports the operations that end in this thread's batch at the batch's end.
void ReportLater(HipressDoneTogether together, void* context) {
  struct Ended {
    std::vector<void*> contexts;
    HipressDoneTogether whose = nullptr;
  };
  auto& ended = hipress::ThreadObject<Ended>();
  const bool first = ended.contexts.empty();
  if (!Batch::Open() || (!first && ended.whose != together)) return together(&context, 1);
  ended.whose = together;
  ended.contexts.push_back(context);
  if (!first) return;
  Batch::AfterAll([] {
    const Ended all = std::exchange(hipress::ThreadObject<Ended>(), {});
    all.whose(all.contexts.data(), static_cast<int64_t>(all.contexts.size()));
  });
}

hipress::GradientCompressionPtr MakeCompression(int num, const char** keys, const char** vals) {
  ParamList params;
  for (int i = 0; i < num; ++i) params.emplace_back(keys[i], vals[i]);
  return hipress::GradientCompression::Make(params);
}

Done ToDone(const HipressNode& node, HipressDone done, void* context) {
  if (done == nullptr) return nullptr;
  const auto together = done == node.reported_together ? node.together : nullptr;
  return [together, done, context, store = node.worker.get()](const char* error) {
    if (together == nullptr || error != nullptr) return hipress::Report(*store, error, done, context);
    ReportLater(together, context);
  };
}

}  // namespace

int HipressBarrier(HipressNodeHandle node) {
  API_BEGIN();
  node->AsWorker().Barrier();
  API_END();
}

int HipressFailure(HipressNodeHandle node, const HipressError** error) {
  API_BEGIN();
  const hipress::ErrorPtr failure = node->AsWorker().JobError();
  *error = failure ? hipress::KeepError(*failure) : nullptr;
  API_END();
}

int HipressInit(HipressNodeHandle node, uint64_t key, const char* name, const void* data, int64_t n,
                int dtype, const char* graph, int num_programs, const uint32_t* nodes,
                const int64_t* const* programs, const int64_t* lengths) {
  API_BEGIN();
  hipress::KVStoreDist::Programs all;
  for (int i = 0; i < num_programs; ++i) {
    all[NodeId::Unpack(nodes[i])].assign(programs[i], programs[i] + lengths[i]);
  }
  node->AsWorker().Init(key, name, data, n, DTypeFromFlag(dtype), graph, all);
  API_END();
}

int HipressPush(HipressNodeHandle node, uint64_t key, const void* gradient, int64_t n, int dtype,
                int priority, HipressDone done, void* context) {
  API_BEGIN();
  node->AsWorker().Push(key, gradient, n, DTypeFromFlag(dtype), priority,
                        ToDone(*node, done, context));
  API_END();
}

int HipressPull(HipressNodeHandle node, uint64_t key, void* out, int64_t n, int dtype, int priority,
                HipressDone done, void* context) {
  API_BEGIN();
  node->AsWorker().Pull(key, out, n, DTypeFromFlag(dtype), priority, ToDone(*node, done, context));
  API_END();
}

int HipressPushPull(HipressNodeHandle node, uint64_t key, const void* gradient, void* out,
                    int64_t n, int dtype, int priority, HipressDone done, void* context) {
  API_BEGIN();
  node->AsWorker().PushPull(key, gradient, out, n, DTypeFromFlag(dtype), priority,
                            ToDone(*node, done, context));
  API_END();
}

int HipressPushPullAll(HipressNodeHandle node, int64_t count, const uint64_t* keys,
                       const void* const* gradients, void* const* outs, const int64_t* ns,
                       const int* dtypes, const int* priorities, HipressDone done, void* context) {
  API_BEGIN();
  std::vector<hipress::KVStoreDist::PushPullRequest> requests;
  requests.reserve(size_t(count));
  for (int64_t i = 0; i < count; ++i) {
    requests.push_back({keys[i], gradients[i], outs[i], ns[i], DTypeFromFlag(dtypes[i]),
                      priorities[i]});
  }
  node->AsWorker().PushPull(requests, ToDone(*node, done, context));
  API_END();
}

int HipressReportTogether(HipressNodeHandle node, HipressDone done, HipressDoneTogether together) {
  API_BEGIN();
  node->reported_together = done;
  node->together = together;
  API_END();
}

int HipressSetGradientCompression(HipressNodeHandle node, int num, const char** keys,
                                  const char** vals) {
  API_BEGIN();
  node->AsWorker().SetGradientCompression(MakeCompression(num, keys, vals));
  API_END();
}

int HipressSetSync(HipressNodeHandle node, int sync) {
  API_BEGIN();
  node->AsWorker().SetSync(sync != 0);
  API_END();
}

int HipressCommand(HipressNodeHandle node, int server, int head, const void* body,
                   int64_t body_bytes, const void** reply, int64_t* reply_bytes) {
  API_BEGIN();
  command_reply = node->AsWorker().Command(server, head, body, size_t(body_bytes));
  *reply = command_reply.data();
  *reply_bytes = int64_t(command_reply.size());
  API_END();
}

int HipressSaveStates(HipressNodeHandle node, int server, uint64_t first, uint64_t last,
                      const void** states, int64_t* bytes) {
  API_BEGIN();
  command_reply = node->AsWorker().SaveStates(server, {first, last});
  *states = command_reply.data();
  *bytes = int64_t(command_reply.size());
  API_END();
}

int HipressNormOfStates(HipressNodeHandle node, uint64_t first, uint64_t last, double* norm) {
  API_BEGIN();
  *norm = node->AsWorker().NormOfStates({first, last});
  API_END();
}

int HipressLoadStates(HipressNodeHandle node, int server, uint64_t first, uint64_t last,
                      const void* states, int64_t bytes) {
  API_BEGIN();
  node->AsWorker().LoadStates(server, {first, last},
                              std::string(static_cast<const char*>(states), size_t(bytes)));
  API_END();
}

int HipressWaitAll(HipressNodeHandle node) {
  API_BEGIN();
  node->AsWorker().WaitAll();
  API_END();
}
