/*!
 * \file resumable_stream.h
 * \brief One byte stream over one or several sockets (lanes), which outlives them.
 *
 * The bytes are cut into stripes, each of which goes, behind its place in the stream, over whichever
 * lane has room. A receiver reads the lane that has the next stripe; what others bring meanwhile waits
 * in their sockets. So what is under way is not limited by one socket's buffers.
 *
 * The sender keeps what it sent until the receiver says that it has read it. When a lane breaks, all
 * are given up; over new ones each end first says how far it has read, and the other goes on from there.
 */
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "common/buffer.h"
#include "van/stream.h"

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
  /// The pieces of memory with bytes `from` to `to`, at most as many as `pieces` takes. \return how many
  int Find(uint64_t from, uint64_t to, iovec* pieces, int most) const;

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
  /// Whether what was read since the last call lets Write go on, or gives it something to say.
  bool ReadMadeWork() { return std::exchange(read_made_work_, false); }
  /// Nothing more will be written. The other end is notified, and can distinguish it from a broken lane.
  void End() { ending_ = true; }
  /// Whether the other end has said so, and all that it wrote is read.
  bool AtEnd() const { return end_known_ && read_ == end_; }
  /// Tells the other end that nothing more will be written, where that can be done at once.
  void TryEnd();
  /// Its lanes have broken. Nothing else than Resume may follow.
  void DropLanes() { lanes_.clear(); }
  void Resume(Lanes lanes);

  /// Bytes that are kept to be sent again.
  size_t kept() const { return sent_bytes_.size(); }

 private:
  /// Before each stripe, and alone: what the other end has to know.
  struct Frame {
    uint64_t offset;  ///< of a stripe's first byte in the stream; else the number of bytes
    uint64_t size;    ///< of a stripe, or kAcknowledgement or kEnd
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
  bool TakeAcknowledgement(uint64_t offset);
  void CountRead(size_t n);

  /// Gives an idle lane something to send. \return false if there is nothing for it
  bool Fill(Lane* lane, const iovec* pieces, int count, size_t* taken);
  /// \return 1 when the lane has sent what it had, else as Stream
  ssize_t Push(Lane* lane);
  bool AcknowledgementDue() const { return read_ >= acknowledge_at_; }
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
  bool position_known_ = true;   ///< false from Resume until the other end has said how far it has read
  bool starved_ = false;         ///< Write took nothing because too much is kept
  bool ending_ = false;
  size_t turn_ = 0;              ///< the lane that the next stripe goes to if it has room
  std::vector<iovec> rest_;      ///< of Write's pieces
};

}  // namespace hipress
