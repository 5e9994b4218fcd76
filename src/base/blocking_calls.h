/*!
 * \file blocking_calls.h
 * \brief Calls that wait for other nodes, for debug dumps of nodes that wait for no gradient.
 */
#pragma once

#include <chrono>
#include <list>
#include <mutex>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/lock_for.h"

namespace hipress {

class BlockingCalls {
  struct Call {
    const char* kind;
    std::string about;
    std::chrono::steady_clock::time_point since;
  };

 public:
  /// Lasts as long as the call. All calls of one kind that are about the same belong together.
  class Scope {
   public:
    Scope(BlockingCalls* calls, const char* kind, std::string about) : calls_(calls) {
      std::lock_guard<std::mutex> lock(calls_->mutex_);
      calls_->calls_.push_front({kind, std::move(about), std::chrono::steady_clock::now()});
      call_ = calls_->calls_.begin();
    }
    ~Scope() {
      std::lock_guard<std::mutex> lock(calls_->mutex_);
      calls_->calls_.erase(call_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    BlockingCalls* const calls_;
    std::list<Call>::iterator call_;
  };

  /// Writes the calls as a JSON array of {"kind", "about", "seconds"}.
  void Describe(JsonWriter* json) {
    json->Array();
    const auto lock = LockFor(&mutex_);
    for (const Call& call : calls_) {
      const std::chrono::duration<double> lasts = std::chrono::steady_clock::now() - call.since;
      json->Object().Name("kind").Text(call.kind).Name("about").Text(call.about);
      json->Name("seconds").Seconds(lasts.count()).EndObject();
    }
    json->EndArray();
  }

 private:
  std::mutex mutex_;
  std::list<Call> calls_;
};

}  // namespace hipress
