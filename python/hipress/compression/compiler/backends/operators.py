"""Operators of MXNet, PyTorch and TensorFlow around a generated codec.

The wrapper has the operators in terms of the framework, the registration what makes the framework
know them. All else that they need is in src/operator/frameworks/<framework>_operators.h.
"""

from __future__ import annotations

import re
from string import Template

from hipress.compression.compiler.backends.common.source import is_fixed
from hipress.compression.compiler.ir.ir import Program


def wrapper(program: Program, framework: str) -> str:
    """Return the header with the operators of a framework."""
    return _Operators(program).fill(_WRAPPERS[framework], framework)


def registration(program: Program, framework: str) -> str:
    """Return the source that registers the operators."""
    return _Operators(program).fill(_REGISTRATIONS[framework], framework)


class _Operators:
    """The inputs and outputs of a program's operators, as each framework's schema writes them.

    :ivar states: names of the tensors an encoder updates
    """

    def __init__(self, program: Program) -> None:
        self.program, self.tag, self.fixed = program, program.identifier, bool(is_fixed(program))
        self.states = [*program.states, "step"] if program.uses_step else []

    def fill(self, template: Template, framework: str) -> str:
        program = self.program
        flags = [f'{{"{p.name}", {str(not p.integer).lower()}}}' for p in program.params]
        schemas = {}
        for key, kind in (("encode", "encode"), ("decode", "decode"), ("sum", "decode_sum")):
            schemas[f"{key}_schema"] = self.torch_schema(kind)
            schemas[f"{key}_op"] = self.tensorflow_op(kind)
        return template.substitute(
            schemas,
            name=program.name,
            tag=self.tag,
            file=program.file,
            space=f"codec_{self.tag}",  # a C++ namespace
            camel=_camel(self.tag),
            signature="\n".join(f"//   {line}" for line in self.signature(framework)),
            params="{" + ", ".join(flags) + "}",
        )

    def parameters(self, form: str, equals: str) -> list[str]:
        """Return the parameters as a schema has them, of their {name} and {type}, and defaults."""
        return [
            form.format(name=p.name, type="int" if p.integer else "float")
            + ("" if p.default is None else f"{equals}{p.default!r}")
            for p in self.program.params
        ]

    def torch_schema(self, kind: str) -> str:
        settings, result = self.parameters("{type} {name}", "="), "Tensor"
        sizes = [] if self.fixed else ["Tensor? size" if kind == "decode" else "Tensor[]? sizes"]
        if kind == "encode":
            states = [f"Tensor(a{i}!) {name}" for i, name in enumerate(self.states)]
            inputs = ["Tensor gradient", *states]
            settings += ["int stream=0"] if self.states else []
            result = "Tensor" if self.fixed else "(Tensor, Tensor)"
        elif kind == "decode":
            inputs = ["Tensor payload", *sizes, "SymInt n"]
            settings = ["ScalarType dtype=float32", *settings]
        else:
            inputs = ["Tensor[] payloads", *sizes, "SymInt n"]
        arguments = [*inputs, *(["*", *settings] if settings else [])]
        return f"{kind}_{self.tag}({', '.join(arguments)}) -> {result}"

    def tensorflow_op(self, kind: str) -> str:
        """Return a REGISTER_OP statement's calls, one a line."""
        settings = self.parameters("{name}: {type}", " = ")
        if kind == "encode":
            states = [f"{s}: {'int64' if s == 'step' else 'float'}" for s in self.states]
            attrs = ["T: {float, half, bfloat16}", *settings]
            attrs += ["stream: int = 0"] if states else []
            inputs = ["gradient: T", *states]
            outputs = ["payload: uint8", *([] if self.fixed else ["size: int64"])]
            outputs += [f"new_{state}" for state in states]
        else:
            many = kind == "decode_sum"
            first = "N: int >= 1" if many else "T: {float, half, bfloat16} = DT_FLOAT"
            attrs, count, s = [first, *settings], "N * " if many else "", "s" if many else ""
            sizes = [] if self.fixed else [f"size{s}: {count}int64"]
            inputs = [f"payload{s}: {count}uint8", *sizes, "n: int64"]
            outputs = [f"gradient: {'float' if many else 'T'}"]
        calls = [("Attr", attrs), ("Input", inputs), ("Output", outputs)]
        return "\n    ".join(f'.{call}("{text}")' for call, texts in calls for text in texts)

    def signature(self, framework: str) -> list[str]:
        """Return the operators as comments in the wrapper."""
        params, size = self.program.params, [] if self.fixed else ["size"]
        settings = [f"{p.name}={'...' if p.default is None else p.default}" for p in params]
        names = [f"{kind}_{self.tag}" for kind in ("encode", "decode", "decode_sum")]
        results, stream = ["payload", *size], ["stream=0"] if self.states else []
        if framework == "tensorflow":
            kinds = ("Encode", "Decode", "DecodeSum")
            names = [_tensorflow_name(f"{kind}{_camel(self.tag)}") for kind in kinds]
            results += [f"new_{state}" for state in self.states]
        encode = ", ".join(["gradient", *self.states, *settings, *stream])
        decode = ", ".join(["payload", *size, "...", *settings])
        return [
            f"{names[0]}({encode}) -> {', '.join(results)}",
            f"{names[1]}({decode}) -> gradient",
            f"{names[2]}({decode.replace('payload', 'payloads')}) -> sum",
            *(f"{p.name}: {p.allowed()}{': ' + p.doc if p.doc else ''}" for p in params),
        ]


def _camel(tag: str) -> str:
    """Return a type in the name of a TensorFlow operator: "Onebit" of onebit, "_2bit" of 2bit."""
    words = tag.split("_")
    return "".join(w[:1].upper() + w[1:] if w[:1].isalpha() else f"_{w}" for w in words)


def _tensorflow_name(operator: str) -> str:
    """Return TensorFlow's Python name of an operator: encode_tern_grad for EncodeTernGrad."""
    return re.sub("(?<=[a-z])(?=[A-Z])|(?<!^)(?=[A-Z][a-z])", "_", operator).lower()


_HEAD = """// Generated by CompLL from $file; do not edit.
//
// Operators, in Python:
$signature
"""

_WRAPPERS = {
    "mxnet": Template(
        _HEAD
        + """#include "operator/frameworks/mxnet_operators.h"

namespace $space {

struct Name {
  static const char* Type() { return "$name"; }
};

using Encode = hipress::mxnet_ops::Thunks<Name, hipress::mxnet_ops::Encode>;
using Decode = hipress::mxnet_ops::Thunks<Name, hipress::mxnet_ops::Decode<false>>;
using DecodeSum = hipress::mxnet_ops::Thunks<Name, hipress::mxnet_ops::Decode<true>>;

}  // namespace $space
"""
    ),
    "torch": Template(
        _HEAD
        + """#include "operator/frameworks/torch_operators.h"

namespace $space {

constexpr char kType[] = "$name";
constexpr char kEncode[] =
    "$encode_schema";
constexpr char kDecode[] =
    "$decode_schema";
constexpr char kDecodeSum[] =
    "$sum_schema";

}  // namespace $space
"""
    ),
    "tensorflow": Template(
        _HEAD
        + """#include "operator/frameworks/tensorflow_operators.h"

namespace $space {

struct Name {
  static const char* Type() { return "$name"; }
  static std::vector<hipress::tensorflow_ops::Param> Params() { return $params; }
};

using Encode = hipress::tensorflow_ops::Encode<Name>;
using Decode = hipress::tensorflow_ops::Decode<Name, false>;
using DecodeSum = hipress::tensorflow_ops::Decode<Name, true>;

}  // namespace $space
"""
    ),
}

_REGISTRATIONS = {
    "mxnet": Template("""// Generated by CompLL from $file; do not edit.
#include "${tag}_mxnet.h"

// MXNet's namespace contrib: mx.nd.contrib.encode_$tag and so on. Called by mx.library.load.
mxnet::ext::MXReturnValue initialize(int version) {
  (void)version;
  hipress::client::RegisterOwnAlgorithm(reinterpret_cast<const void*>(&initialize));
  $space::Encode::Register("_contrib_encode_$tag");
  $space::Decode::Register("_contrib_decode_$tag");
  $space::DecodeSum::Register("_contrib_decode_sum_$tag");
  return mxnet::ext::MX_SUCCESS;
}
"""),
    "torch": Template("""// Generated by CompLL from $file; do not edit.
#include "${tag}_torch.h"

// torch.ops.compll.encode_$tag and so on. Runs when torch.ops.load_library loads the library.
TORCH_LIBRARY_FRAGMENT(compll, library) {
  using namespace hipress::torch_ops;  // NOLINT(build/namespaces): of this file alone
  hipress::client::RegisterOwnAlgorithm(reinterpret_cast<const void*>(&$space::kType));
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  library.def(torch::schema($space::kEncode), tags);
  library.def(torch::schema($space::kDecode), tags);
  library.def(torch::schema($space::kDecodeSum), tags);
  Implement<Encode>(&library, "encode_$tag", $space::kType);
  Implement<Decode>(&library, "decode_$tag", $space::kType);
  Implement<DecodeSum>(&library, "decode_sum_$tag", $space::kType);
}
"""),
    "tensorflow": Template("""// Generated by CompLL from $file; do not edit.
#include "${tag}_tensorflow.h"

namespace tensorflow {

// The operators of tf.load_op_library(...). Runs when the library is loaded.
const bool registered = [] {
  hipress::client::RegisterOwnAlgorithm(reinterpret_cast<const void*>(&registered));
  return true;
}();

REGISTER_OP("Encode$camel")
    $encode_op
    .SetShapeFn($space::Encode::Shape);
REGISTER_OP("Decode$camel")
    $decode_op
    .SetShapeFn($space::Decode::Shape);
REGISTER_OP("DecodeSum$camel")
    $sum_op
    .SetShapeFn($space::DecodeSum::Shape);

REGISTER_KERNEL_BUILDER(Name("Encode$camel").Device(DEVICE_CPU), $space::Encode);
REGISTER_KERNEL_BUILDER(Name("Decode$camel").Device(DEVICE_CPU), $space::Decode);
REGISTER_KERNEL_BUILDER(Name("DecodeSum$camel").Device(DEVICE_CPU), $space::DecodeSum);

}  // namespace tensorflow
"""),
}
