/*!
 * \file request_table.h
 * \brief Matches answers of other nodes to the requests that threads of this node block for.
 */
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/blocking_calls.h"
#include "kvstore/protocol.h"
#include "van/message.h"

namespace hipress {

/// Text of the answer to a request, or an Error.
using Reply = std::string;

class RequestTable {
 public:
  /// \param calls where waits are listed for debugging
  /// \param timeout of a wait
  /// \param hint how users change it, for sentences
  RequestTable(BlockingCalls* calls, std::chrono::seconds timeout, std::string hint = "")
      : calls_(calls), timeout_(timeout), hint_(std::move(hint)) {}

  /// \return the id that the answer has in MessageHeader::iteration. \throw Error after Fail
  uint32_t Add(std::future<Reply>* reply);
  /// Blocks for an answer.
  /// \param kind, about of the call, see BlockingCalls
  /// \param what "server 0 to answer a command": the object of "waited 600 s for"
  /// \throw Error if the answer is one, or the wait times out
  std::string Await(std::future<Reply>* reply, const char* kind, const std::string& about,
                    const std::string& what);
  /// An answer (kReply), or a piece of one; without effect if no thread waits for it.
  void OnReply(NodeId from, const Message& message);
  /// Answers every request, now and later, with this error.
  void Fail(const Error& error);

 private:
  BlockingCalls* const calls_;
  const std::chrono::seconds timeout_;
  const std::string hint_;
  std::mutex mutex_;
  std::unordered_map<uint32_t, std::promise<Reply>> requests_;
  uint32_t next_ = 1;
  TextPieces pieces_;
  ErrorPtr failure_;
};

}  // namespace hipress
