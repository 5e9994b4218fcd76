#include "kvstore/store_host.h"

#include <algorithm>
#include <utility>

namespace hipress {

void StoreContext::Connect(Postoffice* postoffice, FlightRecorder* flight_recorder,
                           Executor* compute_threads, FailFn on_failure) {
  self = [postoffice] { return postoffice->self(); };
  send = [postoffice](NodeId to, Message message, int priority, std::function<void(bool)> done) {
    postoffice->Send(to, std::move(message), priority, std::move(done));
  };
  fail = std::move(on_failure);
  executor = compute_threads;
  recorder = flight_recorder;
  timeline_node = postoffice->timeline_node();
  piece_bytes = std::min<uint64_t>(kTextPieceBytes, postoffice->max_payload_bytes());
}

uint64_t StoreContext::Announce(NodeId to, const CodecPtr& codec) {
  return configs.Announce(to, codec, [this](NodeId peer, Message message, int priority) {
    send(peer, std::move(message), priority, nullptr);
  });
}

void StoreContext::SendText(NodeId to, const MessageHeader& header, std::string text) {
  hipress::SendText(header, std::move(text), piece_bytes, [&](Message piece, int priority) {
    send(to, std::move(piece), priority, nullptr);
  });
}

MessageHeader StoreHost::DataHeader(const Flow& flow, const Task& task, const Value& value,
                                    uint64_t iteration) {
  MessageHeader header = flow.HeaderOf(task, value, iteration);
  header.config = context_->Announce(task.peer, value.codec);
  header.flags |= reply_policy();
  return header;
}

bool StoreHost::SendSmall(const Flow& flow, const Task& task, const Value& value,
                          uint64_t iteration, int priority) {
  return Outbox::MayTake(value.data) &&
         context_->outbox.Take(task.peer, DataHeader(flow, task, value, iteration), value.data,
                               priority);
}

void StoreHost::SendValue(const Flow& flow, const Task& task, const Value& value,
                          uint64_t iteration, int priority, std::function<void(bool)> done) {
  context_->send(task.peer, Message(DataHeader(flow, task, value, iteration), value.data), priority,
                 std::move(done));
}

std::string DescribeFlows(const std::vector<std::shared_ptr<Flow>>& flows) {
  JsonWriter json;
  json.Array();
  for (const auto& flow : flows) flow->Describe(&json);
  json.EndArray();
  return json.text();
}

void DescribeEvents(const FlightRecorder& recorder, JsonWriter* json) {
  json->Name("recorded").Unsigned(recorder.recorded()).Name("events");
  recorder.Describe(json);
}

}  // namespace hipress
