#include "transport/connection.h"

#include <asio/post.hpp>

#include <unistd.h>

#include <cstring>

#include "base/batch.h"
#include "base/log.h"

namespace hipress {

using std::chrono::steady_clock;

namespace {

constexpr size_t kReadBufferBytes = 256 << 10;
/// Size from which a payload has a separate read, straight to its destination. While such payloads
/// arrive, no more than a header and a small message are read ahead of them.
constexpr size_t kLargePayloadBytes = 16 << 10;
constexpr size_t kReadAheadBytes = 4 << 10;
/// One read of a large payload: small enough that its checksum finds the bytes in the cache.
constexpr size_t kReadPieceBytes = 256 << 10;

std::string ReasonOf(ssize_t result, bool in_message) {
  switch (-result) {
    case 0:
      return in_message ? "closed the connection in the middle of a message"
                        : "closed the connection without saying goodbye";
    case ECONNRESET:
    case EPIPE: return "reset the connection";
    case ETIMEDOUT: return "no longer acknowledges what is sent to it";
    case EPROTO: return "sent bytes that TLS refuses";
    default: return "cannot be reached any more: " + ErrnoText(static_cast<int>(-result));
  }
}

bool IsConnectionKind(MessageKind kind) {
  switch (kind) {
    case MessageKind::kHeartbeat:
    case MessageKind::kGoodbye:
    case MessageKind::kArenaOffer:
    case MessageKind::kArenaAccept:
    case MessageKind::kArenaRelease: return true;
    default: return false;
  }
}

/// A batch is closed when it holds this much, so that an urgent message need not wait for more.
constexpr size_t kBatchBytes = 256 << 10;
/// Smaller payloads are copied behind their header: cheaper than another piece for the kernel.
constexpr size_t kMaxCopiedBytes = 1024;

/// Heartbeats overtake everything; goodbye waits for everything.
constexpr int kHeartbeatPriority = INT_MAX;
constexpr int kGoodbyePriority = INT_MIN;

/// Time for the peer's kernel to acknowledge more of what is sent to it before a goodbye.
constexpr std::chrono::milliseconds kReconnectNowAfter{500};

/// Silence after which a connection may have broken, for example because a router has forgotten it.
steady_clock::duration SuspiciousSilence(const VanOptions& options) {
  return std::max<steady_clock::duration>(options.heartbeat_timeout / 3, 3 * options.heartbeat_interval);
}

}  // namespace

Connection::Connection(asio::io_context& io, Opened opened, NodeId peer, const VanOptions& options,
                       VanCounters* counters, ConnectionOwner* owner)
    : io_(io),
      id_(opened.id),
      caller_(opened.caller),
      called_(opened.peer),
      same_host_(IsSameHost(opened.lanes[0].fd.get())),
      peer_(peer),
      address_(RemoteAddress(opened.lanes[0].fd.get()).ToText()),
      options_(options),
      counters_(*counters),
      owner_(*owner),
      buffer_(kReadBufferBytes),
      last_received_(steady_clock::now()),
      staging_(kStagingBytes),
      last_sent_(last_received_.load()),
      long_link_(IsLongLink(opened.lanes[0].fd.get())),
      may_offer_(options.shared_memory && same_host_) {
  std::vector<std::unique_ptr<Stream>> streams;
  TakeOver(std::move(opened.lanes), &streams);
  if (id_.purpose == Purpose::kPlain) {
    stream_ = std::move(streams[0]);
  } else {
    stream_ = std::make_unique<ResumableStream>(std::move(streams));
    resumable_ = static_cast<ResumableStream*>(stream_.get());
  }
}

Connection::~Connection() {
  CloseSockets();
  for (SendItem* item : batch_) delete item;
}

void Connection::Start() {
  last_received_ = steady_clock::now();
  OnReadable();  // the first message may have come together with the end of the handshake
}

// ---- receiving

void Connection::WaitReadable() {
  if (!write_failure_.empty()) return Lost(false, write_failure_);
  for (size_t i = 0; i < sockets_.size(); ++i) {
    const std::shared_ptr<Socket>& one = sockets_[i];
    if (one->reading || one->ended || !(hung_up_ || stream_->AwaitsRead(i))) continue;
    one->reading = true;
    one->socket.async_wait(asio::ip::tcp::socket::wait_read,
                           [self = shared_from_this(), one](const asio::error_code& error) {
                             one->reading = false;
                             if (!error && !self->turn_over_) self->Guarded([&] { self->OnReadable(); });
                           });
  }
}

void Connection::OnReadable() {
  if (hung_up_) return Discard();
  size_t turn = 0;
  while (open_ && broken_.empty()) {
    iovec pieces[2];
    int count = 0;
    size_t asked = 0;
    const size_t missing = in_message_ ? body_ - got_ : 0;
    if (missing > 0) {  // straight to where the receiver wants it
      pieces[count++] = {payload_.data + got_, std::min(missing, kReadPieceBytes)};
    }
    if (missing <= kReadPieceBytes) {
      if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
      }
      const size_t room = buffer_.size() - end_;
      pieces[count++] = {buffer_.data() + end_, large_ ? std::min(room, kReadAheadBytes) : room};
    }
    for (int i = 0; i < count; ++i) asked += pieces[i].iov_len;
    const ssize_t n = stream_->Read(pieces, count);
    if (resumable_ != nullptr && resumable_->ReadMadeWork()) ScheduleFlush();
    if (n == Stream::kWouldBlock) return WaitReadable();
    if (n <= 0) {
      const std::string reason =
          write_failure_.empty() ? ReasonOf(n, in_message_ || end_ > begin_) : write_failure_;
      return n == -EPROTO ? Close(false, reason) : Lost(leaving_ && n == Stream::kEof, reason);
    }
    last_received_ = steady_clock::now();
    Accept(static_cast<size_t>(n));
    if (!open_) return;
    if (static_cast<size_t>(n) < asked && !stream_->ShortReadMeansNothing()) return WaitReadable();
    turn += static_cast<size_t>(n);
    if (turn >= kTurnBytes) {
      turn_over_ = true;
      asio::post(io_, [self = shared_from_this()] {
        self->turn_over_ = false;
        self->Guarded([&] { self->OnReadable(); });
      });
      return;
    }
  }
}

void Connection::Accept(size_t n) {
  Batch batch;  // of all messages that one read has brought
  try {
    if (in_message_) {
      const size_t direct = std::min(n, std::min(body_ - got_, kReadPieceBytes));
      checksum_.Update(payload_.data + got_, direct);
      got_ += direct;
      n -= direct;
      if (got_ < body_) return;
      FinishMessage(checksum_.Digest());
    }
    end_ += n;
    Parse();
  } catch (const ProtocolError& error) {
    Refuse(error.what());
  } catch (const std::exception& error) {
    Refuse(std::string("it could not be handled here: ") + error.what());
  }
}

void Connection::Parse() {
  while (open_ && end_ - begin_ >= sizeof(MessageHeader)) {
    BeginMessage();
    const size_t here = std::min<size_t>(body_, end_ - begin_);
    const uint8_t* from = buffer_.data() + begin_;
    begin_ += here;
    got_ = here;
    if (here > 0) std::memcpy(payload_.data, from, here);
    if (got_ == body_) {
      FinishMessage(Checksum(from, here));
    } else {
      checksum_.Reset();
      checksum_.Update(from, here);
      return;  // what follows is read straight into the payload
    }
  }
}

void Connection::BeginMessage() {
  std::memcpy(&header_, buffer_.data() + begin_, sizeof(header_));
  begin_ += sizeof(header_);
  in_message_ = true;
  got_ = 0;
  payload_ = Buffer();
  CheckHeader(header_, options_.max_payload_bytes);
  const bool shared = header_.placement == kShared;
  body_ = shared ? sizeof(SharedPayload) : header_.payload_bytes;
  large_ = body_ >= kLargePayloadBytes;
  if (IsConnectionKind(header_.kind)) {
    const size_t expected = header_.kind == MessageKind::kArenaOffer ? sizeof(ArenaOffer) : 0;
    if (header_.payload_bytes != expected || shared) {
      throw ProtocolError("a " + NameOf(header_.kind) + " message carries a wrong payload");
    }
  } else if (shared && (peer_arena_ == nullptr || header_.payload_bytes == 0)) {
    throw ProtocolError("its payload is in memory that its sender has not offered");
  } else if (!shared) {
    payload_ = Destination();
    if (body_ == 0) payload_ = Buffer();
  }
  if (body_ > 0 && !payload_) payload_ = AllocateBuffer(body_);
}

Buffer Connection::Destination() {
  Buffer to = owner_.OnHeader(peer_, header_);
  if (to && to.size < header_.payload_bytes) {
    throw Error("the receiver chose a buffer of " + std::to_string(to.size) + " bytes for " +
                std::to_string(header_.payload_bytes));
  }
  to.size = header_.payload_bytes;
  return to;
}

Buffer Connection::ReceiveShared(const SharedPayload& shared) {
  uint8_t* const bytes_in_arena = peer_arena_->At(shared, header_.payload_bytes);
  const auto release = [shared](Connection* connection) {
    Message message(MessageKind::kArenaRelease);
    message.header.key = shared.offset;
    connection->Send(std::move(message), kConnectionPriority, nullptr);
  };
  Buffer payload = Destination();
  if (payload) {
    std::memcpy(payload.data, bytes_in_arena, payload.size);
    release(this);
    return payload;
  }
  payload.data = bytes_in_arena;
  payload.owner = std::shared_ptr<void>(
      bytes_in_arena, [arena = peer_arena_, weak = weak_from_this(), release](void*) {
        if (const auto connection = weak.lock()) release(connection.get());
      });
  return payload;
}

void Connection::FinishMessage(uint32_t checksum) {
  in_message_ = false;
  CheckPayload(header_, checksum);
  const size_t bytes = sizeof(header_) + header_.payload_bytes;
  counters_.messages_received.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_received.fetch_add(bytes, std::memory_order_relaxed);
  if (TakeConnectionMessage()) return;
  if (IsData(header_)) counters_.data_bytes_received.fetch_add(bytes, std::memory_order_relaxed);
  if (header_.placement == kShared) {
    SharedPayload shared;
    std::memcpy(&shared, payload_.data, sizeof(shared));
    payload_ = ReceiveShared(shared);
  }
  owner_.OnMessage(peer_, {header_, std::move(payload_)});
}

bool Connection::TakeConnectionMessage() {
  switch (header_.kind) {
    case MessageKind::kHeartbeat: return true;
    case MessageKind::kGoodbye:
      // Otherwise the peer would treat the end as a break.
      if (resumable_ != nullptr) resumable_->TryEnd();
      Close(true, "left");
      return true;
    case MessageKind::kArenaOffer: {
      ArenaOffer offer;
      std::memcpy(&offer, payload_.data, sizeof(offer));
      if (options_.shared_memory) peer_arena_ = PeerArena::Open(offer);
      if (peer_arena_) Send(Message(MessageKind::kArenaAccept), kConnectionPriority, nullptr);
      return true;
    }
    case MessageKind::kArenaAccept:
      // The same as would make us offer: otherwise there is nothing that it could have accepted.
      if (Arena::Get() == nullptr) throw ProtocolError("it accepts memory that was not offered");
      peer_maps_arena_ = true;
      return true;
    case MessageKind::kArenaRelease: shared_payloads_.Release({header_.key}); return true;
    default: return false;
  }
}

void Connection::WriteFailed(ssize_t result) {
  // What the peer sent before it went is here, still unread, and may say why it went.
  write_failure_ = ReasonOf(result, false);
  OnReadable();
}

void Connection::Discard() {
  bool all_ended = true;
  for (const std::shared_ptr<Socket>& one : sockets_) {
    if (one->ended || !open_) continue;
    const int fd = one->socket.native_handle();
    const ssize_t n = recv(fd, nullptr, INT_MAX, MSG_TRUNC | MSG_DONTWAIT);
    if (n > 0) last_received_ = steady_clock::now();
    one->ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    all_ended &= one->ended;
  }
  if (!all_ended) return WaitReadable();
  Close(true, "was left by this node");
}

void Connection::Refuse(const std::string& why) {
  counters_.refused_messages.fetch_add(1, std::memory_order_relaxed);
  LogWarning("refused a message from " + peer_.ToString() + " (" + address_ + "): " + why +
             "; the connection is closed");
  Close(false, "sent a message that was refused: " + why);
}

// ---- sending

void Connection::Send(Message message, int priority, Van::SendDone done) {
  const bool large = message.payload.size >= kMinSharedBytes;
  const bool share = large && peer_maps_arena_;
  if (large && may_offer_ && may_offer_.exchange(false)) OfferArena();
  const bool known = message.payload_checksum_known;
  message.payload_checksum_known |= share;  // if it must be sent after all, NextBatch computes it
  Seal(&message);
  message.payload_checksum_known = known;
  bool idle = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_) {
      SendItem* item = queue_.Make();
      item->message = std::move(message);
      item->done = std::move(done);
      item->share = share;
      queue_.Push(item, priority);
      idle = !flush_scheduled_;
      flush_scheduled_ = true;
      done = nullptr;
    }
  }
  if (idle) {  // once for all messages of a batch
    Batch::AtEnd([self = shared_from_this()] { self->ScheduleFlush(); });
  }
  if (done) {
    asio::post(io_, [self = shared_from_this(), done = std::move(done)] { self->Guarded([&] { done(false); }); });
  }
}

void Connection::OfferArena() {
  const Arena* arena = Arena::Enable();
  if (arena == nullptr) return;
  const ArenaOffer offer = {static_cast<uint32_t>(getpid()), arena->fd(), arena->size(),
                            shared_payloads_.reader(), arena->nonce()};
  Message message(MessageKind::kArenaOffer);
  message.payload = AllocateBuffer(sizeof(offer));
  std::memcpy(message.payload.data, &offer, sizeof(offer));
  Send(std::move(message), kConnectionPriority, nullptr);
}

void Connection::ScheduleFlush() {
  asio::post(io_, [self = shared_from_this()] { self->Guarded([&] { self->Flush(); }); });
}

void Connection::WaitWritable() {
  for (size_t i = 0; i < sockets_.size(); ++i) {
    const std::shared_ptr<Socket>& one = sockets_[i];
    if (one->writing || !stream_->AwaitsWrite(i)) continue;
    one->writing = true;
    one->socket.async_wait(asio::ip::tcp::socket::wait_write,
                           [self = shared_from_this(), one](const asio::error_code& error) {
                             one->writing = false;
                             if (!error) self->Guarded([&] { self->Flush(); });
                           });
  }
}

void Connection::Flush() {
  size_t turn = 0;
  while (open_ && broken_.empty()) {
    const bool more = first_piece_ < pieces_.size() || NextBatch();
    if (!more && (goodbye_sent_ || hung_up_) && resumable_ != nullptr) resumable_->End();
    if (!more && !stream_->HasUnsent()) {
      asio::error_code ignored;
      for (const std::shared_ptr<Socket>& one : sockets_) {
        if (goodbye_sent_ || hung_up_) {
          one->socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
        }
      }
      return;
    }
    const ssize_t n = stream_->Write(pieces_.data() + first_piece_,
                                     more ? static_cast<int>(pieces_.size() - first_piece_) : 0);
    if (n == Stream::kWouldBlock) {
      if (more || stream_->HasUnsent()) return WaitWritable();
      continue;
    }
    if (n <= 0) return WriteFailed(n);
    last_sent_ = steady_clock::now();
    counters_.writes.fetch_add(1, std::memory_order_relaxed);
    Advance(static_cast<size_t>(n));
    turn += static_cast<size_t>(n);
    if (turn >= kTurnBytes) return ScheduleFlush();
  }
}

bool Connection::NextBatch() {
  pieces_.clear();
  first_piece_ = batch_done_ = batch_sent_ = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (SendItem* item : batch_) queue_.Recycle(item);
    batch_.clear();
    size_t work = 0;
    size_t staged = 0;
    while (work < kBatchBytes && staged + sizeof(MessageHeader) + kMaxCopiedBytes <= kStagingBytes) {
      SendItem* item = queue_.Pop();
      if (item == nullptr) break;
      const size_t size = item->message.payload.size;
      batch_.push_back(item);
      staged += sizeof(MessageHeader) + std::min(size, kMaxCopiedBytes);
      work += sizeof(MessageHeader) + size;
    }
    if (batch_.empty()) {
      // TLS may hold bytes back; then the flush goes on until they are gone.
      flush_scheduled_ = stream_->HasUnsent();
      return false;
    }
  }
  size_t staged = 0;
  const auto stage = [&](const void* data, size_t size) {
    uint8_t* to = staging_.data() + staged;
    std::memcpy(to, data, size);
    staged += size;
    const bool joins = !pieces_.empty() &&
                       static_cast<uint8_t*>(pieces_.back().iov_base) + pieces_.back().iov_len == to;
    if (joins) {
      pieces_.back().iov_len += size;
    } else {
      pieces_.push_back({to, size});
    }
  };
  size_t bytes = 0;
  for (SendItem* item : batch_) {
    Message& message = item->message;
    if (item->share) {
      const SharedPayloads::Answer answer = shared_payloads_.Prepare(&message.payload, &item->shared);
      item->copied = answer == SharedPayloads::Answer::kCopied;
      item->share = answer != SharedPayloads::Answer::kNotShared;
      if (!item->share) Seal(&message);
    }
    const Buffer& payload = message.payload;
    const size_t size = item->share ? sizeof(item->shared) : payload.size;
    if (item->share) SealShared(&message, item->shared);
    stage(&message.header, sizeof(MessageHeader));
    if (item->share) {
      stage(&item->shared, size);
    } else if (size > kMaxCopiedBytes) {
      pieces_.push_back({payload.data, size});
    } else if (size > 0) {
      stage(payload.data, size);
    }
    bytes += sizeof(MessageHeader) + size;
    item->end = bytes;
  }
  return true;
}

void Connection::Advance(size_t n) {
  batch_sent_ += n;
  while (n > 0) {
    iovec& piece = pieces_[first_piece_];
    const size_t step = std::min(n, piece.iov_len);
    piece.iov_base = static_cast<uint8_t*>(piece.iov_base) + step;
    piece.iov_len -= step;
    n -= step;
    if (piece.iov_len == 0) ++first_piece_;
  }
  while (batch_done_ < batch_.size() && batch_[batch_done_]->end <= batch_sent_) {
    Complete(true, batch_[batch_done_++]);
  }
}

void Connection::Complete(bool sent, SendItem* item) {
  const MessageHeader& header = item->message.header;
  if (sent) {
    const size_t bytes = sizeof(header) + header.payload_bytes;
    counters_.messages_sent.fetch_add(1, std::memory_order_relaxed);
    counters_.bytes_sent.fetch_add(bytes, std::memory_order_relaxed);
    if (IsData(header)) counters_.data_bytes_sent.fetch_add(bytes, std::memory_order_relaxed);
    if (header.kind == MessageKind::kGoodbye) goodbye_sent_ = true;
  }
  Van::SendDone done = std::exchange(item->done, nullptr);
  Buffer payload = std::exchange(item->message.payload, Buffer());
  if (sent && item->share) {
    counters_.shared_memory_bytes.fetch_add(payload.size, std::memory_order_relaxed);
    shared_payloads_.Add(payload, item->copied ? nullptr : std::exchange(done, nullptr));
  }
  payload = Buffer();  // released before any receiver of the notice can see it held
  if (!done) return;
  try {
    done(sent);
  } catch (const std::exception& error) {  // the other callbacks must still be called
    LogWarning("a callback of a message to " + peer_.ToString() + " failed: " + error.what());
  }
}

void Connection::FailQueued() {
  for (;;) {
    SendItem* item;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      item = queue_.Pop();
    }
    if (item == nullptr) return;
    Complete(false, item);
    delete item;
  }
}

// ---- silence, breaks, resumption and the end

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
  bool flushing;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    flushing = flush_scheduled_;
  }
  // Another heartbeat would only pile up. The reader of these bytes may be stalled, for example by
  // a program's callback that waits for its interpreter.
  if (flushing) return Flush();
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
  if (!open_ || resumable_ == nullptr || !broken_.empty() || now - last_check_ < kReconnectNowAfter) return;
  int64_t bytes = 0;
  for (const std::shared_ptr<Socket>& one : sockets_) bytes += UnacknowledgedBytes(one->socket.native_handle());
  if (bytes > 0 && bytes == unacknowledged_) CallAgain();
  last_check_ = now;
  unacknowledged_ = bytes;
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
