/*!
 * \file flow_debug.cc
 * \brief What a flow waits for, for the progress watch and for debugging hangs.
 */
#include <algorithm>
#include <map>
#include <set>

#include "casync/flow-inl.h"
#include "common/lock_for.h"

namespace hipress {
namespace {

/// Tasks of one iteration that a dump lists: debugging a hang needs the first ones, not thousands.
constexpr int kMaxListedTasks = 16;

// A task's kind is noted by its number.
static_assert(int(Op::kEncode) == int(TimelineOp::kEncode) &&
                  int(Op::kDecode) == int(TimelineOp::kDecode) &&
                  int(Op::kMerge) == int(TimelineOp::kMerge) &&
                  int(Op::kSend) == int(TimelineOp::kSend) &&
                  int(Op::kRecv) == int(TimelineOp::kReceive) &&
                  int(Op::kUpdate) == int(TimelineOp::kUpdate),
              "the recorder and programs number tasks alike");

/// Messages to or from a peer.
struct Messages {
  int count = 0;
  bool no_upstream = false;  ///< the peer needs no other node to send them
};
using ByPeer = std::map<NodeId, Messages>;

void Describe(const char* name, const ByPeer& peers, JsonWriter* json) {
  if (peers.empty()) return;
  json->Name(name).Array();
  for (const auto& [peer, messages] : peers) {
    json->Object().Name("node").Text(peer.ToString()).Name("messages").Number(messages.count);
    json->Name("first_hand").Bool(messages.no_upstream).EndObject();
  }
  json->EndArray();
}

}  // namespace

void Flow::Note(FlightState state, const Task& task, uint64_t iteration) const {
  if (!recorder_) return;
  const bool travels = task.op == Op::kSend || task.op == Op::kRecv;
  // Where all takes microseconds, only messages are worth what their events cost. If something hangs,
  // Describe says so.
  if (!travels && WorkOf(task) <= kTrivialElements) return;
  recorder_->Record(state, TimelineOp(task.op), key_, uint32_t(iteration), uint32_t(task.partition),
                    travels ? task.peer.Packed() : timeline::kNoPeer);
}

void Flow::NoteGradient(FlightState state, uint64_t iteration) const {
  if (!recorder_ || elements_ <= kTrivialElements) return;
  recorder_->Record(state, TimelineOp::kGradient, key_, uint32_t(iteration), 0);
}

Flow::Wait Flow::WaitingFor() const {
  Wait wait;
  const bool pushes = program_->num_updates() == 0;  // servers do not
  std::lock_guard<std::mutex> lock(mutex_);
  for (const InstancePtr& instance : live_) {
    std::set<NodeId> peers, culprits;
    for (size_t t = 0; t < instance->states.size(); ++t) {
      const Task& task = program_->tasks()[t];
      // Data that are being received are in transit: their sender may even have left since.
      if (task.op != Op::kRecv || instance->states[t] == Instance::kDone ||
          instance->states[t] == Instance::kReceiving) {
        continue;
      }
      peers.insert(task.peer);
      if (task.num_summands == Program::kNoUpstream) culprits.insert(task.peer);
    }
    wait.unpushed = pushes && !instance->pushed;
    // Tasks of an optimizer begin when a key's whole shard is ready (UpdateShard).
    const bool begun = instance->updates && instance->update_tasks == program_->num_updates();
    for (size_t t = 0; begun && peers.empty() && t < instance->states.size(); ++t) {
      const bool runs = instance->states[t] == Instance::kRunning;
      wait.updating |= program_->tasks()[t].op == Op::kUpdate && runs;
    }
    if (peers.empty() && !wait.unpushed && !wait.updating) continue;  // replies are to be read
    wait.iteration = instance->iteration;
    wait.peers.assign(peers.begin(), peers.end());
    wait.culprits.assign(culprits.begin(), culprits.end());
    return wait;
  }
  return Wait();
}

void Flow::Describe(JsonWriter* json) const {
  const bool pushes = program_->num_updates() == 0;  // servers do not
  json->Object().Name("key").Unsigned(key_).Name("name").Text(name_);
  json->Name("channel").Number(channel_).Name("elements").Number(elements_);
  json->Name("pushes").Bool(pushes);
  const auto lock = LockFor(&mutex_);
  json->Name("locked").Bool(!lock);  // then some thread is stuck in the flow itself
  if (lock) {
    json->Name("pushed").Unsigned(pushed_);
    if (!live_.empty()) {
      json->Name("iterations").Array();
      for (const InstancePtr& instance : live_) DescribeInstance(*instance, pushes, json);
      json->EndArray();
    }
  }
  json->EndObject();
}

void Flow::DescribeInstance(const Instance& instance, bool pushes, JsonWriter* json) const {
  ByPeer waits_for, arriving_from, sending_to;
  std::vector<const Task*> running;
  for (size_t t = 0; t < instance.states.size(); ++t) {
    const Task& task = program_->tasks()[t];
    const Instance::State state = instance.states[t];
    if (state == Instance::kDone) continue;
    if (task.op == Op::kRecv) {
      Messages& messages = (state == Instance::kReceiving ? arriving_from : waits_for)[task.peer];
      ++messages.count;
      messages.no_upstream |= task.num_summands == Program::kNoUpstream;
    } else if (state == Instance::kRunning && task.op == Op::kSend) {
      ++sending_to[task.peer].count;
    } else if (state == Instance::kRunning) {
      running.push_back(&task);
    }
  }
  json->Object().Name("iteration").Unsigned(instance.iteration);
  json->Name("seconds").Seconds(recorder_ ? recorder_->Since(instance.begun) : 0.0);
  if (pushes) {
    json->Name("pushed").Bool(instance.pushed);
    json->Name("pulled").Bool(instance.output || instance.output_dropped);
    // Pushed by a user who is far ahead: it starts when an older one has ended.
    json->Name("queued").Bool(instance.pushed && instance.input &&
                              instance.iteration >= live_.front()->iteration + kFlowWindow);
  }
  hipress::Describe("waits_for", waits_for, json);
  hipress::Describe("arriving_from", arriving_from, json);
  hipress::Describe("sending_to", sending_to, json);
  if (!running.empty()) {
    json->Name("running_tasks").Unsigned(running.size()).Name("running").Array();
    for (size_t i = 0; i < std::min<size_t>(running.size(), kMaxListedTasks); ++i) {
      json->Object().Name("op").Text(NameOf(TimelineOp(running[i]->op)));
      json->Name("partition").Number(running[i]->partition).EndObject();
    }
    json->EndArray();
  }
  json->EndObject();
}

}  // namespace hipress
