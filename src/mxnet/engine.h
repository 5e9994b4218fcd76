/*!
 * \file engine.h
 * \brief Schedules pushes and pulls of arrays as operations of MXNet's engine (hipress/mxnet.h).
 */
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/types.h"
#include "hipress/mxnet.h"
#include "mxnet/handover.h"
#include "mxnet/library.h"

namespace hipress::mxnet {

/// The last two are carried out by the caller, see HipressMXSchedule.
enum class Kind { kPush, kPull, kPushPull, kRead, kWrite };

/// State that the operations of one node share.
struct Session {
  HipressNodeHandle node;
  std::mutex mutex;
  bool closed = false;
  std::optional<Error> failure;  // why no operation can succeed
  Handover handover;
};

/// Never destroyed: operations may still end while the process exits.
struct Bridge {
  std::mutex mutex;
  std::unique_ptr<Library> library;
  bool wait_inside = false;
  std::map<HipressNodeHandle, std::shared_ptr<Session>> sessions;

  static Bridge& Get() {
    static Bridge* bridge = new Bridge;
    return *bridge;
  }
};

struct Operation;

/// \param start, context of an operation that the caller carries out
/// \throw Error if no operation can succeed any more
void Schedule(Kind kind, HipressMXKeyHandle key, NDArrayHandle array, int priority,
              HipressMXStart start = nullptr, void* context = nullptr);
/// HipressDone of an operation; `context` is its last owner.
void OnDone(void* context, const HipressError* error);
/// The same with a sentence, empty after a success.
void End(void* context, const std::string& error);

}  // namespace hipress::mxnet

/// One key of a node, its scheduled operations first come first. Never freed: they may still end
/// while the process exits.
struct HipressMXKey {
  std::shared_ptr<hipress::mxnet::Session> session;
  uint64_t key;
  std::string name;
  int64_t n;
  int dtype;
  bool followed[3] = {};  // by kind of our own operations, see Handover

  std::mutex schedule;  // makes "enqueue here and in the engine" one step
  std::mutex mutex;
  std::deque<std::shared_ptr<hipress::mxnet::Operation>> waiting;
  bool draining = false;
};
