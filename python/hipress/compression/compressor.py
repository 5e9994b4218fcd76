"""Encoding and decoding of gradients in this process, with the codecs of the stores."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from hipress.compression import user_codecs  # noqa: F401 (loads them)
from hipress.dtypes import FLAGS, STORAGE
from hipress.native import library
from hipress.native.memory import payload_view, view

# "ratio (float, default=0.01): ...", the form in which every codec documents its parameters.
_PARAM = re.compile(r"^(\w+) \((\w+)(?:,[^)]*?default=([^)]*))?\)", re.MULTILINE)


class Param(NamedTuple):
    """Parameter of a codec."""

    name: str
    type: str
    """Its type as in a spec: float, int, uint8, ..."""
    default: float | int | None
    """Its default; None: it is required."""


class CodecInfo(NamedTuple):
    """Description of a codec in the registry."""

    name: str
    summary: str
    params: list[str]
    """Names of its parameters."""
    doc: str
    """A line per parameter: name, type, default, allowed values, meaning."""

    def typed_params(self) -> list[Param]:
        """Return the parameters with types and defaults."""
        found = []
        for name, kind, default in _PARAM.findall(self.doc):
            number = float if kind == "float" else int
            found.append(Param(name, kind, number(default) if default else None))
        return found


def codecs() -> dict[str, CodecInfo]:
    """Return all registered codecs by name."""
    found = json.loads(library.call(library.lib.HipressListCodecs))
    return {info["name"]: CodecInfo(**info) for info in found}


class Compressor:
    """One codec and, if it has error feedback, the residual of one gradient.

    >>> compressor = Compressor("2bit", threshold=0.5)
    >>> payload = compressor.encode(np.array([0.7, -0.2], np.float32))
    >>> compressor.decode(payload, 2)
    array([0.5, 0. ], dtype=float32)

    Gradients and payloads are arrays of NumPy (or ml_dtypes), PyTorch, MXNet, and other libraries
    with DLPack or the buffer protocol, in CPU memory. They are used in place; only an array that is
    not C-contiguous is copied first. Gradients are float32, float16 or bfloat16; a uint16 array
    holds bfloat16 if ``dtype`` is ``"bfloat16"``.

    Only one thread may use it at a time.

    Args:
        type: Name of a codec, see :func:`codecs`.
        threads: Number of threads that share the work on a large gradient. Results do not depend on
            it.
        params: The codec's own parameters, for example threshold.

    Raises:
        ValueError: For an unknown type or parameter, or a value out of range.
    """

    def __init__(self, type: str, *, threads: int = 1, **params: object) -> None:
        pairs = library.string_pairs({"type": type, **params})
        self._take(library.call(library.lib.HipressCodecCreate, *pairs))
        if threads != 1:
            library.call(library.lib.HipressCodecSetThreads, self._handle, threads)

    def _take(self, handle: int) -> None:
        self._handle = ctypes.c_void_p(handle)
        self._size: int | None = None
        about = library.call(library.lib.HipressCodecDescribe, self._handle)
        self.type: str = about.name.decode()
        """The codec's name."""
        self.config: str = about.config.decode()
        """Type and every parameter with its exact value: "type=2bit threshold=0.5"."""
        self.fixed_size = bool(about.fixed_size)
        """Whether every payload of n elements has max_bytes(n) bytes."""
        self.dense = bool(about.dense)
        """Whether the decoder is one pass that writes every element, and not a scatter."""
        self.granularity: int = about.granularity
        """Number of elements of which partitions' sizes must be multiples."""
        self.state_names = tuple(about.states[i].decode() for i in range(about.num_states))
        """Names of its states of a gradient, float32[n] each: "residual" and others."""
        self.uses_step = bool(about.uses_step)
        """Whether payloads depend on more than the gradient."""

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and library is not None:
            library.lib.HipressCodecFree(self._handle)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        # Two objects with the library's memory would free it twice.
        raise TypeError(
            "a Compressor cannot be copied or pickled: make another one, and give its "
            "load_state_dict() this one's state_dict()"
        )

    def for_sum_of(self, count: int) -> Compressor:
        """Return a compressor for sums of ``count`` gradients.

        It has the same algorithm with an adapted scale (2bit: the threshold times ``count``), and
        no residual yet.
        """
        scaled = object.__new__(Compressor)
        scaled._take(library.call(library.lib.HipressCodecForSumOf, self._handle, count))
        return scaled

    def max_bytes(self, n: int, dtype: str = "float32") -> int:
        """Return a bound of n elements' payload in bytes, exact for fixed-size codecs."""
        size = ctypes.c_int64()
        code = library.lib.HipressCodecMaxBytes(self._handle, n, _flag(dtype), ctypes.byref(size))
        library.check_call(code)
        return size.value

    def encode(self, gradient: Any, dtype: str | None = None, *, out: Any = None) -> Any:
        """Encode gradient + residual, and keep what is not in the payload as the residual.

        Args:
            gradient: Array of any shape.
            dtype: Needed only to declare a uint16 array as "bfloat16".
            out: Writable memory for the payload, uint8[max_bytes(n)] or longer. Nothing is
                allocated then.

        Returns:
            Bytes, or the written part of `out` (a slice of the same memory).

        Raises:
            ValueError: For another dtype, or if the size differs from earlier gradients'.
        """
        array, name = _gradient(gradient, "gradient", dtype)
        array = np.ascontiguousarray(array)
        limit = self.max_bytes(array.size, name)
        if out is None:
            payload = np.empty(limit, np.uint8)
        else:
            payload = payload_view(out, "out", writable=True)
            if payload.size < limit:
                raise ValueError(
                    f"out holds {payload.size} bytes; the payload of {array.size} elements of "
                    f"{self.type} needs max_bytes() = {limit}"
                )
        written = ctypes.c_int64()
        code = library.lib.HipressCodecEncode(
            self._handle,
            array.ctypes.data,
            array.size,
            FLAGS[name],
            payload.ctypes.data,
            ctypes.byref(written),
        )
        library.check_call(code)
        self._size = array.size
        if out is None:
            return payload[: written.value].tobytes()
        if getattr(out, "ndim", 0) != 1:
            return memoryview(payload)[: written.value]
        return out[: written.value]

    def decode(
        self,
        payload: Any,
        shape: int | Sequence[int] | None = None,
        dtype: str | None = None,
        *,
        out: Any = None,
    ) -> Any:
        """Return the decoded gradient, as a new NumPy array or `out`.

        Args:
            payload: Bytes-like, or an array of uint8.
            shape: Shape of the gradient; optional if `out` is given.
            dtype: float32 (the default), float16 or bfloat16 (which is returned as uint16).
            out: Writable contiguous array of the gradient's type and size.

        Raises:
            ValueError: If the payload is not a valid one of that many elements. `out` is then
                unchanged.
        """
        name, array, result = _output(shape, dtype, out)
        data = payload_view(payload)
        code = library.lib.HipressCodecDecode(
            self._handle, data.ctypes.data, data.size, array.size, FLAGS[name], array.ctypes.data
        )
        library.check_call(code)
        return result

    def decode_sum(
        self,
        payloads: Sequence[Any],
        shape: int | Sequence[int] | None = None,
        dtype: str = "float32",
        *,
        out: Any = None,
    ) -> Any:
        """Return the float32 sum of the decoded payloads, added in order, as a server merges them.

        Args:
            payloads: One payload or more.
            shape: Shape of the sum; optional if `out` is given.
            dtype: Type of the encoded gradients; used by "none" and "lossless" only.
            out: Writable contiguous float32 array for the sum.

        Raises:
            ValueError: If there is no payload, or one is not valid.
        """
        _, array, result = _output(shape, "float32", out)
        data = [payload_view(payload) for payload in payloads]
        addresses = (ctypes.c_void_p * len(data))(*(part.ctypes.data for part in data))
        sizes = (ctypes.c_int64 * len(data))(*(part.size for part in data))
        code = library.lib.HipressCodecDecodeSum(
            self._handle, len(data), addresses, sizes, array.size, _flag(dtype), array.ctypes.data
        )
        library.check_call(code)
        return result

    # State ----------------------------------------------------------------------

    @property
    def residual(self) -> np.ndarray | None:
        """Residual of earlier payloads, float32[n]; None before the first encode."""
        return None if self._size is None else self._state("residual")

    @residual.setter
    def residual(self, value: Any) -> None:
        self._set_state("residual", value)

    @property
    def step(self) -> int:
        """Number of encodes so far; with seed and stream the key of random numbers."""
        return self._steps()[0]

    @property
    def stream(self) -> int:
        """Number, 0 to 2^32 - 1, that distinguishes ranks or gradients with the same seed."""
        return self._steps()[1]

    @stream.setter
    def stream(self, value: int) -> None:
        self._set_steps(self.step, value)

    def state_dict(self) -> dict[str, Any]:
        """Return all state that the next encode depends on, for a checkpoint.

        Returns:
            type, config, step, stream, and states: float32[n] by name, empty before the first
            encode.
        """
        step, stream = self._steps()
        states = {}
        if self._size is not None:
            states = {name: self._state(name) for name in self.state_names}
            # A residual from another codec also waits in codecs without error feedback.
            if "residual" not in states and (left := self._state("residual")).any():
                states["residual"] = left
        return {
            "type": self.type,
            "config": self.config,
            "step": step,
            "stream": stream,
            "states": states,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state of :meth:`state_dict`. Parameters may differ.

        Raises:
            ValueError: If it is not the state of a compressor of this type.
        """
        missing = {"type", "step", "stream", "states"} - set(state)
        if missing:
            raise ValueError(f"a compressor's state lacks {', '.join(sorted(missing))}")
        if state["type"] != self.type:
            raise ValueError(
                f"the state is of compression type {state['type']}, not of {self.type}; a residual "
                "alone can be carried over: compressor.residual = state['states']['residual']"
            )
        states = {name: _flat_float32(value, name) for name, value in state["states"].items()}
        unknown = set(states) - {*self.state_names, "residual"}
        lacking = set(self.state_names) - set(states) if states else set()
        if unknown or lacking or len({array.size for array in states.values()}) > 1:
            raise ValueError(
                f"the states of {self.type} are {', '.join(self.state_names) or 'none'}, of one "
                f"size, not {', '.join(f'{k}[{v.size}]' for k, v in states.items())}"
            )
        if not states and self._size is not None:
            states = {name: np.zeros(self._size, np.float32) for name in self.state_names}
        for name, array in states.items():
            self._set_state(name, array)
        self._set_steps(state["step"], state["stream"])

    def roll_back(self, transaction: int) -> None:
        """Roll the states and the step back to those before a transaction of the engine.

        Later transactions are also rolled back. This has no effect if no encode has changed them
        since. Only encodes by the engine, in steps of buckets, belong to transactions.
        """
        library.call(library.lib.HipressCodecRollBack, self._handle, transaction)

    def _state(self, name: str) -> np.ndarray:
        out = np.empty(self._size, np.float32)
        where = out.size, out.ctypes.data
        library.call(library.lib.HipressCodecGetState, self._handle, name.encode(), *where)
        return out

    def _set_state(self, name: str, value: Any) -> None:
        array = _flat_float32(value, name)
        where = array.size, array.ctypes.data
        library.call(library.lib.HipressCodecSetState, self._handle, name.encode(), *where)
        self._size = array.size

    def _steps(self) -> tuple[int, int]:
        return library.call(library.lib.HipressCodecGetStep, self._handle)

    def _set_steps(self, step: int, stream: int) -> None:
        for name, value, bits in (("step", step, 64), ("stream", stream, 32)):
            if not 0 <= int(value) < 1 << bits:
                raise ValueError(f"{name} must be from 0 to 2^{bits} - 1, not {value}")
        library.call(library.lib.HipressCodecSetStep, self._handle, int(step), int(stream))


def _flag(dtype: Any) -> int:
    return FLAGS[_name(dtype)]


def _name(dtype: Any) -> str:
    """Return the name of an element type, given as a string, a NumPy type, or torch.float16."""
    name = str(dtype).rpartition(".")[2] if not isinstance(dtype, type) else np.dtype(dtype).name
    if name not in FLAGS:
        raise ValueError(f"a gradient must be float32, float16 or bfloat16, not {name}")
    return name


def _gradient(
    data: Any, what: str, dtype: Any = None, writable: bool = False
) -> tuple[np.ndarray, str]:
    """Return a view of a gradient's memory, and its element type by name."""
    array, found = view(data, what, writable)
    if dtype is None:
        return array, _name(found)
    name = _name(dtype)
    if found != name and (name, found) != ("bfloat16", "uint16"):
        raise ValueError(f"an array of {found} cannot hold {name} gradients")
    return array, name


def _output(shape: Any, dtype: Any, out: Any) -> tuple[str, np.ndarray, Any]:
    """Return element type, memory, and result of a decode."""
    if out is None:
        if shape is None:
            raise ValueError("decoding needs the gradient's shape, or an array `out` of its size")
        name = _name(dtype or "float32")
        array = np.empty(shape, STORAGE[name])
        return name, array, array
    array, name = _gradient(out, "out", dtype, writable=True)
    size = array.size if shape is None else int(np.prod(shape, dtype=np.int64))
    if array.size != size:
        raise ValueError(f"out has {array.size} elements, not the {size} of shape {shape}")
    return name, array, out


def _flat_float32(value: Any, what: str) -> np.ndarray:
    array, name = view(value, what)
    if name != "float32":
        raise ValueError(f"{what} must be float32, not {name}")
    return np.ascontiguousarray(array).reshape(-1)
