#include "base/types.h"

#include <sstream>

namespace hipress {

const char* NameOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "float32";
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";
  }
  return "unknown";
}

DType DTypeFromFlag(int flag) {
  switch (flag) {
    case 0: return DType::kFloat32;
    case 2: return DType::kFloat16;
    case 12: return DType::kBFloat16;
  }
  static const char* const kOthers[] = {"", "float64", "", "uint8", "int32", "int8", "int64", "bool"};
  const char* name = flag > 0 && flag < 8 ? kOthers[flag] : "unknown";
  throw Error(std::string("a gradient must be float32, float16 or bfloat16, not ") + name +
              " (type flag " + std::to_string(flag) + ")");
}

const char* NameOf(Role role) {
  switch (role) {
    case Role::kScheduler: return "scheduler";
    case Role::kServer: return "server";
    case Role::kWorker: return "worker";
  }
  return "unknown";
}

std::string NodeId::ToString() const {
  if (role == Role::kScheduler) return "the scheduler";
  return std::string(NameOf(role)) + " " + std::to_string(rank);
}

NodeNames::NodeNames(const std::string& ranks) {
  std::istringstream text(ranks);
  for (std::string rank; std::getline(text, rank, ',');) ranks_.push_back(rank);
}

std::string NodeNames::operator()(NodeId node) const {
  if (ranks_.empty() || node.role == Role::kServer) return node.ToString();
  return "rank " + RankOf(node.role == Role::kScheduler ? 0 : node.rank);
}

std::string NodeNames::RankOf(int worker) const {
  return size_t(worker) < ranks_.size() ? ranks_[worker] : std::to_string(worker);
}

}  // namespace hipress
