/*!
 * \file engine.cc
 * \brief hipress/mxnet.h: schedules pushes and pulls of arrays as operations of MXNet's engine.
 *
 * The engine calls Run when an operation's array is ready, in any order. An operation of a key
 * enters the store when all earlier ones of the key have: HandOverReady takes them from the front
 * of `waiting`. The engine calls Release after the operation's end, or if it skips an operation
 * whose array is in error.
 */
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings/node.h"
#include "hipress/mxnet.h"
#include "bindings/mxnet/handover.h"
#include "bindings/mxnet/library.h"

namespace hipress::mxnet {
namespace {

/// The caller carries out the last two, see HipressMXSchedule.
enum class Kind { kPush, kPull, kPushPull, kRead, kWrite };

bool IsCallers(Kind kind) { return kind == Kind::kRead || kind == Kind::kWrite; }
bool Writes(Kind kind) { return kind != Kind::kPush && kind != Kind::kRead; }
/// Whether other workers wait for it.
bool Pushes(Kind kind) { return kind != Kind::kPull && kind != Kind::kWrite; }

constexpr const char* kNames[] = {"HipressPush", "HipressPull", "HipressPushPull", "HipressRead",
                                  "HipressWrite"};

/// State that the operations of one node share.
struct Session {
  HipressNodeHandle node;
  std::mutex mutex;
  bool closed = false;           // before the node stops
  std::optional<Error> failure;  // why no operation can succeed
  Handover handover;

  /// The error of a new operation, if there is one.
  std::optional<Error> Failure() {
    std::lock_guard<std::mutex> lock(mutex);
    return closed ? Error("the key-value store is closed") : failure;
  }
};

/// Never destroyed: operations may still end while the process exits.
struct Bridge {
  std::mutex mutex;
  std::unique_ptr<Library> library;
  bool wait_inside = false;  // NaiveEngine: operations must end before they return
  std::map<HipressNodeHandle, std::shared_ptr<Session>> sessions;
};

Bridge& bridge = *new Bridge;

/// One push or pull, from its scheduling until the engine is notified of its end.
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

  // For wait_inside.
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;

  ~Operation() {
    if (copy != nullptr) bridge.library->Free(copy);
    if (array != nullptr) bridge.library->Free(array);
  }
};
using OperationPtr = std::shared_ptr<Operation>;

}  // namespace
}  // namespace hipress::mxnet

using namespace hipress;
using namespace hipress::mxnet;

/// One key of a node, its scheduled operations in order. Never freed: they may still end while the
/// process exits.
struct HipressMXKey {
  std::shared_ptr<Session> session;
  uint64_t key;
  std::string name;
  int64_t n;
  int dtype;
  bool followed[3] = {};  // by kind of our own operations, see Handover

  std::mutex schedule;  // makes "enqueue here and in the engine" one step
  std::mutex mutex;
  std::deque<OperationPtr> waiting;
  bool handing_over = false;
};

namespace {

/// Ends an operation in the engine, with an error if `error` is not empty.
void Complete(Operation* op, const std::string& error) {
  if (!error.empty()) {
    // MXNet forgets the error of an operation that writes no array, such as a push: remember it.
    Session* session = op->key->session.get();
    std::lock_guard<std::mutex> lock(session->mutex);
    if (!session->closed && !session->failure) session->failure = session->node->worker->ErrorOf(error);
  }
  if (bridge.wait_inside) {
    // NaiveEngine ignores an error given to on_complete; Run throws it instead.
    std::lock_guard<std::mutex> lock(op->mutex);
    op->error = error;
    op->has_ended = true;
    op->ended.notify_all();
  } else if (error.empty()) {
    op->on_complete(nullptr);
  } else {
    // One at a time, see Library::ReserveExceptions. Recursive: memory that it frees may end
    // another.
    static auto* const one_at_a_time = new std::recursive_mutex;
    std::lock_guard<std::recursive_mutex> lock(*one_at_a_time);
    const std::runtime_error exception(error);
    op->on_complete(&exception);
  }
}

/// HipressDone of an operation; `context` is its last owner.
void OnDone(void* context, const HipressError* error) {
  std::unique_ptr<OperationPtr> op(static_cast<OperationPtr*>(context));
  Complete(op->get(), error == nullptr ? "" : error->sentence);
}

void Enter(const OperationPtr& op) {
  const HipressMXKey& key = *op->key;
  if (!op->error.empty()) return Complete(op.get(), op->error);
  if (const auto failure = key.session->Failure()) return Complete(op.get(), failure->what());
  auto* context = new OperationPtr(op);
  HipressNodeHandle node = key.session->node;
  int code = 0;
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
    case Kind::kWrite: op->start(op->context, context); break;
  }
  if (code != 0) {
    delete context;
    Complete(op.get(), HipressGetLastError()->sentence);
  }
}

/// Enter without exceptions, which no code could catch.
void TryToEnter(const OperationPtr& op) noexcept {
  try {
    Enter(op);
  } catch (const std::exception& error) {  // out of memory
    Complete(op.get(), "key " + op->key->name + ": " + error.what());
  }
}

/// Lets an operation that is ready enter the store.
void HandOver(OperationPtr op) {
  if (IsCallers(op->kind)) return TryToEnter(op);
  if (bridge.wait_inside) return Enter(op);  // nothing follows before its end
  HipressMXKeyHandle key = op->key;
  bool* followed = &key->followed[int(op->kind)];
  key->session->handover.Add([op = std::move(op)] { TryToEnter(op); }, key->n, followed);
}

/// A push whose array could not be computed will never happen, and other workers would wait for it.
void FailSession(const Operation& op) {
  Session* session = op.key->session.get();
  {
    std::lock_guard<std::mutex> lock(session->mutex);
    if (session->closed || session->failure) return;
    session->failure = Error("the gradient of key " + op.key->name +
                                 " was not pushed because computing it failed; this worker has left "
                                 "the job",
                             Cause::kNotComputed, session->node->postoffice().self());
  }
  HipressAbort(session->node);
}

/// Hands over the operations at the front that are ready, in order, one thread at a time.
void HandOverReady(HipressMXKeyHandle key) {
  std::unique_lock<std::mutex> lock(key->mutex);
  if (key->handing_over) return;
  key->handing_over = true;
  while (!key->waiting.empty() && key->waiting.front()->state != Operation::State::kScheduled) {
    OperationPtr op = std::move(key->waiting.front());
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
  key->handing_over = false;
}

/// Sets the state of an operation that is still scheduled, and hands over what this makes ready.
void Proceed(Operation* op, Operation::State state) {
  {
    std::lock_guard<std::mutex> lock(op->key->mutex);
    if (op->state != Operation::State::kScheduled) return;
    op->state = state;
  }
  HandOverReady(op->key);
}

/// Called by the engine: the operation's array is ready, and reserved for it until on_complete.
void Run(void* /*run_context*/, void* on_complete, void* param) {
  const OperationPtr op = *static_cast<OperationPtr*>(param);
  op->on_complete = *static_cast<OnComplete*>(on_complete);
  try {
    if (!IsCallers(op->kind)) {
      if (Pushes(op->kind)) op->gradient = bridge.library->ReadableData(op->array, &op->copy);
      if (Writes(op->kind)) op->data = bridge.library->WritableData(op->array);
    }
  } catch (const std::exception& error) {
    op->error = "key " + op->key->name + ": " + error.what();
  }
  Proceed(op.get(), Operation::State::kReady);
  if (bridge.wait_inside) {
    std::unique_lock<std::mutex> lock(op->mutex);
    op->ended.wait(lock, [&op] { return op->has_ended; });
    if (!op->error.empty()) throw std::runtime_error(op->error);
    op->on_complete(nullptr);
  }
}

/// Called by the engine when it releases an operation.
void Release(void* param) {
  const std::unique_ptr<OperationPtr> op(static_cast<OperationPtr*>(param));
  Proceed(op->get(), Operation::State::kSkipped);  // without effect if it was ready
}

void Schedule(Kind kind, HipressMXKeyHandle key, NDArrayHandle array, int priority,
              HipressMXStart start = nullptr, void* context = nullptr) {
  if (const auto failure = key->session->Failure()) throw *failure;
  auto op = std::make_shared<Operation>();
  op->kind = kind;
  op->key = key;
  op->priority = priority;
  op->start = start;
  op->context = context;
  op->array = bridge.library->Share(array);
  std::lock_guard<std::mutex> schedule(key->schedule);
  {
    std::lock_guard<std::mutex> lock(key->mutex);
    key->waiting.push_back(op);
  }
  bridge.library->PushAsync(Run, new OperationPtr(op), Release, array, Writes(kind), priority,
                            kNames[int(kind)]);
}

bool Fits(HipressMXKeyHandle key, void* array) {
  return bridge.library->IsDenseOnCpu(array, key->n, key->dtype);
}

/// Schedules an operation if its array is of a supported kind.
int ScheduleIfFits(Kind kind, HipressMXKeyHandle key, void* array, int priority) {
  return Guarded([&] {
    if (!Fits(key, array)) return HIPRESS_MX_OTHER_ARRAY;
    Schedule(kind, key, array, priority);
    return 0;
  });
}

/// The session of a node with keys, null without. \param forget another node may get its address
std::shared_ptr<Session> SessionOf(HipressNodeHandle node, bool forget) {
  std::lock_guard<std::mutex> lock(bridge.mutex);
  const auto found = bridge.sessions.find(node);
  if (found == bridge.sessions.end()) return nullptr;
  const std::shared_ptr<Session> session = found->second;
  if (forget) bridge.sessions.erase(found);
  return session;
}

}  // namespace

int HipressMXBind(const char* libmxnet, int wait_inside) {
  return Guarded([&] {
    std::lock_guard<std::mutex> lock(bridge.mutex);
    if (bridge.library == nullptr) {
      auto library = std::make_unique<Library>(libmxnet);
      if (!wait_inside) library->ReserveExceptions();
      bridge.library = std::move(library);
    }
    bridge.wait_inside = wait_inside != 0;
  });
}

int HipressMXKeyCreate(HipressNodeHandle node, uint64_t key, const char* name, int64_t n, int dtype,
                       HipressMXKeyHandle* out) {
  return Guarded([&] {
    node->AsWorker();  // or an error
    std::lock_guard<std::mutex> lock(bridge.mutex);
    if (bridge.library == nullptr) throw Error("HipressMXBind must be called first");
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
  });
}

int HipressMXPush(HipressMXKeyHandle key, void* array, int priority) {
  return ScheduleIfFits(Kind::kPush, key, array, priority);
}

int HipressMXPull(HipressMXKeyHandle key, void* array, int priority) {
  return ScheduleIfFits(Kind::kPull, key, array, priority);
}

int HipressMXPushPull(HipressMXKeyHandle key, void* gradient, void* out, int priority) {
  if (gradient == out) return ScheduleIfFits(Kind::kPushPull, key, gradient, priority);
  return Guarded([&] {
    if (!Fits(key, gradient) || !Fits(key, out)) return HIPRESS_MX_OTHER_ARRAY;
    // Two operations: a single one would wait before its push until `out` is not being read, and
    // forever if both share memory.
    Schedule(Kind::kPush, key, gradient, priority);
    Schedule(Kind::kPull, key, out, priority);
    return 0;
  });
}

int HipressMXSchedule(HipressMXKeyHandle key, void* array, int writes, int priority,
                      HipressMXStart start, void* context) {
  return Guarded([&] {
    Schedule(writes ? Kind::kWrite : Kind::kRead, key, array, priority, start, context);
  });
}

int HipressMXEnd(void* operation, const char* error) {
  return Guarded([&] {
    const std::unique_ptr<OperationPtr> op(static_cast<OperationPtr*>(operation));
    Complete(op->get(), error == nullptr ? "" : error);
  });
}

int HipressMXFlush(HipressNodeHandle node) {
  return Guarded([&] {
    const auto session = SessionOf(node, false);
    if (session != nullptr) session->handover.Flush();
  });
}

int HipressMXClose(HipressNodeHandle node) {
  return Guarded([&] {
    const auto session = SessionOf(node, true);
    if (session == nullptr) return;
    {
      std::lock_guard<std::mutex> lock(session->mutex);
      session->closed = true;
    }
    session->handover.Stop();
  });
}
