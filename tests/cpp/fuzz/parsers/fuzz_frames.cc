// Messages of the other end of a resumable stream, over one lane, before and after a resumption.
#include <algorithm>

#include "fuzz.h"
#include "transport/resumable_stream.h"

using namespace hipress;

namespace {

/// Brings an input's bytes, and takes all that is written.
class Foreign final : public Stream {
 public:
  Foreign(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  ssize_t Read(const iovec* pieces, int count) override {
    size_t total = 0;
    for (int i = 0; i < count; ++i) {
      const size_t n = std::min(left_, pieces[i].iov_len);
      if (n > 0) std::memcpy(pieces[i].iov_base, data_, n);
      data_ += n;
      left_ -= n;
      total += n;
    }
    return static_cast<ssize_t>(total);
  }
  ssize_t Write(const iovec* pieces, int count) override {
    size_t total = 0;
    for (int i = 0; i < count; ++i) total += pieces[i].iov_len;
    return total > 0 ? static_cast<ssize_t>(total) : kWouldBlock;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

std::vector<std::unique_ptr<Stream>> Lane(const uint8_t* data, size_t size) {
  std::vector<std::unique_ptr<Stream>> lanes;
  lanes.push_back(std::make_unique<Foreign>(data, size));
  return lanes;
}

/// Until a read fails, or there is nothing left.
void Exchange(ResumableStream* stream) {
  std::vector<uint8_t> bytes(1000);
  const iovec piece = {bytes.data(), bytes.size()};
  stream->Write(&piece, 1);
  while (stream->Read(&piece, 1) > 0 && stream->Write(&piece, 1) != Stream::kEof) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const size_t first = size / 2;
  ResumableStream stream(Lane(data, first));
  Exchange(&stream);
  stream.DropLanes();
  stream.Resume(Lane(data + first, size - first));
  Exchange(&stream);
  return 0;
}

std::vector<std::string> Seeds() {
  // A stripe of 3 bytes, an acknowledgment, the end.
  const std::string begin = BytesOf(std::vector<int64_t>{0, 3}) + "abc" + BytesOf(std::vector<int64_t>{500, 0});
  const std::string end = BytesOf(std::vector<int64_t>{3, -1});
  return {begin + begin + end, begin + end, end};
}
