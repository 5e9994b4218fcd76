/*!
 * \file job_of_nodes.h
 * \brief Jobs whose nodes are objects of one process, for tests of membership.
 */
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "van_testing.h"

namespace hipress::testing {

/// One node with its receiver; Start and everything after it may run on a separate thread.
class Node : public PostofficeReceiver, public Waitable {
 public:
  explicit Node(JobOptions options, std::shared_ptr<Van> van = nullptr)
      : office(std::move(options), std::move(van)) {}

  Buffer OnHeader(NodeId, const MessageHeader&) override { return Buffer(); }
  void OnMessage(NodeId from, Message message) override {
    if (on_message) on_message();
    Do([&] { texts.push_back(from.ToString() + ": " + TextIn(message)); });
  }
  void OnLeave(NodeId peer) override {
    Do([&] { leaves.push_back(peer); });
  }
  void OnDeath(NodeId peer, const std::string& what) override {
    Do([&] { deaths.emplace_back(peer, what); });
  }
  void Start() {
    error = ErrorOf([&] { office.Start(this); });
    started = true;
  }
  bool AwaitDeath(milliseconds limit = seconds(8)) {
    return Await([&] { return !deaths.empty(); }, limit);
  }

  std::function<void()> on_message;  ///< more behavior, on the van's thread
  std::string error;
  std::atomic<bool> started{false};  ///< or failed
  std::vector<std::string> texts;
  std::vector<NodeId> leaves;
  std::vector<std::pair<NodeId, std::string>> deaths;
  Postoffice office;  // last: it writes to the other nodes until it has ended
};

class Job {
 public:
  Job(int workers, int servers, int start_timeout = 20)
      : workers_(workers), servers_(servers), port_(FreePort()), start_timeout_(start_timeout) {}

  JobOptions Options(Role role, int rank = -1) const {
    JobOptions options;
    options.role = role;
    options.root_uri = "127.0.0.1";
    options.root_port = port_;
    options.num_workers = workers_;
    options.num_servers = servers_;
    options.wanted_rank = rank;
    options.start_timeout = seconds(start_timeout_);
    options.van = TestVanOptions();
    return options;
  }
  Node& Add(JobOptions options, std::shared_ptr<Van> van = nullptr) {
    nodes_.push_back(std::make_unique<Node>(std::move(options), std::move(van)));
    return *nodes_.back();
  }
  /// Starts all nodes added so far, at the same time.
  void Start() {
    std::vector<std::thread> threads;
    for (auto& node : nodes_) threads.emplace_back([&node] { node->Start(); });
    for (auto& thread : threads) thread.join();
  }
  /// Adds the whole job with requested ranks in order, and starts it. The scheduler comes first.
  void StartAll() {
    Add(Options(Role::kScheduler));
    for (int i = 0; i < servers_; ++i) Add(Options(Role::kServer, i));
    for (int i = 0; i < workers_; ++i) Add(Options(Role::kWorker, i));
    Start();
    for (auto& node : nodes_) ASSERT_EQ(node->error, "");
  }
  std::string scheduler_address() const { return "127.0.0.1:" + std::to_string(port_); }
  Node& scheduler() { return *nodes_[0]; }
  Node& server(int i) { return *nodes_[1 + i]; }
  Node& worker(int i) { return *nodes_[1 + servers_ + i]; }
  std::vector<std::unique_ptr<Node>>& nodes() { return nodes_; }

 private:
  const int workers_, servers_, port_, start_timeout_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace hipress::testing
