// Packs and unpacks codes with packing.h, for test_compll_packing.py. The memory ends where the
// codes' bytes end, so access beyond it is a segmentation fault.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "operator/contrib/compll/packing.h"

namespace {

using namespace hipress::compll;  // NOLINT: functions of the header that is tested

/// Bytes that end at the beginning of a page without access.
class BytesBeforeEnd {
 public:
  explicit BytesBeforeEnd(int64_t bytes) : page_(sysconf(_SC_PAGESIZE)) {
    size_ = (bytes + page_ - 1) / page_ * page_ + page_;
    void* const data = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) std::abort();
    base_ = static_cast<uint8_t*>(data);
    if (mprotect(base_ + size_ - page_, page_, PROT_NONE) != 0) std::abort();
    begin = base_ + size_ - page_ - bytes;
  }
  ~BytesBeforeEnd() { munmap(base_, size_); }
  uint8_t* begin;

 private:
  int64_t page_, size_;
  uint8_t* base_;
};

template <int kBits, bool kMsb, bool kHigh>
void PackAll(const int32_t* codes, int64_t n, uint8_t* out) {
  const int64_t bytes = PackedBytes(n, kBits, 1);
  const BytesBeforeEnd memory(bytes);
  auto tile = [&](auto tail, int64_t i) {
    I lanes[kVectors];
    std::memcpy(&lanes, codes + i, sizeof(lanes));
    StoreTile<decltype(tail)::value, kMsb, kHigh>(lanes, kBits, memory.begin, i, bytes);
  };
  int64_t i = 0;
  for (; i + kTile <= n; i += kTile) tile(std::false_type(), i);
  if (i < n) tile(std::true_type(), i);
  std::memcpy(out, memory.begin, static_cast<size_t>(bytes));
}

template <int kBits, bool kMsb>
void UnpackAll(const uint8_t* in, int64_t n, int32_t* codes) {
  const int64_t bytes = PackedBytes(n, kBits, 1);
  const BytesBeforeEnd memory(bytes);
  std::memcpy(memory.begin, in, static_cast<size_t>(bytes));
  auto tile = [&](auto tail, int64_t i) {
    alignas(64) uint8_t scratch[kTile];
    const uint8_t* found =
        FindTile<decltype(tail)::value, kMsb>(memory.begin, kBits, i, bytes, scratch);
    COMPLL_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const I lanes = GetCodes<kMsb>(found, kBits, v);
      std::memcpy(codes + i + v * kLanes, &lanes, sizeof(lanes));
    }
  };
  int64_t i = 0;
  for (; i + kTile <= n; i += kTile) tile(std::false_type(), i);
  if (i < n) tile(std::true_type(), i);
}

template <int kBits>
void Pack(bool msb, bool high, const int32_t* codes, int64_t n, uint8_t* out) {
  if (msb) {
    high ? PackAll<kBits, true, true>(codes, n, out) : PackAll<kBits, true, false>(codes, n, out);
  } else {
    high ? PackAll<kBits, false, true>(codes, n, out) : PackAll<kBits, false, false>(codes, n, out);
  }
}

template <int kBits>
void Unpack(bool msb, const uint8_t* in, int64_t n, int32_t* codes) {
  msb ? UnpackAll<kBits, true>(in, n, codes) : UnpackAll<kBits, false>(in, n, codes);
}

}  // namespace

#define FOR_EACH_WIDTH(WORK) \
  WORK(1) WORK(2) WORK(3) WORK(4) WORK(5) WORK(6) WORK(7) WORK(8)

/// Pack n codes, which have room for a whole number of tiles. high: they begin at bit 16 of their
/// lanes.
extern "C" void PackCodes(int bits, int msb, int high, const int32_t* codes, int64_t n, uint8_t* out) {
#define PACK(kBits) case kBits: return Pack<kBits>(msb != 0, high != 0, codes, n, out);
  switch (bits) { FOR_EACH_WIDTH(PACK) }
}

/// Unpack n codes into memory for a whole number of tiles.
extern "C" void UnpackCodes(int bits, int msb, const uint8_t* in, int64_t n, int32_t* codes) {
#define UNPACK(kBits) case kBits: return Unpack<kBits>(msb != 0, in, n, codes);
  switch (bits) { FOR_EACH_WIDTH(UNPACK) }
}
