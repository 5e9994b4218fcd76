/*!
 * \file config_table.h
 * \brief Maps digests on the wire to codec configurations, on both ends.
 *
 * A sender announces a configuration's text to a peer before its first payload with it. Connections
 * keep order, so a receiver always knows the parameters of the payloads it decodes, whenever they
 * change. That makes changing compression during training safe.
 *
 * A job may change a parameter in every step. So a sender relies only on its last announcements to
 * a peer, and announces other configurations again; a receiver keeps more than these of each peer.
 * Other configurations that no key uses are forgotten.
 */
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "operator/contrib/codec.h"
#include "transport/message.h"

namespace hipress {

class ConfigTable {
 public:
  using SendFn = std::function<void(NodeId to, Message message, int priority)>;

  ConfigTable();

  /// The one shared object for codecs with this configuration.
  CodecPtr Intern(const CodecPtr& codec);
  /// As Intern, of the codec that re-encodes sums of `count` payloads of `codec`.
  CodecPtr ForSumOf(const CodecPtr& codec, int count);

  /// Digest to write into a header for `to`; announces the configuration first if it is new there.
  uint64_t Announce(NodeId to, const CodecPtr& codec, const SendFn& send);

  /// A peer's announcement. \throw ProtocolError if it is not a configuration or not its digest
  void OnAnnouncement(NodeId from, const Message& message);
  /// \throw ProtocolError if it was not announced
  CodecPtr Find(uint64_t digest) const;

  /// Configurations that are kept now.
  size_t size() const;

 private:
  /// The last configurations that were announced to a peer, or by it.
  struct Announced {
    std::deque<uint64_t> order;
    std::set<uint64_t> digests;
    /// Forgets the oldest if there are `limit` already. \return whether it is new
    bool Add(uint64_t digest, size_t limit);
    void MoveToEnd(uint64_t digest);
  };

  CodecPtr InternLocked(const CodecPtr& codec);
  void ForgetUnused();

  const CodecPtr identity_ = IdentityCodec();  ///< needs no announcement
  const uint64_t identity_digest_ = Digest(identity_->Config());
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, CodecPtr> codecs_;
  std::unordered_map<const Codec*, uint64_t> digests_;
  /// The last codec whose shared object is another one, because a peer's announcement came first.
  /// To write its text takes longer than to encode a small gradient.
  CodecPtr other_, others_shared_;
  std::map<std::pair<const Codec*, int>, CodecPtr> sums_;
  std::map<NodeId, Announced> sent_, received_;
  size_t new_ones_ = 0;  ///< since unused configurations were forgotten
};

}  // namespace hipress
