/*!
 * \file codec_client.h
 * \brief What operators of every framework need of the library, through its C ABI alone.
 *
 * Header-only, so that generated operators compile outside of this project.
 */
#pragma once

#include <dlfcn.h>

#include <charconv>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "hipress/c_api.h"

namespace hipress::client {

/// \throw std::runtime_error with the library's sentence
inline void Check(int code) {
  if (code != 0) throw std::runtime_error(HipressGetLastError()->sentence);
}

/// One codec, for calls from any thread: states are the caller's.
class Codec {
 public:
  /// \param params name=value pairs of this type's parameters
  Codec(const std::string& type, const std::map<std::string, std::string>& params) {
    std::vector<const char*> keys = {"type"}, values = {type.c_str()};
    for (const auto& param : params) {
      keys.push_back(param.first.c_str());
      values.push_back(param.second.c_str());
    }
    Check(HipressCodecCreate(static_cast<int>(keys.size()), keys.data(), values.data(), &handle_));
    Check(HipressCodecDescribe(handle_, &about_));
  }
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  ~Codec() { HipressCodecFree(handle_); }

  /// The codec of these parameters, made once and kept for good.
  /// \throw std::runtime_error for a parameter that is unknown or out of range
  static const Codec& Get(const std::string& type,
                          const std::map<std::string, std::string>& params) {
    static std::mutex mutex;
    static auto* made = new std::map<std::string, Codec*>();
    std::string key = type;
    for (const auto& param : params) key += "\n" + param.first + "=" + param.second;
    std::lock_guard<std::mutex> lock(mutex);
    Codec*& codec = (*made)[key];
    if (codec == nullptr) codec = new Codec(type, params);
    return *codec;
  }

  const HipressCodecDescription& about() const { return about_; }
  /// The tensors an encoder updates: its states and, last, the count of its encodes.
  int NumStates() const { return about_.uses_step ? about_.num_states + 1 : 0; }

  int64_t MaxBytes(int64_t n, int dtype) const {
    int64_t bytes = 0;
    Check(HipressCodecMaxBytes(handle_, n, dtype, &bytes));
    return bytes;
  }

  /// \param states float32[n] each, updated
  /// \param step int64[1], counted up; null if uses_step is 0
  /// \return bytes written; the rest of payload, up to MaxBytes, is zeroed
  int64_t Encode(const void* gradient, int64_t n, int dtype, const std::vector<float*>& states,
                 int64_t* step, uint32_t stream, uint8_t* payload) const {
    int64_t bytes = 0;
    Check(HipressCodecEncodeWith(handle_, gradient, n, dtype, static_cast<int>(states.size()),
                                 states.data(), step == nullptr ? 0 : static_cast<uint64_t>(*step),
                                 stream, payload, &bytes));
    if (step != nullptr) ++*step;
    for (int64_t i = bytes, end = MaxBytes(n, dtype); i < end; ++i) payload[i] = 0;
    return bytes;
  }

  void Decode(const void* payload, int64_t bytes, int64_t n, int dtype, void* out) const {
    Check(HipressCodecDecode(handle_, payload, bytes, n, dtype, out));
  }

  void DecodeSum(const std::vector<const void*>& payloads, const std::vector<int64_t>& bytes,
                 int64_t n, float* sum) const {
    // HipressCodecDecodeSum does not write into the list.
    Check(HipressCodecDecodeSum(handle_, static_cast<int>(payloads.size()),
                                const_cast<const void**>(payloads.data()), bytes.data(), n, 0,
                                sum));
  }

 private:
  HipressCodecHandle handle_ = nullptr;
  HipressCodecDescription about_ = {};
};

/// Registers the algorithm that is compiled into the same shared library as `inside`.
inline void RegisterOwnAlgorithm(const void* inside) {
  Dl_info info;
  const char* name = nullptr;
  if (dladdr(inside, &info) == 0) throw std::runtime_error("a library cannot find its own file");
  Check(HipressLoadCodec(info.dli_fname, &name));
}

/// Shortest decimal text that reads back as exactly this number.
template <typename Number>
std::string Text(Number value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

/// The value of a payload's `size` tensor, if the payload has so many bytes.
inline int64_t CheckedBytes(int64_t says, int64_t has) {
  if (says >= 0 && says <= has) return says;
  throw std::runtime_error("size says " + std::to_string(says) + " bytes of a payload of " +
                           std::to_string(has));
}

}  // namespace hipress::client
