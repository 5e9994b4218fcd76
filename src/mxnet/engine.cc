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
#include "mxnet/library.h"

namespace hipress {
namespace mxnet {
namespace {

enum class Kind { kPush, kPull, kPushPull };

const char* OperationName(Kind kind) {
  return kind == Kind::kPush ? "HipressPush" : kind == Kind::kPull ? "HipressPull" : "HipressPushPull";
}

/// What the operations of one node share.
struct Session {
  HipressNodeHandle node;
  std::mutex mutex;
  bool closed = false;
  std::string failure;  // why no operation can succeed any more
};

struct Operation;

/// The scheduled operations of one key, first come first.
struct KeyQueue {
  std::mutex schedule;  // makes "enqueue here and in the engine" one step
  std::mutex mutex;
  std::deque<std::shared_ptr<Operation>> waiting;
  bool draining = false;
};

/// One push or pull, from its scheduling until the engine is told that it is done.
struct Operation {
  enum class State { kScheduled, kReady, kSkipped };

  Kind kind;
  uint64_t key;
  std::string name;
  int64_t n;
  int dtype;
  int priority;
  std::shared_ptr<Session> session;
  std::shared_ptr<KeyQueue> queue;
  NDArrayHandle array = nullptr;  // keeps the memory
  NDArrayHandle copy = nullptr;   // of an array in a private layout
  State state = State::kScheduled;  // guarded by queue->mutex
  OnComplete on_complete;
  void* data = nullptr;
  void* gradient = nullptr;
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
  std::map<std::pair<HipressNodeHandle, uint64_t>, std::shared_ptr<KeyQueue>> queues;

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
    std::lock_guard<std::mutex> lock(op->session->mutex);
    if (op->session->failure.empty()) op->session->failure = error;
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

void Submit(const std::shared_ptr<Operation>& op) {
  const std::string error = op->error.empty() ? FailureOf(op->session.get()) : op->error;
  if (!error.empty()) return Complete(op.get(), error);
  auto* context = new std::shared_ptr<Operation>(op);
  HipressNodeHandle node = op->session->node;
  int code = -1;
  switch (op->kind) {
    case Kind::kPush:
      code = HipressPush(node, op->key, op->gradient, op->n, op->dtype, op->priority, OnDone, context);
      break;
    case Kind::kPull:
      code = HipressPull(node, op->key, op->data, op->n, op->dtype, op->priority, OnDone, context);
      break;
    case Kind::kPushPull:
      code = HipressPushPull(node, op->key, op->gradient, op->data, op->n, op->dtype, op->priority,
                             OnDone, context);
      break;
  }
  if (code != 0) {
    delete context;
    Complete(op.get(), HipressGetLastError());
  }
}

/// A push whose array could not be computed will never happen, and the others would wait for it.
void FailSession(const Operation& op) {
  {
    std::lock_guard<std::mutex> lock(op.session->mutex);
    if (op.session->closed || !op.session->failure.empty()) return;
    op.session->failure = "the gradient of key " + op.name +
                          " was not pushed because computing it failed; this worker has left the job";
  }
  HipressAbort(op.session->node);
}

/// Submits what is ready, in order, one thread at a time.
void Drain(KeyQueue* queue) {
  std::unique_lock<std::mutex> lock(queue->mutex);
  if (queue->draining) return;
  queue->draining = true;
  while (!queue->waiting.empty() &&
         queue->waiting.front()->state != Operation::State::kScheduled) {
    std::shared_ptr<Operation> op = std::move(queue->waiting.front());
    queue->waiting.pop_front();
    const bool skipped = op->state == Operation::State::kSkipped;
    lock.unlock();
    if (!skipped) {
      Submit(op);
    } else if (op->kind != Kind::kPull) {
      FailSession(*op);
    }
    op.reset();
    lock.lock();
  }
  queue->draining = false;
}

/// The engine: the operation's array is ready and ours until on_complete.
void Run(void* /*run_context*/, void* on_complete, void* param) {
  std::shared_ptr<Operation> op = *static_cast<std::shared_ptr<Operation>*>(param);
  op->on_complete = *static_cast<OnComplete*>(on_complete);
  try {
    const Library& library = *Bridge::Get().library;
    if (op->kind != Kind::kPull) op->gradient = library.ReadableData(op->array, &op->copy);
    if (op->kind != Kind::kPush) op->data = library.WritableData(op->array);
  } catch (const std::exception& error) {
    op->error = "key " + op->name + ": " + error.what();
  }
  {
    std::lock_guard<std::mutex> lock(op->queue->mutex);
    op->state = Operation::State::kReady;
  }
  Drain(op->queue.get());
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
  KeyQueue* queue = (*op)->queue.get();
  {
    std::lock_guard<std::mutex> lock(queue->mutex);
    if ((*op)->state != Operation::State::kScheduled) return;
    (*op)->state = Operation::State::kSkipped;
  }
  Drain(queue);
}

void Schedule(Kind kind, HipressNodeHandle node, uint64_t key, const char* name,
              NDArrayHandle array, int64_t n, int dtype, int priority) {
  Bridge& bridge = Bridge::Get();
  auto op = std::make_shared<Operation>();
  {
    std::lock_guard<std::mutex> lock(bridge.mutex);
    if (bridge.library == nullptr) throw Error("HipressMXBind must be called first");
    auto& session = bridge.sessions[node];
    if (session == nullptr) {
      session = std::make_shared<Session>();
      session->node = node;
    }
    auto& queue = bridge.queues[{node, key}];
    if (queue == nullptr) queue = std::make_shared<KeyQueue>();
    op->session = session;
    op->queue = queue;
  }
  const std::string failure = FailureOf(op->session.get());
  if (!failure.empty()) throw Error(failure);
  op->kind = kind;
  op->key = key;
  op->name = name;
  op->n = n;
  op->dtype = dtype;
  op->priority = priority;
  op->array = bridge.library->Share(array);
  std::lock_guard<std::mutex> schedule(op->queue->schedule);
  {
    std::lock_guard<std::mutex> lock(op->queue->mutex);
    op->queue->waiting.push_back(op);
  }
  bridge.library->PushAsync(Run, new std::shared_ptr<Operation>(op), Release, array,
                            kind != Kind::kPush, priority, OperationName(kind));
}

}  // namespace
}  // namespace mxnet
}  // namespace hipress

using hipress::mxnet::Bridge;
using hipress::mxnet::Kind;

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

int HipressMXPush(HipressNodeHandle node, uint64_t key, const char* name, void* array, int64_t n,
                  int dtype, int priority) {
  API_BEGIN();
  hipress::mxnet::Schedule(Kind::kPush, node, key, name, array, n, dtype, priority);
  API_END();
}

int HipressMXPull(HipressNodeHandle node, uint64_t key, const char* name, void* array, int64_t n,
                  int dtype, int priority) {
  API_BEGIN();
  hipress::mxnet::Schedule(Kind::kPull, node, key, name, array, n, dtype, priority);
  API_END();
}

int HipressMXPushPull(HipressNodeHandle node, uint64_t key, const char* name, void* array,
                      int64_t n, int dtype, int priority) {
  API_BEGIN();
  hipress::mxnet::Schedule(Kind::kPushPull, node, key, name, array, n, dtype, priority);
  API_END();
}

int HipressMXClose(HipressNodeHandle node) {
  API_BEGIN();
  Bridge& bridge = Bridge::Get();
  std::lock_guard<std::mutex> lock(bridge.mutex);
  auto session = bridge.sessions.find(node);
  if (session != bridge.sessions.end()) {
    std::lock_guard<std::mutex> guard(session->second->mutex);
    session->second->closed = true;
  }
  API_END();
}
