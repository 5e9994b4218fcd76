#include "operator/contrib/state_before.h"

#include <algorithm>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hipress {
namespace {

/// Copies past the cache: nobody reads the copy unless a step fails. Both begin at 64 bytes, like all
/// of a state.
void StreamCopy(const uint8_t* from, size_t bytes, uint8_t* to) {
  size_t at = 0;
#if defined(__SSE2__)
  for (; at + kAlignment <= bytes; at += kAlignment) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
#endif
  std::memcpy(to + at, from + at, bytes - at);
}

void Copy(const Buffer& from, Buffer* to) {
  if (!from) {
    *to = Buffer();
    return;
  }
  if (!*to || to->size != from.size) *to = AllocateState(from.size);
  StreamCopy(from.data, from.size, to->data);
}

}  // namespace

void StateBefore::Save(const CodecState& state, uint64_t transaction) {
  if (transaction_ == transaction) return;
  transaction_ = transaction;
  Copy(state.residual, &copy_.residual);
  copy_.step = state.step;
  copy_.stream = state.stream;
  copy_.lazy = state.lazy;
  std::copy(std::begin(state.lazy_values), std::end(state.lazy_values), copy_.lazy_values);
  copy_.extra.resize(state.extra.size());
  for (size_t i = 0; i < state.extra.size(); ++i) Copy(state.extra[i], &copy_.extra[i]);
  copy_.extra_of = state.extra_of;
}

bool StateBefore::RollBack(CodecState* state, uint64_t transaction) {
  if (transaction_ == 0 || transaction_ < transaction) return false;
  transaction_ = 0;
  std::swap(*state, copy_);  // what the step had made is memory for the next copy
  return true;
}

}  // namespace hipress
