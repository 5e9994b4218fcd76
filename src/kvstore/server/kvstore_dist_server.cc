#include "kvstore/server/kvstore_dist_server.h"

#include <iterator>
#include <thread>

#include "base/bytes.h"
#include "base/debug_dumps.h"
#include "base/interrupt.h"
#include "base/lock_for.h"
#include "base/log.h"
#include "base/thread_name.h"

namespace hipress {

KVStoreDistServer::KVStoreDistServer(JobOptions options)
    : postoffice_(std::move(options)),
      recorder_(postoffice_.options().flight_entries),
      watch_(postoffice_.options().wait_timeout, postoffice_.options().timeout_hint),
      executor_(postoffice_.options().num_threads,
                [this](const std::string& sentence) { FailJob(Error(sentence)); }) {
  context_.Connect(&postoffice_, &recorder_, &executor_,
                   [this](const std::string& sentence) { FailJob(Error(sentence)); });
}

KVStoreDistServer::~KVStoreDistServer() {
  const interrupt::Suspended suspended;
  Stop();
}

void KVStoreDistServer::Start() {
  // Workers may send as soon as they have the roster, so what they need is set before.
  context_.num_workers = postoffice_.num_workers();
  postoffice_.Start(this);
}

void KVStoreDistServer::Stop() {
  postoffice_.Stop();
  executor_.Stop();
}

void KVStoreDistServer::Abort() {
  postoffice_.Abort();
  executor_.Stop();
}

void KVStoreDistServer::SetUpdater(std::shared_ptr<const UpdateFn> updater) {
  std::lock_guard<std::mutex> lock(context_.mutex);
  context_.has_updater = updater != nullptr;
  context_.updater = std::move(updater);
}

// ---- Messages -----------------------------------------------------------------------------------

std::shared_ptr<ServerKey> KVStoreDistServer::Find(uint64_t key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = keys_.find(key);
  if (it == keys_.end()) throw ProtocolError("a message about a key that is not initialized");
  return it->second;
}

std::vector<std::shared_ptr<ServerKey>> KVStoreDistServer::Keys() {
  std::vector<std::shared_ptr<ServerKey>> keys;
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [id, key] : keys_) keys.push_back(key);
  return keys;
}

std::vector<std::shared_ptr<Flow>> KVStoreDistServer::AllFlows() {
  std::vector<std::shared_ptr<Flow>> flows;
  for (auto& key : Keys()) {
    for (auto& flow : key->flows()) flows.push_back(flow);
  }
  return flows;
}

Buffer KVStoreDistServer::OnHeader(NodeId from, const MessageHeader& header) {
  if (from.role != Role::kWorker) {
    throw ProtocolError("a server takes such messages from workers only");
  }
  switch (header.kind) {
    case MessageKind::kData: return Find(header.key)->OnDataHeader(from, header);
    // Kept until the key is pushed: it must not stay in its sender's memory.
    case MessageKind::kInitData: return AllocateBuffer(header.payload_bytes);
    case MessageKind::kFused: return BufferForFused(header);
    case MessageKind::kInitKey:
    case MessageKind::kCodecConfig:
    case MessageKind::kFetch:
    case MessageKind::kCommand: return Buffer();
    default: throw ProtocolError("a message that a server does not take");
  }
}

void KVStoreDistServer::OnMessage(NodeId from, Message message) {
  const MessageHeader& header = message.header;
  switch (header.kind) {
    case MessageKind::kData: Find(header.key)->OnData(from, std::move(message)); break;
    case MessageKind::kFused:
      Unfuse(
          from, message,
          [this, from](const MessageHeader& part) { return Find(part.key)->FlowOf(from); },
          &executor_);
      break;
    case MessageKind::kInitKey: {
      std::shared_ptr<ServerKey> key;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        auto& slot = keys_[header.key];
        if (!slot) slot = std::make_shared<ServerKey>(header.key, &context_);
        key = slot;
      }
      AnswerInit(key, key->OnInitKey(from, message));
      break;
    }
    case MessageKind::kInitData: {
      auto key = Find(header.key);
      AnswerInit(key, key->OnInitData(from, message));
      break;
    }
    case MessageKind::kCodecConfig: context_.configs.OnAnnouncement(from, message); break;
    case MessageKind::kFetch: Find(header.key)->OnFetch(from, header); break;
    case MessageKind::kCommand: {
      std::lock_guard<std::mutex> lock(mutex_);
      std::optional<std::string> body = pieces_.Add(from, message);
      if (!body) break;
      commands_.push_back({from, header.iteration, int(header.partition), *std::move(body)});
      wake_.notify_all();
      break;
    }
    default: break;
  }
}

void KVStoreDistServer::AnswerInit(const std::shared_ptr<ServerKey>& key, bool complete) {
  std::string error;
  if (complete) {
    error = key->FinishInit();
  } else {
    std::lock_guard<std::mutex> lock(mutex_);
    error = key->NeverComplete(left_);
    if (error.empty()) return;
  }
  if (!error.empty()) {
    std::lock_guard<std::mutex> lock(mutex_);
    keys_.erase(key->key());  // the workers may try again
  }
  for (const auto& request : key->init_requests()) {
    context_.SendText(request.from, ReplyHeader(request.request, error.empty()), error);
  }
}

void KVStoreDistServer::OnLeave(NodeId peer) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    left_.insert(peer);
    pieces_.Forget(peer);
    wake_.notify_all();
  }
  for (const auto& key : Keys()) AnswerInit(key, false);
}

void KVStoreDistServer::OnDeath(NodeId peer, const std::string& what) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    pieces_.Forget(peer);
  }
  for (auto& key : Keys()) key->Fail(what);
}

void KVStoreDistServer::FailJob(const Error& error) {
  const std::string sentence = error.what();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = sentence;
  }
  if (error.cause == Cause::kTimedOut) debug_dumps::Request(sentence);
  LogWarning(sentence);
  for (auto& key : Keys()) key->Fail(sentence);
  for (int rank = 0; rank < postoffice_.num_workers(); ++rank) {
    postoffice_.Send(Worker(rank), FailureMessage(error), kControlPriority);
  }
}

// ---- Serving ------------------------------------------------------------------------------------

void KVStoreDistServer::Serve(const Controller& controller) {
  std::string death;
  std::thread end([&] {
    NameThisThread("hipress-end");
    std::string sentence = postoffice_.WaitForEnd();
    std::lock_guard<std::mutex> lock(mutex_);
    death = std::move(sentence);
    ended_ = true;
    wake_.notify_all();
  });
  // A separate thread, because a command may take long, or never end.
  std::thread watch([&] {
    NameThisThread("hipress-watch");
    std::unique_lock<std::mutex> lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::seconds(1), [&] { return ended_; })) {
      lock.unlock();
      CheckProgress();
      lock.lock();
    }
  });
  const auto join = [&] {
    watch.join();
    end.join();
  };
  try {
    RunCommands(controller, &death);
  } catch (...) {  // a signal handler has raised an exception
    const interrupt::Suspended suspended;  // another signal must not end this before the threads end
    postoffice_.Abort();
    join();
    throw;
  }
  join();
  if (!death.empty()) throw Error(death, Cause::kDied, postoffice_.Dead().front());
  if (!failure_.empty()) throw Error(failure_);
}

void KVStoreDistServer::RunCommands(const Controller& controller, const std::string* death) {
  std::deque<Command> unanswered;  // those that an earlier call of the controller could not answer
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_ || (death->empty() && !commands_.empty())) {
    if (commands_.empty()) {
      const size_t left = left_.size();
      interrupt::WaitUntil(&wake_, &lock, std::chrono::steady_clock::now() + std::chrono::seconds(1),
                           [&] { return ended_ || !commands_.empty() || left_.size() > left; });
    }
    std::deque<Command> due;
    if (!commands_.empty()) {
      due.push_back(std::move(commands_.front()));
      commands_.pop_front();
    }
    lock.unlock();
    std::move(unanswered.begin(), unanswered.end(), std::back_inserter(due));
    unanswered.clear();
    for (Command& command : due) {
      if (!RunCommand(controller, command)) unanswered.push_back(std::move(command));
    }
    lock.lock();
  }
}

FlowsByKey KVStoreDistServer::Flows(KeyRange range) {
  FlowsByKey flows;
  for (auto& key : Keys()) {
    if (range.Has(key->key())) flows[key->key()] = key->flows();
  }
  return flows;
}

std::optional<std::string> KVStoreDistServer::OwnCommand(const Command& command) {
  ByteReader body(command.body);
  const auto range = body.Number<KeyRange>();
  const FlowsByKey flows = Flows(range);
  const auto timeout = postoffice_.options().wait_timeout / 2;  // the worker waits for all of it
  if (command.head == kLoadStates) {
    LoadStates(flows, range, command.body.substr(sizeof(range)), timeout);
    return "";
  }
  while (!body.AtEnd()) {
    const auto key = body.Number<uint64_t>();
    const auto pushes = body.Number<uint64_t>();
    const auto found = flows.find(key);
    if (found == flows.end() || found->second.empty()) continue;  // none of it is here
    const size_t channel = found->second.size() > 1 ? size_t(command.from.rank) : 0;
    if (!found->second.at(channel)->HasEncoded(pushes)) return std::nullopt;
  }
  return SaveStates(flows, timeout);
}

bool KVStoreDistServer::RunCommand(const Controller& controller, const Command& command) {
  std::optional<std::string> answer;
  bool ok = true;
  try {
    const bool own = command.head == kSaveStates || command.head == kLoadStates;
    if (!own && !controller) throw Error("this server takes no commands");
    answer = own ? OwnCommand(command) : controller(command.from.rank, command.head, command.body);
    if (!answer) return false;
  } catch (const std::exception& error) {
    ok = false;
    answer = postoffice_.self().ToString() + ": " + error.what();
  }
  // Outside the try block: no error follows half an answer.
  context_.SendText(command.from, ReplyHeader(command.request, ok), *std::move(answer));
  return true;
}

void KVStoreDistServer::CheckProgress() {
  std::set<NodeId> left;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.empty()) return;
    left = left_;
  }
  const auto error = watch_.Check(AllFlows(), postoffice_.self(), left);
  if (error) FailJob(*error);
}

void KVStoreDistServer::Describe(JsonWriter* json) {
  postoffice_.Describe(json);
  std::vector<std::shared_ptr<ServerKey>> keys;
  {
    const auto lock = LockFor(&mutex_);
    json->Name("store_locked").Bool(!lock);
    if (lock) {
      json->Name("failure").Text(failure_);
      for (const auto& [id, key] : keys_) keys.push_back(key);
    }
  }
  std::vector<std::shared_ptr<Flow>> flows;
  for (const auto& key : keys) {
    for (const auto& flow : key->flows()) flows.push_back(flow);
  }
  json->Name("keys").Raw(DescribeFlows(flows));
  DescribeEvents(recorder_, json);
}

}  // namespace hipress
