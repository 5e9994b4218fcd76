#include "kvstore/config_table.h"

#include <algorithm>
#include <climits>

namespace hipress {
namespace {

/// Last announcements to a peer that it is known to have. Those of running iterations are newer.
constexpr size_t kMaxSent = 512;
/// A receiver keeps more, as a codec that both ends have may have been announced twice.
constexpr size_t kMaxReceived = 2 * kMaxSent;
/// New configurations after which unused ones are forgotten.
constexpr size_t kSweep = 512;

}  // namespace

bool ConfigTable::Announced::Add(uint64_t digest, size_t limit) {
  if (!digests.insert(digest).second) return false;
  order.push_back(digest);
  if (order.size() > limit) {
    digests.erase(order.front());
    order.pop_front();
  }
  return true;
}

ConfigTable::ConfigTable() {
  codecs_.emplace(identity_digest_, identity_);
  digests_.emplace(identity_.get(), identity_digest_);
}

void ConfigTable::Announced::MoveToEnd(uint64_t digest) {
  order.erase(std::find(order.begin(), order.end(), digest));
  order.push_back(digest);
}

CodecPtr ConfigTable::Intern(const CodecPtr& codec) {
  if (codec->IsIdentity()) return identity_;
  std::lock_guard<std::mutex> lock(mutex_);
  return InternLocked(codec);
}

CodecPtr ConfigTable::InternLocked(const CodecPtr& codec) {
  if (digests_.count(codec.get())) return codec;
  if (codec == other_) return others_shared_;
  const uint64_t digest = Digest(codec->Config());
  auto it = codecs_.find(digest);
  if (it != codecs_.end()) {
    other_ = codec;
    return others_shared_ = it->second;
  }
  if (++new_ones_ > kSweep) ForgetUnused();
  codecs_.emplace(digest, codec);
  digests_.emplace(codec.get(), digest);
  return codec;
}

void ConfigTable::ForgetUnused() {
  new_ones_ = 0;
  sums_.clear();
  other_ = others_shared_ = nullptr;
  std::set<uint64_t> received;
  for (const auto& [peer, announced] : received_) {
    received.insert(announced.digests.begin(), announced.digests.end());
  }
  for (auto it = codecs_.begin(); it != codecs_.end();) {
    // Other code gets a codec only from this table, under the lock.
    if (it->second.use_count() > 1 || received.count(it->first) != 0) {
      ++it;
      continue;
    }
    digests_.erase(it->second.get());
    it = codecs_.erase(it);
  }
}

size_t ConfigTable::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return codecs_.size();
}

CodecPtr ConfigTable::ForSumOf(const CodecPtr& codec, int count) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto known = sums_.find({codec.get(), count});
  if (known != sums_.end()) return known->second;
  const CodecPtr scaled = codec->ForSumOf(count);
  const CodecPtr sum = InternLocked(scaled ? scaled : codec);  // which may forget sums
  return sums_[{codec.get(), count}] = sum;
}

uint64_t ConfigTable::Announce(NodeId to, const CodecPtr& codec, const SendFn& send) {
  if (codec->IsIdentity()) return identity_digest_;
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t digest = digests_.at(InternLocked(codec).get());
  if (!sent_[to].Add(digest, kMaxSent)) return digest;
  Message message(MessageKind::kCodecConfig, codec->Config());
  message.header.config = digest;
  send(to, std::move(message), INT_MAX);  // before all queued messages, and so before its payload
  return digest;
}

void ConfigTable::OnAnnouncement(NodeId from, const Message& message) {
  const std::string text = TextIn(message);
  if (Digest(text) != message.header.config) {
    throw ProtocolError("a codec configuration that does not match its digest");
  }
  CodecPtr codec;
  try {
    codec = MakeCodec(text);
  } catch (const Error& error) {
    throw ProtocolError(std::string("a codec configuration this node cannot use: ") + error.what());
  }
  std::lock_guard<std::mutex> lock(mutex_);
  InternLocked(codec);
  Announced& received = received_[from];
  if (!received.Add(message.header.config, kMaxReceived)) received.MoveToEnd(message.header.config);
}

CodecPtr ConfigTable::Find(uint64_t digest) const {
  if (digest == identity_digest_) return identity_;
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = codecs_.find(digest);
  if (it == codecs_.end()) throw ProtocolError("a payload of a codec that was not announced");
  return it->second;
}

}  // namespace hipress
