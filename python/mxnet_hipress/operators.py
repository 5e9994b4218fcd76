"""Every codec as operators of MXNet, for mx.nd, mx.sym and hybridized blocks.

    mx.nd.contrib.encode_<type>(gradient, <states>..., step, <parameters>, stream=0)
    mx.nd.contrib.decode_<type>(payload[, size], shape=..., dtype="float32", <parameters>)
    mx.nd.contrib.decode_sum_<type>(payload, ..., [size, ...], num_args=..., shape=...)

>>> import mxnet_hipress, mxnet as mx
>>> mxnet_hipress.load_operators()
>>> gradient = mx.nd.random.normal(shape=(10, 100))
>>> states = mxnet_hipress.operators.new_states("onebit", gradient)
>>> payload = mx.nd.contrib.encode_onebit(gradient, *states)      # updates residual and step
>>> decoded = mx.nd.contrib.decode_onebit(payload, shape=(10, 100))

Gradients are float32 or float16, states float32 of the gradient's size, `step` int64 of shape (1,);
payloads are uint8. Where a payload's length depends on the values (dgc, graddrop), encoders return
(payload, size): the greatest length, and how much of it counts. In a symbol, states are variables
with a shape (MXNet cannot infer it), which it calls auxiliary states; in a block, parameters that
are not differentiable. Operators run on the CPU and have no backward: BlockGrad after the last of
them tells MXNet so. Errors are MXNetError.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
from pathlib import Path

import mxnet as mx

from hipress.compression.compiler.runtime.native import compile_cached, include_directory
from hipress.compression.compressor import Compressor, codecs
from hipress.native import library

_NAME = "libhipress_mxnet_ops.so"
_loaded: set[str] = {"none"}  # "none" is an identity, which MXNet has


def register() -> None:
    """Load the operators of codecs that have none; compiler.load() does so for later codecs.

    :raises BuildError: if the library was not built with MXNet at hand and cannot be compiled now
    """
    missing = set(codecs()) - _loaded
    if not missing:
        return
    library = _library()
    if len(_loaded) == 1:
        _load(library)
    for type_ in sorted(missing):
        # MXNet loads a file once. A copy named after a type has the operators of that type.
        if not hasattr(mx.nd.contrib, operator_name("encode", type_)):
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder, f"libhipress_mxnet_ops@{type_}.so")
                shutil.copy(library, copy)
                _load(copy)
    _loaded.update(missing)
    for type_ in _loaded - {"none"}:
        _guard_symbol(operator_name("encode", type_), len(new_states(type_, mx.nd.zeros(1))))


def new_states(type_: str, gradient: mx.nd.NDArray) -> list[mx.nd.NDArray]:
    """Return zero states and the step of encode_<type>, for gradients of this shape."""
    codec = Compressor(type_)
    if not codec.uses_step:
        return []
    states = [mx.nd.zeros(gradient.shape, dtype="float32") for _ in codec.state_names]
    return [*states, mx.nd.zeros((1,), dtype="int64")]


def operator_name(kind: str, type_: str) -> str:
    """Return the name in mx.nd.contrib, for example "encode_2bit"."""
    return f"{kind}_{re.sub(r'[^0-9a-zA-Z]', '_', type_)}"


def _guard_symbol(name: str, states: int) -> None:
    """Make mx.sym.contrib.<name> refuse states of unknown shape.

    MXNet 1.9 overruns a buffer when an extension's operator has inputs of known and of unknown
    shape. It adds up the numbers of dimensions, in which unknown is -1.
    """
    if states == 0:
        return
    function = getattr(mx.sym.contrib, name)

    @functools.wraps(function)
    def guarded(*inputs: mx.sym.Symbol, **settings: object) -> mx.sym.Symbol:
        shaped = [state.attr("__shape__") is not None for state in inputs[1:]]
        if len(shaped) != states or not all(shaped):
            raise mx.MXNetError(
                f"{name} needs a gradient and {states} states, which are variables whose shape is "
                'said: mx.sym.var("residual", shape=...), and last step, of shape (1,)'
            )
        return function(*inputs, **settings)

    setattr(mx.sym.contrib, name, guarded)


def _load(path: Path) -> None:
    mx.library.load(os.fspath(path.resolve()), verbose=False)


def _library() -> Path:
    """Return the operators' library of the build, or compile one against MXNet's headers."""
    built = library.library_path().resolve().parent / _NAME
    if built.exists():
        return built
    include, home = include_directory(), Path(mx.__file__).parent
    sources = sorted((include / "operator/frameworks").glob("*"))
    native = library.library_path().resolve().parent
    api = [include, include.parent / "include"]  # in the package, or in the source tree
    flags = [f"-I{path}" for path in (*api, home / "include", home / "src")]
    flags += ["-O1", "-w", f"-L{native}", f"-Wl,-rpath,{native}", "-lhipress", "-ldl"]
    text = '#include "operator/frameworks/mxnet_library.cc"\n'
    return compile_cached("hipress_mxnet_ops", text, flags, sources)


library.codec_listeners.append(register)
