/*!
 * \file types.h
 * \brief The few types that every layer shares: element types, node names, errors.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace hipress {

/// Element type of a gradient. The values are MXNet's type flags, so that front ends need no table.
enum class DType : uint8_t { kFloat32 = 0, kFloat16 = 2, kBFloat16 = 12 };

constexpr size_t SizeOf(DType dtype) { return dtype == DType::kFloat32 ? 4 : 2; }
const char* NameOf(DType dtype);
/// Throws Error for a flag that is none of the three above.
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

/// The root of every error this library throws: one clear sentence for the user.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
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
