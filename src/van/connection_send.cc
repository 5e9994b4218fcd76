/*!
 * \file connection_send.cc
 * \brief The sending half of a connection: priorities, batches, shared memory.
 */
#include <asio/post.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/batch.h"
#include "common/log.h"
#include "van/connection.h"
#include "van/framing.h"

namespace hipress {
namespace {

using std::chrono::steady_clock;

/// A batch is closed when it holds this much, so that an urgent message need not wait for more.
constexpr size_t kBatchBytes = 256 << 10;
/// Smaller payloads are copied behind their header: cheaper than another piece for the kernel.
constexpr size_t kMaxCopiedBytes = 1024;

}  // namespace

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

}  // namespace hipress
