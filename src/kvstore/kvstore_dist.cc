/*!
 * \file kvstore_dist.cc
 * \brief A worker's store: its start and end, keys, pushes, pulls and commands.
 */
#include "kvstore/kvstore_dist.h"

#include <cmath>

#include "common/interrupt.h"
#include "kvstore/protocol.h"

namespace hipress {
KVStoreDist::KVStoreDist(JobOptions options)
    : postoffice_(std::move(options)),
      recorder_(postoffice_.options().flight_entries),
      requests_(&postoffice_.calls(), postoffice_.options().wait_timeout, postoffice_.options().timeout_hint),
      fetches_(&configs_, &executor_,
               [this](NodeId to, Message message, int priority) {
                 postoffice_.Send(to, std::move(message), priority);
               }),
      outbox_([this](NodeId to, Message message, int priority) {
        counters_.pushed_bytes += sizeof(message.header) + message.payload.size;
        postoffice_.Send(to, std::move(message), priority);
      }),
      locals_(&executor_),
      compression_(GradientCompression::None()),
      executor_(postoffice_.options().num_threads, [this](const std::string& sentence) { FailJob(sentence); }) {}

KVStoreDist::~KVStoreDist() {
  const interrupt::Suspended suspended;
  Stop();
}

void KVStoreDist::Start() {
  postoffice_.Start(this);
  // Without servers workers learn of each other's failures from worker 0, also before the first key.
  if (postoffice_.num_servers() > 0) return;
  try {
    LinkPeers({Worker(0)});
  } catch (...) {
    postoffice_.Abort();  // other nodes would ignore a normal end
    throw;
  }
}

void KVStoreDist::Stop() {
  Drain();
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
    // The other nodes must receive the failure report before they see this node's end, or they would name it. A
    // report of a death is also sent through the scheduler, and could overtake.
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

void KVStoreDist::SetSync(bool sync) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!flows_.empty() && sync != sync_) {
    throw Error(
        "synchronous or asynchronous mode must be chosen before the first key is initialised");
  }
  sync_ = sync;
}

void KVStoreDist::SetGradientCompression(GradientCompressionPtr compression) {
  std::lock_guard<std::mutex> lock(mutex_);
  compression_ = std::move(compression);
}

// ---- Commands -----------------------------------------------------------------------------------

std::string KVStoreDist::Command(int server, int head, const void* body, size_t bytes) {
  if (server < 0 || server >= postoffice_.num_servers()) {
    throw Error("there is no server " + std::to_string(server) + "; the job has " +
                std::to_string(postoffice_.num_servers()));
  }
  return Request(Server(server), head, std::string(static_cast<const char*>(body), bytes));
}

std::string KVStoreDist::Request(NodeId to, int head, std::string body) {
  std::future<Reply> reply;
  MessageHeader header;
  header.kind = MessageKind::kCommand;
  header.iteration = requests_.Add(&reply);
  header.partition = uint32_t(head);
  SendText(header, std::move(body), PieceBytes(), [&](Message piece, int priority) {
    postoffice_.Send(to, std::move(piece), priority);
  });
  return requests_.Await(&reply, "command", to.ToString(), to.ToString() + " to answer a command");
}

FlowsByKey KVStoreDist::Flows(KeyRange range) const {
  FlowsByKey flows;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [key, flow] : flows_) {
    if (range.Has(key)) flows[key] = {flow};
  }
  return flows;
}

std::string KVStoreDist::SaveStates(int server, KeyRange range) {
  ThrowIfFailed();
  if (server < 0) return hipress::SaveStates(Flows(range), postoffice_.options().wait_timeout);
  PushesByKey pushes;
  for (const auto& [key, flows] : Flows(range)) pushes[key] = flows[0]->iteration();
  const std::string body = range.Pack() + PackPushes(pushes);
  return Command(server, kSaveStates, body.data(), body.size());
}

void KVStoreDist::AwaitEncodes() {
  ThrowIfFailed();
  const auto deadline = std::chrono::steady_clock::now() + postoffice_.options().wait_timeout;
  for (const auto& [key, flows] : Flows({0, UINT64_MAX})) {
    for (const auto& flow : flows) flow->AwaitEncodes(deadline);
  }
}

double KVStoreDist::NormOfStates(KeyRange range) const {
  ThrowIfFailed();
  const auto deadline = std::chrono::steady_clock::now() + postoffice_.options().wait_timeout;
  double square = 0;
  for (const auto& [key, flows] : Flows(range)) {
    for (const auto& flow : flows) square += flow->SquareOfStates(deadline);
  }
  return std::sqrt(square);
}

void KVStoreDist::LoadStates(int server, KeyRange range, const std::string& states) {
  ThrowIfFailed();
  if (server < 0) {
    return hipress::LoadStates(Flows(range), range, states, postoffice_.options().wait_timeout);
  }
  const std::string body = range.Pack() + states;
  Command(server, kLoadStates, body.data(), body.size());
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

std::vector<NodeId> KVStoreDist::Owners(const Flow& flow) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = owners_.find(flow.key());
  return found == owners_.end() ? std::vector<NodeId>() : found->second;
}

std::shared_ptr<Flow> KVStoreDist::Checked(uint64_t key, int64_t n, DType dtype,
                                           const char* verb) const {
  ThrowIfFailed();
  auto flow = FindFlow(key);
  if (!flow) {
    throw Error("cannot " + std::string(verb) + " key " + std::to_string(key) +
                ": it has not been initialised; call init first");
  }
  if (flow->elements() != n || flow->wire() != dtype) {
    throw Error("cannot " + std::string(verb) + " key '" + flow->name() + "' with " +
                std::to_string(n) + " " + NameOf(dtype) + " elements: it was initialised with " +
                std::to_string(flow->elements()) + " " + NameOf(flow->wire()) + " elements");
  }
  return flow;
}

void KVStoreDist::Push(const std::shared_ptr<Flow>& flow, const void* gradient, int priority,
                       Done done, PushMode mode) {
  counters_.pushed_raw_bytes += uint64_t(flow->elements()) * SizeOf(flow->wire());
  flow->Push(gradient, flow->wire(), priority, std::move(done), mode);
}

void KVStoreDist::Pull(const std::shared_ptr<Flow>& flow, void* out, int priority, Done done) {
  counters_.pulled_raw_bytes += uint64_t(flow->elements()) * SizeOf(flow->wire());
  if (flow->Pull(out, flow->wire(), priority, &done)) return;
  const std::vector<NodeId> owners = Owners(*flow);
  if (owners.empty()) {
    locals_.Fetch(flow, out, flow->wire(), priority, std::move(done));
  } else {
    fetches_.Start(flow, owners, out, flow->wire(), priority, std::move(done));
  }
}

void KVStoreDist::Push(uint64_t key, const void* gradient, int64_t n, DType dtype, int priority,
                       Done done) {
  const auto flow = Checked(key, n, dtype, "push");
  Push(flow, gradient, priority, pending_.Count(std::move(done)), PushMode());
}

void KVStoreDist::Pull(uint64_t key, void* out, int64_t n, DType dtype, int priority, Done done) {
  const auto flow = Checked(key, n, dtype, "pull");
  Pull(flow, out, priority, pending_.Count(std::move(done)));
}

void KVStoreDist::PushPull(uint64_t key, const void* gradient, void* out, int64_t n, DType dtype,
                           int priority, Done done) {
  // In place is safe: a partition of the result exists only after that partition of the gradient
  // has been sent or encoded. After a failure the transport may still read the gradient when the
  // output has been let go of, so the caller waits for both.
  const auto flow = Checked(key, n, dtype, "push and pull");
  PushMode mode;
  mode.keep = false;
  PushPull({{flow, gradient, out, priority}}, mode, std::move(done));
}

}  // namespace hipress
