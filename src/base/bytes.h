/*!
 * \file bytes.h
 * \brief Serializes numbers and texts into a string of bytes, for saved states.
 */
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "base/types.h"

namespace hipress {

/// Appends numbers in memory order (little-endian on all supported machines).
class ByteWriter {
 public:
  template <typename T>
  void Number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Text(const void* data, size_t size) {
    Number<uint64_t>(size);
    bytes_.append(static_cast<const char*>(data), size);
  }
  void Text(const std::string& text) { Text(text.data(), text.size()); }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what ByteWriter wrote, and nothing beyond it. \throw Error if more is wanted
class ByteReader {
 public:
  explicit ByteReader(const std::string& bytes) : data_(bytes.data()), left_(bytes.size()) {}

  template <typename T>
  T Number() {
    T value;
    std::memcpy(&value, Take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string Text() {
    const uint64_t size = Number<uint64_t>();
    return std::string(Take(size), size);
  }
  void SkipText() { Take(Number<uint64_t>()); }
  bool AtEnd() const { return left_ == 0; }

 private:
  const char* Take(uint64_t size) {
    if (size > left_) throw Error("saved states end too early");
    const char* here = data_;
    data_ += size;
    left_ -= size;
    return here;
  }

  const char* data_;
  uint64_t left_;
};

}  // namespace hipress
