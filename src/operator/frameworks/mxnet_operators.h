/*!
 * \file mxnet_operators.h
 * \brief A codec as operators of MXNet, through its extension interface (mxnet/lib_api.h).
 *
 *   mx.nd.contrib.encode_<type>(gradient, <states>..., step, <parameters>, stream=0)
 *       -> payload uint8, and size int64[1] where a payload's length depends on the values
 *   mx.nd.contrib.decode_<type>(payload[, size], shape=, dtype="float32", <parameters>) -> gradient
 *   mx.nd.contrib.decode_sum_<type>(payloads..., [sizes...], num_args=, shape=, <parameters>)
 *       -> float32 sum
 *
 * States and step are inputs that are written in place (auxiliary states of a symbol). MXNet calls
 * plain functions without a user argument, so a type gives each codec separate functions:
 * `Name` is a class with `static const char* Type()`.
 */
#pragma once

#include <algorithm>
#include <cctype>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "mxnet/lib_api.h"
#include "operator/frameworks/codec_client.h"

namespace hipress::mxnet_ops {

using client::Codec;
using ::mxnet::ext::CustomOp;
using ::mxnet::ext::MXReturnValue;
using ::mxnet::ext::MXTensor;
using ::mxnet::ext::OpResource;
using Attributes = std::unordered_map<std::string, std::string>;
using Shape = std::vector<unsigned int>;

// Errors leave as std::runtime_error, of which MXNet makes an MXNetError with just their sentence.
// What MX_ERROR_MSG collects would be repeated in every later error.
[[noreturn]] inline void Fail(const std::string& sentence) { throw std::runtime_error(sentence); }

/// An operator's attributes: the codec's parameters, and our own.
struct Call {
  std::string type;
  const Codec* codec = nullptr;
  uint32_t stream = 0;
  int num_args = 1;
  int dtype = ::mxnet::ext::kFloat32;
  bool has_shape = false;
  Shape shape;
};

inline int64_t ParseInteger(const std::string& name, const std::string& text, int64_t low,
                            int64_t high) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);  // NOLINT(runtime/int)
  if (text.empty() || *end != '\0' || value < low || value > high) {
    Fail(name + " must be an integer from " + std::to_string(low) + " to " + std::to_string(high) +
         ", not \"" + text + "\"");
  }
  return value;
}

/// "(3, 4)", "[3, 4]" or "12".
inline Shape ParseShape(const std::string& text) {
  Shape shape;
  std::string digits;
  for (const char c : text + ",") {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      digits += c;
    } else if (c == ',' || c == ')' || c == ']') {
      if (!digits.empty()) {
        shape.push_back(static_cast<unsigned>(ParseInteger("shape", digits, 0, 0x7fffffff)));
      }
      digits.clear();
    } else if (c != ' ' && c != '(' && c != '[') {
      Fail("shape must be a tuple of integers, not \"" + text + "\"");
    }
  }
  if (shape.empty()) Fail("shape must have at least one dimension, not \"" + text + "\"");
  return shape;
}

inline Call Parse(const char* type, const Attributes& attributes) {
  Call call;
  call.type = type;
  std::map<std::string, std::string> params;
  for (const auto& pair : attributes) {
    if (pair.first.compare(0, 2, "__") == 0) continue;  // MXNet's own
    if (pair.first == "stream") {
      call.stream = static_cast<uint32_t>(ParseInteger("stream", pair.second, 0, 0xffffffff));
    } else if (pair.first == "num_args") {
      call.num_args = static_cast<int>(ParseInteger("num_args", pair.second, 1, 1 << 16));
    } else if (pair.first == "shape") {
      call.shape = ParseShape(pair.second);
      call.has_shape = true;
    } else if (pair.first == "dtype") {
      if (pair.second != "float32" && pair.second != "float16") {
        Fail("dtype must be \"float32\" or \"float16\", not \"" + pair.second + "\"");
      }
      call.dtype = pair.second == "float16" ? ::mxnet::ext::kFloat16 : ::mxnet::ext::kFloat32;
    } else {
      params[pair.first] = pair.second;
    }
  }
  call.codec = &Codec::Get(type, params);
  return call;
}

inline bool IsKnown(const Shape& shape) {
  return !shape.empty() && std::find(shape.begin(), shape.end(), 0u) == shape.end();
}

inline int64_t Product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<int64_t>());
}

inline void ExpectType(const std::string& what, int* type, int wanted, const char* name) {
  if (*type == -1) *type = wanted;
  if (*type == wanted) return;
  Fail(what + " must be " + name + ", not of MXNet's type " + std::to_string(*type));
}

/// encode_<type>. Not a template, because each codec has a copy of the thunks.
struct Encode {
  static void ParseAttrs(const Call& call, int* inputs, int* outputs) {
    const Codec& codec = *call.codec;
    *inputs = 1 + codec.NumStates();
    *outputs = codec.about().fixed_size ? 1 : 2;
  }

  static void InferType(const Call& call, std::vector<int>* in, std::vector<int>* out) {
    const int states = static_cast<int>(in->size()) - 1;
    if (in->at(0) == -1) in->at(0) = ::mxnet::ext::kFloat32;
    if (in->at(0) != ::mxnet::ext::kFloat32 && in->at(0) != ::mxnet::ext::kFloat16) {
      Fail("a gradient must be float32 or float16, not of MXNet's type " +
           std::to_string(in->at(0)));
    }
    for (int s = 1; s < states; ++s) {
      ExpectType("a state of " + call.type, &in->at(s), ::mxnet::ext::kFloat32, "float32");
    }
    if (states > 0) ExpectType("step", &in->at(states), ::mxnet::ext::kInt64, "int64");
    out->at(0) = ::mxnet::ext::kUint8;
    if (out->size() > 1) out->at(1) = ::mxnet::ext::kInt64;
  }

  static void InferShape(const Call& call, std::vector<Shape>* in, std::vector<Shape>* out) {
    const Codec& codec = *call.codec;
    const Shape& gradient = in->at(0);
    const size_t last = in->size() - 1;
    if (last > 0 && !IsKnown(in->at(last))) in->at(last) = {1};
    if (last > 0 && Product(in->at(last)) != 1) Fail("step must have shape (1,)");
    if (!IsKnown(gradient)) return;
    const int64_t n = Product(gradient);
    for (size_t s = 1; s < last; ++s) {
      if (!IsKnown(in->at(s))) in->at(s) = gradient;
      if (Product(in->at(s)) != n) {
        Fail("the " + std::string(codec.about().states[s - 1]) + " of " + call.type + " has " +
             std::to_string(Product(in->at(s))) + " elements, the gradient " + std::to_string(n));
      }
    }
    // The type is not known here: the greatest length is that of float32.
    out->at(0) = {static_cast<unsigned>(codec.MaxBytes(n, 0))};
    if (out->size() > 1) out->at(1) = {1};
  }

  static void Mutates(const Call& call, std::vector<int>* inputs) {
    const int states = call.codec->NumStates();
    for (int s = 1; s <= states; ++s) inputs->push_back(s);
  }

  static void Forward(const Call& call, std::vector<MXTensor>* in, std::vector<MXTensor>* out) {
    std::vector<float*> states;
    for (size_t s = 1; s + 1 < in->size(); ++s) states.push_back(in->at(s).data<float>());
    int64_t* step = in->size() > 1 ? in->back().data<int64_t>() : nullptr;
    MXTensor& gradient = in->at(0);
    const int64_t bytes =
        call.codec->Encode(gradient.data_ptr, gradient.size(), gradient.dtype, states, step,
                           call.stream, out->at(0).data<uint8_t>());
    std::memset(out->at(0).data<uint8_t>() + bytes, 0, out->at(0).size() - bytes);
    if (out->size() > 1) *out->at(1).data<int64_t>() = bytes;
  }
};

/// decode_<type> and, of `num_args` payloads, decode_sum_<type>.
template <bool kSum>
struct Decode {
  static void ParseAttrs(const Call& call, int* inputs, int* outputs) {
    if (!call.has_shape) Fail("decoding " + call.type + " needs the gradient's shape=");
    *inputs = call.num_args * (call.codec->about().fixed_size ? 1 : 2);
    *outputs = 1;
  }

  static void InferType(const Call& call, std::vector<int>* in, std::vector<int>* out) {
    for (int i = 0; i < static_cast<int>(in->size()); ++i) {
      if (i < call.num_args) {
        ExpectType("a payload", &in->at(i), ::mxnet::ext::kUint8, "uint8");
      } else {
        ExpectType("size", &in->at(i), ::mxnet::ext::kInt64, "int64");
      }
    }
    out->at(0) = kSum ? ::mxnet::ext::kFloat32 : call.dtype;
  }

  static void InferShape(const Call& call, std::vector<Shape>* in, std::vector<Shape>* out) {
    const int64_t bytes = call.codec->MaxBytes(Product(call.shape), call.dtype);
    for (size_t i = 0; i < in->size(); ++i) {
      const bool is_size = static_cast<int>(i) >= call.num_args;
      if (!IsKnown(in->at(i))) in->at(i) = {is_size ? 1u : static_cast<unsigned>(bytes)};
    }
    out->at(0) = call.shape;
  }

  static void Mutates(const Call&, std::vector<int>*) {}

  static void Forward(const Call& call, std::vector<MXTensor>* in, std::vector<MXTensor>* out) {
    std::vector<const void*> payloads;
    std::vector<int64_t> bytes;
    for (int k = 0; k < call.num_args; ++k) {
      const size_t size = static_cast<size_t>(call.num_args + k);
      payloads.push_back(in->at(k).data_ptr);
      bytes.push_back(in->at(k).size());
      if (size < in->size()) {
        bytes.back() = client::CheckedBytes(*in->at(size).template data<int64_t>(), bytes.back());
      }
    }
    MXTensor& result = out->at(0);
    if (kSum) {
      call.codec->DecodeSum(payloads, bytes, result.size(), result.data<float>());
    } else {
      call.codec->Decode(payloads[0], bytes[0], result.size(), call.dtype, result.data_ptr);
    }
  }
};

/// The functions of one codec's operator, as MXNet calls them.
template <typename Name, typename Operator>
struct Thunks {
  /// Calls one of Operator's functions.
  template <auto kFunction, typename... Args>
  static MXReturnValue Run(const Attributes& attributes, Args*... args) {
    kFunction(Parse(Name::Type(), attributes), args...);
    return ::mxnet::ext::MX_SUCCESS;
  }
  static MXReturnValue Forward(const Attributes& attributes, std::vector<MXTensor>* in,
                               std::vector<MXTensor>* out, const OpResource&) {
    return Run<Operator::Forward>(attributes, in, out);
  }
  static MXReturnValue InferStorage(const Attributes&, std::vector<int>* in,
                                    std::vector<int>* out) {
    for (std::vector<int>* types : {in, out}) {
      for (int& type : *types) {
        ExpectType("tensors of " + std::string(Name::Type()), &type, ::mxnet::ext::kDefaultStorage,
                   "dense");
      }
    }
    return ::mxnet::ext::MX_SUCCESS;
  }
  static CustomOp& Register(const char* name) {
    return ::mxnet::ext::Registry<CustomOp>::get()
        ->add(name)
        .setForward(Forward, "cpu")
        .setParseAttrs(Run<Operator::ParseAttrs, int, int>)
        .setInferType(Run<Operator::InferType, std::vector<int>, std::vector<int>>)
        .setInferSType(InferStorage)
        .setInferShape(Run<Operator::InferShape, std::vector<Shape>, std::vector<Shape>>)
        .setMutateInputs(Run<Operator::Mutates, std::vector<int>>);
  }
};

/// A name in MXNet's namespace contrib, which is never freed.
inline const char* OperatorName(const char* kind, const char* type) {
  std::string name = std::string("_contrib_") + kind + "_" + type;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return strdup(name.c_str());
}

/// Registers the three operators of a codec; for `initialize` of an extension library.
template <typename Name>
void Register() {
  Thunks<Name, Encode>::Register(OperatorName("encode", Name::Type()));
  Thunks<Name, Decode<false>>::Register(OperatorName("decode", Name::Type()));
  Thunks<Name, Decode<true>>::Register(OperatorName("decode_sum", Name::Type()));
}

}  // namespace hipress::mxnet_ops
