#include "kvstore/key_states.h"

#include <utility>

#include "common/bytes.h"

namespace hipress {

std::string KeyRange::Pack() const {
  ByteWriter out;
  out.Number(first);
  out.Number(last);
  return out.Take();
}

KeyRange KeyRange::Unpack(const std::string& bytes, std::string* rest) {
  ByteReader in(bytes);
  KeyRange range{};
  range.first = in.Number<uint64_t>();
  range.last = in.Number<uint64_t>();
  *rest = bytes.substr(2 * sizeof(uint64_t));
  return range;
}

std::string PackPushes(const PushesByKey& pushes) {
  ByteWriter out;
  for (const auto& [key, count] : pushes) {
    out.Number<uint64_t>(key);
    out.Number<uint64_t>(count);
  }
  return out.Take();
}

PushesByKey UnpackPushes(const std::string& bytes) {
  PushesByKey pushes;
  ByteReader in(bytes);
  while (!in.AtEnd()) {
    const uint64_t key = in.Number<uint64_t>();
    pushes[key] = in.Number<uint64_t>();
  }
  return pushes;
}

std::string SaveStates(const FlowsByKey& flows, std::chrono::seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  ByteWriter out;
  for (const auto& [key, channels] : flows) {
    out.Number<uint64_t>(key);
    out.Text(channels.empty() ? "" : channels[0]->name());
    out.Number<uint64_t>(channels.size());
    for (const auto& flow : channels) out.Text(flow->SaveStates(deadline));
  }
  return out.Take();
}

void LoadStates(const FlowsByKey& flows, KeyRange range, const std::string& bytes,
                std::chrono::seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::vector<std::pair<Flow*, std::vector<Flow::Memory>>> checked;
  ByteReader in(bytes);
  while (!in.AtEnd()) {
    const uint64_t key = in.Number<uint64_t>();
    const std::string name = in.Text();
    const uint64_t channels = in.Number<uint64_t>();
    const auto found = flows.find(key);
    const bool wanted = range.Has(key);
    if (wanted && found != flows.end() && !found->second.empty() && found->second[0]->name() != name) {
      for (const auto& [other, channels] : flows) {
        if (channels.empty() || channels[0]->name() != name) continue;
        throw Error("the saved states of key '" + name + "' would become those of key '" +
                    found->second[0]->name() + "': keys must be made in the same order as when they were saved");
      }
    }
    if (wanted && found == flows.end()) {
      throw Error("there are saved states of key '" + name + "', which is not initialised");
    }
    if (wanted && found->second.size() != channels) {
      throw Error("key '" + name + "' had states for " + std::to_string(channels) +
                  " workers when they were saved, and has " + std::to_string(found->second.size()));
    }
    for (uint64_t c = 0; c < channels; ++c) {
      if (!wanted) {
        in.SkipText();
        continue;
      }
      const std::string states = in.Text();
      Flow* flow = found->second[c].get();
      checked.emplace_back(flow, flow->CheckStates(states));
    }
  }
  for (auto& [flow, states] : checked) flow->LoadStates(std::move(states), deadline);
}

}  // namespace hipress
