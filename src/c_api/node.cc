#include "c_api/node.h"

#include <string>
#include <utility>

#include "common/debug_dumps.h"
#include "common/interrupt.h"

using hipress::Error;
using hipress::NodeId;
using hipress::Role;

namespace {

/// A role's node that does nothing but keep the roster: the scheduler.
class SchedulerReceiver : public hipress::PostofficeReceiver {
  hipress::Buffer OnHeader(NodeId, const hipress::MessageHeader&) override {
    throw hipress::ProtocolError("a message that the scheduler does not take");
  }
  void OnMessage(NodeId, hipress::Message) override {}
  void OnDeath(NodeId, const std::string&) override {}
};

}  // namespace

HipressNode::HipressNode(hipress::JobOptions options) : role(options.role) {
  switch (role) {
    case Role::kWorker: worker = std::make_shared<hipress::KVStoreDist>(std::move(options)); break;
    case Role::kServer:
      server = std::make_unique<hipress::KVStoreDistServer>(std::move(options));
      break;
    case Role::kScheduler:
      receiver = std::make_unique<SchedulerReceiver>();
      scheduler = std::make_unique<hipress::Postoffice>(std::move(options));
      break;
  }
  dumped = hipress::debug_dumps::Add({[this] { return postoffice().Name(); },
                                      [this](hipress::JsonWriter* json) {
                                        Visit([json](auto& part) { part.Describe(json); });
                                      }},
                                     postoffice().options().debug_signal);
}

HipressNode::~HipressNode() {
  const hipress::interrupt::Suspended suspended;
  Forget();
  if (!background.joinable()) return;
  scheduler->Stop();
  background.join();
}

void HipressNode::Forget() {
  if (dumped != 0) hipress::debug_dumps::Remove(std::exchange(dumped, 0));
}

hipress::Postoffice& HipressNode::postoffice() {
  return worker ? worker->postoffice() : server ? server->postoffice() : *scheduler;
}

void HipressNode::CheckNotForked() const {
  if (!InForkedChild()) return;
  throw Error("this process was forked from a " + std::string(NameOf(role)) +
              "'s and is no node of its job: only process " + std::to_string(creator) + " can do this");
}

hipress::KVStoreDist& HipressNode::AsWorker() {
  if (!worker) throw Error(std::string("only a worker can do this, not a ") + NameOf(role));
  CheckNotForked();
  return *worker;
}

hipress::KVStoreDistServer& HipressNode::AsServer() {
  if (!server) throw Error(std::string("only a server can do this, not a ") + NameOf(role));
  CheckNotForked();
  return *server;
}
