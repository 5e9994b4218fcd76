/*!
 * \file entropy.cc
 * \brief The entropy stage that can follow any codec, and the coder (rans.h) that it uses: fewer
 * bytes, the same bits when decoded.
 *
 * A payload is one byte, and after it
 *
 *   0   the codec's payload, unchanged
 *   1   the length of the codec's payload, uint32, and the packed bytes of it (rans.h)
 *
 * The second form is used where it is shorter. So a payload is at most a byte longer than the
 * codec's.
 */
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/buffer.h"
#include "operator/contrib/codec.h"
#include "operator/contrib/kernels.h"
#include "operator/contrib/rans.h"

namespace hipress {
namespace {

using Counts = uint32_t[256];
constexpr size_t kScratch = 16;  // what encoding may overwrite before the words
using Frequencies = std::array<uint32_t, 256>;  // their sum is kRansTotal

/// 256 * log2(4096 / f), rounded, for f from 1 to 4096: what a byte costs, in 256ths of a bit. By
/// squaring whole numbers: a logarithm of floats is not the same on every machine.
const std::array<uint32_t, kRansTotal + 1>& Costs() {
  static const auto costs = [] {
    std::array<uint32_t, kRansTotal + 1> all{};
    for (uint32_t f = 1; f <= kRansTotal; ++f) {
      uint32_t log = 0;
      uint64_t x = uint64_t(f) << 30 >> kRansBits;  // f / 4096, in 2^-30
      while (x < uint64_t(1) << 30) x <<= 1, ++log;
      uint32_t fraction = 0;
      for (int bit = 0; bit < 9; ++bit) {
        x = x * x >> 30;
        fraction <<= 1;
        if (x >= uint64_t(1) << 31) x >>= 1, ++fraction;
      }
      all[f] = (log << 8) - (fraction + 1) / 2;
    }
    return all;
  }();
  return costs;
}

/// Frequencies in proportion to counts, none of a byte that there is below 1.
Frequencies Normalized(const Counts& counts, uint64_t total) {
  Frequencies f{};
  int64_t left = kRansTotal;
  for (int s = 0; s < 256; ++s) {
    if (counts[s] == 0) continue;
    f[s] = std::max<uint32_t>(1, uint32_t((uint64_t(counts[s]) * kRansTotal + total / 2) / total));
    left -= f[s];
  }
  // What rounding left over goes where it costs least: to, and from, the most frequent byte.
  while (left != 0) {
    uint32_t& most = *std::max_element(f.begin(), f.end());
    const int64_t change = std::max<int64_t>(left, -int64_t(most / 2));
    most = uint32_t(most + change);
    left -= change;
  }
  return f;
}

/// Bytes that a table takes.
size_t TableBytes(const Frequencies& f) {
  size_t bytes = 32;
  for (const uint32_t one : f) bytes += one == 0 ? 0 : one <= 128 ? 1 : 2;
  return bytes;
}

uint8_t* WriteTable(const Frequencies& f, uint8_t* out) {
  uint8_t* const present = out;
  std::memset(present, 0, 32);
  out += 32;
  for (uint32_t s = 0; s < 256; ++s) {
    if (f[s] == 0) continue;
    present[s / 8] = uint8_t(present[s / 8] | 1 << s % 8);
    const uint32_t value = f[s] - 1;
    if (value >= 128) *out++ = uint8_t(128 | value);
    *out++ = uint8_t(value >= 128 ? value >> 7 : value);
  }
  return out;
}

/// Fills in RansKernels::decode's table. Returns where what was read ends; null if it is malformed.
const uint8_t* ReadTable(const uint8_t* in, const uint8_t* end, uint32_t* table) {
  if (end - in < 32) return nullptr;
  const uint8_t* const present = in;
  in += 32;
  uint32_t start = 0;
  for (uint32_t s = 0; s < 256; ++s) {
    if ((present[s / 8] >> s % 8 & 1) == 0) continue;
    if (in == end) return nullptr;
    uint32_t value = *in++;
    if (value >= 128) {
      if (in == end) return nullptr;
      value = (value & 127) | uint32_t(*in++) << 7;
    }
    if (value >= kRansTotal - start) return nullptr;
    for (uint32_t i = 0; i <= value; ++i) table[start + i] = s | i << 8 | value << 20;
    start += value + 1;
  }
  return start == kRansTotal ? in : nullptr;
}

void Fill(const Frequencies& f, RansSymbol* symbols) {
  uint32_t start = 0;
  for (int s = 0; s < 256; ++s) {
    RansSymbol& symbol = symbols[s];
    if (f[s] == 0) continue;
    symbol.less = f[s] - 1;
    symbol.bias = start;
    if (f[s] == 1) {
      // x * (2^32 - 1) >> 32 = x - 1, which the bias makes good.
      symbol.reciprocal = ~0u;
      symbol.shift = 0;
      symbol.bias = start + kRansTotal - 1;
    } else {
      uint32_t bits = 0;
      while (f[s] > 1u << bits) ++bits;
      symbol.reciprocal = uint32_t(((uint64_t(1) << (bits + 31)) + f[s] - 1) / f[s]);
      symbol.shift = bits - 1;
    }
    start += f[s];
  }
}

/// A way to code a block: with one table, or with two.
struct Choice {
  Frequencies f[2];
  size_t bytes = 0;  ///< about what it takes
};

Choice Estimated(const Counts* counts, int tables) {
  Choice choice;
  uint64_t cost = 0;
  choice.bytes = 1 + sizeof(uint32_t) * kRansCoders;
  for (int t = 0; t < tables; ++t) {
    uint64_t total = 0;
    for (const uint32_t count : counts[t]) total += count;
    choice.f[t] = Normalized(counts[t], total);
    for (int s = 0; s < 256; ++s) cost += uint64_t(counts[t][s]) * Costs()[choice.f[t][s]];
    choice.bytes += TableBytes(choice.f[t]);
  }
  choice.bytes += size_t(cost / (8 * 256));
  return choice;
}

/// Packs one block into less than `limit` bytes; 0 if it does not fit. `scratch` has room for 2 * n
/// bytes and 16.
size_t PackBlock(const uint8_t* in, size_t n, uint8_t* scratch, uint8_t* out, size_t limit) {
  const auto& kernels = ActiveKernels().rans;
  Counts counts[2] = {}, both[1];
  kernels.count(in, n, counts);
  for (int s = 0; s < 256; ++s) both[0][s] = counts[0][s] + counts[1][s];
  Choice choice = Estimated(both, 1);
  int tables = 1;
  if (n > 1) {
    const Choice split = Estimated(counts, 2);
    if (split.bytes < choice.bytes) choice = split, tables = 2;
  }
  if (choice.bytes <= n) {
    RansSymbol symbols[512];
    for (int t = 0; t < tables; ++t) Fill(choice.f[t], symbols + 256 * t);
    uint32_t states[kRansCoders];
    std::fill_n(states, kRansCoders, kRansLeast);
    uint8_t* const end = scratch + kScratch + 2 * n;
    const uint8_t* const words = kernels.encode(symbols, tables == 2 ? 256 : 0, in, n, states, end);
    size_t bytes = 1 + sizeof(states) + size_t(end - words);
    for (int t = 0; t < tables; ++t) bytes += TableBytes(choice.f[t]);
    if (bytes <= n) {
      if (bytes >= limit) return 0;
      *out++ = uint8_t(tables);
      for (int t = 0; t < tables; ++t) out = WriteTable(choice.f[t], out);
      std::memcpy(out, states, sizeof(states));
      std::memcpy(out + sizeof(states), words, size_t(end - words));
      return bytes;
    }
  }
  if (n + 1 >= limit) return 0;
  *out = 0;
  std::memcpy(out + 1, in, n);
  return n + 1;
}

constexpr size_t kCodedHeader = 1 + sizeof(uint32_t);

class EntropyCodec : public Codec {
 public:
  explicit EntropyCodec(CodecPtr codec) : codec_(std::move(codec)) {}

  std::string Name() const override { return codec_->Name(); }
  std::string Config() const override { return codec_->Config() + " " + kEntropyParam + "=1"; }
  size_t Granularity() const override { return codec_->Granularity(); }
  bool HasResidual() const override { return codec_->HasResidual(); }
  std::vector<std::string> StateNames() const override { return codec_->StateNames(); }
  bool UsesStep() const override { return codec_->UsesStep(); }
  std::vector<Buffer*> States(CodecState* state) const override { return codec_->States(state); }
  size_t MaxPayloadBytes(size_t n, DType wire) const override {
    return 1 + codec_->MaxPayloadBytes(n, wire);
  }
  bool FixedSize() const override { return false; }
  bool Dense() const override { return codec_->Dense(); }

  size_t Encode(const void* gradient, DType dtype, size_t n, CodecState* state, uint8_t* payload,
                DType wire) const override {
    const Buffer plain = AllocateBuffer(codec_->MaxPayloadBytes(n, wire));
    const size_t bytes = codec_->Encode(gradient, dtype, n, state, plain.data, wire);
    if (bytes > kCodedHeader && bytes <= std::numeric_limits<uint32_t>::max()) {
      const size_t packed =
          RansPack(plain.data, bytes, payload + kCodedHeader, bytes + 1 - kCodedHeader);
      if (packed != 0) {
        const auto length = static_cast<uint32_t>(bytes);
        payload[0] = 1;
        std::memcpy(payload + 1, &length, sizeof(length));
        return kCodedHeader + packed;
      }
    }
    payload[0] = 0;
    std::memcpy(payload + 1, plain.data, bytes);
    return 1 + bytes;
  }

  void Check(const Payload& payload, size_t n, DType wire) const override {
    Codec::Check(payload, n, wire);
    const Plain plain = Undo(payload, n, wire);
    codec_->Check(plain.payload, n, wire);
  }

  void Decode(const Payload& payload, size_t n, DType wire, void* out, DType dtype) const override {
    const Plain plain = Undo(payload, n, wire);
    codec_->Decode(plain.payload, n, wire, out, dtype);
  }

  void DecodeSum(const Payload* payloads, size_t count, size_t n, DType wire,
                 float* sum) const override {
    std::vector<Buffer> memory;
    std::vector<Payload> plain;
    for (size_t k = 0; k < count; ++k) {
      Plain one = Undo(payloads[k], n, wire);
      memory.push_back(std::move(one.memory));
      plain.push_back(one.payload);
    }
    codec_->DecodeSum(plain.data(), count, n, wire, sum);
  }

  CodecPtr ForSumOf(int count) const override { return With(codec_->ForSumOf(count)); }
  CodecPtr OnThreads(int threads) const override { return With(codec_->OnThreads(threads)); }

 private:
  /// A codec's payload before the stage, in place or in separate memory.
  struct Plain {
    Buffer memory;
    Payload payload;
  };

  /// \throw ProtocolError unless it has one of the two forms
  Plain Undo(const Payload& payload, size_t n, DType wire) const {
    const std::string what = "a " + Name() + " payload of " + std::to_string(n) + " elements and " +
                             std::to_string(payload.bytes) + " bytes is refused: it ";
    if (payload.bytes == 0 || payload.data[0] > 1) {
      throw ProtocolError(what + "does not say whether it is entropy-coded");
    }
    if (payload.data[0] == 0) return {Buffer(), {payload.data + 1, payload.bytes - 1}};
    if (payload.bytes < kCodedHeader) throw ProtocolError(what + "ends within its length");
    uint32_t length = 0;
    std::memcpy(&length, payload.data + 1, sizeof(length));
    if (length > codec_->MaxPayloadBytes(n, wire)) {
      throw ProtocolError(what + "would have " + std::to_string(length) + " bytes unpacked");
    }
    const Buffer memory = AllocateBuffer(length);
    const char* const error = RansUnpack(payload.data + kCodedHeader, payload.bytes - kCodedHeader,
                                         memory.data, length);
    if (error != nullptr) throw ProtocolError(what + error);
    return {memory, {memory.data, length}};
  }

  static CodecPtr With(const CodecPtr& codec) {
    return codec == nullptr ? nullptr : std::make_shared<EntropyCodec>(codec);
  }

  const CodecPtr codec_;
};

}  // namespace

size_t RansPack(const uint8_t* in, size_t n, uint8_t* out, size_t limit) {
  const Buffer scratch = AllocateBuffer(kScratch + 2 * std::min(n, kRansBlock));
  size_t written = 0;
  for (size_t at = 0; at < n; at += kRansBlock) {
    const size_t bytes = PackBlock(in + at, std::min(n - at, kRansBlock), scratch.data,
                                   out + written, limit - written);
    if (bytes == 0) return 0;
    written += bytes;
  }
  return written;
}

const char* RansUnpack(const uint8_t* in, size_t bytes, uint8_t* out, size_t n) {
  const uint8_t* const end = in + bytes;
  const auto& kernels = ActiveKernels().rans;
  const Buffer memory = AllocateBuffer(2 * kRansTotal * sizeof(uint32_t));
  uint32_t* const table = memory.as<uint32_t>();
  for (size_t at = 0; at < n; at += kRansBlock) {
    const size_t block = std::min(n - at, kRansBlock);
    if (in == end) return "ends before its last block";
    const int tables = *in++;
    if (tables > 2) return "has a block with more than two tables";
    if (tables == 0) {
      if (size_t(end - in) < block) return "ends within a block";
      std::memcpy(out + at, in, block);
      in += block;
      continue;
    }
    for (int t = 0; t < tables; ++t) {
      in = ReadTable(in, end, table + kRansTotal * t);
      if (in == nullptr) return "has a table of frequencies that do not add up to 4096";
    }
    uint32_t states[kRansCoders];
    if (size_t(end - in) < sizeof(states)) return "ends within the states of a block";
    std::memcpy(states, in, sizeof(states));
    for (const uint32_t x : states) {
      if (x < kRansLeast || x >> 31 != 0) return "has a state out of range";
    }
    in = kernels.decode(table, tables == 2 ? kRansTotal : 0, in + sizeof(states), end, block, states,
                        out + at);
    if (in == nullptr) return "ends within the words of a block";
    for (const uint32_t x : states) {
      if (x != kRansLeast) return "has a block that does not end as it began";
    }
  }
  return in == end ? nullptr : "goes on behind its last block";
}

CodecPtr WithEntropy(CodecPtr codec) {
  if (codec->IsIdentity()) {
    throw Error("compression type " + codec->Name() + " has no entropy stage: type lossless is what "
                "makes gradients shorter that are not compressed");
  }
  return std::make_shared<EntropyCodec>(std::move(codec));
}

}  // namespace hipress
