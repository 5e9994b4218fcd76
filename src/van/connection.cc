#include "van/connection.h"

#include <asio/post.hpp>

#include <algorithm>
#include <climits>
#include <cstring>

#include "common/log.h"
#include "van/framing.h"

namespace hipress {
namespace {

using std::chrono::steady_clock;

constexpr size_t kReadBuffer = 256 << 10;
/// One read of a large payload: small enough that its checksum finds the bytes in the cache.
constexpr size_t kReadPiece = 256 << 10;
/// After this many bytes other connections get their turn.
constexpr size_t kTurn = 4 << 20;
/// A batch is closed when it holds this much, so that an urgent message need not wait for more.
constexpr size_t kBatchBytes = 256 << 10;
constexpr size_t kStaging = 64 << 10;
/// Smaller payloads are copied behind their header: cheaper than another piece for the kernel.
constexpr size_t kCopyLimit = 1024;
/// Heartbeats overtake everything; goodbye waits for everything.
constexpr int kHeartbeatPriority = INT_MAX;
constexpr int kGoodbyePriority = INT_MIN;

std::string Seconds(steady_clock::duration d) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", std::chrono::duration<double>(d).count());
  return text;
}

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

Message Control(MessageKind kind) {
  Message message;
  message.header.kind = static_cast<uint16_t>(kind);
  Seal(&message);
  return message;
}

}  // namespace

Connection::Connection(asio::io_context& io, UniqueFd fd, std::unique_ptr<Stream> stream,
                       NodeId peer, const VanOptions& options, VanCounters* counters,
                       ConnectionOwner* owner)
    : socket_(io),
      stream_(std::move(stream)),
      peer_(peer),
      address_(ToText(RemoteAddress(fd.get()))),
      options_(options),
      counters_(*counters),
      owner_(*owner),
      buffer_(kReadBuffer),
      last_received_(steady_clock::now()),
      staging_(kStaging),
      last_sent_(last_received_) {
  CloseInForkedChildren(fd.get());
  socket_.assign(asio::ip::tcp::v4(), fd.Release());
}

Connection::~Connection() {
  if (socket_.is_open()) ForgetInForkedChildren(socket_.native_handle());
  for (SendItem* item : batch_) delete item;
}

void Connection::Start() {
  last_received_ = steady_clock::now();
  OnReadable();  // the first message may have come together with the end of the handshake
}

// ---- receiving

void Connection::WaitReadable() {
  socket_.async_wait(asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this()](const asio::error_code& error) {
                       if (!error) self->OnReadable();
                     });
}

void Connection::OnReadable() {
  size_t turn = 0;
  while (open_) {
    iovec pieces[2];
    int count = 0;
    size_t asked = 0;
    const size_t missing = in_message_ ? header_.payload_bytes - got_ : 0;
    if (missing > 0) {  // straight to where the receiver wants it
      pieces[count++] = {payload_.data + got_, std::min(missing, kReadPiece)};
    }
    if (missing <= kReadPiece) {
      if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
      }
      pieces[count++] = {buffer_.data() + end_, buffer_.size() - end_};
    }
    for (int i = 0; i < count; ++i) asked += pieces[i].iov_len;
    const ssize_t n = stream_->Read(pieces, count);
    if (n == Stream::kWouldBlock) return WaitReadable();
    if (n <= 0) return ReadFailed(n);
    last_received_ = steady_clock::now();
    Accept(static_cast<size_t>(n));
    if (!open_) return;
    if (static_cast<size_t>(n) < asked && !stream_->ShortReadMeansNothing()) return WaitReadable();
    turn += static_cast<size_t>(n);
    if (turn >= kTurn) {
      asio::post(socket_.get_executor(), [self = shared_from_this()] { self->OnReadable(); });
      return;
    }
  }
}

void Connection::Accept(size_t n) {
  try {
    if (in_message_) {
      const size_t direct = std::min(n, std::min(header_.payload_bytes - got_, kReadPiece));
      checksum_.Update(payload_.data + got_, direct);
      got_ += direct;
      n -= direct;
      if (got_ < header_.payload_bytes) return;
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
    const size_t here = std::min<size_t>(header_.payload_bytes, end_ - begin_);
    const uint8_t* from = buffer_.data() + begin_;
    begin_ += here;
    got_ = here;
    if (here > 0) std::memcpy(payload_.data, from, here);
    if (got_ == header_.payload_bytes) {
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
  const auto kind = static_cast<MessageKind>(header_.kind);
  if (kind == MessageKind::kHeartbeat || kind == MessageKind::kGoodbye) {
    if (header_.payload_bytes != 0) throw ProtocolError("a heartbeat or goodbye carries a payload");
    return;
  }
  payload_ = owner_.OnHeader(peer_, header_);
  if (header_.payload_bytes == 0) {
    payload_ = Buffer();
  } else if (!payload_) {
    payload_ = AllocateBuffer(header_.payload_bytes);
  } else if (payload_.size < header_.payload_bytes) {
    throw Error("the receiver chose a buffer of " + std::to_string(payload_.size) + " bytes for " +
                std::to_string(header_.payload_bytes));
  } else {
    payload_.size = header_.payload_bytes;
  }
}

void Connection::FinishMessage(uint32_t checksum) {
  in_message_ = false;
  const size_t bytes = sizeof(header_) + header_.payload_bytes;
  CheckPayload(header_, checksum);
  counters_.messages_received.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_received.fetch_add(bytes, std::memory_order_relaxed);
  const auto kind = static_cast<MessageKind>(header_.kind);
  if (kind == MessageKind::kHeartbeat) return;
  if (kind == MessageKind::kGoodbye) return Close(true, "left");
  if (IsData(header_)) counters_.data_bytes_received.fetch_add(bytes, std::memory_order_relaxed);
  owner_.OnMessage(peer_, {header_, std::move(payload_), false});
}

void Connection::ReadFailed(ssize_t result) {
  Close(leaving_ && result == Stream::kEof, ReasonOf(result, in_message_ || end_ > begin_));
}

void Connection::Refuse(const std::string& why) {
  counters_.refused_messages.fetch_add(1, std::memory_order_relaxed);
  LogWarning("refused a message from " + peer_.ToString() + " (" + address_ + "): " + why +
             "; the connection is closed");
  Close(false, "sent a message that was refused: " + why);
}

// ---- sending

void Connection::Send(Message message, int priority, Van::SendDone done) {
  bool idle = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_) {
      SendItem* item = queue_.Make();
      item->message = std::move(message);
      item->done = std::move(done);
      queue_.Push(item, priority);
      idle = !flush_scheduled_;
      flush_scheduled_ = true;
      done = nullptr;
    }
  }
  if (idle) ScheduleFlush();
  if (done) asio::post(socket_.get_executor(), [done = std::move(done)] { done(false); });
}

void Connection::ScheduleFlush() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->Flush(); });
}

void Connection::WaitWritable() {
  socket_.async_wait(asio::ip::tcp::socket::wait_write,
                     [self = shared_from_this()](const asio::error_code& error) {
                       if (!error) self->Flush();
                     });
}

void Connection::Flush() {
  size_t turn = 0;
  while (open_) {
    const bool more = first_piece_ < pieces_.size() || NextBatch();
    if (!more && !stream_->HasUnsent()) {
      asio::error_code ignored;
      if (goodbye_sent_) socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
      return;
    }
    const ssize_t n = stream_->Write(pieces_.data() + first_piece_,
                                     more ? static_cast<int>(pieces_.size() - first_piece_) : 0);
    if (n == Stream::kWouldBlock) {
      if (more || stream_->HasUnsent()) return WaitWritable();
      continue;
    }
    if (n <= 0) return ReadFailed(n);
    last_sent_ = steady_clock::now();
    Advance(static_cast<size_t>(n));
    turn += static_cast<size_t>(n);
    if (turn >= kTurn) return ScheduleFlush();
  }
}

bool Connection::NextBatch() {
  pieces_.clear();
  first_piece_ = batch_done_ = batch_sent_ = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (SendItem* item : batch_) queue_.Recycle(item);
    batch_.clear();
    size_t bytes = 0;
    size_t staged = 0;
    while (bytes < kBatchBytes &&
           staged + sizeof(MessageHeader) + kCopyLimit <= kStaging) {
      SendItem* item = queue_.Pop();
      if (item == nullptr) break;
      const size_t size = item->message.payload.size;
      batch_.push_back(item);
      staged += sizeof(MessageHeader) + (size <= kCopyLimit ? size : 0);
      bytes += sizeof(MessageHeader) + size;
      item->end = bytes;
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
  for (SendItem* item : batch_) {
    stage(&item->message.header, sizeof(MessageHeader));
    const Buffer& payload = item->message.payload;
    if (payload.size > kCopyLimit) {
      pieces_.push_back({payload.data, payload.size});
    } else if (payload.size > 0) {
      stage(payload.data, payload.size);
    }
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
    if (header.kind == static_cast<uint16_t>(MessageKind::kGoodbye)) goodbye_sent_ = true;
  }
  const Van::SendDone done = std::move(item->done);
  item->done = nullptr;
  item->message.payload = Buffer();
  if (done) done(sent);
}

// ---- life and death

void Connection::Tick(SteadyTime now, steady_clock::duration stalled) {
  if (!open_) return;
  last_received_ += stalled;
  const auto silence = now - last_received_;
  if (silence > options_.heartbeat_timeout) {
    Close(false, "has been silent for " + Seconds(silence));
    return;
  }
  if (now - last_sent_ < options_.heartbeat_interval || leaving_) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (flush_scheduled_) return;  // bytes are on their way; another heartbeat would only pile up
  }
  Send(Control(MessageKind::kHeartbeat), kHeartbeatPriority, nullptr);
}

void Connection::Leave() {
  if (!open_ || leaving_) return;
  leaving_ = true;
  Send(Control(MessageKind::kGoodbye), kGoodbyePriority, nullptr);
}

void Connection::Close(bool graceful, const std::string& reason) {
  if (!open_) return;
  open_ = false;
  const auto self = shared_from_this();
  asio::error_code ignored;
  ForgetInForkedChildren(socket_.native_handle());
  socket_.close(ignored);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  for (size_t i = std::exchange(batch_done_, batch_.size()); i < batch_.size(); ++i) {
    Complete(false, batch_[i]);
  }
  for (;;) {
    SendItem* item;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      item = queue_.Pop();
    }
    if (item == nullptr) break;
    Complete(false, item);
    delete item;
  }
  owner_.OnClosed(self, graceful, reason);
}

}  // namespace hipress
