#include "kvstore/fetch_table.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "common/lock_for.h"

namespace hipress {

struct FetchTable::Fetch {
  Fetch(std::shared_ptr<Flow> flow, std::vector<NodeId> owners, void* out, DType dtype, Done done)
      : flow(std::move(flow)),
        owners(std::move(owners)),
        version(this->flow->iteration()),
        out(static_cast<uint8_t*>(out)),
        dtype(dtype),
        arrived(this->flow->program().partitions().size(), false),
        left(int64_t(arrived.size())),
        done_(std::move(done)) {}
  /// All code that may still write the output holds the fetch, so now the user is notified.
  ~Fetch() { Notify(done_, error); }

  const std::shared_ptr<Flow> flow;
  const std::vector<NodeId> owners;
  const uint64_t version;  ///< pushes that the value must contain
  const std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  uint8_t* const out;
  const DType dtype;
  std::vector<bool> arrived;  ///< per partition; on the van's thread
  std::atomic<int64_t> left;
  std::string error;

 private:
  Done done_;
};

FetchTable::FetchTable(const ConfigTable* configs, Executor* executor, ConfigTable::SendFn send)
    : configs_(configs), executor_(executor), send_(std::move(send)) {}

FetchTable::~FetchTable() = default;

void FetchTable::Start(const std::shared_ptr<Flow>& flow, const std::vector<NodeId>& owners,
                       void* out, DType dtype, int priority, Done done) {
  auto fetch = std::make_shared<Fetch>(flow, owners, out, dtype, std::move(done));
  uint32_t request;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    fetch->error = failure_;
    if (!failure_.empty()) return;  // the fetch's destructor notifies the caller, once the lock is released
    while (fetches_.count(next_request_) != 0) ++next_request_;  // after 2^32 of them
    request = next_request_++;
    fetches_[request] = fetch;
  }
  for (NodeId owner : owners) {
    Message message(MessageKind::kFetch);
    message.header.key = flow->key();
    message.header.elements = fetch->version;
    message.header.iteration = request;
    send_(owner, std::move(message), priority);
  }
}

void FetchTable::Describe(JsonWriter* json) const {
  json->Array();
  const auto lock = LockFor(&mutex_);
  for (const auto& [request, fetch] : fetches_) {
    const std::chrono::duration<double> lasts = std::chrono::steady_clock::now() - fetch->since;
    json->Object().Name("key").Unsigned(fetch->flow->key()).Name("iteration").Unsigned(fetch->version);
    json->Name("seconds").Seconds(lasts.count()).Name("from").Array();
    for (const NodeId owner : fetch->owners) json->Text(owner.ToString());
    json->EndArray().EndObject();
  }
  json->EndArray();
}

std::shared_ptr<FetchTable::Fetch> FetchTable::Find(const MessageHeader& header) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = fetches_.find(header.iteration);
  if (it == fetches_.end()) return nullptr;  // it has failed meanwhile
  const Flow& flow = *it->second->flow;
  const auto& partitions = flow.program().partitions();
  if (flow.key() != header.key || header.partition >= partitions.size() ||
      header.elements != uint64_t(partitions[header.partition].count) ||
      header.dtype != uint8_t(flow.wire())) {
    throw ProtocolError("an answer that does not match the fetch it answers");
  }
  return it->second;
}

Buffer FetchTable::OnHeader(const MessageHeader& header) const {
  auto fetch = Find(header);
  if (!fetch) return Buffer();
  const CodecPtr codec = configs_->Find(header.config);
  const size_t bytes = codec->MaxPayloadBytes(header.elements, fetch->flow->wire());
  if (codec->FixedSize() ? header.payload_bytes != bytes : header.payload_bytes > bytes) {
    throw ProtocolError("a fetched payload of the wrong size");
  }
  if (!codec->IsIdentity() || fetch->dtype != fetch->flow->wire()) {
    return AllocateBuffer(header.payload_bytes);
  }
  const Partition& partition = fetch->flow->program().partitions()[header.partition];
  return {fetch->out + partition.offset * SizeOf(fetch->dtype), header.payload_bytes, fetch};
}

void FetchTable::OnMessage(Message message) {
  const MessageHeader header = message.header;
  auto fetch = Find(header);
  if (!fetch) return;
  if (fetch->arrived[header.partition]) throw ProtocolError("the same fetched partition twice");
  fetch->arrived[header.partition] = true;
  configs_->Find(header.config)
      ->Check({message.payload.data, message.payload.size}, header.elements, fetch->flow->wire());
  executor_->Submit(0, [this, fetch, header, data = std::move(message.payload)] {
    Finish(fetch, header, data);
  });
}

void FetchTable::Finish(const std::shared_ptr<Fetch>& fetch, const MessageHeader& header,
                        const Buffer& data) {
  const Flow& flow = *fetch->flow;
  uint8_t* out =
      fetch->out + flow.program().partitions()[header.partition].offset * SizeOf(fetch->dtype);
  if (data.data != out) {  // otherwise received in place
    configs_->Find(header.config)
        ->Decode({data.data, data.size}, header.elements, flow.wire(), out, fetch->dtype);
  }
  if (--fetch->left > 0) return;
  std::lock_guard<std::mutex> lock(mutex_);
  fetches_.erase(header.iteration);
}

void FetchTable::Fail(const std::string& sentence) {
  std::unordered_map<uint32_t, std::shared_ptr<Fetch>> fetches;  // released without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = sentence;
  fetches.swap(fetches_);
  for (auto& [request, fetch] : fetches) fetch->error = sentence;
}

}  // namespace hipress
