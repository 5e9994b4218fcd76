#include "kvstore/key_states.h"

#include <utility>

#include "base/bytes.h"

namespace hipress {

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
  std::vector<std::pair<Flow*, std::vector<Flow::EncodeState>>> checked;
  ByteReader in(bytes);
  while (!in.AtEnd()) {
    const uint64_t key = in.Number<uint64_t>();
    const std::string name = in.Text();
    const uint64_t channels = in.Number<uint64_t>();
    if (!range.Has(key)) {
      for (uint64_t c = 0; c < channels; ++c) in.SkipText();
      continue;
    }
    const auto found = flows.find(key);
    if (found == flows.end()) {
      throw Error("there are saved states of key '" + name + "', which is not initialized");
    }
    if (!found->second.empty() && found->second[0]->name() != name) {
      for (const auto& [other, others] : flows) {
        if (others.empty() || others[0]->name() != name) continue;
        throw Error("the saved states of key '" + name + "' would become those of key '" +
                    found->second[0]->name() +
                    "': keys must be made in the same order as when they were saved");
      }
    }
    if (found->second.size() != channels) {
      throw Error("key '" + name + "' had states for " + std::to_string(channels) +
                  " workers when they were saved, and has " + std::to_string(found->second.size()));
    }
    for (const auto& flow : found->second) checked.emplace_back(flow.get(), flow->CheckStates(in.Text()));
  }
  for (auto& [flow, states] : checked) flow->LoadStates(std::move(states), deadline);
}

}  // namespace hipress
