"""What `compll -b -w -r` writes: a folder of sources that compiles and loads in a framework.

The body is the codec (backends/), the wrapper its operators in terms of the framework, the
registration what makes the framework know them; build.sh compiles them to one library, which calls
libhipress.so. All else that operators need is in src/operator/frameworks/<framework>_operators.h.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from string import Template

from hipress.compll.backends.cpp.program import generate
from hipress.compll.backends.cuda import program as cuda
from hipress.compll.ir.ir import Param, Program
from hipress.compll.passes.payload_size import PayloadSize
from hipress.compll.runtime.native import COMMON_FLAGS, include_directory

FRAMEWORKS = ("mxnet", "torch", "tensorflow")


def body(program: Program, target: str) -> dict[str, str]:
    """The codec alone, by file name.

    :param target: cpu, cuda or numpy
    :raises CompileError: if the target cannot express it
    """
    tag = program.identifier
    if target == "cpu":
        return {f"{tag}.cc": generate(program)}
    if target == "numpy":
        return {f"{tag}_numpy.py": _NUMPY.substitute(_values(program), source=repr(program.source))}
    return {f"{tag}.cu": cuda.generate(program)}


def wrapper(program: Program, framework: str) -> dict[str, str]:
    """The operators of a framework, by file name."""
    text = _fill(_WRAPPERS[framework], program, framework)
    return {f"{program.identifier}_{framework}.h": text}


def registration(program: Program, framework: str) -> dict[str, str]:
    """What registers the operators, and build.sh, by file name."""
    tag = program.identifier
    return {
        f"{tag}_{framework}.cc": _fill(_REGISTRATIONS[framework], program, framework),
        "build.sh": _build_script(program, framework),
    }


def load_line(program: Program, framework: str, folder: Path) -> str:
    """The Python that loads what build.sh made."""
    library = str(folder.resolve() / f"lib{program.identifier}_{framework}.so")
    return {
        "mxnet": f"mx.library.load({library!r})",
        "torch": f"torch.ops.load_library({library!r})",
        "tensorflow": f"tf.load_op_library({library!r})",
    }[framework]


# The operators' arguments ------------------------------------------------------------


@dataclass
class _Shape:
    """The inputs and outputs of a program's operators."""

    program: Program

    @property
    def states(self) -> list[str]:
        """Names of the tensors an encoder updates."""
        return [*self.program.states, "step"] if self.program.uses_step else []

    @property
    def fixed(self) -> bool:
        return PayloadSize(self.program.encode).fixed

    def listed(self, style: str) -> list[str]:
        """The parameters, as a framework's schema writes them."""
        return [_PARAMETERS[style](param) for param in self.program.params]

    def attributes(self, stream: bool) -> list[str]:
        return self.listed("tensorflow") + (["stream: int = 0"] if stream and self.states else [])

    def torch_schema(self, kind: str) -> str:
        settings = self.listed("torch")
        sizes = [] if self.fixed else ["Tensor? size" if kind == "decode" else "Tensor[]? sizes"]
        if kind == "encode":
            states = [f"Tensor(a{i}!) {name}" for i, name in enumerate(self.states)]
            inputs = ["Tensor gradient", *states]
            settings += ["int stream=0"] if self.states else []
            result = "Tensor" if self.fixed else "(Tensor, Tensor)"
        elif kind == "decode":
            inputs, result = ["Tensor payload", *sizes, "SymInt n"], "Tensor"
            settings = ["ScalarType dtype=float32", *settings]
        else:
            inputs, result = ["Tensor[] payloads", *sizes, "SymInt n"], "Tensor"
        arguments = [*inputs, *(["*", *settings] if settings else [])]
        return f"{kind}_{self.program.identifier}({', '.join(arguments)}) -> {result}"

    def tensorflow_op(self, kind: str) -> str:
        """A REGISTER_OP statement's calls, one a line."""
        lines = [f'.Attr("{text}")' for text in self.attributes(kind == "encode")]
        many = kind == "decode_sum"
        count = "N * " if many else ""
        if kind == "encode":
            lines.insert(0, '.Attr("T: {float, half, bfloat16}")')
            lines.append('.Input("gradient: T")')
            kinds = {name: "int64" if name == "step" else "float" for name in self.states}
            lines += [f'.Input("{name}: {kinds[name]}")' for name in self.states]
            lines.append('.Output("payload: uint8")')
            lines += [] if self.fixed else ['.Output("size: int64")']
            lines += [f'.Output("new_{name}: {kinds[name]}")' for name in self.states]
            return "\n    ".join(lines)
        if many:
            lines.insert(0, '.Attr("N: int >= 1")')
        else:
            lines.insert(0, '.Attr("T: {float, half, bfloat16} = DT_FLOAT")')
        lines.append(f'.Input("{"payloads" if many else "payload"}: {count}uint8")')
        if not self.fixed:
            lines.append(f'.Input("{"sizes" if many else "size"}: {count}int64")')
        lines += ['.Input("n: int64")', f'.Output("gradient: {"float" if many else "T"}")']
        return "\n    ".join(lines)

    def signature(self, framework: str) -> list[str]:
        """The operators as comments in the wrapper."""
        settings = [f"{p.name}={'...' if p.default is None else p.default}"
                    for p in self.program.params]  # fmt: skip
        tag, size = self.program.identifier, [] if self.fixed else ["size"]
        names = [f"{kind}_{tag}" for kind in ("encode", "decode", "decode_sum")]
        results, stream = ["payload", *size], ["stream=0"] if self.states else []
        if framework == "tensorflow":
            operators = (f"{kind}{_camel(tag)}" for kind in ("Encode", "Decode", "DecodeSum"))
            names = list(map(_tensorflow_name, operators))
            results += [f"new_{state}" for state in self.states]
        encode = ", ".join(["gradient", *self.states, *settings, *stream])
        decode = ", ".join(["payload", *size, "...", *settings])
        return [
            f"{names[0]}({encode}) -> {', '.join(results)}",
            f"{names[1]}({decode}) -> gradient",
            f"{names[2]}({decode.replace('payload', 'payloads')}) -> sum",
            *(f"{p.name}: {p.allowed()}{': ' + p.doc if p.doc else ''}"
              for p in self.program.params),
        ]  # fmt: skip


def _torch_parameter(param: Param) -> str:
    default = "" if param.default is None else f"={param.default!r}"
    return f"{'int' if param.integer else 'float'} {param.name}{default}"


def _tensorflow_parameter(param: Param) -> str:
    default = "" if param.default is None else f" = {param.default!r}"
    return f"{param.name}: {'int' if param.integer else 'float'}{default}"


_PARAMETERS = {"torch": _torch_parameter, "tensorflow": _tensorflow_parameter}


def _camel(tag: str) -> str:
    """A type in the name of a TensorFlow operator: "Onebit" of onebit, "_2bit" of 2bit."""
    words = tag.split("_")
    return "".join(w[:1].upper() + w[1:] if w[:1].isalpha() else f"_{w}" for w in words)


def _tensorflow_name(operator: str) -> str:
    """What TensorFlow calls an operator in Python: encode_tern_grad, if it is EncodeTernGrad."""
    return re.sub("(?<=[a-z])(?=[A-Z])|(?<!^)(?=[A-Z][a-z])", "_", operator).lower()


def _values(program: Program) -> dict[str, str]:
    tag = program.identifier
    return {
        "name": program.name,
        "tag": tag,
        "file": program.path.rsplit("/", 1)[-1],
        # A C++ namespace, and TensorFlow's names in camel case.
        "space": f"codec_{tag}",
        "camel": _camel(tag),
    }


def _fill(template: Template, program: Program, framework: str) -> str:
    shape = _Shape(program)
    flags = [f'{{"{p.name}", {str(not p.integer).lower()}}}' for p in program.params]
    return template.substitute(
        _values(program),
        signature="\n".join(f"//   {line}" for line in shape.signature(framework)),
        params="{" + ", ".join(flags) + "}",
        encode_schema=shape.torch_schema("encode"),
        decode_schema=shape.torch_schema("decode"),
        sum_schema=shape.torch_schema("decode_sum"),
        encode_op=shape.tensorflow_op("encode"),
        decode_op=shape.tensorflow_op("decode"),
        sum_op=shape.tensorflow_op("decode_sum"),
    )


# Templates ----------------------------------------------------------------------

_NUMPY = Template('''"""$name on NumPy, by CompLL's interpreter.

Generated by CompLL from $file; do not edit.
"""

from hipress import compll

SOURCE = $source


def coder(**params):
    """encode(gradient, states, step) -> bytes, decode(payload, n) -> float32[n]."""
    return compll.Interpreter(compll.optimize(compll.read_program(SOURCE, "$name")), **params)
''')

_HEAD = """// Generated by CompLL from $file; do not edit.
//
// Operators, in Python:
$signature
"""

_WRAPPERS = {
    "mxnet": Template(_HEAD + """#include "operator/frameworks/mxnet_operators.h"

namespace $space {

struct Name {
  static const char* Type() { return "$name"; }
};

using Encode = hipress::mxnet_ops::Thunks<Name, hipress::mxnet_ops::Encode>;
using Decode = hipress::mxnet_ops::Thunks<Name, hipress::mxnet_ops::Decode<false>>;
using DecodeSum = hipress::mxnet_ops::Thunks<Name, hipress::mxnet_ops::Decode<true>>;

}  // namespace $space
"""),
    "torch": Template(_HEAD + """#include "operator/frameworks/torch_operators.h"

namespace $space {

constexpr char kType[] = "$name";
constexpr char kEncode[] =
    "$encode_schema";
constexpr char kDecode[] =
    "$decode_schema";
constexpr char kDecodeSum[] =
    "$sum_schema";

}  // namespace $space
"""),
    "tensorflow": Template(_HEAD + """#include "operator/frameworks/tensorflow_operators.h"

namespace $space {

struct Name {
  static const char* Type() { return "$name"; }
  static std::vector<hipress::tensorflow_ops::Param> Params() { return $params; }
};

using Encode = hipress::tensorflow_ops::Encode<Name>;
using Decode = hipress::tensorflow_ops::Decode<Name, false>;
using DecodeSum = hipress::tensorflow_ops::Decode<Name, true>;

}  // namespace $space
"""),
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


def _build_script(program: Program, framework: str) -> str:
    # Late: generating code needs no native library.
    from hipress import _lib

    include = include_directory()
    native = _lib.library_path().resolve().parent
    api = include if (include / "hipress/c_api.h").exists() else include.parent / "include"
    tag = program.identifier
    return Template(_BUILD).substitute(
        framework=framework,
        python=sys.executable,
        probe=_PROBES[framework],
        library=f"lib{tag}_{framework}.so",
        sources=f'{tag}.cc {tag}_{framework}.cc{" $EXTRA" if framework == "mxnet" else ""}',
        flags=" ".join(COMMON_FLAGS),
        includes=" ".join(f'-I"{path}"' for path in dict.fromkeys((include, api))),
        native=native,
    )


_BUILD = """#!/bin/sh
# Compiles $library for the $framework of $$PYTHON; generated by CompLL.
set -e
cd "$$(dirname "$$0")"
PYTHON=$${PYTHON:-$python}
eval "$$("$$PYTHON" -c '$probe')"
$${CXX:-g++} $flags -march=native $$FLAGS $includes \\
  $sources -L"$native" -Wl,-rpath,"$native" -lhipress $$LIBS -ldl -o $library
"""

# Python that prints shell assignments of FLAGS, LIBS and (more sources) EXTRA.
_PROBES = {
    "mxnet": """
import importlib.util as u
home = u.find_spec("mxnet").submodule_search_locations[0]
print(f"FLAGS=-I{home}/include EXTRA={home}/src/lib_api.cc LIBS=")
""",
    "torch": """
import torch
from torch.utils import cpp_extension as c
flags = [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
flags += [f"-isystem{path}" for path in c.include_paths()]
where = c.library_paths()[0]
print("FLAGS=\\"%s\\" LIBS=\\"-L%s -ltorch -ltorch_cpu -lc10\\"" % (" ".join(flags), where))
""",
    "tensorflow": """
import os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf
flags = [f for f in tf.sysconfig.get_compile_flags() if not f.startswith("--std")]
flags = [f.replace("-I", "-isystem", 1) if f.startswith("-I") else f for f in flags]
print("FLAGS=\\"%s\\" LIBS=\\"%s\\"" % (" ".join(flags), " ".join(tf.sysconfig.get_link_flags())))
""",
}
