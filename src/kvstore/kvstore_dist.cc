#include "kvstore/kvstore_dist.h"

#include <cstring>

#include "common/debug_dumps.h"
#include "common/log.h"
#include "kvstore/protocol.h"

namespace hipress {
namespace {

uint8_t PolicyOf(GradientCompression::Pull pull) {
  switch (pull) {
    case GradientCompression::Pull::kAuto: return kReplySumsEncoded;
    case GradientCompression::Pull::kNone: return kReplyPlain;
    case GradientCompression::Pull::kSame: return kReplyEncoded;
  }
  return kReplyPlain;
}

}  // namespace

KVStoreDist::KVStoreDist(JobOptions options)
    : postoffice_(std::move(options)),
      recorder_(postoffice_.options().flight_entries),
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
      executor_(postoffice_.options().num_threads) {}

KVStoreDist::~KVStoreDist() { Stop(); }

void KVStoreDist::Start() {
  postoffice_.Start(this);
  // Without servers workers hear of each other's failures by way of worker 0, before the first key, too.
  if (postoffice_.num_servers() == 0) LinkPeers({Worker(0)});
}

void KVStoreDist::Stop() {
  Drain();
  stopping_ = true;
  StopWatch();
  postoffice_.Stop();
  FailAll("the key-value store has been closed");
  executor_.Stop();
}

void KVStoreDist::Abort() {
  stopping_ = true;
  StopWatch();
  {
    // The others must hear why before they see this node go, or they would name it. News of a death
    // travels through the scheduler, too, and could overtake.
    std::unique_lock<std::mutex> lock(mutex_);
    told_.wait_for(lock, std::chrono::milliseconds(500), [this] { return untold_ == 0; });
    told_.wait_until(lock, failed_job_at_ + std::chrono::milliseconds(300), [] { return false; });
  }
  postoffice_.Abort();
  FailAll("the key-value store has been closed after an error");
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

// ---- Requests -----------------------------------------------------------------------------------

uint32_t KVStoreDist::NewRequest(std::future<Reply>* reply) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) throw Error(failure_);
  const uint32_t id = next_request_++;
  *reply = requests_[id].get_future();
  return id;
}

std::string KVStoreDist::Await(std::future<Reply>* reply, const char* call,
                               const std::string& about, const std::string& what) {
  const BlockingCalls::Here here(&postoffice_.calls(), call, about);
  const auto timeout = postoffice_.options().wait_timeout;
  if (reply->wait_for(timeout) != std::future_status::ready) {
    debug_dumps::GiveUp("waited " + std::to_string(timeout.count()) + " s for " + what +
                        " (HIPRESS_TIMEOUT changes this)");
  }
  Reply answer = reply->get();
  if (!answer.ok) throw Error(answer.text);
  return std::move(answer.text);
}

std::string KVStoreDist::Command(int server, int head, const void* body, size_t bytes) {
  if (server < 0 || server >= postoffice_.num_servers()) {
    throw Error("there is no server " + std::to_string(server) + "; the job has " +
                std::to_string(postoffice_.num_servers()));
  }
  return Request(Server(server), head, std::string(static_cast<const char*>(body), bytes));
}

std::string KVStoreDist::Request(NodeId to, int head, const std::string& body) {
  std::future<Reply> reply;
  Message message;
  message.header.kind = uint16_t(MessageKind::kCommand);
  message.header.iteration = NewRequest(&reply);
  message.header.partition = uint32_t(head);
  message.payload = PackText(body);
  postoffice_.Send(to, std::move(message), kControlPriority);
  return Await(&reply, "command", to.ToString(), to.ToString() + " to answer a command");
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

Done KVStoreDist::Counted(Done done) {
  {
    std::lock_guard<std::mutex> lock(pending_mutex_);
    ++pending_;
  }
  if (!done) return [this](const char*) { Over(); };  // small enough not to be allocated
  return [this, done = std::move(done)](const char* error) {
    done(error);
    Over();
  };
}

void KVStoreDist::Over() {
  std::lock_guard<std::mutex> lock(pending_mutex_);
  if (--pending_ == 0) pending_zero_.notify_all();
}

void KVStoreDist::WaitAll() {
  std::unique_lock<std::mutex> lock(pending_mutex_);
  pending_zero_.wait(lock, [this] { return pending_ == 0; });
}

void KVStoreDist::Push(const std::shared_ptr<Flow>& flow, const void* gradient, int priority,
                       Done done, PushMode mode) {
  counters_.pushed_raw_bytes += uint64_t(flow->elements()) * SizeOf(flow->wire());
  flow->Push(gradient, flow->wire(), priority, std::move(done), mode);
}

void KVStoreDist::Pull(const std::shared_ptr<Flow>& flow, void* out, int priority, Done done) {
  counters_.pulled_raw_bytes += uint64_t(flow->elements()) * SizeOf(flow->wire());
  if (flow->Pull(out, flow->wire(), priority, &done)) return;
  std::vector<NodeId> owners;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    owners = owners_[flow->key()];
  }
  if (owners.empty()) {
    locals_.Fetch(flow, out, flow->wire(), priority, std::move(done));
  } else {
    fetches_.Start(flow, owners, out, flow->wire(), priority, std::move(done));
  }
}

void KVStoreDist::Push(uint64_t key, const void* gradient, int64_t n, DType dtype, int priority,
                       Done done) {
  const auto flow = Checked(key, n, dtype, "push");
  Push(flow, gradient, priority, Counted(std::move(done)), PushMode());
}

void KVStoreDist::Pull(uint64_t key, void* out, int64_t n, DType dtype, int priority, Done done) {
  const auto flow = Checked(key, n, dtype, "pull");
  Pull(flow, out, priority, Counted(std::move(done)));
}

void KVStoreDist::PushPull(uint64_t key, const void* gradient, void* out, int64_t n, DType dtype,
                           int priority, Done done) {
  // In place is safe: a partition of the result exists only after that partition of the gradient
  // has been sent or encoded.
  const auto flow = Checked(key, n, dtype, "push and pull");
  PushMode mode;
  mode.keep = false;
  Push(flow, gradient, priority, Counted(nullptr), mode);
  Pull(flow, out, priority, Counted(std::move(done)));
}

// ---- Messages -----------------------------------------------------------------------------------

Buffer KVStoreDist::OnHeader(NodeId from, const MessageHeader& header) {
  switch (static_cast<MessageKind>(header.kind)) {
    case MessageKind::kData: {
      auto flow = FindFlow(header.key);
      if (!flow) throw ProtocolError("data of an unknown key");
      return flow->OnHeader(from, header);
    }
    case MessageKind::kFetched: return fetches_.OnHeader(header);
    case MessageKind::kInitKey:
    case MessageKind::kCommand:
      if (from.role != Role::kWorker) throw ProtocolError("a message that only workers send");
      break;
    case MessageKind::kFused: return PlaceForFused(header);
    case MessageKind::kCodecConfig:
    case MessageKind::kReply:
    case MessageKind::kFailure: break;
    default: throw ProtocolError("a message that a worker does not take");
  }
  return Buffer();
}

void KVStoreDist::OnMessage(NodeId from, Message message) {
  const MessageHeader header = message.header;
  switch (static_cast<MessageKind>(header.kind)) {
    case MessageKind::kData: {
      counters_.pulled_bytes += sizeof(header) + header.payload_bytes;
      if (auto flow = FindFlow(header.key)) flow->OnMessage(from, std::move(message));
      break;
    }
    case MessageKind::kFused:
      counters_.pulled_bytes += sizeof(header) + header.payload_bytes;
      Unfuse(
          from, message,
          [this](const MessageHeader& part) {
            auto flow = FindFlow(part.key);
            if (!flow) throw ProtocolError("data of an unknown key");
            return flow;
          },
          &executor_);
      break;
    case MessageKind::kFetched: {
      counters_.pulled_bytes += sizeof(header) + header.payload_bytes;
      fetches_.OnMessage(std::move(message));
      break;
    }
    case MessageKind::kCodecConfig: configs_.OnAnnouncement(message); break;
    case MessageKind::kReply: {
      std::unique_lock<std::mutex> lock(mutex_);
      auto it = requests_.find(header.iteration);
      if (it == requests_.end()) break;
      std::promise<Reply> promise = std::move(it->second);
      requests_.erase(it);
      lock.unlock();
      promise.set_value({header.flags == kReplyOk, UnpackText(message.payload)});
      break;
    }
    case MessageKind::kInitKey:
      OnInitRequest({from, header, InitKeyBody::Unpack(message.payload).name}, header.key);
      break;
    case MessageKind::kCommand: {  // of a worker that asks whether the link between us is there
      {
        std::lock_guard<std::mutex> lock(mutex_);
        linked_.insert(from);
      }
      Message reply;
      reply.header.kind = uint16_t(MessageKind::kReply);
      reply.header.iteration = header.iteration;
      reply.header.flags = kReplyOk;
      postoffice_.Send(from, std::move(reply), kControlPriority);
      break;
    }
    case MessageKind::kFailure:
      if (from.role == Role::kWorker) {
        FailJob(UnpackText(message.payload), FailureCause(header.flags));
      } else {
        if (header.flags == kTooLate) debug_dumps::Request(UnpackText(message.payload));
        FailAll(UnpackText(message.payload));
      }
      break;
    default: break;
  }
}

void KVStoreDist::OnDeath(NodeId peer, const std::string& what) { FailAll(what); }

void KVStoreDist::OnLeave(NodeId peer) {
  if (peer.role == Role::kWorker) {
    std::lock_guard<std::mutex> lock(mutex_);
    left_.insert(peer);
  } else if (peer.role == Role::kScheduler && postoffice_.num_servers() == 0) {
    // Workers alone need it no more: its process is done, and theirs are perhaps not.
  } else if (!stopping_) {
    FailAll(peer.ToString() + " has left the job");
  }
}

bool KVStoreDist::FailAll(const std::string& sentence) {
  std::vector<std::shared_ptr<Flow>> flows;
  std::vector<std::promise<Reply>> promises;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.empty()) return false;
    failure_ = sentence;
    for (auto& [key, flow] : flows_) flows.push_back(flow);
    for (auto& [id, promise] : requests_) promises.push_back(std::move(promise));
    requests_.clear();
  }
  if (!stopping_) KeepForDebugging(flows);
  fetches_.Fail(sentence);
  locals_.Fail(sentence);
  for (auto& promise : promises) promise.set_value({false, sentence});
  for (auto& flow : flows) flow->Fail(sentence);
  return true;
}

void KVStoreDist::FailJob(const std::string& sentence, FailureCause cause) {
  if (cause == kTooLate && Failure().empty()) debug_dumps::Request(sentence);
  if (!FailAll(sentence)) return;
  std::set<NodeId> linked;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    linked = linked_;
    untold_ += int(linked.size());
    if (!linked.empty()) failed_job_at_ = std::chrono::steady_clock::now();
  }
  for (NodeId peer : linked) {
    Message message;
    message.header.kind = uint16_t(MessageKind::kFailure);
    message.header.flags = cause;
    message.payload = PackText(sentence);
    postoffice_.Send(peer, std::move(message), kControlPriority, [this](bool) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (--untold_ == 0) told_.notify_all();
    });
  }
}

std::string KVStoreDist::Failure() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

void KVStoreDist::ThrowIfFailed() const {
  const std::string failure = Failure();
  if (!failure.empty()) throw Error(failure);
}

// ---- What flows ask for -------------------------------------------------------------------------

CodecPtr KVStoreDist::CodecToEncode(const Flow& flow, const Task& task, const Value& sum,
                                    bool updated) {
  GradientCompressionPtr compression;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    compression = compression_;
  }
  const bool total = task.terms > 1 && task.terms == postoffice_.num_workers();
  if (total && compression->pull() == GradientCompression::Pull::kNone) {
    return configs_.Intern(IdentityCodec());  // what all workers are about to decode
  }
  const CodecPtr codec = configs_.Intern(compression->ForKey(size_t(flow.elements())));
  // A sum's codec differs even for one term: momentum, say, is of gradients only.
  const bool gradient = task.inputs.front() == Program::kGradient;
  return gradient ? codec : configs_.ForSumOf(codec, task.terms);
}

MessageHeader KVStoreDist::DataHeader(const Flow& flow, const Task& task, const Value& value,
                                      uint32_t iteration) {
  MessageHeader header = flow.HeaderOf(task, value, iteration);
  header.config = configs_.Announce(task.peer, value.codec, [this](NodeId to, Message m, int p) {
    postoffice_.Send(to, std::move(m), p);
  });
  std::lock_guard<std::mutex> lock(mutex_);
  header.flags |= PolicyOf(compression_->pull());
  return header;
}

bool KVStoreDist::SendSmall(const Flow& flow, const Task& task, const Value& value,
                            uint32_t iteration, int priority) {
  return Outbox::MayTake(value.data) &&
         outbox_.Take(task.peer, DataHeader(flow, task, value, iteration), value.data, priority);
}

void KVStoreDist::SendValue(const Flow& flow, const Task& task, const Value& value,
                            uint32_t iteration, int priority, std::function<void(bool)> done) {
  Message message;
  message.header = DataHeader(flow, task, value, iteration);
  message.payload = value.data;
  counters_.pushed_bytes += sizeof(message.header) + value.data.size;
  postoffice_.Send(task.peer, std::move(message), priority, std::move(done));
}

CodecPtr KVStoreDist::CodecOf(NodeId from, const MessageHeader& header) {
  return configs_.Find(header.config);
}

void KVStoreDist::OnOutput(const Flow& flow, int32_t partition, uint32_t iteration,
                           const Value& value, bool keep) {
  locals_.Put(flow, partition, iteration, value, keep);
}

void KVStoreDist::OnFailure(const Flow& flow, const std::string& sentence) { FailJob(sentence); }

}  // namespace hipress
