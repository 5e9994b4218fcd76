/*!
 * \file van_testing.h
 * \brief What the transport's tests share: recording receivers, waits with deadlines, jobs in
 * threads.
 */
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "membership/postoffice.h"
#include "transport/socket.h"

namespace hipress::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

inline SteadyTime In(milliseconds time) { return steady_clock::now() + time; }

/// A port of the loopback interface that is free now.
inline int FreePort() {
  const UniqueFd fd = Listen(Resolve("127.0.0.1", 0));
  return LocalAddress(fd.get()).port();
}

inline Message Text(MessageKind kind, const std::string& text, uint64_t key = 0) {
  Message message(kind, text);
  message.header.key = key;
  return message;
}

/// Polls for a condition that has no notification.
inline bool Eventually(const std::function<bool()>& condition, milliseconds limit = seconds(10)) {
  const auto deadline = In(limit);
  while (!condition()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

/// State that callbacks change and tests wait for.
class Waitable {
 public:
  template <typename Change>
  void Do(Change change) {
    std::lock_guard<std::mutex> lock(mutex_);
    change();
    changed_.notify_all();
  }
  template <typename Predicate>
  bool Await(Predicate predicate, milliseconds limit = seconds(10)) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, limit, predicate);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// Records the events of a van; `on_message` may add behavior (on the van's thread).
class Recorder : public VanReceiver, public Waitable {
 public:
  struct Down {
    NodeId peer;
    bool graceful;
    std::string reason;
  };

  Buffer OnHeader(NodeId from, const MessageHeader& header) override {
    if (on_header) return on_header(from, header);
    return Buffer();
  }
  void OnMessage(NodeId from, Message message) override {
    if (on_message) on_message(from, message);
    Do([&] { messages.emplace_back(from, std::move(message)); });
  }
  void OnUp(NodeId peer) override {
    Do([&] { ups.push_back(peer); });
  }
  void OnDown(NodeId peer, bool graceful, const std::string& reason) override {
    Do([&] { downs.push_back({peer, graceful, reason}); });
  }
  bool AwaitMessages(size_t count, milliseconds limit = seconds(20)) {
    return Await([&] { return messages.size() >= count; }, limit);
  }
  bool AwaitDowns(size_t count, milliseconds limit = seconds(10)) {
    return Await([&] { return downs.size() >= count; }, limit);
  }
  bool AwaitUps(size_t count) {
    return Await([&] { return ups.size() >= count; });
  }

  std::function<Buffer(NodeId, const MessageHeader&)> on_header;
  std::function<void(NodeId, const Message&)> on_message;
  std::vector<std::pair<NodeId, Message>> messages;
  std::vector<NodeId> ups;
  std::vector<Down> downs;
};

inline VanOptions TestVanOptions() {
  VanOptions options;
  options.secret = "the secret of this test";
  options.heartbeat_interval = milliseconds(200);
  options.heartbeat_timeout = milliseconds(1500);
  return options;
}

/// The message of the Error that `call` throws; empty if it throws none.
inline std::string ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace hipress::testing

#define EXPECT_HAS(text, part) \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << "the text is: " << (text)
