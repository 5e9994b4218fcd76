// Interface of a fuzz target: a parser that receives arbitrary bytes from a peer or a file.
//
// With clang (`make fuzz`) a target becomes a libFuzzer program. Elsewhere replay.cc runs it on its
// seeds and on variants of them, in every `ctest`.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/buffer.h"

/// One input. The target may refuse it with a HiPress exception; nothing else may happen.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
/// Well-formed inputs, from which others are made.
std::vector<std::string> Seeds();

namespace hipress {

/// Pieces of an input, one after the other; zeros, or what is left, at its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}

  template <typename T>
  T Take() {
    T value{};
    const size_t n = sizeof(T) < left_ ? sizeof(T) : left_;
    std::memcpy(&value, data_, n);
    Skip(n);
    return value;
  }
  Buffer TakeBuffer(size_t size) {
    if (size > left_) size = left_;
    Buffer buffer = AllocateBuffer(size);
    if (size > 0) std::memcpy(buffer.data, data_, size);
    Skip(size);
    return buffer;
  }
  Buffer Rest() { return TakeBuffer(left_); }
  std::string Text() {
    const Buffer rest = Rest();
    return std::string(reinterpret_cast<const char*>(rest.data), rest.size);
  }
  bool AtEnd() const { return left_ == 0; }

 private:
  void Skip(size_t n) {
    data_ += n;
    left_ -= n;
  }
  const uint8_t* data_;
  size_t left_;
};

/// For seeds.
template <typename T>
std::string BytesOf(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}
inline std::string BytesOf(const std::vector<int64_t>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * 8);
}

}  // namespace hipress
