/*!
 * \file key_states.h
 * \brief Saves and loads the error-feedback states of a node's keys, as one string of bytes.
 */
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/flow.h"

namespace hipress {

/// Keys from `first` to `last`, both included.
struct KeyRange {
  uint64_t first, last;
  bool Has(uint64_t key) const { return first <= key && key <= last; }
};

/// Flows by key: one each, or on asynchronous servers one for each worker.
using FlowsByKey = std::map<uint64_t, std::vector<std::shared_ptr<Flow>>>;

/// States of keys that have any. \throw Error
std::string SaveStates(const FlowsByKey& flows, std::chrono::seconds timeout);
/// Loads those of keys in the range. \throw Error with a sentence, and then nothing has changed
void LoadStates(const FlowsByKey& flows, KeyRange range, const std::string& bytes,
                std::chrono::seconds timeout);

}  // namespace hipress
