/*!
 * \file types.h
 * \brief The few types that every layer shares: element types, node names, errors.
 */
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace hipress {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Element type of a gradient. The values are MXNet's type flags, so that front ends need no table.
enum class DType : uint8_t { kFloat32 = 0, kFloat16 = 2, kBFloat16 = 12 };

constexpr size_t SizeOf(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }
const char* NameOf(DType dtype);
/// Throws Error for any flag other than the three above.
DType DTypeFromFlag(int flag);

enum class Role : uint16_t { kScheduler = 0, kServer = 1, kWorker = 2 };
const char* NameOf(Role role);

/// A member of the job: its role and its rank among the nodes of that role, counted from 0.
struct NodeId {
  Role role = Role::kScheduler;
  uint16_t rank = 0;

  bool operator==(const NodeId& o) const { return role == o.role && rank == o.rank; }
  bool operator!=(const NodeId& o) const { return !(*this == o); }
  bool operator<(const NodeId& o) const { return Packed() < o.Packed(); }
  uint32_t Packed() const { return uint32_t(role) << 16 | rank; }
  static NodeId Unpack(uint32_t packed) {
    return {static_cast<Role>(packed >> 16), static_cast<uint16_t>(packed)};
  }
  /// "worker 3", "server 0", "the scheduler".
  std::string ToString() const;
};

inline NodeId Scheduler() { return {Role::kScheduler, 0}; }
inline NodeId Server(int rank) { return {Role::kServer, static_cast<uint16_t>(rank)}; }
inline NodeId Worker(int rank) { return {Role::kWorker, static_cast<uint16_t>(rank)}; }

/// Names of the nodes of a job in sentences for its users.
class NodeNames {
 public:
  NodeNames() = default;
  /// \param ranks what users call workers 0, 1, ...: "1,3". Empty: the names of NodeId::ToString.
  explicit NodeNames(const std::string& ranks);
  /// "rank 3", or without ranks "worker 3". With ranks, worker 0's process runs the scheduler.
  std::string operator()(NodeId node) const;
  /// What users call a worker: 3.
  std::string RankOf(int worker) const;

 private:
  std::vector<std::string> ranks_;
};

/// What happened to the node that is at fault: HipressCause in c_api.h has the same values.
enum class Cause { kNone = 0, kDied = 1, kLeft = 2, kTimedOut = 3, kReported = 4, kNotComputed = 5 };

/// The base of this library's errors: a sentence for the user, and the cause for programs.
struct Error : std::runtime_error {
  explicit Error(const std::string& sentence, Cause cause = Cause::kNone,
                 std::optional<NodeId> node = std::nullopt)
      : std::runtime_error(sentence), cause(cause), node(node) {}

  Cause cause;
  std::optional<NodeId> node;  ///< the node at fault, if it is known
  bool of_job = false;         ///< the job has failed: no later operation can succeed
};
using ErrorPtr = std::shared_ptr<const Error>;
/// A peer sent something that cannot be right; never the local user's fault.
struct ProtocolError : Error {
  using Error::Error;
};

}  // namespace hipress

template <>
struct std::hash<hipress::NodeId> {
  size_t operator()(const hipress::NodeId& id) const noexcept {
    return std::hash<uint32_t>()(id.Packed());
  }
};
