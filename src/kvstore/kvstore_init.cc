/*!
 * \file kvstore_init.cc
 * \brief How a worker's store begins a key, on servers or among workers alone.
 */
#include <cstring>

#include "common/interrupt.h"
#include "common/thread_name.h"
#include "kvstore/kvstore_dist.h"

namespace hipress {
namespace {

/// Of the heap: a pool would keep a block of this size for good. Not of the arena, as a bucket's fusion buffer.
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

/// \throw Error if a partition may not fit into a message
void CheckPartitions(const std::string& name, const Program& program, uint64_t max_payload_bytes) {
  for (const Partition& partition : program.partitions()) {
    const uint64_t bytes = uint64_t(partition.count) * sizeof(float);  // partial sums are float32
    if (bytes <= max_payload_bytes) continue;
    throw Error("key '" + name + "' has a partition of " + std::to_string(partition.count) +
                " elements, and a message has at most " + std::to_string(max_payload_bytes) +
                " bytes: choose smaller partitions (HIPRESS_PARTITION_ELEMENTS)");
  }
}

}  // namespace

void KVStoreDist::Init(uint64_t key, const std::string& name, const void* data, int64_t n,
                       DType dtype, const std::string& graph, const Programs& programs) {
  const NodeId self = postoffice_.self();
  auto mine = programs.find(self);
  if (mine == programs.end()) throw Error("no task program for " + self.ToString());
  auto program = Program::Parse(mine->second.data(), int64_t(mine->second.size()), n);
  CheckPartitions(name, *program, postoffice_.max_payload_bytes());
  auto flow = std::make_shared<Flow>(key, name, n, 0, program, dtype, this, &executor_);

  std::string all = graph;  // every worker must have built the same one
  std::vector<NodeId> owners;
  for (const auto& [node, flat] : programs) {
    if (node.role != Role::kServer) continue;
    all.append(reinterpret_cast<const char*>(flat.data()), flat.size() * sizeof(int64_t));
    if (!Program::Parse(flat.data(), int64_t(flat.size()), n)->tasks().empty()) owners.push_back(node);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) throw Error(*failure_);
    if (!flows_.emplace(key, flow).second) throw Error("key '" + name + "' is already initialised");
    owners_[key] = owners;
  }
  try {
    if (owners.empty()) {
      InitAmongWorkers(flow, data, Digest(all));
    } else {
      InitOnServers(*flow, owners, data, programs, Digest(all));
    }
  } catch (const interrupt::Interrupted&) {
    FailInterruptedInit(*flow);
    throw;
  } catch (...) {
    std::lock_guard<std::mutex> lock(mutex_);
    flows_.erase(key);
    owners_.erase(key);
    throw;
  }
}

void KVStoreDist::FailInterruptedInit(const Flow& flow) {
  FailJob(NodeName(postoffice_.self()) + " was interrupted while it initialized key '" + flow.name() + "'");
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

// ---- On servers -----------------------------------------------------------------------------------

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
          "all workers to initialise key '" + flow.name() + "' on " + owners[i].ToString());
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

// ---- Among workers ----------------------------------------------------------------------------------

void KVStoreDist::InitAmongWorkers(const std::shared_ptr<Flow>& flow, const void* data,
                                   uint64_t digest) {
  const NodeId self = postoffice_.self();
  std::future<Reply> agreed = AskWorkers(*flow, digest);
  AwaitWorkers(*flow, &agreed);
  const size_t bytes = size_t(flow->elements()) * SizeOf(flow->wire());
  Buffer value = AllocateOnce(bytes);
  if (self == Worker(0)) {
    std::memcpy(value.data, data, bytes);
  } else {
    std::memset(value.data, 0, bytes);
  }
  auto ended = std::make_shared<std::promise<Reply>>();
  std::future<Reply> reply = ended->get_future();
  PushMode mode;
  mode.plain = true;
  mode.keep = false;
  flow->Push(value.data, flow->wire(), kControlPriority, [value](const char*) {}, mode);
  Done done = [this, value, ended](const char* error) {
    if (error == nullptr) return ended->set_value("");
    ended->set_exception(std::make_exception_ptr(ErrorOf(error)));
  };
  if (!flow->Pull(value.data, flow->wire(), kControlPriority, &done)) {
    throw Error("internal error: the initial value of key '" + flow->name() + "' has no pull");
  }
  requests_.Await(&reply, "initial value", flow->name(),
                  "the initial value of key '" + flow->name() + "'");
  locals_.Init(*flow, value);
}

std::future<Reply> KVStoreDist::AskWorkers(const Flow& flow, uint64_t digest) {
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
  requests_.Await(reply, "key", flow.name(), "all workers to initialise key '" + flow.name() + "'");
}

void KVStoreDist::AddKey(uint64_t key, const std::string& name, int64_t n, DType dtype,
                         const std::string& graph, const std::vector<int64_t>& program,
                         Binding binding, float momentum) {
  const auto parsed = Program::Parse(program.data(), int64_t(program.size()), n);
  CheckPartitions(name, *parsed, postoffice_.max_payload_bytes());
  auto flow = std::make_shared<Flow>(key, name, n, 0, parsed, dtype, this, &executor_);
  flow->Bind(std::move(binding));
  if (momentum != 0) flow->SetMomentum(std::make_unique<Momentum>(parsed, dtype, momentum));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) throw Error(*failure_);
    if (!flows_.emplace(key, flow).second) throw Error("key '" + name + "' is already initialised");
  }
  try {
    std::future<Reply> reply = AskWorkers(*flow, Digest(graph));
    std::lock_guard<std::mutex> lock(mutex_);
    added_.emplace_back(flow, std::move(reply));
  } catch (const interrupt::Interrupted&) {
    FailInterruptedInit(*flow);
    throw;
  } catch (...) {
    DropKey(key);
    throw;
  }
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

std::shared_ptr<Flow> KVStoreDist::KeyOf(uint64_t key) const {
  auto flow = FindFlow(key);
  if (!flow) throw Error("there is no key " + std::to_string(key));
  return flow;
}

void KVStoreDist::DropKey(uint64_t key) {
  std::shared_ptr<Flow> flow;  // lets go without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = flows_.find(key);
  if (it == flows_.end()) return;
  flow = std::move(it->second);
  flows_.erase(it);
  owners_.erase(key);
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
  if (postoffice_.self() != Worker(0)) throw ProtocolError("only worker 0 hears of new keys");
  std::vector<InitRequest> requests;
  std::string error;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<InitRequest>& all = init_requests_[key];
    for (const InitRequest& other : all) {
      if (other.from == request.from) throw ProtocolError("a second request to initialise a key");
    }
    if (request.from != postoffice_.self()) linked_.insert(request.from);
    all.push_back(std::move(request));
    error = WhoWillNotInit(all, left_, postoffice_.options().van.names);
    if (int(all.size()) < postoffice_.num_workers() && error.empty()) return;
    requests = std::move(all);
    init_requests_.erase(key);
  }
  AnswerInit(requests, error.empty() ? Disagreement(requests, postoffice_.options().van.names) : error);
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

}  // namespace hipress
