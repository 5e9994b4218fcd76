#include "kvstore/request_table.h"

#include <utility>

#include "common/debug_dumps.h"
#include "common/interrupt.h"

namespace hipress {

uint32_t RequestTable::Add(std::future<Reply>* reply) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure_) throw Error(*failure_);
  while (requests_.count(next_) != 0) ++next_;  // after 2^32 of them
  *reply = requests_[next_].get_future();
  return next_++;
}

std::string RequestTable::Await(std::future<Reply>* reply, const char* kind,
                                const std::string& about, const std::string& what) {
  const BlockingCalls::Scope scope(calls_, kind, about);
  if (!interrupt::WaitUntil(*reply, std::chrono::steady_clock::now() + timeout_)) {
    debug_dumps::GiveUp("waited " + std::to_string(timeout_.count()) + " s for " + what + hint_);
  }
  return reply->get();
}

void RequestTable::OnReply(NodeId from, const Message& message) {
  std::promise<Reply> promise;
  std::optional<std::string> text;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = requests_.find(message.header.iteration);
    if (it == requests_.end()) return;  // and its pieces are not kept
    text = pieces_.Add(from, message);
    if (!text) return;
    promise = std::move(it->second);
    requests_.erase(it);
  }
  if (message.header.flags == kReplyOk) return promise.set_value(*std::move(text));
  promise.set_exception(std::make_exception_ptr(Error(*text)));
}

void RequestTable::Fail(const Error& error) {
  std::unordered_map<uint32_t, std::promise<Reply>> requests;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    failure_ = std::make_shared<const Error>(error);
    requests.swap(requests_);
    pieces_ = TextPieces();
  }
  for (auto& [id, promise] : requests) promise.set_exception(std::make_exception_ptr(error));
}

}  // namespace hipress
