#include "mxnet/engine.h"

#include <condition_variable>
#include <stdexcept>
#include <utility>

#include "c_api/node.h"
#include "common/types.h"

namespace hipress::mxnet {

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

  // For an engine whose operations must end before they return.
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;

  ~Operation();
};

Operation::~Operation() {
  const Library& library = *Bridge::Get().library;
  if (copy != nullptr) library.Free(copy);
  if (array != nullptr) library.Free(array);
}

namespace {

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

std::optional<Error> FailureOf(Session* session) {
  std::lock_guard<std::mutex> lock(session->mutex);
  return session->closed ? Error("the key-value store is closed") : session->failure;
}

/// Ends an operation in error, see Library::ReserveExceptions.
void CompleteInError(const OnComplete& on_complete, const std::string& error) {
  static auto* const one_at_a_time = new std::recursive_mutex;  // what it frees may end another
  std::lock_guard<std::recursive_mutex> lock(*one_at_a_time);
  const std::runtime_error exception(error);
  on_complete(&exception);
}

void Complete(Operation* op, const std::string& error) {
  if (!error.empty()) {
    // MXNet forgets the error of an operation that writes no array, such as a push: remember it.
    Session* session = op->key->session.get();
    std::lock_guard<std::mutex> lock(session->mutex);
    if (!session->failure) session->failure = Error(error);
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
    CompleteInError(op->on_complete, error);
  }
}

}  // namespace

void OnDone(void* context, const HipressError* error) { End(context, error == nullptr ? "" : error->sentence); }

void End(void* context, const std::string& error) {
  std::unique_ptr<std::shared_ptr<Operation>> op(static_cast<std::shared_ptr<Operation>*>(context));
  Complete(op->get(), error);
}

namespace {

void Enter(const std::shared_ptr<Operation>& op) {
  const HipressMXKey& key = *op->key;
  if (!op->error.empty()) return Complete(op.get(), op->error);
  if (const auto failure = FailureOf(key.session.get())) return Complete(op.get(), failure->what());
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
    Complete(op.get(), HipressGetLastError()->sentence);
  }
}

/// The same without exceptions, which no code could catch.
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

/// A push whose array could not be computed will never happen, and other workers would wait for it.
void FailSession(const Operation& op) {
  Session* session = op.key->session.get();
  {
    std::lock_guard<std::mutex> lock(session->mutex);
    if (session->closed || session->failure) return;
    session->failure = Error("the gradient of key " + op.key->name +
                                 " was not pushed because computing it failed; this worker has left the job",
                             Cause::kNotComputed, session->node->postoffice().self());
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

/// The engine: the operation's array is ready, and reserved for it until on_complete.
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

}  // namespace

void Schedule(Kind kind, HipressMXKeyHandle key, NDArrayHandle array, int priority,
              HipressMXStart start, void* context) {
  const Library& library = *Bridge::Get().library;
  if (const auto failure = FailureOf(key->session.get())) throw *failure;
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

}  // namespace hipress::mxnet
