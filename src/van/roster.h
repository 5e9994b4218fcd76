/*!
 * \file roster.h
 * \brief What nodes and scheduler tell each other when a job forms, as text that is checked.
 */
#ifndef HIPRESS_VAN_ROSTER_H_
#define HIPRESS_VAN_ROSTER_H_

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

/// The scheduler's answer: who you are, and where everybody is.
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
  kQueryFlag = 1,    ///< kBarrier: who has not come? kRelease: the answer
  kFailureFlag = 2,  ///< kRelease: the barrier cannot be completed; the payload says why
};

/// Barriers by header.key.
enum BarrierKind : uint64_t { kWorkersBarrier = 0, kAllBarrier = 1, kReadyBarrier = 2 };
constexpr int kBarrierKinds = 3;
/// Of one kind, the first is number 1: "workers 1".
std::string NameOfBarrier(uint64_t kind, uint32_t number);

/// The largest text of a membership message.
constexpr uint64_t kMaxMembershipBytes = 8 << 20;

Message TextMessage(MessageKind kind, const std::string& text);
/// News, or a report to the scheduler, that a node is dead.
Message NodeDown(NodeId node, const std::string& what);
/// The payload as printable text: control characters become '?'.
std::string TextOf(const Message& message);

/// "a", "a and b", "a, b and c"
std::string JoinWords(const std::vector<std::string>& words);

}  // namespace hipress

#endif  // HIPRESS_VAN_ROSTER_H_
