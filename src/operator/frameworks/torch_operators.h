/*!
 * \file torch_operators.h
 * \brief A codec as operators of PyTorch in C++, for code that CompLL generates.
 *
 *   torch.ops.compll.encode_<type>(gradient, <states>..., step, *, <parameters>, stream=0)
 *       -> payload uint8, and size int64[1] where a payload's length depends on the values
 *   torch.ops.compll.decode_<type>(payload[, size], n, *, dtype=float32, <parameters>) -> gradient
 *   torch.ops.compll.decode_sum_<type>(payloads[, sizes], n, *, <parameters>) -> float32 sum
 *
 * Kernels are boxed: they read their arguments by the names in the operator's schema, so that one
 * text serves every codec. Under meta tensors they give shapes alone. (hipress.torch.ops does the
 * same from Python, for all registered codecs.)
 */
#pragma once

#include <ATen/ATen.h>
#include <torch/library.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/frameworks/codec_client.h"

namespace hipress::torch_ops {

using client::Codec;
using torch::jit::Stack;

/// The arguments of one call, off the stack, by their names; those of a codec's own as text.
class Arguments {
 public:
  Arguments(const c10::OperatorHandle& op, Stack* stack) {
    static const auto* ours = new std::set<std::string>{"gradient", "payload", "payloads", "size",
                                                        "sizes", "n", "dtype", "stream"};
    const auto& arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      const c10::IValue& value = torch::jit::peek(*stack, i, arguments.size());
      const std::string& name = arguments[i].name();
      if (ours->count(name) != 0) {
        values_[name] = value;
      } else if (value.isTensor()) {
        states_.push_back(value.toTensor());
      } else {
        params_[name] = value.isInt() ? std::to_string(value.toInt())
                                      : client::Text(value.toDouble());
      }
    }
    torch::jit::drop(*stack, arguments.size());
  }

  const c10::IValue& operator[](const std::string& name) const { return values_.at(name); }
  bool Has(const std::string& name) const {
    return values_.count(name) != 0 && !values_.at(name).isNone();
  }
  int64_t Count() const {
    const int64_t n = values_.at("n").toSymInt().guard_int(__FILE__, __LINE__);
    TORCH_CHECK_VALUE(n >= 0, "an element count must be 0 or more, not ", n);
    return n;
  }
  const std::vector<at::Tensor>& states() const { return states_; }
  const std::map<std::string, std::string>& params() const { return params_; }

 private:
  std::map<std::string, c10::IValue> values_;
  std::vector<at::Tensor> states_;
  std::map<std::string, std::string> params_;
};

inline int Flag(at::ScalarType type) {
  TORCH_CHECK_VALUE(type == at::kFloat || type == at::kHalf || type == at::kBFloat16,
                    "a gradient must be float32, float16 or bfloat16, not ", type);
  return type == at::kFloat ? 0 : type == at::kHalf ? 2 : 12;
}

inline int64_t Length(const at::Tensor& payload, const c10::IValue* size) {
  if (size == nullptr) return payload.numel();
  return client::CheckedBytes(size->toTensor().item<int64_t>(), payload.numel());
}

inline void CheckPayload(const at::Tensor& payload) {
  TORCH_CHECK_VALUE(payload.scalar_type() == at::kByte && payload.dim() == 1,
                    "a payload must be uint8[bytes], not ", payload.scalar_type(), " of ",
                    payload.dim(), " dimensions");
}

struct Kernel : public c10::OperatorKernel {
  explicit Kernel(std::string name) : type(std::move(name)) {}
  const std::string type;
};

/// \tparam kMeta gives shapes only
template <bool kMeta>
struct Encode : public Kernel {
  using Kernel::Kernel;

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) const {
    const Arguments call(op, stack);
    const Codec& codec = Codec::Get(type, call.params());
    const at::Tensor gradient = call["gradient"].toTensor().contiguous();
    const int64_t n = gradient.sym_numel().guard_int(__FILE__, __LINE__);
    const int flag = Flag(gradient.scalar_type());
    at::Tensor payload = at::empty({codec.MaxBytes(n, flag)}, gradient.options().dtype(at::kByte));
    at::Tensor size = at::empty({1}, gradient.options().dtype(at::kLong));
    if (!kMeta) {
      std::vector<float*> states;
      int64_t* step = nullptr;
      for (const at::Tensor& state : call.states()) {
        TORCH_CHECK_VALUE(state.is_contiguous(), "states must be contiguous");
        if (static_cast<int>(states.size()) < codec.about().num_states) {
          TORCH_CHECK_VALUE(state.scalar_type() == at::kFloat && state.numel() == n,
                            codec.about().states[states.size()], " of ", type, " must be float32 of ",
                            n, " elements, not ", state.scalar_type(), " of ", state.numel());
          states.push_back(state.data_ptr<float>());
        } else {
          TORCH_CHECK_VALUE(state.scalar_type() == at::kLong && state.numel() == 1,
                            "step must be int64 of 1 element");
          step = state.data_ptr<int64_t>();
        }
      }
      *size.data_ptr<int64_t>() =
          codec.Encode(gradient.data_ptr(), n, flag, states, step,
                       call.Has("stream") ? static_cast<uint32_t>(call["stream"].toInt()) : 0,
                       payload.data_ptr<uint8_t>());
    }
    torch::jit::push(*stack, payload);
    if (!codec.about().fixed_size) torch::jit::push(*stack, size);
  }
};

template <bool kMeta>
struct Decode : public Kernel {
  using Kernel::Kernel;

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) const {
    const Arguments call(op, stack);
    const Codec& codec = Codec::Get(type, call.params());
    const at::Tensor payload = call["payload"].toTensor().contiguous();
    CheckPayload(payload);
    const at::ScalarType dtype = call["dtype"].toScalarType();
    const int flag = Flag(dtype);
    at::Tensor out = at::empty({call.Count()}, payload.options().dtype(dtype));
    if (!kMeta) {
      const int64_t bytes = Length(payload, call.Has("size") ? &call["size"] : nullptr);
      codec.Decode(payload.data_ptr(), bytes, out.numel(), flag, out.data_ptr());
    }
    torch::jit::push(*stack, out);
  }
};

template <bool kMeta>
struct DecodeSum : public Kernel {
  using Kernel::Kernel;

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) const {
    const Arguments call(op, stack);
    const Codec& codec = Codec::Get(type, call.params());
    std::vector<at::Tensor> payloads = call["payloads"].toTensorVector();
    TORCH_CHECK_VALUE(!payloads.empty(), "a sum needs 1 payload or more, not 0");
    at::Tensor out = at::empty({call.Count()}, payloads[0].options().dtype(at::kFloat));
    if (!kMeta) {
      std::vector<at::Tensor> sizes;
      if (call.Has("sizes")) sizes = call["sizes"].toTensorVector();
      TORCH_CHECK_VALUE(sizes.empty() || sizes.size() == payloads.size(), payloads.size(),
                        " payloads need as many sizes, not ", sizes.size());
      std::vector<const void*> data;
      std::vector<int64_t> bytes;
      for (size_t k = 0; k < payloads.size(); ++k) {
        payloads[k] = payloads[k].contiguous();
        CheckPayload(payloads[k]);
        const c10::IValue size = sizes.empty() ? c10::IValue() : c10::IValue(sizes[k]);
        data.push_back(payloads[k].data_ptr());
        bytes.push_back(Length(payloads[k], sizes.empty() ? nullptr : &size));
      }
      codec.DecodeSum(data, bytes, out.numel(), out.data_ptr<float>());
    }
    torch::jit::push(*stack, out);
  }
};

/// Gives a defined operator its CPU kernel and its shape-only kernel.
template <template <bool> class Operator>
void Implement(torch::Library* library, const char* name, const char* type) {
  library->impl(name, c10::DispatchKey::CPU,
                torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Operator<false>>(type)));
  library->impl(name, c10::DispatchKey::Meta,
                torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Operator<true>>(type)));
}

}  // namespace hipress::torch_ops
