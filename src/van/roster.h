/*!
 * \file roster.h
 * \brief Messages between nodes and scheduler by which a job forms, as text that is checked.
 */
#pragma once

#include <map>
#include <string>

#include "van/message.h"
#include "van/postoffice.h"

namespace hipress {

/// A node's application to the scheduler.
struct Registration {
  Role role = Role::kWorker;
  int wanted_rank = -1;
  std::string address;
  int num_workers = 0;
  int num_servers = 0;

  std::string ToText() const;
  /// \throw ProtocolError
  static Registration Parse(const std::string& text);
};

/// The scheduler's answer: the node's identity, and the addresses of all nodes.
struct Roster {
  NodeId self;
  std::map<NodeId, std::string> addresses;

  std::string ToText() const;
  /// \throw ProtocolError
  static Roster Parse(const std::string& text);
};

/// Subtypes of membership messages, in header.flags.
enum MembershipFlag : uint8_t {
  kPlainFlag = 0,
  kRefusalFlag = 1,  ///< kRoster: the payload says why the job does not form for you
  kQueryFlag = 1,    ///< kBarrier: which nodes are missing? kRelease: the answer
  kFailureFlag = 2,  ///< kRelease: the barrier cannot be completed; the payload says why
};

/// Barriers by header.key.
enum BarrierKind : uint64_t { kWorkersBarrier = 0, kAllBarrier = 1, kReadyBarrier = 2 };
constexpr int kBarrierKinds = 3;
/// Name of a barrier; the first of a kind has number 1: "workers 1".
std::string NameOfBarrier(uint64_t kind, uint64_t number);

/// The largest text of a membership message.
constexpr uint64_t kMaxMembershipBytes = 8 << 20;

/// Failure report: a node is dead.
Message NodeDown(NodeId node, const std::string& what);
/// The payload, with '?' for control characters.
std::string PrintableTextIn(const Message& message);

/// "a", "a and b", "a, b and c"
std::string JoinWords(const std::vector<std::string>& words);

}  // namespace hipress
