/*!
 * \file kvstore_debug.cc
 * \brief Describes a worker or server for debug dumps.
 */
#include <algorithm>

#include "common/lock_for.h"
#include "kvstore/kvstore_dist.h"
#include "kvstore/kvstore_dist_server.h"

namespace hipress {
namespace {

std::string KeysOf(const std::vector<std::shared_ptr<Flow>>& flows) {
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

}  // namespace

void KVStoreDist::KeepForDebugging(const std::vector<std::shared_ptr<Flow>>& flows) {
  std::string keys = KeysOf(flows);
  std::lock_guard<std::mutex> lock(mutex_);
  keys_at_failure_ = std::move(keys);
}

void KVStoreDist::Describe(JsonWriter* json) {
  postoffice_.Describe(json);
  std::vector<std::shared_ptr<Flow>> flows;
  std::string keys;
  {
    const auto lock = LockFor(&mutex_);
    json->Name("store_locked").Bool(!lock);
    if (lock) {
      json->Name("failure").Text(Failure());
      keys = keys_at_failure_;
      for (const auto& [key, flow] : flows_) flows.push_back(flow);
    }
  }
  std::sort(flows.begin(), flows.end(),
            [](const auto& a, const auto& b) { return a->key() < b->key(); });
  json->Name("keys").Raw(keys.empty() ? KeysOf(flows) : keys);
  json->Name("fetches");
  fetches_.Describe(json);
  DescribeEvents(recorder_, json);
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
  json->Name("keys").Raw(KeysOf(flows));
  DescribeEvents(recorder_, json);
}

}  // namespace hipress
