"""Operators of PyTorch for every codec, which torch.compile includes in its graphs.

    encode_<type>(gradient, <states>..., step, *, <parameters>, stream=0) -> payload[, size]
    decode_<type>(payload[, size], n, *, dtype=float32, <parameters>) -> gradient
    decode_sum_<type>(payloads[, sizes], n, *, <parameters>) -> float32 sum

>>> import torch, hipress.torch.ops as ops
>>> gradient = torch.randn(1000)
>>> states = ops.new_states("onebit", gradient)          # residual and step, both updated in place
>>> payload = torch.ops.hipress.encode_onebit(gradient, *states)
>>> decoded = torch.ops.hipress.decode_onebit(payload, 1000)

A gradient has any shape and float32, float16 or bfloat16. States are float32 of its size. `step` is
int64[1] on the CPU and counts encodes. Payloads are uint8. If the length depends on the values
(dgc, graddrop), a payload has the maximum length, so that shapes are known. `size`, int64[1], is
its used length. Operators are not differentiable. A codec without memory has no states.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from hipress.compression.compressor import Compressor, codecs
from hipress.dtypes import FLOAT32
from hipress.native import library
from hipress.torch.dtypes import FLAGS


class CpuKernels:
    """Kernels of the CPU. All tensors are checked, contiguous and on the kernels' device."""

    def encode(
        self,
        codec: Compressor,
        gradient: torch.Tensor,
        states: list[torch.Tensor],
        stream: int,
        payload: torch.Tensor,
    ) -> int | torch.Tensor:
        """Write the payload, and update the states, of which the last is the step, except that one.

        Return the payload's size, as a number or as int64[1].
        """
        step = int(states[-1]) if states else 0
        pointers = [state.data_ptr() for state in states[:-1]]
        written = ctypes.c_int64()
        # ctypes releases the GIL for the call.
        code = library.lib.HipressCodecEncodeWith(
            codec._handle,
            gradient.data_ptr(),
            gradient.numel(),
            FLAGS[gradient.dtype],
            len(pointers),
            (ctypes.c_void_p * len(pointers))(*pointers),
            step,
            stream & 0xFFFFFFFF,
            payload.data_ptr(),
            ctypes.byref(written),
        )
        library.check_call(code)
        payload[written.value :].zero_()  # the same bits in every run
        return written.value

    def decode(
        self, codec: Compressor, payload: torch.Tensor, size: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        """Write the values of a payload to ``out``."""
        code = library.lib.HipressCodecDecode(
            codec._handle,
            payload.data_ptr(),
            _length(payload, size),
            out.numel(),
            FLAGS[out.dtype],
            out.data_ptr(),
        )
        library.check_call(code)

    def decode_sum(
        self,
        codec: Compressor,
        payloads: list[torch.Tensor],
        sizes: list[torch.Tensor | None],
        out: torch.Tensor,
    ) -> None:
        """Write the sum of payloads, in this order, to float32 ``out``."""
        count = len(payloads)
        code = library.lib.HipressCodecDecodeSum(
            codec._handle,
            count,
            (ctypes.c_void_p * count)(*(payload.data_ptr() for payload in payloads)),
            (ctypes.c_int64 * count)(*map(_length, payloads, sizes)),
            out.numel(),
            FLOAT32,
            out.data_ptr(),
        )
        library.check_call(code)


def _length(payload: torch.Tensor, size: torch.Tensor | None) -> int:
    if size is None:
        return payload.numel()
    if not 0 <= int(size) <= payload.numel():
        raise ValueError(f"size says {int(size)} bytes of a payload of {payload.numel()}")
    return int(size)


BACKENDS: dict[str, Any] = {"cpu": CpuKernels()}
"""Kernels by device type. CUDA's are added when they are first needed."""


def new_states(type: str, gradient: torch.Tensor) -> list[torch.Tensor]:
    """Return new states of encode_<type> for gradients of this size, and its step: all zero."""
    codec, size, device = _codec(type, ()), gradient.numel(), gradient.device
    if not codec.uses_step:
        return []
    states = [torch.zeros(size, dtype=torch.float32, device=device) for _ in codec.state_names]
    return [*states, torch.zeros(1, dtype=torch.int64, device="cpu")]


def register() -> None:
    """Register the operators of codecs that have none, at import and after compiler.load()."""
    for name, info in codecs().items():
        # Without default parameters its arguments are unknown.
        complete = all(param.default is not None for param in info.typed_params())
        if name not in _registered and complete:
            _registered.add(name)
            _define(name)


_registered: set[str] = set()


@lru_cache(maxsize=1024)
def _codec(type: str, params: tuple[tuple[str, float | int], ...]) -> Compressor:
    """Return a codec for calls from any thread: its own states are never used."""
    return Compressor(type, **dict(params))


@lru_cache(maxsize=1024)
def _max_bytes(codec: Compressor, n: int, dtype: str) -> int:
    return codec.max_bytes(n, dtype)


def _define(type: str) -> None:
    """Define the three operators of one codec."""
    tag, codec = re.sub(r"\W", "_", type), _codec(type, ())
    params = codecs()[type].typed_params()
    settings = [
        f"{'float' if p.type == 'float' else 'int'} {p.name}"
        + ("" if p.default is None else f"={p.default!r}")
        for p in params
    ]
    count = len(codec.state_names) + 1 if codec.uses_step else 0
    names = [*codec.state_names, "step"][:count]
    mutated = [f"Tensor(a{i}!) {name}" for i, name in enumerate(names)]
    size, sizes = ([], []) if codec.fixed_size else (["Tensor? size"], ["Tensor[]? sizes"])

    def encode(gradient, *states, stream=0, **values):
        chosen, made = _codec(type, tuple(values.items())), encode_fake(gradient, *states, **values)
        payload = made if codec.fixed_size else made[0]
        written = _backend(gradient).encode(
            chosen, gradient.contiguous(), list(states), stream, payload
        )
        if count:
            states[-1].add_(1)
        if codec.fixed_size:
            return payload
        if not isinstance(written, torch.Tensor):
            written = torch.tensor([written], dtype=torch.int64)
        return payload, written

    def encode_fake(gradient, *states, stream=0, **values):
        chosen = _codec(type, tuple(values.items()))
        _check_dtype(gradient.dtype)
        if gradient.requires_grad:
            raise ValueError("encoding is not differentiable; give it tensor.detach()")
        if count:
            _check_states(chosen, gradient, states)
        dtype = str(gradient.dtype).removeprefix("torch.")
        max_bytes = _max_bytes(chosen, _count(gradient.numel()), dtype)
        payload = gradient.new_empty(max_bytes, dtype=torch.uint8)
        if codec.fixed_size:
            return payload
        return payload, gradient.new_empty(1, dtype=torch.int64)

    def decode(payload, *rest, dtype=torch.float32, **values):
        out = decode_fake(payload, *rest, dtype=dtype, **values)
        chosen, length = _codec(type, tuple(values.items())), None if len(rest) < 2 else rest[0]
        _backend(payload).decode(chosen, payload.contiguous(), length, out)
        return out

    def decode_fake(payload, *rest, dtype=torch.float32, **values):
        _codec(type, tuple(values.items()))
        _check_payload(payload)
        _check_dtype(dtype)
        return payload.new_empty(_count(rest[-1]), dtype=dtype)

    def decode_sum(payloads, *rest, **values):
        out = decode_sum_fake(payloads, *rest, **values)
        chosen = _codec(type, tuple(values.items()))
        lengths = (rest[0] if len(rest) > 1 else None) or [None] * len(payloads)
        if len(lengths) != len(payloads):
            raise ValueError(f"{len(payloads)} payloads need as many sizes, not {len(lengths)}")
        contiguous = [payload.contiguous() for payload in payloads]
        _backend(payloads[0]).decode_sum(chosen, contiguous, lengths, out)
        return out

    def decode_sum_fake(payloads, *rest, **values):
        _codec(type, tuple(values.items()))
        if not payloads:
            raise ValueError("a sum needs 1 payload or more, not 0")
        for payload in payloads:
            _check_payload(payload)
        return payloads[0].new_empty(_count(rest[-1]), dtype=torch.float32)

    def add(name, arguments, options, result, mutated, function, fake):
        listed = ", ".join([*arguments, *(["*", *options] if options else [])])
        schema = f"({listed}) -> {result}"
        name = f"hipress::{name}_{tag}"
        op = torch.library.custom_op(name, function, mutates_args=mutated, schema=schema)
        op.register_fake(fake)

    encoded = "Tensor" if codec.fixed_size else "(Tensor, Tensor)"
    stream = ["int stream=0"] if count else []
    gradient = ["Tensor gradient", *mutated]
    add("encode", gradient, [*settings, *stream], encoded, tuple(names), encode, encode_fake)
    payload = ["Tensor payload", *size, "SymInt n"]
    dtype = "ScalarType dtype=float32"
    add("decode", payload, [dtype, *settings], "Tensor", (), decode, decode_fake)
    payloads = ["Tensor[] payloads", *sizes, "SymInt n"]
    add("decode_sum", payloads, settings, "Tensor", (), decode_sum, decode_sum_fake)


# Checks ----------------------------------------------------------------------


def _backend(tensor: torch.Tensor) -> Any:
    kind = tensor.device.type
    if kind == "cuda" and kind not in BACKENDS:
        # Imported late, because only jobs with a GPU need the CUDA compiler.
        from hipress.torch.executors.cuda.kernels import CudaKernels

        BACKENDS[kind] = CudaKernels()
    if kind not in BACKENDS:
        raise NotImplementedError(
            f"HiPress's operators run on {', '.join(BACKENDS)} here, not on {kind}: there is no "
            "codec library for that device in this installation"
        )
    return BACKENDS[kind]


def _count(n: int) -> int:
    # A payload's length is a formula of n that torch cannot trace: a graph is for one n.
    if int(n) < 0:
        raise ValueError(f"an element count must be 0 or more, not {int(n)}")
    return int(n)


def _check_dtype(dtype: torch.dtype) -> None:
    if dtype not in FLAGS:
        raise ValueError(f"a gradient must be float32, float16 or bfloat16, not {dtype}")


def _check_states(
    codec: Compressor, gradient: torch.Tensor, states: Sequence[torch.Tensor]
) -> None:
    size = _count(gradient.numel())
    wanted = [(name, torch.float32, size) for name in codec.state_names]
    wanted.append(("step", torch.int64, 1))
    for (name, dtype, numel), state in zip(wanted, states):
        if state.dtype != dtype or int(state.numel()) != numel or not state.is_contiguous():
            raise ValueError(
                f"{name} of {codec.type} must be contiguous {dtype} of {numel} elements, not "
                f"{state.dtype} of shape {tuple(state.shape)}"
            )
        # Kernels get the step as a number, which must not wait for a device.
        device = torch.device("cpu") if name == "step" else gradient.device
        if state.device != device:
            raise ValueError(f"{name} must be on {device}, not on {state.device}")
        if state.requires_grad:
            raise ValueError(f"{name} requires grad, but encoding is not differentiable")


def _check_payload(payload: torch.Tensor) -> None:
    if payload.dtype != torch.uint8 or payload.dim() != 1:
        raise ValueError(
            f"a payload must be uint8[bytes], not {payload.dtype} of shape {tuple(payload.shape)}"
        )


register()
library.codec_listeners.append(register)
