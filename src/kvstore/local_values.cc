#include "kvstore/local_values.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hipress {

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
      if (held_.count(flow.key()) == 0) return;  // before a copy for nothing
    }
    copy.data = AllocateBuffer(value.data.size);
    std::memcpy(copy.data.data, value.data.data, value.data.size);
  }
  std::vector<std::pair<Fetching, std::vector<Value>>> ready;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = held_.find(flow.key());
    // Keys on servers are not held, nor is one whose initial value is still on its way.
    if (it == held_.end()) return;
    Held& held = it->second;
    std::swap(held.values[partition], copy);  // the old one lets go without the lock
    held.iterations[partition] = iteration;
    for (size_t w = 0; w < held.waiting.size();) {
      if (held.Has(held.waiting[w].version)) {
        ready.emplace_back(std::move(held.waiting[w]), held.values);
        held.waiting.erase(held.waiting.begin() + w);
      } else {
        ++w;
      }
    }
  }
  for (auto& [fetch, values] : ready) Serve(std::move(fetch), std::move(values));
}

void LocalValues::Fetch(const std::shared_ptr<Flow>& flow, void* out, DType dtype, int priority,
                        Done done) {
  Fetching fetch{flow, static_cast<uint8_t*>(out), dtype, priority, flow->iteration(),
                 std::move(done)};
  std::string failure;
  std::vector<Value> values;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    failure = failure_;
    if (failure.empty()) {
      const auto it = held_.find(flow->key());
      if (it == held_.end()) {
        failure = "key '" + flow->name() + "' has no value before its first push";
      } else if (!it->second.Has(fetch.version)) {
        it->second.waiting.push_back(std::move(fetch));
        return;
      } else {
        values = it->second.values;
      }
    }
  }
  if (failure.empty()) return Serve(std::move(fetch), std::move(values));
  fetch.done(failure.c_str());
}

void LocalValues::Serve(Fetching fetch, std::vector<Value> values) {
  /// Its destructor notifies the user, also where the work is dropped.
  struct Serving {
    explicit Serving(Fetching f) : fetch(std::move(f)) {}
    ~Serving() { Notify(fetch.done, error); }
    const Fetching fetch;
    std::string error = "the key-value store has been closed";
  };
  const int priority = fetch.priority;
  auto serving = std::make_shared<Serving>(std::move(fetch));
  executor_->Submit(priority, [serving = std::move(serving), values = std::move(values)] {
    const Fetching& fetch = serving->fetch;
    const Flow& flow = *fetch.flow;
    for (size_t p = 0; p < values.size(); ++p) {
      const Partition& partition = flow.program().partitions()[p];
      const Value& value = values[p];
      if (!value.data) {
        serving->error =
            "the sum of key '" + flow.name() + "' was given to whoever called pushpull and is not "
            "kept: to pull it again, push and pull instead";
        return;
      }
      const CodecPtr codec = value.codec ? value.codec : IdentityCodec();
      codec->Decode({value.data.data, value.data.size}, partition.count,
                    value.codec ? flow.wire() : DType::kFloat32,
                    fetch.out + partition.offset * SizeOf(fetch.dtype), fetch.dtype);
    }
    serving->error.clear();
  });
}

void LocalValues::Fail(const std::string& sentence) {
  std::vector<Fetching> waiting;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = sentence;
    for (auto& [key, held] : held_) {
      for (Fetching& fetch : held.waiting) waiting.push_back(std::move(fetch));
      held.waiting.clear();
    }
  }
  for (Fetching& fetch : waiting) fetch.done(sentence.c_str());
}

}  // namespace hipress
