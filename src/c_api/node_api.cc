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

#include "c_api/error.h"
#include "c_api/node.h"
#include "common/debug_dumps.h"
#include "common/interrupt.h"
#include "common/life_watch.h"
#include "common/log.h"
#include "common/thread_name.h"
#include "common/thread_object.h"
#include "hipress/c_api.h"
#include "van/tls.h"

using hipress::Error;
using hipress::NodeId;
using hipress::Role;

namespace {

thread_local std::string handler_error;
thread_local std::string handler_reply;

hipress::JobOptions OptionsFrom(int num, const char** names, const char** values) {
  hipress::JobOptions::Values given;
  for (int i = 0; i < num; ++i) given[names[i]] = values[i];
  return hipress::JobOptions::From(given);
}

/// A node that leaves can hang, too: it is forgotten when it has left.
class Forgetting {
 public:
  explicit Forgetting(HipressNode* node) : node_(node) {}
  ~Forgetting() { node_->Forget(); }

 private:
  HipressNode* const node_;
};

}  // namespace

int HipressStartWith(int num, const char** names, const char** values, HipressNodeHandle* out) {
  API_BEGIN();
  auto node = std::make_unique<HipressNode>(OptionsFrom(num, names, values));
  if (node->worker) {
    node->worker->Start();
  } else if (node->server) {
    node->server->Start();
  } else {
    node->scheduler->Start(node->receiver.get());
  }
  *out = node.release();
  API_END();
}

int HipressStartScheduler(int num, const char** names, const char** values, HipressNodeHandle* out,
                          const char** address) {
  API_BEGIN();
  auto options = OptionsFrom(num, names, values);
  if (options.role != Role::kScheduler) throw Error("HipressStartScheduler starts a scheduler only");
  const auto listening = std::make_shared<std::promise<std::string>>();
  options.on_listen = [listening](const std::string& where) { listening->set_value(where); };
  auto node = std::make_unique<HipressNode>(std::move(options));
  std::promise<void> served;
  node->served = served.get_future();
  node->background = std::thread(
      [scheduler = node->scheduler.get(), receiver = node->receiver.get(), listening,
       served = std::move(served)]() mutable {
        hipress::NameThisThread("hipress-sched");
        bool heard = false;
        try {
          scheduler->Start(receiver);
          heard = true;
          scheduler->WaitForEnd();
        } catch (const std::exception& error) {
          // Nodes that tried to join have received the error. If Start fails before it listens, the caller gets
          // it.
          if (!heard) {
            try {
              listening->set_exception(std::current_exception());
            } catch (const std::future_error&) {
              hipress::LogWarning(error.what());
            }
          }
        }
        scheduler->Stop();
        served.set_value();
      });
  try {
    *address = hipress::KeepString(listening->get_future().get());
  } catch (...) {
    node->background.join();
    throw;
  }
  *out = node.release();
  API_END();
}

int HipressAwaitEnd(HipressNodeHandle node, int milliseconds, int* over) {
  API_BEGIN();
  node->CheckNotForked();
  if (!node->served.valid()) throw Error("only a scheduler in the background is waited for");
  const auto limit = std::chrono::milliseconds(milliseconds);
  *over = hipress::interrupt::WaitUntil(node->served, std::chrono::steady_clock::now() + limit);
  API_END();
}

int HipressStop(HipressNodeHandle node) {
  API_BEGIN();
  node->CheckNotForked();
  const Forgetting forgetting(node);
  node->Visit([](auto& part) { part.Stop(); });
  if (node->background.joinable()) node->background.join();
  API_END();
}

int HipressAbort(HipressNodeHandle node) {
  API_BEGIN();
  node->CheckNotForked();
  const hipress::interrupt::Suspended suspended;  // the call is bounded in time, and may itself follow a signal
  const Forgetting forgetting(node);
  node->Visit([](auto& part) { part.Abort(); });
  if (node->background.joinable()) node->background.join();
  API_END();
}

int HipressFree(HipressNodeHandle node) {
  API_BEGIN();
  if (!node->InForkedChild()) delete node;
  API_END();
}

int HipressRole(HipressNodeHandle node, const char** role) {
  API_BEGIN();
  *role = NameOf(node->role);
  API_END();
}

int HipressRank(HipressNodeHandle node, int* rank) {
  API_BEGIN();
  *rank = node->postoffice().self().rank;
  API_END();
}

int HipressGroupSize(HipressNodeHandle node, int* num_workers, int* num_servers) {
  API_BEGIN();
  *num_workers = node->postoffice().num_workers();
  *num_servers = node->postoffice().num_servers();
  API_END();
}

int HipressTimeout(HipressNodeHandle node, int* seconds) {
  API_BEGIN();
  *seconds = static_cast<int>(node->postoffice().options().wait_timeout.count());
  API_END();
}

int HipressNumDeadNode(HipressNodeHandle node, int node_id, int* number) {
  API_BEGIN();
  node->CheckNotForked();
  *number = 0;
  for (NodeId dead : node->postoffice().Dead()) {
    // ps-lite's group bits: 1 scheduler, 2 servers, 4 workers.
    if (node_id & (1 << int(dead.role))) ++*number;
  }
  API_END();
}

int HipressLeft(HipressNodeHandle node, const uint32_t** nodes, int64_t* count) {
  API_BEGIN();
  node->CheckNotForked();
  auto& packed = hipress::ThreadObject<std::vector<uint32_t>>();
  packed.clear();
  for (NodeId left : node->postoffice().Left()) packed.push_back(left.Packed());
  *nodes = packed.data();
  *count = int64_t(packed.size());
  API_END();
}

int HipressStats(HipressNodeHandle node, const char** json) {
  API_BEGIN();
  const hipress::VanCounters& van = node->postoffice().counters();
  std::string text = "{";
  auto add = [&](const char* name, uint64_t value) {
    text += (text.size() > 1 ? ", \"" : "\"") + std::string(name) + "\": " + std::to_string(value);
  };
  add("bytes_sent", van.bytes_sent);
  add("bytes_received", van.bytes_received);
  add("data_bytes_sent", van.data_bytes_sent);
  add("data_bytes_received", van.data_bytes_received);
  add("messages_sent", van.messages_sent);
  add("messages_received", van.messages_received);
  add("writes", van.writes);
  add("lent_bytes", van.shared_memory_bytes);
  add("resumed_connections", van.resumed_connections);
  add("refused_connections", van.refused_connections);
  add("refused_messages", van.refused_messages);
  if (node->worker) {
    const hipress::StoreCounters& store = node->worker->counters();
    add("pushed_bytes", store.pushed_bytes);
    add("pulled_bytes", store.pulled_bytes);
    add("pushed_raw_bytes", store.pushed_raw_bytes);
    add("pulled_raw_bytes", store.pulled_raw_bytes);
  }
  *json = hipress::KeepString(text + "}");
  API_END();
}

int HipressDebugDump(HipressNodeHandle node, const char** json) {
  API_BEGIN();
  node->CheckNotForked();
  hipress::JsonWriter writer;
  hipress::debug_dumps::Begin(&writer, "the program asked for it");
  node->Visit([&](auto& part) { part.Describe(&writer); });
  writer.EndObject();
  *json = hipress::KeepString(writer.text());
  API_END();
}

int HipressSetDebugStatus(const char* name, const char* json) {
  API_BEGIN();
  const char* signal = std::getenv("HIPRESS_DEBUG_SIGNAL");
  hipress::debug_dumps::SetStatus(name, json == nullptr ? "" : json,
                                  hipress::debug_dumps::SignalOf(signal == nullptr ? "" : signal));
  API_END();
}

int HipressKeepAlive(double seconds, int signal, int status, const char* words) {
  API_BEGIN();
  if (seconds > 0) {
    hipress::life_watch::Renew(seconds, signal, status, words);
  } else {
    hipress::life_watch::End();
  }
  API_END();
}

// ---- Server and scheduler -----------------------------------------------------------------------

void HipressSetError(const char* sentence) { handler_error = sentence; }

void HipressSetReply(const void* data, int64_t bytes) {
  handler_reply.assign(static_cast<const char*>(data), size_t(bytes));
}

int HipressFailJob(HipressNodeHandle node, const char* sentence) {
  API_BEGIN();
  if (sentence == nullptr || *sentence == '\0') {
    throw hipress::Error("a job fails for a reason: HipressFailJob needs a sentence");
  }
  node->CheckNotForked();
  node->worker ? node->worker->FailJob(sentence) : node->AsServer().FailJob(sentence);
  API_END();
}

int HipressFailPending(HipressNodeHandle node, const char* sentence) {
  API_BEGIN();
  if (node == nullptr) return 0;
  hipress::KVStoreDist& worker = node->AsWorker();
  if (worker.pending().count() > 0) worker.FailJob(sentence);
  API_END();
}

int HipressSetUpdater(HipressNodeHandle node, HipressUpdater updater, void* context) {
  API_BEGIN();
  hipress::KVStoreDistServer& server = node->AsServer();
  std::shared_ptr<const hipress::UpdateFn> function;
  if (updater != nullptr) {
    function = std::make_shared<hipress::UpdateFn>([updater, context](
                                                       uint64_t key, const std::string& name,
                                                       float* gradient, float* weight, int64_t n) {
      handler_error.clear();
      if (updater(context, key, name.c_str(), gradient, weight, n) != 0) {
        throw Error(handler_error.empty() ? "the updater failed" : handler_error);
      }
    });
  }
  server.SetUpdater(std::move(function));
  API_END();
}

int HipressServe(HipressNodeHandle node, HipressController controller, void* context) {
  API_BEGIN();
  if (node->worker) throw Error("a worker does not serve");
  node->CheckNotForked();
  if (node->scheduler) {
    const std::string death = node->scheduler->WaitForEnd();
    if (!death.empty()) throw Error(death, hipress::Cause::kDied, node->scheduler->Dead().front());
    node->scheduler->Stop();
    return 0;
  }
  node->server->Serve([controller, context](int worker, int head,
                                            const std::string& body) -> std::optional<std::string> {
    if (controller == nullptr) throw Error("it takes no commands");
    handler_error.clear();
    handler_reply.clear();
    const int code = controller(context, worker, head, body.data(), int64_t(body.size()));
    if (code == HIPRESS_LATER) return std::nullopt;
    if (code == HIPRESS_INTERRUPTED) throw hipress::interrupt::Interrupted();
    if (code != 0) {
      throw Error(handler_error.empty() ? "the command failed" : handler_error);
    }
    return std::move(handler_reply);
  });
  node->server->Stop();
  API_END();
}

int HipressMakeCertificate(const char** pem) {
  API_BEGIN();
  *pem = hipress::KeepString(hipress::MakeCertificate());
  API_END();
}
