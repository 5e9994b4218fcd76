/*!
 * \file node_api.cc
 * \brief Sections of c_api.h: any node, servers and the scheduler, and encryption.
 */
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/node.h"
#include "base/debug_dumps.h"
#include "base/life_watch.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "base/thread_object.h"
#include "transport/tls.h"

using namespace hipress;

namespace {

thread_local std::string handler_error;
thread_local std::string handler_reply;

/// A scheduler keeps the roster, and receives no other messages.
class SchedulerReceiver : public PostofficeReceiver {
  Buffer OnHeader(NodeId, const MessageHeader&) override {
    throw ProtocolError("a message that the scheduler does not take");
  }
  void OnMessage(NodeId, Message) override {}
  void OnDeath(NodeId, const std::string&) override {}
};
// Never destroyed: a scheduler in the background may run until the process has ended.
auto& scheduler_receiver = *new SchedulerReceiver;

JobOptions OptionsFrom(int num, const char** names, const char** values) {
  JobOptions::Values given;
  for (int i = 0; i < num; ++i) given[names[i]] = values[i];
  return JobOptions::From(given);
}

/// Ends a node by `leave`. It stays in dumps until then, as leaving may hang.
template <typename Function>
void Leave(HipressNodeHandle node, const Function& leave) {
  struct Forgetting {
    HipressNodeHandle node;
    ~Forgetting() { node->Forget(); }
  } const forgetting{node};
  node->Visit(leave);
  if (node->background.joinable()) node->background.join();
}

}  // namespace

HipressNode::HipressNode(JobOptions options) : role(options.role) {
  switch (role) {
    case Role::kWorker: worker = std::make_shared<KVStoreDist>(std::move(options)); break;
    case Role::kServer:
      server = std::make_unique<KVStoreDistServer>(std::move(options));
      break;
    case Role::kScheduler:
      scheduler = std::make_unique<Postoffice>(std::move(options));
      break;
  }
  dumped = debug_dumps::Add({[this] { return postoffice().Name(); },
                             [this](JsonWriter* json) {
                               Visit([json](auto& part) { part.Describe(json); });
                             }},
                            postoffice().options().debug_signal);
}

HipressNode::~HipressNode() {
  const interrupt::Suspended suspended;
  Forget();
  if (!background.joinable()) return;
  scheduler->Stop();
  background.join();
}

void HipressNode::Forget() {
  if (dumped != 0) debug_dumps::Remove(std::exchange(dumped, 0));
}

Postoffice& HipressNode::postoffice() {
  return worker ? worker->postoffice() : server ? server->postoffice() : *scheduler;
}

void HipressNode::CheckNotForked() const {
  if (!InForkedChild()) return;
  throw Error("this process was forked from a " + std::string(NameOf(role)) +
              "'s and is no node of its job: only process " + std::to_string(creator) + " can do this");
}

KVStoreDist& HipressNode::AsWorker() {
  if (!worker) throw Error(std::string("only a worker can do this, not a ") + NameOf(role));
  CheckNotForked();
  return *worker;
}

KVStoreDistServer& HipressNode::AsServer() {
  if (!server) throw Error(std::string("only a server can do this, not a ") + NameOf(role));
  CheckNotForked();
  return *server;
}

// ---- Any node -----------------------------------------------------------------------------------

int HipressStartWith(int num, const char** names, const char** values, HipressNodeHandle* out) {
  return Guarded([&] {
    auto node = std::make_unique<HipressNode>(OptionsFrom(num, names, values));
    if (node->worker) node->worker->Start();
    if (node->server) node->server->Start();
    if (node->scheduler) node->scheduler->Start(&scheduler_receiver);
    *out = node.release();
  });
}

int HipressStartScheduler(int num, const char** names, const char** values, HipressNodeHandle* out,
                          const char** address) {
  return Guarded([&] {
    auto options = OptionsFrom(num, names, values);
    if (options.role != Role::kScheduler) throw Error("HipressStartScheduler starts a scheduler only");
    const auto listening = std::make_shared<std::promise<std::string>>();
    options.on_listen = [listening](const std::string& where) { listening->set_value(where); };
    auto node = std::make_unique<HipressNode>(std::move(options));
    std::promise<void> served;
    node->served = served.get_future();
    node->background = std::thread(
        [scheduler = node->scheduler.get(), listening, served = std::move(served)]() mutable {
          NameThisThread("hipress-sched");
          try {
            scheduler->Start(&scheduler_receiver);
            scheduler->WaitForEnd();
          } catch (const std::exception& error) {
            // Nodes that tried to join have received the error. The caller gets it if Start fails
            // before it listens.
            try {
              listening->set_exception(std::current_exception());
            } catch (const std::future_error&) {
              LogWarning(error.what());
            }
          }
          scheduler->Stop();
          served.set_value();
        });
    try {
      *address = KeepString(listening->get_future().get());
    } catch (...) {
      node->background.join();
      throw;
    }
    *out = node.release();
  });
}

int HipressAwaitEnd(HipressNodeHandle node, int milliseconds, int* over) {
  return Guarded([&] {
    node->CheckNotForked();
    if (!node->served.valid()) throw Error("only a scheduler in the background is waited for");
    const auto limit = std::chrono::milliseconds(milliseconds);
    *over = interrupt::WaitUntil(node->served, std::chrono::steady_clock::now() + limit);
  });
}

int HipressStop(HipressNodeHandle node) {
  return Guarded([&] {
    node->CheckNotForked();
    Leave(node, [](auto& part) { part.Stop(); });
  });
}

int HipressAbort(HipressNodeHandle node) {
  return Guarded([&] {
    node->CheckNotForked();
    const interrupt::Suspended suspended;  // the call is bounded in time, and may follow a signal
    Leave(node, [](auto& part) { part.Abort(); });
  });
}

int HipressFree(HipressNodeHandle node) {
  return Guarded([&] {
    if (!node->InForkedChild()) delete node;
  });
}

int HipressRole(HipressNodeHandle node, const char** role) {
  return Guarded([&] { *role = NameOf(node->role); });
}

int HipressRank(HipressNodeHandle node, int* rank) {
  return Guarded([&] { *rank = node->postoffice().self().rank; });
}

int HipressGroupSize(HipressNodeHandle node, int* num_workers, int* num_servers) {
  return Guarded([&] {
    *num_workers = node->postoffice().num_workers();
    *num_servers = node->postoffice().num_servers();
  });
}

int HipressTimeout(HipressNodeHandle node, int* seconds) {
  return Guarded([&] {
    *seconds = static_cast<int>(node->postoffice().options().wait_timeout.count());
  });
}

int HipressNumDeadNode(HipressNodeHandle node, int node_id, int* number) {
  return Guarded([&] {
    node->CheckNotForked();
    *number = 0;
    for (NodeId dead : node->postoffice().Dead()) {
      // ps-lite's group bits: 1 scheduler, 2 servers, 4 workers.
      if (node_id & (1 << int(dead.role))) ++*number;
    }
  });
}

int HipressLeft(HipressNodeHandle node, const uint32_t** nodes, int64_t* count) {
  return Guarded([&] {
    node->CheckNotForked();
    auto& packed = ThreadObject<std::vector<uint32_t>>();
    packed.clear();
    for (NodeId left : node->postoffice().Left()) packed.push_back(left.Packed());
    *nodes = packed.data();
    *count = int64_t(packed.size());
  });
}

int HipressStats(HipressNodeHandle node, const char** json) {
  return Guarded([&] {
    const VanCounters& van = node->postoffice().counters();
    JsonWriter writer;
    writer.Object().Name("bytes_sent").Unsigned(van.bytes_sent);
    writer.Name("bytes_received").Unsigned(van.bytes_received);
    writer.Name("data_bytes_sent").Unsigned(van.data_bytes_sent);
    writer.Name("data_bytes_received").Unsigned(van.data_bytes_received);
    writer.Name("messages_sent").Unsigned(van.messages_sent);
    writer.Name("messages_received").Unsigned(van.messages_received);
    writer.Name("writes").Unsigned(van.writes);
    writer.Name("lent_bytes").Unsigned(van.shared_memory_bytes);
    writer.Name("resumed_connections").Unsigned(van.resumed_connections);
    writer.Name("refused_connections").Unsigned(van.refused_connections);
    writer.Name("refused_messages").Unsigned(van.refused_messages);
    if (node->worker) {
      const StoreCounters& store = node->worker->counters();
      writer.Name("pushed_bytes").Unsigned(store.pushed_bytes);
      writer.Name("pulled_bytes").Unsigned(store.pulled_bytes);
      writer.Name("pushed_raw_bytes").Unsigned(store.pushed_raw_bytes);
      writer.Name("pulled_raw_bytes").Unsigned(store.pulled_raw_bytes);
    }
    writer.EndObject();
    *json = KeepString(writer.text());
  });
}

int HipressDebugDump(HipressNodeHandle node, const char** json) {
  return Guarded([&] {
    node->CheckNotForked();
    JsonWriter writer;
    debug_dumps::Begin(&writer, "the program asked for it");
    node->Visit([&](auto& part) { part.Describe(&writer); });
    writer.EndObject();
    *json = KeepString(writer.text());
  });
}

int HipressSetDebugStatus(const char* name, const char* json) {
  return Guarded([&] {
    const char* signal = std::getenv("HIPRESS_DEBUG_SIGNAL");
    debug_dumps::SetStatus(name, json == nullptr ? "" : json,
                           debug_dumps::SignalOf(signal == nullptr ? "" : signal));
  });
}

int HipressKeepAlive(double seconds, int signal, int status, const char* words) {
  return Guarded([&] {
    if (seconds > 0) {
      life_watch::Renew(seconds, signal, status, words);
    } else {
      life_watch::End();
    }
  });
}

// ---- Server and scheduler -----------------------------------------------------------------------

void HipressSetError(const char* sentence) { handler_error = sentence; }

void HipressSetReply(const void* data, int64_t bytes) {
  handler_reply.assign(static_cast<const char*>(data), size_t(bytes));
}

int HipressFailJob(HipressNodeHandle node, const char* sentence) {
  return Guarded([&] {
    if (sentence == nullptr || *sentence == '\0') {
      throw Error("a job fails for a reason: HipressFailJob needs a sentence");
    }
    node->CheckNotForked();
    node->worker ? node->worker->FailJob(sentence) : node->AsServer().FailJob(Error(sentence));
  });
}

int HipressFailPending(HipressNodeHandle node, const char* sentence) {
  return Guarded([&] {
    if (node == nullptr) return;
    KVStoreDist& worker = node->AsWorker();
    if (worker.pending().count() > 0) worker.FailJob(sentence);
  });
}

int HipressSetUpdater(HipressNodeHandle node, HipressUpdater updater, void* context) {
  return Guarded([&] {
    KVStoreDistServer& server = node->AsServer();
    std::shared_ptr<const UpdateFn> function;
    if (updater != nullptr) {
      function = std::make_shared<UpdateFn>([updater, context](uint64_t key, const std::string& name,
                                                               float* gradient, float* weight,
                                                               int64_t n) {
        handler_error.clear();
        if (updater(context, key, name.c_str(), gradient, weight, n) != 0) {
          throw Error(handler_error.empty() ? "the updater failed" : handler_error);
        }
      });
    }
    server.SetUpdater(std::move(function));
  });
}

int HipressServe(HipressNodeHandle node, HipressController controller, void* context) {
  return Guarded([&] {
    if (node->worker) throw Error("a worker does not serve");
    node->CheckNotForked();
    if (node->scheduler) {
      const std::string death = node->scheduler->WaitForEnd();
      if (!death.empty()) throw Error(death, Cause::kDied, node->scheduler->Dead().front());
      node->scheduler->Stop();
      return;
    }
    node->server->Serve([controller, context](int worker, int head,
                                              const std::string& body) -> std::optional<std::string> {
      if (controller == nullptr) throw Error("it takes no commands");
      handler_error.clear();
      handler_reply.clear();
      const int code = controller(context, worker, head, body.data(), int64_t(body.size()));
      if (code == HIPRESS_LATER) return std::nullopt;
      if (code == HIPRESS_INTERRUPTED) throw interrupt::Interrupted();
      if (code != 0) {
        throw Error(handler_error.empty() ? "the command failed" : handler_error);
      }
      return std::move(handler_reply);
    });
    node->server->Stop();
  });
}

int HipressMakeCertificate(const char** pem) {
  return Guarded([&] { *pem = KeepString(MakeCertificate()); });
}
