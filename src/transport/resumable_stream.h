/*!
 * \file resumable_stream.h
 * \brief One byte stream over one or several sockets (lanes), which continues over new sockets.
 *
 * The sender cuts the bytes into stripes and writes each, after a frame with its offset, to a lane
 * that has room. The receiver reads the lane that has the next stripe; other stripes wait in their
 * sockets. So the buffers of all sockets together limit the bytes in transit.
 *
 *     stream    [0, 64K) [64K, 128K) [128K, 192K) ...
 *     lane 0    frame(0)   stripe    frame(128K) stripe ...
 *     lane 1    frame(64K) stripe ...
 *
 * The sender keeps bytes until the receiver acknowledges them. If a lane breaks, both ends drop all
 * lanes. Over new lanes each end first sends how far it has read, and the other continues there:
 *
 *     receiver has read 100K              sender keeps [0, 300K)
 *          ---- acknowledgment(100K) ---->  drops [0, 100K)
 *          <--- frame(100K) stripe --------  sends [100K, ...) again
 */
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "transport/stream.h"

namespace hipress {

/// The bytes of a stream from the first that may have to be sent again to the last, in blocks of
/// the pool of buffers.
class ReplayBuffer {
 public:
  static constexpr size_t kBlockBytes = 256 << 10;
  /// More than a link has under way (socket.cc), with what waits in both sockets.
  static constexpr size_t kMaxBytes = 64 << 20;

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  size_t size() const { return static_cast<size_t>(end_ - begin_); }
  size_t Room() const { return kMaxBytes - size(); }

  /// Copies `size` bytes, for which there must be room, behind the last one.
  void Append(const void* data, size_t size);
  /// Forgets what is before `offset`, which lies between begin() and end().
  void DropBefore(uint64_t offset);
  /// Finds up to `most` pieces of memory with bytes `from` to `to`. \return their number
  int Find(uint64_t from, uint64_t to, iovec* pieces, int max_pieces) const;

 private:
  std::deque<Buffer> blocks_;
  uint64_t first_ = 0;  ///< of the first block's first byte
  uint64_t begin_ = 0, end_ = 0;
};

class ResumableStream final : public Stream {
 public:
  using Lanes = std::vector<std::unique_ptr<Stream>>;
  explicit ResumableStream(Lanes lanes);

  /// kEof when a lane has ended: at the end of the stream, or because it broke (see AtEnd).
  ssize_t Read(const iovec* pieces, int count) override;
  ssize_t Write(const iovec* pieces, int count) override;
  bool HasUnsent() const override;
  bool ShortReadMeansNothing() const override { return true; }
  bool AwaitsRead(size_t lane) const override;
  bool AwaitsWrite(size_t lane) const override { return lanes_[lane].Unsent(); }
  /// Whether bytes read since the last call let Write continue, or an acknowledgment is due.
  bool ReadMadeWork() { return std::exchange(read_made_work_, false); }
  /// Notifies the other end, in time, that nothing more will be written.
  void End() { ending_ = true; }
  /// Whether the other end has ended the stream, and all its bytes are read.
  bool AtEnd() const { return end_known_ && read_ == end_; }
  /// Ends the stream, and notifies the other end if the lanes have room.
  void TryEnd();
  /// Drops broken lanes. Only Resume may follow.
  void DropLanes() { lanes_.clear(); }
  void Resume(Lanes lanes);

  /// Bytes that are kept to be sent again.
  size_t kept() const { return sent_bytes_.size(); }

 private:
  /// Header of a stripe, or a message without data.
  struct Frame {
    uint64_t offset;  ///< of a stripe's first byte in the stream; else the number of bytes
    uint64_t size;    ///< of a stripe, or kAcknowledgment or kEnd
  };
  struct Lane {
    std::unique_ptr<Stream> stream;
    // Receiving
    Frame frame{};           ///< of the stripe that is being read: what is left of it
    size_t frame_bytes = 0;  ///< of it that are here
    bool end_read = false;   ///< the other end has said that it ends
    bool ended = false;      ///< and has closed it
    bool lost = false;       ///< it has been closed without that, or has failed
    // Sending
    Frame out{};
    size_t out_begin = sizeof(Frame);  ///< bytes of `out` that are sent
    uint64_t from = 0, to = 0;         ///< what is left of its stripe
    bool end_sent = false;
    bool Unsent() const { return out_begin < sizeof(Frame) || from < to || stream->HasUnsent(); }
    bool HasStripe() const { return frame_bytes == sizeof(Frame); }
  };

  /// \return 1 if the next stripe may be at hand now, else as Stream
  ssize_t ReadFrames();
  ssize_t ReadStripe(Lane* lane, iovec to);
  /// Looks at a frame that is complete. \return false if it makes no sense
  bool TakeFrame(Lane* lane);
  bool TakeAcknowledgment(uint64_t offset);
  void CountRead(size_t n);

  /// Gives an idle lane something to send. \return false if there is nothing for it
  bool Fill(Lane* lane, const iovec* pieces, int count, size_t* taken);
  /// \return 1 when the lane has sent what it had, else as Stream
  ssize_t Push(Lane* lane);
  bool AcknowledgmentDue() const { return read_ >= acknowledge_at_; }
  size_t MaxStripe() const;

  std::vector<Lane> lanes_;
  // Receiving
  uint64_t read_ = 0;            ///< bytes of the stream
  uint64_t acknowledge_at_;      ///< bytes after which the other end is notified
  uint64_t end_ = 0;             ///< bytes of the whole stream
  bool end_known_ = false;
  bool read_made_work_ = false;
  ssize_t lost_ = kEof;          ///< how a lane was lost: kEof or a negated errno
  // Sending
  ReplayBuffer sent_bytes_;
  uint64_t next_ = 0;            ///< first byte that no present lane has been given
  /// False from Resume until the other end has said how far it has read.
  bool position_known_ = true;
  bool starved_ = false;         ///< Write took nothing because too much is kept
  bool ending_ = false;
  size_t turn_ = 0;              ///< the lane that the next stripe goes to if it has room
  std::vector<iovec> rest_;      ///< of Write's pieces
};

}  // namespace hipress
