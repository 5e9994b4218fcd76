#include "kvstore/worker/pulls.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/lock_for.h"

namespace hipress {

StoredPull::StoredPull(std::shared_ptr<Flow> flow, void* out, int priority, Done done)
    : flow(std::move(flow)),
      version(this->flow->iteration()),
      out(static_cast<uint8_t*>(out)),
      priority(priority),
      done(std::move(done)) {}

// ---- Values on servers --------------------------------------------------------------------------

struct FetchTable::Fetch {
  Fetch(StoredPullPtr stored, std::vector<NodeId> servers)
      : pull(std::move(stored)),
        servers(std::move(servers)),
        arrived(pull->flow->program().partitions().size(), false),
        left(int64_t(arrived.size())) {}

  const StoredPullPtr pull;
  const std::vector<NodeId> servers;
  const std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  std::vector<bool> arrived;  ///< per partition; on the van's thread
  std::atomic<int64_t> left;
};

void FetchTable::Start(StoredPullPtr pull, const std::vector<NodeId>& servers) {
  uint32_t request;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    pull->error = failure_;
    if (!failure_.empty()) return;  // the pull's destructor runs once the lock is released
    while (fetches_.count(next_request_) != 0) ++next_request_;  // after 2^32 of them
    request = next_request_++;
    fetches_[request] = std::make_shared<Fetch>(pull, servers);
  }
  for (NodeId server : servers) {
    Message message(MessageKind::kFetch);
    message.header.key = pull->flow->key();
    message.header.elements = pull->version;
    message.header.iteration = request;
    context_->send(server, std::move(message), pull->priority, nullptr);
  }
}

void FetchTable::Describe(JsonWriter* json) const {
  json->Array();
  const auto lock = LockFor(&mutex_);
  for (const auto& [request, fetch] : fetches_) {
    const std::chrono::duration<double> lasts = std::chrono::steady_clock::now() - fetch->since;
    json->Object().Name("key").Unsigned(fetch->pull->flow->key());
    json->Name("iteration").Unsigned(fetch->pull->version);
    json->Name("seconds").Seconds(lasts.count()).Name("from").Array();
    for (const NodeId server : fetch->servers) json->Text(server.ToString());
    json->EndArray().EndObject();
  }
  json->EndArray();
}

FetchTable::FetchPtr FetchTable::Find(const MessageHeader& header) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = fetches_.find(header.iteration);
  if (it == fetches_.end()) return nullptr;  // it has failed meanwhile
  const Flow& flow = *it->second->pull->flow;
  const auto& partitions = flow.program().partitions();
  if (flow.key() != header.key || header.partition >= partitions.size() ||
      header.elements != uint64_t(partitions[header.partition].count) ||
      header.dtype != uint8_t(flow.wire())) {
    throw ProtocolError("an answer that does not match the fetch it answers");
  }
  return it->second;
}

Buffer FetchTable::OnHeader(const MessageHeader& header) const {
  const FetchPtr fetch = Find(header);
  if (!fetch) return Buffer();
  const Flow& flow = *fetch->pull->flow;
  const CodecPtr codec = context_->configs.Find(header.config);
  const size_t bytes = codec->MaxPayloadBytes(header.elements, flow.wire());
  if (codec->FixedSize() ? header.payload_bytes != bytes : header.payload_bytes > bytes) {
    throw ProtocolError("a fetched payload of the wrong size");
  }
  if (!codec->IsIdentity()) return AllocateBuffer(header.payload_bytes);
  const int64_t offset = flow.program().partitions()[header.partition].offset;
  return {fetch->pull->out + offset * SizeOf(flow.wire()), header.payload_bytes, fetch->pull};
}

void FetchTable::OnMessage(Message message) {
  const MessageHeader header = message.header;
  const FetchPtr fetch = Find(header);
  if (!fetch) return;
  if (fetch->arrived[header.partition]) throw ProtocolError("the same fetched partition twice");
  fetch->arrived[header.partition] = true;
  context_->configs.Find(header.config)
      ->Check({message.payload.data, message.payload.size}, header.elements,
              fetch->pull->flow->wire());
  context_->executor->Submit(0, [this, fetch, header, data = std::move(message.payload)] {
    Finish(fetch, header, data);
  });
}

void FetchTable::Finish(const FetchPtr& fetch, const MessageHeader& header, const Buffer& data) {
  const Flow& flow = *fetch->pull->flow;
  const int64_t offset = flow.program().partitions()[header.partition].offset;
  uint8_t* out = fetch->pull->out + offset * SizeOf(flow.wire());
  if (data.data != out) {  // otherwise received in place
    context_->configs.Find(header.config)
        ->Decode({data.data, data.size}, header.elements, flow.wire(), out, flow.wire());
  }
  if (--fetch->left > 0) return;
  std::lock_guard<std::mutex> lock(mutex_);
  fetches_.erase(header.iteration);
}

void FetchTable::Fail(const std::string& sentence) {
  std::unordered_map<uint32_t, FetchPtr> fetches;  // released without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = sentence;
  fetches.swap(fetches_);
  for (auto& [request, fetch] : fetches) fetch->pull->error = sentence;
}

// ---- Values on this worker ----------------------------------------------------------------------

bool LocalValues::Held::Has(uint64_t version) const {
  return std::all_of(iterations.begin(), iterations.end(),
                     [version](uint64_t iteration) { return iteration >= version; });
}

void LocalValues::Init(const Flow& flow, const Buffer& value) {
  std::lock_guard<std::mutex> lock(mutex_);
  Held& held = held_[flow.key()];
  const auto& partitions = flow.program().partitions();
  held.values.assign(partitions.size(), Value());
  held.iterations.assign(partitions.size(), 1);
  for (size_t p = 0; p < partitions.size(); ++p) {
    held.values[p].codec = IdentityCodec();
    held.values[p].data = value.Slice(partitions[p].offset * SizeOf(flow.wire()),
                                      partitions[p].count * SizeOf(flow.wire()));
  }
}

void LocalValues::Put(const Flow& flow, int32_t partition, uint64_t iteration, const Value& value,
                      bool keep) {
  Value copy;
  copy.codec = value.codec;
  if (value.codec && !value.codec->IsIdentity()) {
    copy.data = value.data;
  } else if (keep) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (held_.count(flow.key()) == 0) return;  // before a needless copy
    }
    copy.data = AllocateBuffer(value.data.size);
    std::memcpy(copy.data.data, value.data.data, value.data.size);
  }
  std::vector<std::pair<StoredPullPtr, std::vector<Value>>> ready;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = held_.find(flow.key());
    // Keys on servers are not held, nor is a key whose initial value has not arrived.
    if (it == held_.end()) return;
    Held& held = it->second;
    std::swap(held.values[partition], copy);  // the old one is released without the lock
    held.iterations[partition] = iteration;
    for (size_t w = 0; w < held.waiting.size();) {
      if (held.Has(held.waiting[w]->version)) {
        ready.emplace_back(std::move(held.waiting[w]), held.values);
        held.waiting.erase(held.waiting.begin() + w);
      } else {
        ++w;
      }
    }
  }
  for (auto& [pull, values] : ready) Serve(std::move(pull), std::move(values));
}

void LocalValues::Fetch(StoredPullPtr pull) {
  std::vector<Value> values;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    pull->error = failure_;
    const auto it = held_.find(pull->flow->key());
    if (failure_.empty() && it == held_.end()) {
      pull->error = "key '" + pull->flow->name() + "' has no value before its first push";
    }
    if (!pull->error.empty()) return;  // the pull's destructor runs once the lock is released
    if (!it->second.Has(pull->version)) {
      it->second.waiting.push_back(std::move(pull));
      return;
    }
    values = it->second.values;
  }
  Serve(std::move(pull), std::move(values));
}

void LocalValues::Serve(StoredPullPtr pull, std::vector<Value> values) {
  pull->error = "the key-value store has been closed";  // where the work is dropped
  const int priority = pull->priority;
  executor_->Submit(priority, [pull = std::move(pull), values = std::move(values)] {
    const Flow& flow = *pull->flow;
    for (size_t p = 0; p < values.size(); ++p) {
      const Partition& partition = flow.program().partitions()[p];
      const Value& value = values[p];
      if (!value.data) {
        pull->error = "the sum of key '" + flow.name() +
                      "' was returned by pushpull and is not kept: to pull it again, push and pull "
                      "instead";
        return;
      }
      const CodecPtr codec = value.codec ? value.codec : IdentityCodec();
      codec->Decode({value.data.data, value.data.size}, partition.count,
                    value.codec ? flow.wire() : DType::kFloat32,
                    pull->out + partition.offset * SizeOf(flow.wire()), flow.wire());
    }
    pull->error.clear();
  });
}

void LocalValues::Fail(const std::string& sentence) {
  std::vector<StoredPullPtr> waiting;  // released without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = sentence;
  for (auto& [key, held] : held_) {
    for (StoredPullPtr& pull : held.waiting) {
      pull->error = sentence;
      waiting.push_back(std::move(pull));
    }
    held.waiting.clear();
  }
}

}  // namespace hipress
