/*!
 * \file mxnet_api.cc
 * \brief The functions of hipress/mxnet.h.
 */
#include <memory>
#include <mutex>
#include <utility>

#include "c_api/error.h"
#include "common/types.h"
#include "mxnet/engine.h"

using hipress::mxnet::Bridge;
using hipress::mxnet::Kind;
using hipress::mxnet::Schedule;
using hipress::mxnet::Session;

namespace {

/// The session of a node with keys, null without. \param forget another node may get its address
std::shared_ptr<Session> SessionOf(HipressNodeHandle node, bool forget) {
  Bridge& bridge = Bridge::Get();
  std::lock_guard<std::mutex> lock(bridge.mutex);
  const auto found = bridge.sessions.find(node);
  if (found == bridge.sessions.end()) return nullptr;
  const std::shared_ptr<Session> session = found->second;
  if (forget) bridge.sessions.erase(found);
  return session;
}

bool Fits(HipressMXKeyHandle key, void* array) {
  return Bridge::Get().library->IsDenseOnCpu(array, key->n, key->dtype);
}

}  // namespace

int HipressMXBind(const char* libmxnet, int wait_inside) {
  API_BEGIN();
  Bridge& bridge = Bridge::Get();
  std::lock_guard<std::mutex> lock(bridge.mutex);
  if (bridge.library == nullptr) {
    auto library = std::make_unique<hipress::mxnet::Library>(libmxnet);
    if (!wait_inside) library->ReserveExceptions();
    bridge.library = std::move(library);
  }
  bridge.wait_inside = wait_inside != 0;
  API_END();
}

int HipressMXKeyCreate(HipressNodeHandle node, uint64_t key, const char* name, int64_t n, int dtype,
                       HipressMXKeyHandle* out) {
  API_BEGIN();
  Bridge& bridge = Bridge::Get();
  std::lock_guard<std::mutex> lock(bridge.mutex);
  if (bridge.library == nullptr) throw hipress::Error("HipressMXBind must be called first");
  auto& session = bridge.sessions[node];
  if (session == nullptr) {
    session = std::make_shared<Session>();
    session->node = node;
  }
  auto made = std::make_unique<HipressMXKey>();
  made->session = session;
  made->key = key;
  made->name = name;
  made->n = n;
  made->dtype = dtype;
  *out = made.release();
  API_END();
}

int HipressMXPush(HipressMXKeyHandle key, void* array, int priority) {
  API_BEGIN();
  if (!Fits(key, array)) return HIPRESS_MX_OTHER_ARRAY;
  Schedule(Kind::kPush, key, array, priority);
  API_END();
}

int HipressMXPull(HipressMXKeyHandle key, void* array, int priority) {
  API_BEGIN();
  if (!Fits(key, array)) return HIPRESS_MX_OTHER_ARRAY;
  Schedule(Kind::kPull, key, array, priority);
  API_END();
}

int HipressMXPushPull(HipressMXKeyHandle key, void* gradient, void* out, int priority) {
  API_BEGIN();
  if (!Fits(key, gradient) || !Fits(key, out)) return HIPRESS_MX_OTHER_ARRAY;
  if (gradient == out) {
    Schedule(Kind::kPushPull, key, gradient, priority);
  } else {
    // Two operations: a single one would wait before its push until `out` is not being read, and forever if
    // both share memory.
    Schedule(Kind::kPush, key, gradient, priority);
    Schedule(Kind::kPull, key, out, priority);
  }
  API_END();
}

int HipressMXSchedule(HipressMXKeyHandle key, void* array, int writes, int priority,
                      HipressMXStart start, void* context) {
  API_BEGIN();
  Schedule(writes ? Kind::kWrite : Kind::kRead, key, array, priority, start, context);
  API_END();
}

int HipressMXEnd(void* operation, const char* error) {
  API_BEGIN();
  hipress::mxnet::End(operation, error == nullptr ? "" : error);
  API_END();
}

int HipressMXFlush(HipressNodeHandle node) {
  API_BEGIN();
  const auto session = SessionOf(node, false);
  if (session != nullptr) session->handover.Flush();
  API_END();
}

int HipressMXClose(HipressNodeHandle node) {
  API_BEGIN();
  const auto session = SessionOf(node, true);
  if (session == nullptr) return 0;
  {
    std::lock_guard<std::mutex> lock(session->mutex);
    session->closed = true;
  }
  session->handover.Stop();
  API_END();
}
