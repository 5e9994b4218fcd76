/*!
 * \file connection_life.cc
 * \brief How a connection falls silent, breaks, is resumed and ends.
 */
#include <asio/post.hpp>

#include <algorithm>
#include <climits>
#include <utility>

#include "common/log.h"
#include "van/connection.h"

namespace hipress {

using std::chrono::steady_clock;

namespace {

/// Heartbeats overtake everything; goodbye waits for everything.
constexpr int kHeartbeatPriority = INT_MAX;
constexpr int kGoodbyePriority = INT_MIN;

/// Time for the peer's kernel to acknowledge more of what is sent to it before a goodbye.
constexpr std::chrono::milliseconds kReconnectNowAfter{500};

/// Silence after which a connection may have broken without a word: a router forgets one, for example.
steady_clock::duration SuspiciousSilence(const VanOptions& options) {
  return std::max<steady_clock::duration>(options.heartbeat_timeout / 3, 3 * options.heartbeat_interval);
}

}  // namespace

void Connection::Tick(SteadyTime now, steady_clock::duration stalled) {
  if (!open_) return;
  SharedPayloads::FreeAbandoned();
  for (const std::shared_ptr<Socket>& one : sockets_) {
    if (long_link_) TuneUnsent(one->socket.native_handle());
  }
  last_received_ = std::min(now, last_received_.load() + stalled);
  const auto silence = Silence(now);
  if (silence > options_.heartbeat_timeout) {
    Close(false, broken_.empty() ? "has been silent for " + SecondsText(silence)
                                 : broken_ + ", and could not be reached again for " + SecondsText(silence));
    return;
  }
  if (silence > SuspiciousSilence(options_) && resumable_ != nullptr && !leaving_) CallAgain();
  if (now - last_sent_ < options_.heartbeat_interval || leaving_) return;
  bool under_way;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    under_way = flush_scheduled_;
  }
  // Another heartbeat would only pile up. The reader of these bytes may be stalled, for example by a program's
  // callback that waits for its interpreter.
  if (under_way) return Flush();
  Send(Message(MessageKind::kHeartbeat), kHeartbeatPriority, nullptr);
}

int64_t Connection::UndeliveredBytes(SteadyTime now) {
  // A peer that is called again receives the goodbye, or has it already and reports that.
  const bool resumable = resumable_ != nullptr && leaving_ && !hung_up_;
  if (open_ && resumable && (redial_ != nullptr || !broken_.empty())) return 1;
  // A silent peer may never acknowledge anything, so there is no wait for it.
  if (!open_ || Silence(now) > 2 * options_.heartbeat_interval) return 0;
  // A kernel that has acknowledged all may be that of something in between.
  int64_t bytes = resumable && !resumable_->AtEnd() ? 1 : 0;
  for (const std::shared_ptr<Socket>& one : sockets_) bytes += UnacknowledgedBytes(one->socket.native_handle());
  return bytes;
}

bool Connection::Is(const LaneId& id, bool caller) const {
  return resumable_ != nullptr && caller_ == caller && id_.connection == id.connection &&
         id_.address == id.address && id_.port == id.port;
}

void Connection::TakeOver(std::vector<Lane> lanes, std::vector<std::unique_ptr<Stream>>* streams) {
  for (Lane& lane : lanes) {
    CloseInForkedChildren(lane.fd.get());
    sockets_.push_back(std::make_shared<Socket>(io_));
    sockets_.back()->socket.assign(asio::ip::tcp::v4(), lane.fd.Release());
    streams->push_back(std::move(lane.stream));
  }
}

void Connection::CloseSockets() {
  asio::error_code ignored;
  for (const std::shared_ptr<Socket>& one : sockets_) {
    ForgetInForkedChildren(one->socket.native_handle());
    one->socket.close(ignored);
  }
  sockets_.clear();
}

void Connection::Lost(bool graceful, const std::string& reason) {
  // Also one that leaves goes on: without its goodbye it would be dead to the peer.
  if (resumable_ == nullptr || resumable_->AtEnd() || hung_up_) return Close(graceful, reason);
  Break(reason);
}

void Connection::Break(const std::string& reason) {
  broken_ = reason;
  CloseSockets();
  resumable_->DropLanes();
  CallAgain();
}

void Connection::CallAgain() {
  if (redial_ || called_.port() == 0) return;  // without an address, the peer has to call
  const auto self = weak_from_this();
  const auto opened = [this, self](Opened lanes) {
    asio::post(io_, [self, lanes = std::move(lanes)]() mutable {
      const auto connection = self.lock();
      if (connection) connection->Guarded([&] { connection->Resume(std::move(lanes)); });
    });
  };
  const auto refused = [this, self] {
    asio::post(io_, [self] {
      const auto connection = self.lock();
      if (connection) connection->Guarded([&] { connection->Refused(); });
    });
  };
  try {
    redial_ = std::make_unique<Redial>(Call{called_, owner_.self(), peer_}, id_, caller_, same_host_,
                                       options_, Redial::Hooks{opened, refused});
  } catch (const std::system_error& error) {  // Tick calls again
    LogWarning(std::string("no thread to call ") + peer_.ToString() + " again: " + error.what());
  }
}

void Connection::Refused() {
  redial_.reset();
  // Lanes that are only silent may still have something to say.
  if (!broken_.empty()) Close(goodbye_sent_, broken_);
}

void Connection::OnProbe(uint16_t generation) {
  if (!open_ || hung_up_ || !broken_.empty() || generation != id_.generation) return;
  Break("says that the connection has broken");
}

void Connection::Resume(Opened opened) {
  if (!open_ || hung_up_) return;
  redial_.reset();
  CloseSockets();
  std::vector<std::unique_ptr<Stream>> streams;
  TakeOver(std::move(opened.lanes), &streams);
  resumable_->Resume(std::move(streams));
  id_.generation = opened.id.generation;
  const auto now = steady_clock::now();
  LogWarning("resumed the connection with " + peer_.ToString() + " (" + address_ + "), which " +
          (broken_.empty() ? "had been silent" : broken_) + "; nothing is lost");
  counters_.resumed_connections.fetch_add(1, std::memory_order_relaxed);
  broken_.clear();
  write_failure_.clear();
  last_received_ = now;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    flush_scheduled_ = true;
  }
  Flush();
  OnReadable();
}

void Connection::Leave() {
  if (!open_ || leaving_) return;
  leaving_ = true;
  Send(Message(MessageKind::kGoodbye), kGoodbyePriority, nullptr);
}

void Connection::ReconnectNow(SteadyTime now) {
  if (!open_ || resumable_ == nullptr || !broken_.empty() || now - looked_ < kReconnectNowAfter) return;
  int64_t bytes = 0;
  for (const std::shared_ptr<Socket>& one : sockets_) bytes += UnacknowledgedBytes(one->socket.native_handle());
  if (bytes > 0 && bytes == unheard_) CallAgain();
  looked_ = now;
  unheard_ = bytes;
}

void Connection::HangUp() {
  if (!open_ || leaving_) return;
  leaving_ = hung_up_ = true;
  bool idle;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    idle = !flush_scheduled_;
    flush_scheduled_ = true;
  }
  FailQueued();
  if (!broken_.empty()) return Close(true, "was left by this node");
  if (idle) Flush();
}

void Connection::Failed(const std::string& why) noexcept {
  try {
    LogWarning("the connection with " + peer_.ToString() + " (" + address_ + ") ends because of an error in " +
               owner_.self().ToString() + ": " + why);
    Close(false, "can no longer be served by " + options_.names(owner_.self()) + ": " + why);
  } catch (const std::exception&) {
    // Out of memory: the connection is closed as far as possible.
  }
}

void Connection::Close(bool graceful, const std::string& reason) {
  if (!open_) return;
  open_ = false;
  const auto self = shared_from_this();
  redial_.reset();
  CloseSockets();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  for (size_t i = std::exchange(batch_done_, batch_.size()); i < batch_.size(); ++i) {
    Complete(false, batch_[i]);
  }
  FailQueued();
  shared_payloads_.Abandon(graceful);
  owner_.OnClosed(self, graceful, reason);
}

}  // namespace hipress
