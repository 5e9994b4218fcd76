/*!
 * \file postoffice_debug.cc
 * \brief A node's waits other than for gradients, and its knowledge of other nodes, for debugging hangs.
 */
#include "common/lock_for.h"
#include "van/postoffice-inl.h"

namespace hipress {
namespace {

void Names(const std::set<NodeId>& nodes, JsonWriter* json) {
  json->Array();
  for (const NodeId node : nodes) json->Text(node.ToString());
  json->EndArray();
}

}  // namespace

std::string NameOfBarrier(uint64_t kind, uint64_t number) {
  static const char* const kNames[kBarrierKinds] = {"workers", "all nodes", "start"};
  return kNames[kind] + std::string(" ") + std::to_string(number);
}

std::set<NodeId> SchedulerState::Living() const {
  std::set<NodeId> nodes;
  for (const auto& entry : addresses_) {
    if (Lives(entry.first)) nodes.insert(entry.first);
  }
  return nodes;
}

void SchedulerState::Describe(JsonWriter* json) const {
  static const char* const kPhases[] = {"registering", "connecting", "running", "failed"};
  json->Name("phase").Text(kPhases[int(phase_)]);
  const bool starting = phase_ == Phase::kRegistering || phase_ == Phase::kConnecting;
  if (starting) json->Name("missing").Text(Missing());
  json->Name("barriers").Array();
  for (uint64_t kind = 0; kind < kBarrierKinds; ++kind) {
    const Barrier& barrier = barriers_[kind];
    if (barrier.arrived.empty()) continue;
    json->Object().Name("about").Text(NameOfBarrier(kind, barrier.completed + 1));
    json->Name("missing").Array();
    for (const NodeId node : Participants(kind)) {
      if (barrier.arrived.count(node) == 0) json->Text(node.ToString());
    }
    json->EndArray().EndObject();
  }
  json->EndArray();
}

std::string Postoffice::Impl::Name() const {
  const NodeId me = self();
  return me.rank == kUnnamedRank ? std::string("a ") + NameOf(me.role) : me.ToString();
}

void Postoffice::Impl::Describe(JsonWriter* json) {
  const std::string given = JoinAddress(options_.root_uri, options_.root_port);
  json->Name("node").Text(Name());
  json->Name("workers").Number(options_.num_workers).Name("servers").Number(options_.num_servers);
  json->Name("ranks").Text(options_.ranks).Name("view").Number(options_.view);
  json->Name("timeout").Number(options_.wait_timeout.count());
  std::set<NodeId> up;
  {
    const auto lock = LockFor(&mutex_);
    json->Name("locked").Bool(!lock);
    if (lock) {
      json->Name("job").Text(options_.root_port == 0 ? root_address_ : given);
      json->Name("started").Bool(started_ || (state_ && state_->phase() == SchedulerState::Phase::kRunning));
      json->Name("leaving").Bool(stopping_);
      json->Name("left");
      Names(left_, json);
      json->Name("dead").Array();
      for (const auto& [node, what] : deaths_) {
        json->Object().Name("node").Text(node.ToString()).Name("what").Text(what).EndObject();
      }
      json->EndArray();
      if (state_) {
        json->Name("scheduler").Object();
        state_->Describe(json);
        json->EndObject();
      }
      up = state_ ? state_->Living() : up_;  // the scheduler's peers have got other names since
    }
  }
  json->Name("calls");
  calls_.Describe(json);
  json->Name("links").Array();
  for (const NodeId peer : up) {
    const auto silence = van_->Silence(peer);
    json->Object().Name("node").Text(peer.ToString());
    if (silence) json->Name("silent").Seconds(std::chrono::duration<double>(*silence).count());
    json->EndObject();
  }
  json->EndArray();
}

}  // namespace hipress
