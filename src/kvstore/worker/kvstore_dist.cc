/*!
 * \file kvstore_dist.cc
 * \brief A worker's store, in the order of its life: start, keys, pushes and pulls, messages,
 * failures.
 */
#include "kvstore/worker/kvstore_dist.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/batch.h"
#include "base/bytes.h"
#include "base/debug_dumps.h"
#include "base/interrupt.h"
#include "base/lock_for.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "kvstore/progress_watch.h"

namespace hipress {
namespace {

/// Keys that one call pushes before their messages leave.
constexpr size_t kMaxKeysPerBatch = 128;

/// Memory of the heap: a pool would keep a block of this size for good. Not of the arena: a peer
/// that has died would keep it.
Buffer AllocateOnce(size_t bytes) {
  const size_t rounded = (bytes / kAlignment + 1) * kAlignment;
  std::shared_ptr<void> owner(std::aligned_alloc(kAlignment, rounded), std::free);
  if (!owner) throw std::bad_alloc();
  return {static_cast<uint8_t*>(owner.get()), bytes, owner};
}

/// Nodes that a worker's program exchanges messages with, and worker 0, which decides on keys.
std::set<NodeId> PeersOf(const Program& program) {
  std::set<NodeId> peers = {Worker(0)};
  for (const Task& task : program.tasks()) {
    if (task.op == Op::kSend || task.op == Op::kRecv) peers.insert(task.peer);
  }
  return peers;
}

/// Calls `done` when several operations have ended, and deletes itself then.
class JointCompletion {
 public:
  JointCompletion(size_t operations, Done done) : left_(operations), done_(std::move(done)) {}
  void End(const char* error) {
    if (error != nullptr) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (error_.empty()) error_ = error;
    }
    if (--left_ > 0) return;
    done_(error_.empty() ? nullptr : error_.c_str());
    delete this;
  }

 private:
  std::atomic<size_t> left_;
  const Done done_;
  std::mutex mutex_;
  std::string error_;
};

}  // namespace

// ---- Operations of the user that have not ended -------------------------------------------------

Done PendingOperations::Count(Done done) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
  }
  if (!done) return [this](const char*) { End(); };  // small enough not to be allocated
  return [this, done = std::move(done)](const char* error) {
    done(error);
    End();
  };
}

void PendingOperations::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  interrupt::WaitUntil(&none_, &lock, std::chrono::steady_clock::time_point::max(),
                       [this] { return count_ == 0; });
}

int64_t PendingOperations::count() {
  std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

void PendingOperations::End() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (--count_ == 0) none_.notify_all();
}

uint32_t RequestTable::Add(std::future<Reply>* reply) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure_) throw Error(*failure_);
  while (requests_.count(next_) != 0) ++next_;  // after 2^32 of them
  *reply = requests_[next_].get_future();
  return next_++;
}

std::string RequestTable::Await(std::future<Reply>* reply, const char* kind,
                                const std::string& about, const std::string& what) {
  const BlockingCalls::Scope scope(calls_, kind, about);
  if (!interrupt::WaitUntil(*reply, std::chrono::steady_clock::now() + timeout_)) {
    debug_dumps::GiveUp("waited " + std::to_string(timeout_.count()) + " s for " + what + hint_);
  }
  return reply->get();
}

void RequestTable::OnReply(NodeId from, const Message& message) {
  std::promise<Reply> promise;
  std::optional<std::string> text;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = requests_.find(message.header.iteration);
    if (it == requests_.end()) return;  // and its pieces are not kept
    text = pieces_.Add(from, message);
    if (!text) return;
    promise = std::move(it->second);
    requests_.erase(it);
  }
  if (message.header.flags == kReplyOk) return promise.set_value(*std::move(text));
  promise.set_exception(std::make_exception_ptr(Error(*text)));
}

void RequestTable::Fail(const Error& error) {
  std::unordered_map<uint32_t, std::promise<Reply>> requests;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    failure_ = std::make_shared<const Error>(error);
    requests.swap(requests_);
    pieces_ = TextPieces();
  }
  for (auto& [id, promise] : requests) promise.set_exception(std::make_exception_ptr(error));
}

// ---- Start and end ------------------------------------------------------------------------------

KVStoreDist::KVStoreDist(JobOptions options)
    : StoreHost(&context_),
      postoffice_(std::move(options)),
      recorder_(postoffice_.options().flight_entries),
      requests_(&postoffice_.calls(), postoffice_.options().wait_timeout,
                postoffice_.options().timeout_hint),
      fetches_(&context_),
      locals_(&executor_),
      compression_(GradientCompression::None()),
      executor_(postoffice_.options().num_threads,
                [this](const std::string& sentence) { FailJob(sentence); }) {
  context_.Connect(&postoffice_, &recorder_, &executor_,
                   [this](const std::string& sentence) { FailJob(sentence); });
  context_.send = [this, send = std::move(context_.send)](NodeId to, Message message, int priority,
                                                          std::function<void(bool)> done) {
    const MessageKind kind = message.header.kind;
    if (kind == MessageKind::kData || kind == MessageKind::kFused) {
      counters_.pushed_bytes += sizeof(message.header) + message.payload.size;
    }
    send(to, std::move(message), priority, std::move(done));
  };
}

KVStoreDist::~KVStoreDist() {
  const interrupt::Suspended suspended;
  Stop();
}

void KVStoreDist::Start() {
  postoffice_.Start(this);
  // Without servers workers learn of each other's failures from worker 0, also before the first
  // key.
  if (postoffice_.num_servers() > 0) return;
  try {
    LinkPeers({Worker(0)});
  } catch (...) {
    postoffice_.Abort();  // other nodes would ignore a normal end
    throw;
  }
}

void KVStoreDist::Stop() {
  FinishPushes();
  stopping_ = true;
  StopWatch();
  postoffice_.Stop();
  FailAll(Error("the key-value store has been closed"));
  executor_.Stop();
}

void KVStoreDist::Abort() {
  stopping_ = true;
  StopWatch();
  {
    // The other nodes must receive the failure report before they see this node's end, or they
    // would name it. A report of a death is also sent through the scheduler, and could overtake.
    std::unique_lock<std::mutex> lock(mutex_);
    reports_sent_.wait_for(lock, std::chrono::milliseconds(500),
                           [this] { return unsent_reports_ == 0; });
    // In an elastic job the membership protocol reports departed nodes.
    if (postoffice_.options().view == 0) {
      reports_sent_.wait_until(lock, job_failed_at_ + std::chrono::milliseconds(300),
                               [] { return false; });
    }
  }
  postoffice_.Abort();
  FailAll(Error("the key-value store has been closed after an error"));
  executor_.Stop();
}

void KVStoreDist::FinishPushes() {
  const auto deadline = WaitDeadline();
  std::unique_lock<std::mutex> lock(mutex_);
  if (stopping_) return;
  std::vector<std::shared_ptr<Flow>> flows, on_servers;
  for (auto& [key, flow] : flows_) {
    (owners_[key].empty() ? flows : on_servers).push_back(flow);
  }
  interrupt::PolledCheck check_signals;
  while (!failure_ && std::chrono::steady_clock::now() < deadline) {
    lock.unlock();
    check_signals();
    // Small payloads of a finished iteration may wait for their batch's end. Payloads for servers
    // need only be sent: the goodbye follows them.
    const bool finished =
        std::all_of(flows.begin(), flows.end(),
                    [](const auto& flow) { return flow->EndWithoutPulls(); }) &&
        std::all_of(on_servers.begin(), on_servers.end(),
                    [](const auto& flow) { return flow->HasHandedOver(); }) &&
        context_.outbox.empty();
    lock.lock();
    if (finished) return;
    watch_stops_.wait_for(lock, std::chrono::milliseconds(5));
  }
}

void KVStoreDist::SetSync(bool sync) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!flows_.empty() && sync != sync_) {
    throw Error(
        "synchronous or asynchronous mode must be chosen before the first key is initialized");
  }
  sync_ = sync;
}

void KVStoreDist::SetGradientCompression(GradientCompressionPtr compression) {
  std::lock_guard<std::mutex> lock(mutex_);
  compression_ = std::move(compression);
}

// ---- Commands -----------------------------------------------------------------------------------

std::string KVStoreDist::Command(int server, int head, std::string body) {
  if (server < 0 || server >= postoffice_.num_servers()) {
    throw Error("there is no server " + std::to_string(server) + "; the job has " +
                std::to_string(postoffice_.num_servers()));
  }
  return Request(Server(server), head, std::move(body));
}

std::string KVStoreDist::Request(NodeId to, int head, std::string body) {
  std::future<Reply> reply;
  MessageHeader header;
  header.kind = MessageKind::kCommand;
  header.iteration = requests_.Add(&reply);
  header.partition = uint32_t(head);
  context_.SendText(to, header, std::move(body));
  return requests_.Await(&reply, "command", to.ToString(), to.ToString() + " to answer a command");
}

std::string KVStoreDist::SaveStates(int server, KeyRange range) {
  ThrowIfFailed();
  if (server < 0) return hipress::SaveStates(Flows(range), postoffice_.options().wait_timeout);
  ByteWriter body;
  body.Number(range);
  for (const auto& [key, flows] : Flows(range)) {
    body.Number<uint64_t>(key);
    body.Number<uint64_t>(flows[0]->iteration());
  }
  return Command(server, kSaveStates, body.Take());
}

void KVStoreDist::LoadStates(int server, KeyRange range, const std::string& states) {
  ThrowIfFailed();
  if (server < 0) {
    return hipress::LoadStates(Flows(range), range, states, postoffice_.options().wait_timeout);
  }
  ByteWriter body;
  body.Number(range);
  Command(server, kLoadStates, body.Take() + states);
}

double KVStoreDist::NormOfStates(KeyRange range) const {
  ThrowIfFailed();
  double square = 0;
  const auto deadline = WaitDeadline();
  for (const auto& [key, flows] : Flows(range)) square += flows[0]->SquareOfStates(deadline);
  return std::sqrt(square);
}

void KVStoreDist::AwaitEncodes() {
  ThrowIfFailed();
  const auto deadline = WaitDeadline();
  for (const auto& [key, flows] : Flows({0, UINT64_MAX})) flows[0]->AwaitEncodes(deadline);
}

void KVStoreDist::Barrier() {
  ThrowIfFailed();
  postoffice_.Barrier(/*with_servers=*/false, postoffice_.options().wait_timeout);
}

// ---- Keys ---------------------------------------------------------------------------------------

std::shared_ptr<Flow> KVStoreDist::FindFlow(uint64_t key) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = flows_.find(key);
  return it == flows_.end() ? nullptr : it->second;
}

std::shared_ptr<Flow> KVStoreDist::KeyOf(uint64_t key) const {
  auto flow = FindFlow(key);
  if (!flow) throw Error("there is no key " + std::to_string(key));
  return flow;
}

std::shared_ptr<Flow> KVStoreDist::FlowOf(const MessageHeader& header) const {
  auto flow = FindFlow(header.key);
  if (!flow) throw ProtocolError("data of an unknown key");
  return flow;
}

FlowsByKey KVStoreDist::Flows(KeyRange range) const {
  FlowsByKey flows;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [key, flow] : flows_) {
    if (range.Has(key)) flows[key] = {flow};
  }
  return flows;
}

std::vector<NodeId> KVStoreDist::Owners(const Flow& flow) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = owners_.find(flow.key());
  return found == owners_.end() ? std::vector<NodeId>() : found->second;
}

std::shared_ptr<Flow> KVStoreDist::NewFlow(uint64_t key, const std::string& name, int64_t n,
                                           DType dtype, const std::vector<int64_t>& program) {
  const auto parsed = Program::Parse(program.data(), int64_t(program.size()), n);
  for (const Partition& partition : parsed->partitions()) {
    const uint64_t bytes = uint64_t(partition.count) * sizeof(float);  // partial sums are float32
    if (bytes <= postoffice_.max_payload_bytes()) continue;
    throw Error("key '" + name + "' has a partition of " + std::to_string(partition.count) +
                " elements, and a message has at most " +
                std::to_string(postoffice_.max_payload_bytes()) +
                " bytes: choose smaller partitions (HIPRESS_PARTITION_ELEMENTS)");
  }
  return std::make_shared<Flow>(key, name, n, 0, parsed, dtype, this, &executor_);
}

template <typename Function>
void KVStoreDist::Initialize(const std::shared_ptr<Flow>& flow, const std::vector<NodeId>& owners,
                             const Function& initialize) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) throw Error(*failure_);
    if (!flows_.emplace(flow->key(), flow).second) {
      throw Error("key '" + flow->name() + "' is already initialized");
    }
    owners_[flow->key()] = owners;
  }
  try {
    initialize();
  } catch (const interrupt::Interrupted&) {
    FailInterruptedInit(*flow);
    throw;
  } catch (...) {
    DropKey(flow->key());
    throw;
  }
}

void KVStoreDist::FailInterruptedInit(const Flow& flow) {
  FailJob(names()(postoffice_.self()) + " was interrupted while it initialized key '" +
          flow.name() + "'");
}

void KVStoreDist::Init(uint64_t key, const std::string& name, const void* data, int64_t n,
                       DType dtype, const std::string& graph, const Programs& programs) {
  const NodeId self = postoffice_.self();
  const auto mine = programs.find(self);
  if (mine == programs.end()) throw Error("no task program for " + self.ToString());
  const auto flow = NewFlow(key, name, n, dtype, mine->second);
  std::string all = graph;  // every worker must have built the same one
  std::vector<NodeId> owners;
  for (const auto& [node, flat] : programs) {
    if (node.role != Role::kServer) continue;
    all.append(reinterpret_cast<const char*>(flat.data()), flat.size() * sizeof(int64_t));
    const auto parsed = Program::Parse(flat.data(), int64_t(flat.size()), n);
    if (!parsed->tasks().empty()) owners.push_back(node);
  }
  Initialize(flow, owners, [&] {
    if (owners.empty()) {
      InitAmongWorkers(flow, data, Digest(all));
    } else {
      InitOnServers(*flow, owners, data, programs, Digest(all));
    }
  });
}

void KVStoreDist::AddKey(uint64_t key, const std::string& name, int64_t n, DType dtype,
                         const std::string& graph, const std::vector<int64_t>& program,
                         Binding binding, float momentum) {
  const auto flow = NewFlow(key, name, n, dtype, program);
  flow->Bind(std::move(binding));
  if (momentum != 0) {
    const auto parsed = Program::Parse(program.data(), int64_t(program.size()), n);
    flow->SetMomentum(std::make_unique<Momentum>(parsed, dtype, momentum));
  }
  Initialize(flow, {}, [&] {
    std::future<Reply> reply = AnnounceKey(*flow, Digest(graph));
    std::lock_guard<std::mutex> lock(mutex_);
    added_.emplace_back(flow, std::move(reply));
  });
}

void KVStoreDist::AwaitKeys() {
  decltype(added_) added;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    added.swap(added_);
  }
  const Flow* awaited = nullptr;
  try {
    for (auto& [flow, reply] : added) {
      awaited = flow.get();
      AwaitWorkers(*flow, &reply);
    }
  } catch (const interrupt::Interrupted&) {
    FailInterruptedInit(*awaited);
    throw;
  } catch (...) {
    for (auto& [flow, reply] : added) DropKey(flow->key());
    throw;
  }
}

void KVStoreDist::DropKey(uint64_t key) {
  std::shared_ptr<Flow> flow;  // released without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = flows_.find(key);
  if (it == flows_.end()) return;
  flow = std::move(it->second);
  flows_.erase(it);
  owners_.erase(key);
}

Message KVStoreDist::InitMessage(const Flow& flow, uint64_t digest, uint32_t request,
                                 const std::vector<int64_t>& program) const {
  Message message(MessageKind::kInitKey);
  message.header.key = flow.key();
  message.header.config = digest;
  message.header.elements = uint64_t(flow.elements());
  message.header.dtype = uint8_t(flow.wire());
  message.header.iteration = request;
  message.payload = InitKeyBody{flow.name(), program}.Pack();
  return message;
}

void KVStoreDist::InitOnServers(const Flow& flow, const std::vector<NodeId>& owners,
                                const void* data, const Programs& programs, uint64_t digest) {
  const bool first = postoffice_.self().rank == 0;
  std::vector<std::future<Reply>> replies(owners.size());
  for (size_t i = 0; i < owners.size(); ++i) {
    const std::vector<int64_t>& flat = programs.at(owners[i]);
    const uint32_t request = requests_.Add(&replies[i]);
    postoffice_.Send(owners[i],
                     InitMessage(flow, digest, request, first ? flat : std::vector<int64_t>()),
                     kControlPriority);
    if (!first) continue;
    SendInitialValue(owners[i], flow,
                     *Program::Parse(flat.data(), int64_t(flat.size()), flow.elements()), data);
  }
  for (size_t i = 0; i < owners.size(); ++i) {
    requests_.Await(&replies[i], "key", flow.name(),
                    "all workers to initialize key '" + flow.name() + "' on " +
                        owners[i].ToString());
  }
}

void KVStoreDist::SendInitialValue(NodeId to, const Flow& flow, const Program& program,
                                   const void* data) {
  for (int32_t p : program.local_partitions()) {
    const Partition& partition = program.partitions()[p];
    Message value(MessageKind::kInitData);
    value.header.key = flow.key();
    value.header.elements = uint64_t(partition.count);
    value.header.dtype = uint8_t(flow.wire());
    value.header.partition = uint32_t(p);
    // A copy, so that an error can leave Init while the transport still sends.
    value.payload = AllocateBuffer(partition.count * SizeOf(flow.wire()));
    std::memcpy(value.payload.data,
                static_cast<const uint8_t*>(data) + partition.offset * SizeOf(flow.wire()),
                value.payload.size);
    postoffice_.Send(to, std::move(value), kControlPriority);
  }
}

void KVStoreDist::InitAmongWorkers(const std::shared_ptr<Flow>& flow, const void* data,
                                   uint64_t digest) {
  std::future<Reply> agreed = AnnounceKey(*flow, digest);
  AwaitWorkers(*flow, &agreed);
  const size_t bytes = size_t(flow->elements()) * SizeOf(flow->wire());
  Buffer value = AllocateOnce(bytes);
  if (postoffice_.self() == Worker(0)) {
    std::memcpy(value.data, data, bytes);
  } else {
    std::memset(value.data, 0, bytes);
  }
  auto ended = std::make_shared<std::promise<Reply>>();
  std::future<Reply> reply = ended->get_future();
  PushMode mode;
  mode.plain = true;
  mode.keep = false;
  flow->Push(value.data, kControlPriority, [value](const char*) {}, mode);
  Done done = [this, value, ended](const char* error) {
    if (error == nullptr) return ended->set_value("");
    ended->set_exception(std::make_exception_ptr(ErrorOf(error)));
  };
  if (!flow->Pull(value.data, &done)) {
    throw Error("internal error: the initial value of key '" + flow->name() + "' has no pull");
  }
  requests_.Await(&reply, "initial value", flow->name(),
                  "the initial value of key '" + flow->name() + "'");
  locals_.Init(*flow, value);
}

std::future<Reply> KVStoreDist::AnnounceKey(const Flow& flow, uint64_t digest) {
  const NodeId self = postoffice_.self();
  LinkPeers(PeersOf(flow.program()));
  std::future<Reply> reply;
  Message request = InitMessage(flow, digest, requests_.Add(&reply), {});
  if (self == Worker(0)) {
    OnInitRequest({self, request.header, flow.name()}, flow.key());
  } else {
    postoffice_.Send(Worker(0), std::move(request), kControlPriority);
  }
  return reply;
}

void KVStoreDist::AwaitWorkers(const Flow& flow, std::future<Reply>* reply) {
  requests_.Await(reply, "key", flow.name(), "all workers to initialize key '" + flow.name() + "'");
}

void KVStoreDist::LinkPeers(std::set<NodeId> peers) {
  const NodeId self = postoffice_.self();
  peers.erase(self);
  for (NodeId peer : peers) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (linked_.count(peer) != 0) continue;
    }
    if (peer < self) {
      postoffice_.Link(peer);
      Request(peer, 0, "");  // its end of the link may be ready a little later than this one
    }
    std::lock_guard<std::mutex> lock(mutex_);
    linked_.insert(peer);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (!watch_.joinable() && !watch_stopped_) {
    watch_ = std::thread([this] {
      NameThisThread("hipress-watch");
      Watch();
    });
  }
}

void KVStoreDist::OnInitRequest(InitRequest request, uint64_t key) {
  if (postoffice_.self() != Worker(0)) {
    throw ProtocolError("a request to initialize a key, which only worker 0 takes");
  }
  std::vector<InitRequest> requests;
  std::string error;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<InitRequest>& all = init_requests_[key];
    for (const InitRequest& other : all) {
      if (other.from == request.from) throw ProtocolError("a second request to initialize a key");
    }
    if (request.from != postoffice_.self()) linked_.insert(request.from);
    all.push_back(std::move(request));
    error = WhoWillNotInit(all, left_, names());
    if (int(all.size()) < postoffice_.num_workers() && error.empty()) return;
    requests = std::move(all);
    init_requests_.erase(key);
  }
  AnswerInit(requests, error.empty() ? Disagreement(requests, names()) : error);
}

void KVStoreDist::AnswerInit(const std::vector<InitRequest>& requests, const std::string& error) {
  for (const InitRequest& answered : requests) {
    Message reply = ReplyMessage(answered.request, error.empty(), error);
    if (answered.from == postoffice_.self()) {
      OnMessage(answered.from, std::move(reply));
    } else {
      postoffice_.Send(answered.from, std::move(reply), kControlPriority);
    }
  }
}

// ---- Pushes and pulls ---------------------------------------------------------------------------

std::shared_ptr<Flow> KVStoreDist::Checked(uint64_t key, int64_t n, DType dtype,
                                           const char* verb) const {
  ThrowIfFailed();
  auto flow = FindFlow(key);
  if (!flow) {
    throw Error("cannot " + std::string(verb) + " key " + std::to_string(key) +
                ": it has not been initialized; call init first");
  }
  if (flow->elements() != n || flow->wire() != dtype) {
    throw Error("cannot " + std::string(verb) + " key '" + flow->name() + "' with " +
                std::to_string(n) + " " + NameOf(dtype) + " elements: it was initialized with " +
                std::to_string(flow->elements()) + " " + NameOf(flow->wire()) + " elements");
  }
  return flow;
}

void KVStoreDist::StartPush(const Transfer& transfer, Done done, PushMode mode) {
  const Flow& flow = *transfer.flow;
  counters_.pushed_raw_bytes += uint64_t(flow.elements()) * SizeOf(flow.wire());
  transfer.flow->Push(transfer.gradient, transfer.priority, std::move(done), mode);
}

void KVStoreDist::StartPull(const Transfer& transfer, Done done) {
  const auto& [flow, gradient, out, priority] = transfer;
  counters_.pulled_raw_bytes += uint64_t(flow->elements()) * SizeOf(flow->wire());
  if (flow->Pull(out, &done)) return;
  const std::vector<NodeId> owners = Owners(*flow);
  auto pull = std::make_shared<StoredPull>(flow, out, priority, std::move(done));
  owners.empty() ? locals_.Fetch(std::move(pull)) : fetches_.Start(std::move(pull), owners);
}

void KVStoreDist::Push(const std::shared_ptr<Flow>& flow, const void* gradient, int priority,
                       Done done) {
  StartPush({flow, gradient, nullptr, priority}, pending_.Count(std::move(done)), PushMode());
}

void KVStoreDist::Pull(const std::shared_ptr<Flow>& flow, void* out, int priority, Done done) {
  StartPull({flow, nullptr, out, priority}, pending_.Count(std::move(done)));
}

void KVStoreDist::PushPull(const std::vector<Transfer>& transfers, PushMode mode, Done done) {
  if (transfers.empty()) return done(nullptr);
  // In place is safe: a partition of the result exists only after that partition of the gradient
  // has been sent or encoded. After a failure the transport may still read the gradient when the
  // output has been released, so the caller waits for both. Neither callback allocates: a function
  // of one pointer.
  auto* const completion = new JointCompletion(2 * transfers.size(), pending_.Count(std::move(done)));
  const auto end = [completion](const char* error) { completion->End(error); };
  for (size_t i = 0; i < transfers.size();) {
    Batch batch;  // as long as one large gradient takes
    const size_t last = std::min(transfers.size(), i + kMaxKeysPerBatch);
    for (int64_t elements = 0; i < last && elements < Executor::kJobElements; ++i) {
      const Transfer& transfer = transfers[i];
      StartPush(transfer, end, mode);
      // Asynchronous keys also have a result: the servers' present values.
      if (transfer.flow->program().output_writes() > 0 || !Owners(*transfer.flow).empty()) {
        StartPull(transfer, end);
      } else {  // a reduce-scatter of which this node gets nothing
        end(nullptr);
      }
      elements += transfer.flow->elements();
    }
  }
}

// ---- Messages and the services for flows --------------------------------------------------------

Buffer KVStoreDist::OnHeader(NodeId from, const MessageHeader& header) {
  switch (header.kind) {
    case MessageKind::kData: return FlowOf(header)->OnHeader(from, header);
    case MessageKind::kFetched: return fetches_.OnHeader(header);
    case MessageKind::kInitKey:
    case MessageKind::kCommand:
      if (from.role != Role::kWorker) throw ProtocolError("a message that only workers send");
      return Buffer();
    case MessageKind::kFused: return BufferForFused(header);
    case MessageKind::kCodecConfig:
    case MessageKind::kReply:
    case MessageKind::kFailure: return Buffer();
    default: throw ProtocolError("a message that a worker does not take");
  }
}

void KVStoreDist::OnMessage(NodeId from, Message message) {
  const MessageHeader header = message.header;
  const MessageKind kind = header.kind;
  if (kind == MessageKind::kData || kind == MessageKind::kFused || kind == MessageKind::kFetched) {
    counters_.pulled_bytes += sizeof(header) + header.payload_bytes;
  }
  switch (kind) {
    case MessageKind::kData:
      if (auto flow = FindFlow(header.key)) flow->OnMessage(from, std::move(message));
      break;
    case MessageKind::kFused:
      Unfuse(from, message, [this](const MessageHeader& part) { return FlowOf(part); }, &executor_);
      break;
    case MessageKind::kFetched: fetches_.OnMessage(std::move(message)); break;
    case MessageKind::kCodecConfig: context_.configs.OnAnnouncement(from, message); break;
    case MessageKind::kReply: requests_.OnReply(from, message); break;
    case MessageKind::kInitKey:
      OnInitRequest({from, header, InitKeyBody::Unpack(message.payload).name}, header.key);
      break;
    case MessageKind::kCommand: {  // from a worker that tests whether the link exists
      {
        std::lock_guard<std::mutex> lock(mutex_);
        linked_.insert(from);
      }
      postoffice_.Send(from, ReplyMessage(header.iteration, true, ""), kControlPriority);
      break;
    }
    case MessageKind::kFailure:
      if (from.role == Role::kWorker) {
        FailJob(FailureIn(message, from));
      } else {
        if (header.flags == kTimedOutFlag) debug_dumps::Request(TextIn(message));
        if (FailAll(FailureIn(message, from))) {  // which the server reports to all workers
          std::lock_guard<std::mutex> lock(mutex_);
          job_failed_at_ = std::chrono::steady_clock::now();
        }
      }
      break;
    default: break;
  }
}

CodecPtr KVStoreDist::CodecToEncode(const Flow& flow, const Task& task, const Value& sum,
                                    bool updated) {
  GradientCompressionPtr compression;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    compression = compression_;
  }
  const bool total = task.num_summands > 1 && task.num_summands == postoffice_.num_workers();
  if (total && compression->pull() == GradientCompression::Pull::kNone) {
    return context_.configs.Intern(IdentityCodec());  // all workers are about to decode this
  }
  const CodecPtr codec = context_.configs.Intern(compression->ForKey(size_t(flow.elements())));
  // A sum's codec differs even for one term: momentum, say, is of gradients only.
  const bool gradient = task.inputs.front() == Program::kGradient;
  return gradient ? codec : context_.configs.ForSumOf(codec, task.num_summands);
}

uint8_t KVStoreDist::reply_policy() const {
  std::lock_guard<std::mutex> lock(mutex_);
  switch (compression_->pull()) {
    case GradientCompression::Pull::kAuto: return kReplySumsEncoded;
    case GradientCompression::Pull::kNone: return kReplyPlain;
    case GradientCompression::Pull::kSame: return kReplyEncoded;
  }
  return kReplyPlain;
}

void KVStoreDist::OnOutput(const Flow& flow, int32_t partition, uint64_t iteration,
                           const Value& value, bool keep) {
  locals_.Put(flow, partition, iteration, value, keep);
}

// ---- Failures -----------------------------------------------------------------------------------

void KVStoreDist::OnDeath(NodeId peer, const std::string& what) {
  FailAll(Error(what, Cause::kDied, peer));
}

void KVStoreDist::OnLeave(NodeId peer) {
  const Error left(names()(peer) + " has left the job", Cause::kLeft, peer);
  if (peer.role == Role::kWorker) {
    std::vector<std::pair<std::vector<InitRequest>, std::string>> refused;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      left_.insert(peer);
      for (auto it = init_requests_.begin(); it != init_requests_.end();) {
        const std::string error = WhoWillNotInit(it->second, left_, names());
        if (!error.empty()) refused.emplace_back(std::move(it->second), error);
        it = error.empty() ? std::next(it) : init_requests_.erase(it);
      }
    }
    for (const auto& [requests, error] : refused) AnswerInit(requests, error);
    if (peer == Worker(0) && postoffice_.num_servers() == 0) {  // it would answer all requests
      requests_.Fail(Error(left.what() + std::string(", without which no key is initialized"),
                           Cause::kLeft, peer));
    }
  } else if (peer.role == Role::kScheduler && postoffice_.num_servers() == 0) {
    // Workers alone do not need it: its process may end before theirs.
  } else if (!stopping_) {
    FailAll(left);
  }
}

bool KVStoreDist::FailAll(const Error& error) {
  const std::string sentence = error.what();
  std::vector<std::shared_ptr<Flow>> flows;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) return false;
    auto failure = std::make_shared<Error>(error);
    failure->of_job = true;
    std::atomic_store(&failure_, ErrorPtr(std::move(failure)));
    for (auto& [key, flow] : flows_) flows.push_back(flow);
  }
  if (!stopping_) {  // a dump after the failure shows what the keys waited for before it
    std::string keys = DescribeFlows(flows);
    std::lock_guard<std::mutex> lock(mutex_);
    keys_at_failure_ = std::move(keys);
  }
  fetches_.Fail(sentence);
  locals_.Fail(sentence);
  requests_.Fail(*failure_);
  for (auto& flow : flows) flow->Fail(sentence);
  return true;
}

void KVStoreDist::FailJob(const Error& error) {
  if (error.cause == Cause::kTimedOut && !JobError()) debug_dumps::Request(error.what());
  if (!FailAll(error)) return;
  std::set<NodeId> linked;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    linked = linked_;
    unsent_reports_ += int(linked.size());
    if (!linked.empty()) job_failed_at_ = std::chrono::steady_clock::now();
  }
  for (NodeId peer : linked) {
    postoffice_.Send(peer, FailureMessage(error), kControlPriority, [this](bool) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (--unsent_reports_ == 0) reports_sent_.notify_all();
    });
  }
}

std::string KVStoreDist::Failure() const {
  const ErrorPtr failure = JobError();
  return failure ? failure->what() : "";
}

Error KVStoreDist::ErrorOf(const std::string& sentence) const {
  Error error(sentence);
  if (const ErrorPtr failure = JobError()) {
    error.cause = failure->cause;
    error.node = failure->node;
    error.of_job = true;
  }
  return error;
}

void KVStoreDist::ThrowIfFailed() const {
  if (const ErrorPtr failure = JobError()) throw Error(*failure);
}

void KVStoreDist::Watch() {
  const JobOptions& options = postoffice_.options();
  ProgressWatch watch(options.wait_timeout, options.timeout_hint, options.van.names);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!watch_stops_.wait_for(lock, std::chrono::seconds(1), [this] { return watch_stopped_; })) {
    std::vector<std::shared_ptr<Flow>> flows;
    for (auto& [key, flow] : flows_) {
      if (owners_[key].empty()) flows.push_back(flow);
    }
    const std::set<NodeId> left = left_;
    lock.unlock();
    const auto error = watch.Check(flows, postoffice_.self(), left);
    if (error) {
      LogWarning(error->what());
      FailJob(*error);
    }
    lock.lock();
  }
}

void KVStoreDist::StopWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    watch_stopped_ = true;
    watch_stops_.notify_all();
  }
  if (watch_.joinable()) watch_.join();
}

void KVStoreDist::Describe(JsonWriter* json) {
  postoffice_.Describe(json);
  std::vector<std::shared_ptr<Flow>> flows;
  std::string keys;
  {
    const auto lock = LockFor(&mutex_);
    json->Name("store_locked").Bool(!lock);
    if (lock) {
      json->Name("failure").Text(Failure());
      keys = keys_at_failure_;
      for (const auto& [key, flow] : flows_) flows.push_back(flow);
    }
  }
  std::sort(flows.begin(), flows.end(),
            [](const auto& a, const auto& b) { return a->key() < b->key(); });
  json->Name("keys").Raw(keys.empty() ? DescribeFlows(flows) : keys);
  json->Name("fetches");
  fetches_.Describe(json);
  DescribeEvents(recorder_, json);
}

}  // namespace hipress
