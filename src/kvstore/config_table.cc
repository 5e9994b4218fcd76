#include "kvstore/config_table.h"

#include <climits>
#include <cstring>

namespace hipress {
namespace {

/// More configurations than any job has; a bound on what a faulty peer can make us keep.
constexpr size_t kMaxConfigs = 4096;

}  // namespace

ConfigTable::ConfigTable() {
  codecs_.emplace(identity_digest_, identity_);
  digests_.emplace(identity_.get(), identity_digest_);
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
  codecs_.emplace(digest, codec);
  digests_.emplace(codec.get(), digest);
  return codec;
}

CodecPtr ConfigTable::ForSumOf(const CodecPtr& codec, int count) {
  std::lock_guard<std::mutex> lock(mutex_);
  CodecPtr& sum = sums_[{codec.get(), count}];
  if (!sum) {
    const CodecPtr scaled = codec->ForSumOf(count);
    sum = InternLocked(scaled ? scaled : codec);
  }
  return sum;
}

uint64_t ConfigTable::Announce(NodeId to, const CodecPtr& codec, const SendFn& send) {
  if (codec->IsIdentity()) return identity_digest_;
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t digest = digests_.at(InternLocked(codec).get());
  if (!announced_.insert({to, digest}).second) return digest;
  const std::string text = codec->Config();
  Message message(MessageKind::kCodecConfig);
  message.header.config = digest;
  message.payload = AllocateBuffer(text.size());
  std::memcpy(message.payload.data, text.data(), text.size());
  send(to, std::move(message), INT_MAX);  // ahead of everything queued, so ahead of what needs it
  return digest;
}

void ConfigTable::OnAnnouncement(const Message& message) {
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
  if (codecs_.size() >= kMaxConfigs) throw ProtocolError("too many codec configurations");
  InternLocked(codec);
}

CodecPtr ConfigTable::Find(uint64_t digest) const {
  if (digest == identity_digest_) return identity_;
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = codecs_.find(digest);
  if (it == codecs_.end()) throw ProtocolError("a payload of a codec that was not announced");
  return it->second;
}

}  // namespace hipress
