#include "van/striped.h"

#include <algorithm>
#include <cstring>

namespace hipress {
namespace {

/// Small enough that lanes share a large message, large enough that headers cost nothing.
constexpr size_t kStripeBytes = 64 << 10;
constexpr int kMaxPieces = 16;

}  // namespace

StripedStream::StripedStream(std::vector<std::unique_ptr<Stream>> lanes) : lanes_(lanes.size()) {
  for (size_t i = 0; i < lanes.size(); ++i) lanes_[i].stream = std::move(lanes[i]);
}

// ---- receiving

bool StripedStream::AwaitsRead(size_t lane) const {
  const Lane& l = lanes_[lane];
  return !l.ended && (!l.HasStripe() || l.header.offset == read_);
}

bool StripedStream::Check(const Lane& lane) const {
  return !lane.HasStripe() || (lane.header.offset >= read_ && lane.header.size > 0 &&
                               lane.header.size <= kStripeBytes);
}

ssize_t StripedStream::ReadHeaders() {
  bool news = false;
  bool open = false;
  for (Lane& lane : lanes_) {
    if (lane.ended || lane.HasStripe()) continue;
    const iovec to = {reinterpret_cast<uint8_t*>(&lane.header) + lane.header_bytes,
                      sizeof(StripeHeader) - lane.header_bytes};
    const ssize_t n = lane.stream->Read(&to, 1);
    if (n < 0 && n != kWouldBlock) return n;
    lane.ended = n == kEof;
    open |= !lane.ended;
    if (n > 0) lane.header_bytes += static_cast<size_t>(n);
    if (!Check(lane)) return -EPROTO;
    news |= lane.HasStripe() && lane.header.offset == read_;
  }
  return news ? 1 : open ? kWouldBlock : kEof;
}

ssize_t StripedStream::ReadStripe(Lane* lane, iovec to) {
  iovec pieces[2] = {to, {&lane->header, sizeof(StripeHeader)}};
  pieces[0].iov_len = std::min<size_t>(to.iov_len, lane->header.size);
  // The header of this lane's next stripe comes with the end of this one.
  StripeHeader next{};
  pieces[1].iov_base = &next;
  const bool last = pieces[0].iov_len == lane->header.size;
  const ssize_t n = lane->stream->Read(pieces, last ? 2 : 1);
  if (n <= 0) return n;
  const size_t got = std::min(static_cast<size_t>(n), pieces[0].iov_len);
  read_ += got;
  lane->header.offset += got;
  lane->header.size -= got;
  if (lane->header.size == 0) {
    lane->header = next;
    lane->header_bytes = static_cast<size_t>(n) - got;
    if (!Check(*lane)) return -EPROTO;
  }
  return static_cast<ssize_t>(got);
}

ssize_t StripedStream::Read(const iovec* pieces, int count) {
  ssize_t total = 0;
  for (int i = 0; i < count; ++i) {
    auto* const data = static_cast<uint8_t*>(pieces[i].iov_base);
    for (size_t got = 0; got < pieces[i].iov_len;) {
      const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [this](const Lane& l) {
        return l.HasStripe() && l.header.offset == read_;
      });
      const ssize_t n = lane == lanes_.end()
                            ? ReadHeaders()
                            : ReadStripe(&*lane, {data + got, pieces[i].iov_len - got});
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

bool StripedStream::HasUnsent() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.Unsent(); });
}

bool StripedStream::AwaitsWrite(size_t lane) const {
  return lanes_[lane].full || lanes_[lane].Unsent();
}

ssize_t StripedStream::WriteRest(Lane* lane) {
  while (!lane->rest.empty()) {
    const iovec from = {lane->rest.data() + lane->rest_sent, lane->rest.size() - lane->rest_sent};
    const ssize_t n = lane->stream->Write(&from, 1);
    if (n <= 0) return n;
    lane->rest_sent += static_cast<size_t>(n);
    if (lane->rest_sent == lane->rest.size()) lane->rest.clear();
  }
  return lane->stream->HasUnsent() ? lane->stream->Write(nullptr, 0) : 1;
}

ssize_t StripedStream::WriteStripe(Lane* lane, const iovec* pieces, int count, size_t size) {
  StripeHeader header = {written_, size};
  iovec all[kMaxPieces + 1] = {{&header, sizeof(header)}};
  std::copy(pieces, pieces + count, all + 1);
  const ssize_t n = lane->stream->Write(all, count + 1);
  if (n <= 0) return n;
  size_t taken = static_cast<size_t>(n);
  for (int i = 0; i <= count; ++i) {
    const size_t skip = std::min(taken, all[i].iov_len);
    taken -= skip;
    const auto* data = static_cast<const uint8_t*>(all[i].iov_base);
    lane->rest.insert(lane->rest.end(), data + skip, data + all[i].iov_len);
  }
  lane->rest_sent = 0;
  return 1;
}

ssize_t StripedStream::Write(const iovec* pieces, int count) {
  for (Lane& lane : lanes_) {
    lane.full = false;
    const ssize_t n = WriteRest(&lane);
    if (n < 0 && n != kWouldBlock) return n;
  }
  size_t total = 0;
  int piece = 0;
  size_t used = 0;  // of that piece
  for (size_t tried = 0; tried < lanes_.size() && piece < count;) {
    Lane& lane = lanes_[turn_];
    turn_ = (turn_ + 1) % lanes_.size();
    ++tried;
    if (lane.full || lane.Unsent()) continue;
    iovec stripe[kMaxPieces];
    int parts = 0;
    size_t size = 0;
    int at = piece;
    size_t skip = used;
    while (at < count && parts < kMaxPieces && size < kStripeBytes) {
      const size_t take = std::min(pieces[at].iov_len - skip, kStripeBytes - size);
      stripe[parts++] = {static_cast<uint8_t*>(pieces[at].iov_base) + skip, take};
      size += take;
      skip += take;
      if (skip == pieces[at].iov_len) {
        ++at;
        skip = 0;
      }
    }
    const ssize_t n = WriteStripe(&lane, stripe, parts, size);
    if (n < 0 && n != kWouldBlock) return n;
    if (n <= 0) {
      lane.full = true;
      continue;
    }
    tried = 0;
    written_ += size;
    total += size;
    piece = at;
    used = skip;
  }
  return total > 0 ? static_cast<ssize_t>(total) : kWouldBlock;
}

}  // namespace hipress
