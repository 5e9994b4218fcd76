#include "kvstore/config_table.h"

#include <algorithm>
#include <climits>
#include <cstring>

namespace hipress {
namespace {

/// Announcements to a peer that count as known there. A key has few iterations under way, so none that
/// it still sends was told longer ago.
constexpr size_t kMaxTold = 512;
/// A receiver keeps more, as a codec that both ends have may have been told twice.
constexpr size_t kMaxHeard = 2 * kMaxTold;
/// New configurations after which those that nothing uses are forgotten.
constexpr size_t kSweep = 512;

}  // namespace

bool ConfigTable::Announced::Add(uint64_t digest, size_t most) {
  if (!digests.insert(digest).second) return false;
  order.push_back(digest);
  if (order.size() > most) {
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
  std::set<uint64_t> heard;
  for (const auto& [peer, announced] : heard_) {
    heard.insert(announced.digests.begin(), announced.digests.end());
  }
  for (auto it = codecs_.begin(); it != codecs_.end();) {
    // Others get one only from here, under the lock.
    if (it->second.use_count() > 1 || heard.count(it->first) != 0) {
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
  if (!told_[to].Add(digest, kMaxTold)) return digest;
  const std::string text = codec->Config();
  Message message(MessageKind::kCodecConfig);
  message.header.config = digest;
  message.payload = AllocateBuffer(text.size());
  std::memcpy(message.payload.data, text.data(), text.size());
  send(to, std::move(message), INT_MAX);  // ahead of everything queued, so ahead of what needs it
  return digest;
}

void ConfigTable::OnAnnouncement(NodeId from, const Message& message) {
  const std::string text(message.payload.as<char>(), message.payload.size);
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
  Announced& heard = heard_[from];
  if (!heard.Add(message.header.config, kMaxHeard)) heard.MoveToEnd(message.header.config);
}

CodecPtr ConfigTable::Find(uint64_t digest) const {
  if (digest == identity_digest_) return identity_;
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = codecs_.find(digest);
  if (it == codecs_.end()) throw ProtocolError("a payload of a codec that was not announced");
  return it->second;
}

}  // namespace hipress
