#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "c_api/error.h"
#include "common/types.h"
#include "hipress/mxnet.h"
#include "mxnet/handover.h"
#include "mxnet/library.h"

namespace hipress {
namespace mxnet {
namespace {

/// The last two are carried out by the caller, see HipressMXSchedule.
enum class Kind { kPush, kPull, kPushPull, kRead, kWrite };

const char* OperationName(Kind kind) {
  switch (kind) {
    case Kind::kPush: return "HipressPush";
    case Kind::kPull: return "HipressPull";
    case Kind::kPushPull: return "HipressPushPull";
    case Kind::kRead: return "HipressRead";
    default: return "HipressWrite";
  }
}

bool IsCallers(Kind kind) { return kind == Kind::kRead || kind == Kind::kWrite; }
bool Writes(Kind kind) { return kind != Kind::kPush && kind != Kind::kRead; }
/// Whether other workers wait for it.
bool Pushes(Kind kind) { return kind != Kind::kPull && kind != Kind::kWrite; }

/// What the operations of one node share.
struct Session {
  HipressNodeHandle node;
  std::mutex mutex;
  bool closed = false;
  std::string failure;  // why no operation can succeed any more
  Handover handover;
};

struct Operation;

}  // namespace
}  // namespace mxnet
}  // namespace hipress

/// One key of a node, its scheduled operations first come first. Never freed: they may still end
/// while the process exits.
struct HipressMXKey {
  std::shared_ptr<hipress::mxnet::Session> session;
  uint64_t key;
  std::string name;
  int64_t n;
  int dtype;
  bool followed[3] = {};  // by kind of our own operations, see Handover

  std::mutex schedule;  // makes "enqueue here and in the engine" one step
  std::mutex mutex;
  std::deque<std::shared_ptr<hipress::mxnet::Operation>> waiting;
  bool draining = false;
};

namespace hipress {
namespace mxnet {
namespace {

/// One push or pull, from its scheduling until the engine is told that it is done.
struct Operation {
  enum class State { kScheduled, kReady, kSkipped };

  Kind kind;
  HipressMXKeyHandle key;
  int priority;
  NDArrayHandle array = nullptr;  // keeps the memory
  NDArrayHandle copy = nullptr;   // of an array in a private layout
  State state = State::kScheduled;  // guarded by key->mutex
  OnComplete on_complete;
  void* data = nullptr;
  void* gradient = nullptr;
  HipressMXStart start = nullptr;  // of the caller's operations
  void* context = nullptr;
  std::string error;

  // For an engine whose operations must end before they return.
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;

  ~Operation();
};

/// Never destroyed: operations may still end while the process exits.
struct Bridge {
  std::mutex mutex;
  std::unique_ptr<Library> library;
  bool wait_inside = false;
  std::map<HipressNodeHandle, std::shared_ptr<Session>> sessions;

  static Bridge& Get() {
    static Bridge* bridge = new Bridge;
    return *bridge;
  }
};

Operation::~Operation() {
  const Library& library = *Bridge::Get().library;
  if (copy != nullptr) library.Free(copy);
  if (array != nullptr) library.Free(array);
}

std::string FailureOf(Session* session) {
  std::lock_guard<std::mutex> lock(session->mutex);
  return session->closed ? "the key-value store is closed" : session->failure;
}

void Complete(Operation* op, const std::string& error) {
  if (!error.empty()) {
    // MXNet forgets the error of an operation that writes no array, such as a push: remember it.
    Session* session = op->key->session.get();
    std::lock_guard<std::mutex> lock(session->mutex);
    if (session->failure.empty()) session->failure = error;
  }
  if (Bridge::Get().wait_inside) {
    // NaiveEngine ignores an error given to on_complete; Run throws it instead.
    std::lock_guard<std::mutex> lock(op->mutex);
    op->error = error;
    op->has_ended = true;
    op->ended.notify_all();
  } else if (error.empty()) {
    op->on_complete(nullptr);
  } else {
    const std::runtime_error exception(error);
    op->on_complete(&exception);
  }
}

/// HipressDone; context is the operation's last owner.
void OnDone(void* context, const char* error) {
  std::unique_ptr<std::shared_ptr<Operation>> op(static_cast<std::shared_ptr<Operation>*>(context));
  Complete(op->get(), error == nullptr ? "" : error);
}

void Enter(const std::shared_ptr<Operation>& op) {
  const HipressMXKey& key = *op->key;
  const std::string error = op->error.empty() ? FailureOf(key.session.get()) : op->error;
  if (!error.empty()) return Complete(op.get(), error);
  auto* context = new std::shared_ptr<Operation>(op);
  HipressNodeHandle node = key.session->node;
  int code = -1;
  switch (op->kind) {
    case Kind::kPush:
      code = HipressPush(node, key.key, op->gradient, key.n, key.dtype, op->priority, OnDone,
                         context);
      break;
    case Kind::kPull:
      code = HipressPull(node, key.key, op->data, key.n, key.dtype, op->priority, OnDone, context);
      break;
    case Kind::kPushPull:
      code = HipressPushPull(node, key.key, op->gradient, op->data, key.n, key.dtype, op->priority,
                             OnDone, context);
      break;
    case Kind::kRead:
    case Kind::kWrite:
      op->start(op->context, context);
      code = 0;
      break;
  }
  if (code != 0) {
    delete context;
    Complete(op.get(), HipressGetLastError());
  }
}

/// The same, whatever happens: nobody could catch it.
void TryToEnter(const std::shared_ptr<Operation>& op) noexcept {
  try {
    Enter(op);
  } catch (const std::exception& error) {  // out of memory
    Complete(op.get(), "key " + op->key->name + ": " + error.what());
  }
}

/// Lets an operation that is ready enter the store.
void HandOver(std::shared_ptr<Operation> op) {
  if (IsCallers(op->kind)) return TryToEnter(op);
  HipressMXKeyHandle key = op->key;
  bool* followed = &key->followed[int(op->kind)];
  if (Bridge::Get().wait_inside) return Enter(op);  // nothing follows before its end
  key->session->handover.Add([op = std::move(op)] { TryToEnter(op); }, key->n, followed);
}

/// A push whose array could not be computed will never happen, and the others would wait for it.
void FailSession(const Operation& op) {
  Session* session = op.key->session.get();
  {
    std::lock_guard<std::mutex> lock(session->mutex);
    if (session->closed || !session->failure.empty()) return;
    session->failure = "the gradient of key " + op.key->name +
                       " was not pushed because computing it failed; this worker has left the job";
  }
  HipressAbort(session->node);
}

/// Hands over what is ready, in order, one thread at a time.
void Drain(HipressMXKeyHandle key) {
  std::unique_lock<std::mutex> lock(key->mutex);
  if (key->draining) return;
  key->draining = true;
  while (!key->waiting.empty() && key->waiting.front()->state != Operation::State::kScheduled) {
    std::shared_ptr<Operation> op = std::move(key->waiting.front());
    key->waiting.pop_front();
    const bool skipped = op->state == Operation::State::kSkipped;
    lock.unlock();
    if (!skipped) {
      HandOver(std::move(op));
    } else if (Pushes(op->kind)) {
      FailSession(*op);
    }
    op.reset();
    lock.lock();
  }
  key->draining = false;
}

/// The engine: the operation's array is ready and ours until on_complete.
void Run(void* /*run_context*/, void* on_complete, void* param) {
  std::shared_ptr<Operation> op = *static_cast<std::shared_ptr<Operation>*>(param);
  op->on_complete = *static_cast<OnComplete*>(on_complete);
  try {
    const Library& library = *Bridge::Get().library;
    if (!IsCallers(op->kind)) {
      if (Pushes(op->kind)) op->gradient = library.ReadableData(op->array, &op->copy);
      if (Writes(op->kind)) op->data = library.WritableData(op->array);
    }
  } catch (const std::exception& error) {
    op->error = "key " + op->key->name + ": " + error.what();
  }
  {
    std::lock_guard<std::mutex> lock(op->key->mutex);
    op->state = Operation::State::kReady;
  }
  Drain(op->key);
  if (Bridge::Get().wait_inside) {
    std::unique_lock<std::mutex> lock(op->mutex);
    op->ended.wait(lock, [&op] { return op->has_ended; });
    if (!op->error.empty()) throw std::runtime_error(op->error);
    op->on_complete(nullptr);
  }
}

/// The engine lets go of an operation: it has ended, or was skipped because its array is in error.
void Release(void* param) {
  std::unique_ptr<std::shared_ptr<Operation>> op(static_cast<std::shared_ptr<Operation>*>(param));
  HipressMXKeyHandle key = (*op)->key;
  {
    std::lock_guard<std::mutex> lock(key->mutex);
    if ((*op)->state != Operation::State::kScheduled) return;
    (*op)->state = Operation::State::kSkipped;
  }
  Drain(key);
}

void Schedule(Kind kind, HipressMXKeyHandle key, NDArrayHandle array, int priority,
              HipressMXStart start = nullptr, void* context = nullptr) {
  const Library& library = *Bridge::Get().library;
  const std::string failure = FailureOf(key->session.get());
  if (!failure.empty()) throw Error(failure);
  auto op = std::make_shared<Operation>();
  op->kind = kind;
  op->key = key;
  op->priority = priority;
  op->start = start;
  op->context = context;
  op->array = library.Share(array);
  std::lock_guard<std::mutex> schedule(key->schedule);
  {
    std::lock_guard<std::mutex> lock(key->mutex);
    key->waiting.push_back(op);
  }
  library.PushAsync(Run, new std::shared_ptr<Operation>(op), Release, array, Writes(kind), priority,
                    OperationName(kind));
}

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

bool Fits(HipressMXKeyHandle key, NDArrayHandle array) {
  return Bridge::Get().library->IsDenseOnCpu(array, key->n, key->dtype);
}

}  // namespace
}  // namespace mxnet
}  // namespace hipress

using hipress::mxnet::Bridge;
using hipress::mxnet::Fits;
using hipress::mxnet::Kind;
using hipress::mxnet::Schedule;
using hipress::mxnet::SessionOf;

int HipressMXBind(const char* libmxnet, int wait_inside) {
  API_BEGIN();
  Bridge& bridge = Bridge::Get();
  std::lock_guard<std::mutex> lock(bridge.mutex);
  if (bridge.library == nullptr) {
    bridge.library = std::make_unique<hipress::mxnet::Library>(libmxnet);
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
    session = std::make_shared<hipress::mxnet::Session>();
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
    // Two operations: one would wait until nobody reads `out` before it pushes, and for ever if
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
  hipress::mxnet::OnDone(operation, error);
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
