#include "transport/resumable_stream.h"

#include <algorithm>
#include <cstring>

namespace hipress {
namespace {

/// Small enough that lanes share a large message, large enough that frames cost nothing.
constexpr size_t kStripeBytes = 64 << 10;
constexpr size_t kOnlyLaneStripeBytes = 256 << 10;
/// Bytes read until the other end gets an acknowledgment.
constexpr uint64_t kAcknowledgeBytes = 256 << 10;
// Frames that are no stripes: sizes that none has.
constexpr uint64_t kAcknowledgment = 0;
constexpr uint64_t kEnd = ~uint64_t(0);

}  // namespace

void ReplayBuffer::Append(const void* data, size_t size) {
  const auto* from = static_cast<const uint8_t*>(data);
  while (size > 0) {
    const size_t position = static_cast<size_t>(end_ - first_);
    if (position == blocks_.size() * kBlockBytes) blocks_.push_back(AllocateBuffer(kBlockBytes));
    const size_t take = std::min(size, kBlockBytes - position % kBlockBytes);
    std::memcpy(blocks_[position / kBlockBytes].data + position % kBlockBytes, from, take);
    end_ += take;
    from += take;
    size -= take;
  }
}

void ReplayBuffer::DropBefore(uint64_t offset) {
  begin_ = offset;
  while (!blocks_.empty() && first_ + kBlockBytes <= begin_) {
    blocks_.pop_front();
    first_ += kBlockBytes;
  }
}

int ReplayBuffer::Find(uint64_t from, uint64_t to, iovec* pieces, int max_pieces) const {
  int count = 0;
  while (from < to && count < max_pieces) {
    const size_t position = static_cast<size_t>(from - first_);
    const size_t take = std::min<size_t>(to - from, kBlockBytes - position % kBlockBytes);
    pieces[count++] = {blocks_[position / kBlockBytes].data + position % kBlockBytes, take};
    from += take;
  }
  return count;
}

ResumableStream::ResumableStream(Lanes lanes)
    : lanes_(lanes.size()), acknowledge_at_(kAcknowledgeBytes) {
  for (size_t i = 0; i < lanes.size(); ++i) lanes_[i].stream = std::move(lanes[i]);
}

void ResumableStream::Resume(Lanes lanes) {
  lanes_ = std::vector<Lane>(lanes.size());
  for (size_t i = 0; i < lanes.size(); ++i) lanes_[i].stream = std::move(lanes[i]);
  turn_ = 0;
  lost_ = kEof;
  position_known_ = false;
  acknowledge_at_ = read_;  // at once
}

// ---- receiving

bool ResumableStream::AwaitsRead(size_t lane) const {
  const Lane& l = lanes_[lane];
  return !l.ended && !l.lost && (!l.HasStripe() || l.frame.offset == read_);
}

bool ResumableStream::TakeAcknowledgment(uint64_t offset) {
  if (offset > sent_bytes_.end()) return false;
  // One may overtake another that goes over another lane.
  if (offset < sent_bytes_.begin()) return position_known_;
  // Over lanes that are new the first one says from where on bytes are missing. Later ones can only
  // be about what these lanes have brought.
  if (!position_known_) next_ = offset;
  const bool of_sent = std::all_of(lanes_.begin(), lanes_.end(), [offset](const Lane& l) {
    return l.from == l.to || offset <= l.from;
  });
  if (offset > next_ || !of_sent) return false;
  read_made_work_ |= !position_known_ || starved_;
  position_known_ = true;
  starved_ = false;
  sent_bytes_.DropBefore(offset);
  return true;
}

bool ResumableStream::TakeFrame(Lane* lane) {
  const Frame frame = lane->frame;
  if (lane->end_read) return false;
  if (frame.size == kAcknowledgment) {
    lane->frame_bytes = 0;
    return TakeAcknowledgment(frame.offset);
  }
  if (frame.size == kEnd) {
    lane->frame_bytes = 0;
    lane->end_read = true;
    if (frame.offset < read_ || (end_known_ && frame.offset != end_)) return false;
    end_ = frame.offset;
    return end_known_ = true;
  }
  return frame.size <= kOnlyLaneStripeBytes && frame.offset >= read_;
}

ssize_t ResumableStream::ReadFrames() {
  bool has_data = false;
  for (Lane& lane : lanes_) {
    while (!lane.ended && !lane.lost && !lane.HasStripe()) {
      const iovec to = {reinterpret_cast<uint8_t*>(&lane.frame) + lane.frame_bytes,
                        sizeof(Frame) - lane.frame_bytes};
      const ssize_t n = lane.stream->Read(&to, 1);
      if (n == kWouldBlock) break;
      if (n == -EPROTO) return n;
      lane.lost = n < 0 || (n == kEof && !lane.end_read);
      lane.ended = n == kEof && lane.end_read;
      if (lane.lost) lost_ = n;
      if (n > 0) lane.frame_bytes += static_cast<size_t>(n);
      if (lane.HasStripe() && !TakeFrame(&lane)) return -EPROTO;
    }
    has_data |= lane.HasStripe() && lane.frame.offset == read_;
  }
  if (has_data) return 1;
  // Only now: what other lanes have still brought of a peer that died is of use.
  if (std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.lost; })) return lost_;
  const bool open = std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return !l.ended; });
  return open ? kWouldBlock : kEof;
}

void ResumableStream::CountRead(size_t n) {
  const bool was_due = AcknowledgmentDue();
  read_ += n;
  read_made_work_ |= !was_due && AcknowledgmentDue();
}

ssize_t ResumableStream::ReadStripe(Lane* lane, iovec to) {
  // The frame of this lane's next stripe comes with the end of this one.
  Frame next{};
  iovec pieces[2] = {to, {&next, sizeof(next)}};
  pieces[0].iov_len = std::min<size_t>(to.iov_len, lane->frame.size);
  const bool last = pieces[0].iov_len == lane->frame.size;
  const ssize_t n = lane->stream->Read(pieces, last ? 2 : 1);
  if (n <= 0) return n;
  const size_t got = std::min(static_cast<size_t>(n), pieces[0].iov_len);
  CountRead(got);
  lane->frame.offset += got;
  lane->frame.size -= got;
  if (lane->frame.size == 0) {
    lane->frame = next;
    lane->frame_bytes = static_cast<size_t>(n) - got;
    if (lane->HasStripe() && !TakeFrame(lane)) return -EPROTO;
  }
  return static_cast<ssize_t>(got);
}

ssize_t ResumableStream::Read(const iovec* pieces, int count) {
  ssize_t total = 0;
  for (int i = 0; i < count; ++i) {
    auto* const data = static_cast<uint8_t*>(pieces[i].iov_base);
    for (size_t got = 0; got < pieces[i].iov_len;) {
      const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [this](const Lane& l) {
        return l.HasStripe() && l.frame.offset == read_;
      });
      ssize_t n = lane == lanes_.end() ? ReadFrames()
                                       : ReadStripe(&*lane, {data + got, pieces[i].iov_len - got});
      // While this lane's stripe is late, other lanes may have acknowledgments to read.
      if (n == kWouldBlock && lane != lanes_.end() && total == 0) n = std::min<ssize_t>(ReadFrames(), kWouldBlock);
      // What failed will fail again at the next call, once these bytes are used.
      if (n <= 0) return total > 0 ? total : n;
      if (lane == lanes_.end()) continue;
      got += static_cast<size_t>(n);
      total += n;
    }
  }
  return total;
}

// ---- sending

size_t ResumableStream::MaxStripe() const {
  return lanes_.size() == 1 ? kOnlyLaneStripeBytes : kStripeBytes;
}

bool ResumableStream::HasUnsent() const {
  // A lane that has ended takes nothing any more.
  return next_ < sent_bytes_.end() || std::any_of(lanes_.begin(), lanes_.end(), [this](const Lane& l) {
           return l.Unsent() || (!l.end_sent && (ending_ || AcknowledgmentDue()));
         });
}

ssize_t ResumableStream::Push(Lane* lane) {
  while (lane->out_begin < sizeof(Frame) || lane->from < lane->to) {
    iovec pieces[4];
    pieces[0] = {reinterpret_cast<uint8_t*>(&lane->out) + lane->out_begin, sizeof(Frame) - lane->out_begin};
    const int frames = lane->out_begin < sizeof(Frame) ? 1 : 0;
    const int count = frames + sent_bytes_.Find(lane->from, lane->to, pieces + frames, 4 - frames);
    const ssize_t n = lane->stream->Write(pieces, count);
    if (n <= 0) return n;
    const size_t of_frame = std::min(static_cast<size_t>(n), sizeof(Frame) - lane->out_begin);
    lane->out_begin += of_frame;
    lane->from += static_cast<size_t>(n) - of_frame;
  }
  return lane->stream->HasUnsent() ? lane->stream->Write(nullptr, 0) : 1;
}

bool ResumableStream::Fill(Lane* lane, const iovec* pieces, int count, size_t* taken) {
  if (AcknowledgmentDue() && !lane->end_sent) {
    lane->out = {read_, kAcknowledgment};
    acknowledge_at_ = read_ + kAcknowledgeBytes;
  } else if (!position_known_) {
    return false;
  } else {
    if (next_ == sent_bytes_.end()) {
      size_t room = std::min(MaxStripe(), sent_bytes_.Room());
      starved_ = count > 0 && room == 0;
      for (int i = 0; i < count && room > 0; ++i) {
        const size_t take = std::min(pieces[i].iov_len, room);
        sent_bytes_.Append(pieces[i].iov_base, take);
        *taken += take;
        room -= take;
      }
    }
    const uint64_t size = std::min<uint64_t>(MaxStripe(), sent_bytes_.end() - next_);
    if (size > 0) {
      lane->out = {next_, size};
      lane->from = next_;
      next_ += size;
      lane->to = next_;
    } else if (ending_ && count == 0 && !lane->end_sent) {
      lane->out = {sent_bytes_.end(), kEnd};
      lane->end_sent = true;
    } else {
      return false;
    }
  }
  lane->out_begin = 0;
  return true;
}

void ResumableStream::TryEnd() {
  End();
  Write(nullptr, 0);
}

ssize_t ResumableStream::Write(const iovec* pieces, int count) {
  for (Lane& lane : lanes_) {
    const ssize_t n = Push(&lane);
    if (n < 0 && n != kWouldBlock) return n;
  }
  rest_.assign(pieces, pieces + count);
  size_t first = 0, total = 0;
  for (size_t tried = 0; tried < lanes_.size();) {
    Lane& lane = lanes_[turn_];
    turn_ = (turn_ + 1) % lanes_.size();
    ++tried;
    size_t taken = 0;
    if (lane.Unsent() || !Fill(&lane, rest_.data() + first, static_cast<int>(rest_.size() - first), &taken)) {
      continue;
    }
    total += taken;
    while (taken > 0) {
      const size_t step = std::min(taken, rest_[first].iov_len);
      rest_[first].iov_base = static_cast<uint8_t*>(rest_[first].iov_base) + step;
      rest_[first].iov_len -= step;
      taken -= step;
      if (rest_[first].iov_len == 0) ++first;
    }
    const ssize_t n = Push(&lane);
    // What failed will fail again at the next call; what was taken will be sent again.
    if (n < 0 && n != kWouldBlock) return total > 0 ? static_cast<ssize_t>(total) : n;
    tried = 0;
  }
  return total > 0 ? static_cast<ssize_t>(total) : kWouldBlock;
}

}  // namespace hipress
