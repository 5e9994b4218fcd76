/*!
 * \file tensorflow_operators.h
 * \brief A codec as operators of TensorFlow, for code that CompLL generates.
 *
 *   encode_<type>(gradient, <states>..., step, <parameters>, stream=0)
 *       -> payload, [size,] <new states>..., new_step
 *   decode_<type>(payload[, size], n, T, <parameters>) -> gradient
 *   decode_sum_<type>(payloads, [sizes,] n, <parameters>) -> float32 sum
 *
 * TensorFlow's operators have no effects: states are inputs and outputs, and are updated in the
 * memory of the inputs if no other operator uses it.
 */
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "operator/frameworks/codec_client.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace hipress::tensorflow_ops {

namespace tf = ::tensorflow;
using client::Codec;

/// A parameter of a codec, as an attribute.
struct Param {
  const char* name;
  bool is_float;
};

inline int Flag(tf::DataType type) {
  return type == tf::DT_FLOAT ? 0 : type == tf::DT_HALF ? 2 : 12;
}

/// The codec of an operator's attributes. `Name` has `static const char* Type()` and
/// `static std::vector<Param> Params()`.
/// \tparam Context OpKernelConstruction or InferenceContext
template <typename Name, typename Context>
tf::Status GetCodec(Context* context, const Codec** codec) {
  std::map<std::string, std::string> params;
  for (const Param& param : Name::Params()) {
    if (param.is_float) {
      float value = 0;
      TF_RETURN_IF_ERROR(context->GetAttr(param.name, &value));
      params[param.name] = client::Text(value);
    } else {
      int64_t value = 0;
      TF_RETURN_IF_ERROR(context->GetAttr(param.name, &value));
      params[param.name] = std::to_string(value);
    }
  }
  try {
    *codec = &Codec::Get(Name::Type(), params);
  } catch (const std::exception& error) {
    return tf::errors::InvalidArgument(error.what());
  }
  return tf::OkStatus();
}

/// What a tensor of one element holds.
inline int64_t Number(const tf::Tensor& tensor, const char* what) {
  if (tensor.NumElements() == 1) return tensor.flat<int64_t>()(0);
  throw std::runtime_error(std::string(what) + " must be one number, not " +
                           std::to_string(tensor.NumElements()));
}

template <typename Name>
class Kernel : public tf::OpKernel {
 public:
  explicit Kernel(tf::OpKernelConstruction* context) : tf::OpKernel(context) {
    OP_REQUIRES_OK(context, GetCodec<Name>(context, &codec_));
  }

 protected:
  /// Runs `work`; what it throws becomes the step's error.
  template <typename Work>
  void Guard(tf::OpKernelContext* context, Work work) {
    try {
      work();
    } catch (const std::exception& error) {
      context->CtxFailure(tf::errors::InvalidArgument(error.what()));
    }
  }

  const Codec* codec_ = nullptr;
};

template <typename Name>
class Encode : public Kernel<Name> {
 public:
  explicit Encode(tf::OpKernelConstruction* context) : Kernel<Name>(context) {
    if (context->HasAttr("stream")) {
      OP_REQUIRES_OK(context, context->GetAttr("stream", &stream_));
    }
  }

  /// The shapes of the outputs, also of payloads, as far as that of the gradient is known.
  static tf::Status Shape(tf::shape_inference::InferenceContext* context) {
    const Codec* codec = nullptr;
    TF_RETURN_IF_ERROR(GetCodec<Name>(context, &codec));
    tf::DataType type;
    TF_RETURN_IF_ERROR(context->GetAttr("T", &type));
    const auto n = context->NumElements(context->input(0));
    auto bytes = context->UnknownDim();
    try {
      if (context->ValueKnown(n)) {
        bytes = context->MakeDim(codec->MaxBytes(context->Value(n), Flag(type)));
      }
    } catch (const std::exception& error) {
      return tf::errors::InvalidArgument(error.what());
    }
    const int head = Head(*codec);
    context->set_output(0, context->Vector(bytes));
    if (head == 2) context->set_output(1, context->Vector(1));
    for (int s = 0; s < codec->NumStates(); ++s) {
      context->set_output(head + s, context->input(1 + s));
    }
    return tf::OkStatus();
  }

  void Compute(tf::OpKernelContext* context) override {
    const Codec& codec = *this->codec_;
    const tf::Tensor& gradient = context->input(0);
    const int64_t n = gradient.NumElements();
    const int flag = Flag(gradient.dtype()), count = codec.NumStates();
    const int head = Head(codec);
    tf::Tensor *payload = nullptr, *size = nullptr;
    int64_t limit = 0;
    this->Guard(context, [&] { limit = codec.MaxBytes(n, flag); });
    OP_REQUIRES_OK(context, context->status());
    OP_REQUIRES_OK(context, context->allocate_output(0, {limit}, &payload));
    if (head == 2) OP_REQUIRES_OK(context, context->allocate_output(1, {1}, &size));
    std::vector<float*> states;
    int64_t* step = nullptr;
    for (int s = 0; s < count; ++s) {
      const bool is_step = s == count - 1;
      const tf::Tensor& old = context->input(1 + s);
      OP_REQUIRES(context, old.NumElements() == (is_step ? 1 : n),
                  tf::errors::InvalidArgument(is_step ? "step" : codec.about().states[s], " of ",
                                              Name::Type(), " has ", old.NumElements(),
                                              " elements, but must have ", is_step ? 1 : n));
      tf::Tensor* state = nullptr;
      OP_REQUIRES_OK(context, context->forward_input_or_allocate_output({1 + s}, head + s,
                                                                        old.shape(), &state));
      if (!state->SharesBufferWith(old)) {
        std::memcpy(const_cast<char*>(state->tensor_data().data()), old.tensor_data().data(),
                    old.TotalBytes());
      }
      if (is_step) {
        step = reinterpret_cast<int64_t*>(state->flat<int64_t>().data());
      } else {
        states.push_back(state->flat<float>().data());
      }
    }
    this->Guard(context, [&] {
      const int64_t bytes = codec.Encode(gradient.tensor_data().data(), n, flag, states, step,
                                         static_cast<uint32_t>(stream_),
                                         payload->flat<uint8_t>().data());
      if (size != nullptr) size->flat<int64_t>()(0) = bytes;
    });
  }

 private:
  /// Outputs before the states: the payload and, where its length depends on the values, its size.
  static int Head(const Codec& codec) { return codec.about().fixed_size ? 1 : 2; }

  int64_t stream_ = 0;
};

/// Of one payload, or (kSum) of a list of them.
template <typename Name, bool kSum>
class Decode : public Kernel<Name> {
 public:
  using Kernel<Name>::Kernel;

  /// The gradient's shape: known, where n is a constant.
  static tf::Status Shape(tf::shape_inference::InferenceContext* context) {
    const tf::Tensor* n = context->input_tensor(context->num_inputs() - 1);
    auto count = context->UnknownDim();
    if (n != nullptr && n->NumElements() == 1 && n->flat<int64_t>()(0) >= 0) {
      count = context->MakeDim(n->flat<int64_t>()(0));
    }
    context->set_output(0, context->Vector(count));
    return tf::OkStatus();
  }

  void Compute(tf::OpKernelContext* context) override {
    const Codec& codec = *this->codec_;
    const int inputs = context->num_inputs() - 1;
    const int count = codec.about().fixed_size ? inputs : inputs / 2;
    int64_t n = 0;
    this->Guard(context, [&] { n = Number(context->input(inputs), "n"); });
    OP_REQUIRES_OK(context, context->status());
    OP_REQUIRES(context, n >= 0,
                tf::errors::InvalidArgument("an element count must be 0 or more, not ", n));
    tf::Tensor* out = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, {n}, &out));
    this->Guard(context, [&] {
      std::vector<const void*> payloads;
      std::vector<int64_t> bytes;
      for (int k = 0; k < count; ++k) {
        const tf::Tensor& payload = context->input(k);
        payloads.push_back(payload.tensor_data().data());
        bytes.push_back(payload.NumElements());
        if (count != inputs) {
          bytes.back() =
              client::CheckedBytes(Number(context->input(count + k), "size"), bytes.back());
        }
      }
      if (kSum) {
        codec.DecodeSum(payloads, bytes, n, out->flat<float>().data());
      } else {
        codec.Decode(payloads[0], bytes[0], n, Flag(out->dtype()),
                     const_cast<char*>(out->tensor_data().data()));
      }
    });
  }
};

}  // namespace hipress::tensorflow_ops
