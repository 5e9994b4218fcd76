#include "van/connection.h"

#include <asio/post.hpp>

#include <algorithm>
#include <climits>
#include <cstring>

#include "common/batch.h"
#include "common/log.h"
#include "van/framing.h"

namespace hipress {
namespace {

using std::chrono::steady_clock;

constexpr size_t kReadBufferBytes = 256 << 10;
/// Size from which a payload has a separate read, straight to its destination. While such payloads arrive, no
/// more than a header and a small message are read ahead of them.
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
    if (n <= 0) return ReadFailed(n);
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
  uint8_t* const at = peer_arena_->At(shared, header_.payload_bytes);
  const auto release = [shared](Connection* connection) {
    Message message(MessageKind::kArenaRelease);
    message.header.key = shared.offset;
    connection->Send(std::move(message), kConnectionPriority, nullptr);
  };
  Buffer payload = Destination();
  if (payload) {
    std::memcpy(payload.data, at, payload.size);
    release(this);
    return payload;
  }
  payload.data = at;
  payload.owner = std::shared_ptr<void>(
      at, [arena = peer_arena_, weak = weak_from_this(), release](void*) {
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
      if (resumable_ != nullptr) resumable_->TryEnd();  // otherwise it would treat the end as a break
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

void Connection::ReadFailed(ssize_t result) {
  const std::string reason = write_failure_.empty()
                                 ? ReasonOf(result, in_message_ || end_ > begin_)
                                 : write_failure_;
  if (result == -EPROTO) return Close(false, reason);
  Lost(leaving_ && result == Stream::kEof, reason);
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

}  // namespace hipress
