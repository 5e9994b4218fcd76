/*!
 * \file kvstore_dist_server.h
 * \brief A server's key-value store: keys and their optimizer, commands of workers.
 */
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "kvstore/key_states.h"
#include "kvstore/progress_watch.h"
#include "kvstore/server/server_key.h"

namespace hipress {

class KVStoreDistServer : public PostofficeReceiver {
 public:
  /// Handles a command of a worker: returns the answer, or throws the error. If it returns null, it
  /// is called again after the next command, and every second.
  using Controller =
      std::function<std::optional<std::string>(int worker, int head, const std::string& body)>;

  explicit KVStoreDistServer(JobOptions options);
  ~KVStoreDistServer() override;

  void Start();
  void Stop();
  void Abort();
  /// Values become weights that `updater` updates; null: they are sums again.
  void SetUpdater(std::shared_ptr<const UpdateFn> updater);
  /// Runs commands on the calling thread until the job ends.
  /// \throw Error if a node died or the job failed; interrupt::Interrupted, after leaving the job
  void Serve(const Controller& controller);
  /// Reports to every worker that the job cannot go on; the first report counts.
  void FailJob(const Error& error);
  /// Adds what the node does and waits for to a JSON object (base/debug_dumps.h).
  void Describe(JsonWriter* json);

  Postoffice& postoffice() { return postoffice_; }

 private:
  struct Command {
    NodeId from;
    uint32_t request;
    int head;
    std::string body;
  };

  Buffer OnHeader(NodeId from, const MessageHeader& header) override;
  void OnMessage(NodeId from, Message message) override;
  void OnLeave(NodeId peer) override;
  void OnDeath(NodeId peer, const std::string& what) override;

  /// \throw ProtocolError if there is no such key
  std::shared_ptr<ServerKey> Find(uint64_t key);
  std::vector<std::shared_ptr<ServerKey>> Keys();
  std::vector<std::shared_ptr<Flow>> AllFlows();
  /// Answers the workers that initialize a key, if all have, or some never will.
  void AnswerInit(const std::shared_ptr<ServerKey>& key, bool complete);
  FlowsByKey Flows(KeyRange range);
  /// Commands that need no controller. \return without an answer yet, null
  std::optional<std::string> OwnCommand(const Command& command);
  /// Answers commands until the job ends. \param death why it failed; under mutex_
  void RunCommands(const Controller& controller, const std::string* death);
  /// \return whether it has been answered
  bool RunCommand(const Controller& controller, const Command& command);
  void CheckProgress();

  Postoffice postoffice_;
  FlightRecorder recorder_;
  ServerContext context_;
  ProgressWatch watch_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<uint64_t, std::shared_ptr<ServerKey>> keys_;
  std::deque<Command> commands_;
  TextPieces pieces_;  ///< of commands
  std::set<NodeId> left_;
  std::string failure_;
  bool ended_ = false;

  Executor executor_;
};

}  // namespace hipress
