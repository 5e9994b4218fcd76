/*!
 * \file scratch.h
 * \brief Short arrays on the stack.
 */
#pragma once

#include <cstddef>
#include <vector>

namespace hipress {

/// An array for one call, on the stack if it is as short as nearly always: small gradients feel
/// what an allocation takes.
template <typename T>
class Scratch {
 public:
  explicit Scratch(size_t size) : size_(size), many_(size > kFew ? size : 0) {}
  T* data() { return size_ > kFew ? many_.data() : few_; }
  T& operator[](size_t i) { return data()[i]; }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kFew = 8;
  const size_t size_;
  T few_[kFew] = {};
  std::vector<T> many_;
};

}  // namespace hipress
