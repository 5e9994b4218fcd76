"""Encode and decode gradients in this process, with the codecs that the stores use."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hipress import _lib

_FLAGS = {"float32": _lib.FLOAT32, "float16": _lib.FLOAT16, "bfloat16": _lib.BFLOAT16}
_STORAGE = {"float32": np.float32, "float16": np.float16, "bfloat16": np.uint16}


class CodecInfo(NamedTuple):
    """What the registry knows about a codec."""

    name: str
    summary: str
    params: list[str]
    """Names of the parameters it takes."""
    doc: str
    """A line per parameter: name, type, default, allowed values, meaning."""


def codecs() -> dict[str, CodecInfo]:
    """All registered codecs by name."""
    text = ctypes.c_char_p()
    _lib.check_call(_lib.lib.HipressListCodecs(ctypes.byref(text)))
    return {info["name"]: CodecInfo(**info) for info in json.loads(text.value)}


class Compressor:
    """One codec and, if it has error feedback, the residual of one gradient.

    >>> compressor = Compressor("2bit", threshold=0.5)
    >>> payload = compressor.encode(np.array([0.7, -0.2], np.float32))
    >>> compressor.decode(payload, 2)
    array([0.5, 0. ], dtype=float32)

    Not for use by several threads at a time. Gradients are float32, float16, or bfloat16 in the
    form of uint16 arrays (with ``dtype="bfloat16"``) or of ml_dtypes arrays.

    :param type: name of a codec, see :func:`codecs`
    :param threads: how many share the work on a large gradient; results do not depend on it
    :param params: the codec's own parameters, e.g. threshold
    :raises ValueError: for an unknown type or parameter, or a value out of range
    """

    def __init__(self, type: str, *, threads: int = 1, **params: object) -> None:
        self._handle = ctypes.c_void_p()
        self._size: int | None = None
        pairs = _lib.string_pairs({"type": type, **params})
        _lib.check_call(_lib.lib.HipressCodecCreate(*pairs, ctypes.byref(self._handle)))
        if threads != 1:
            _lib.check_call(_lib.lib.HipressCodecSetThreads(self._handle, threads))

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and _lib is not None:
            _lib.lib.HipressCodecFree(self._handle)

    def max_bytes(self, n: int, dtype: str = "float32") -> int:
        """Upper bound of the payload of n elements, in bytes (exact for fixed-size codecs)."""
        size = ctypes.c_int64()
        code = _lib.lib.HipressCodecMaxBytes(self._handle, n, _flag(dtype), ctypes.byref(size))
        _lib.check_call(code)
        return size.value

    def encode(self, gradient: np.ndarray, dtype: str | None = None) -> bytes:
        """Encodes gradient + residual, and keeps what the payload does not say as new residual.

        :param gradient: array of any shape; copied first if it is not C-contiguous
        :param dtype: needed only to call a uint16 array "bfloat16"
        :raises ValueError: for another dtype, or if the size differs from earlier gradients'
        """
        array = np.ascontiguousarray(gradient)
        name = dtype or array.dtype.name
        if array.dtype.itemsize != _itemsize(name):
            raise ValueError(f"an array of {array.dtype.name} cannot hold {name} gradients")
        payload = bytearray(self.max_bytes(array.size, name))
        written = ctypes.c_int64()
        code = _lib.lib.HipressCodecEncode(
            self._handle,
            array.ctypes.data,
            array.size,
            _flag(name),
            _address(payload),
            ctypes.byref(written),
        )
        _lib.check_call(code)
        self._size = array.size
        return bytes(memoryview(payload)[: written.value])

    def decode(
        self, payload: bytes, shape: int | tuple[int, ...], dtype: str = "float32"
    ) -> np.ndarray:
        """The decoded gradient, of the given shape and dtype (bfloat16 comes as uint16).

        :raises ValueError: if the payload is not a well-formed one of that many elements
        """
        out = np.empty(shape, _storage(dtype))
        data = np.frombuffer(payload, np.uint8)
        code = _lib.lib.HipressCodecDecode(
            self._handle, data.ctypes.data, data.size, out.size, _flag(dtype), out.ctypes.data
        )
        _lib.check_call(code)
        return out

    def decode_sum(
        self, payloads: Sequence[bytes], shape: int | tuple[int, ...], dtype: str = "float32"
    ) -> np.ndarray:
        """The float32 sum of the decoded payloads, added in the order given, as a server merges.

        :param dtype: of the encoded gradients; only the codec "none" looks at it
        :raises ValueError: if there is no payload, or one is not well-formed
        """
        out = np.empty(shape, np.float32)
        data = [np.frombuffer(payload, np.uint8) for payload in payloads]
        addresses = (ctypes.c_void_p * len(data))(*(array.ctypes.data for array in data))
        sizes = (ctypes.c_int64 * len(data))(*(array.size for array in data))
        code = _lib.lib.HipressCodecDecodeSum(
            self._handle, len(data), addresses, sizes, out.size, _flag(dtype), out.ctypes.data
        )
        _lib.check_call(code)
        return out

    @property
    def residual(self) -> np.ndarray | None:
        """What earlier payloads left unsaid, float32[n]; None before the first encode."""
        if self._size is None:
            return None
        out = np.empty(self._size, np.float32)
        code = _lib.lib.HipressCodecGetResidual(self._handle, out.size, out.ctypes.data)
        _lib.check_call(code)
        return out

    @residual.setter
    def residual(self, value: np.ndarray) -> None:
        array = np.ascontiguousarray(value, np.float32).ravel()
        code = _lib.lib.HipressCodecSetResidual(self._handle, array.size, array.ctypes.data)
        _lib.check_call(code)
        self._size = array.size


def _flag(dtype: str) -> int:
    name = _name(dtype)
    return _FLAGS[name]


def _storage(dtype: str) -> type[np.generic]:
    return _STORAGE[_name(dtype)]


def _itemsize(dtype: str) -> int:
    return np.dtype(_storage(dtype)).itemsize


def _name(dtype: str) -> str:
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in _FLAGS:
        raise ValueError(f"a gradient must be float32, float16 or bfloat16, not {name}")
    return name


def _address(buffer: bytearray) -> int | None:
    """Where a bytearray's memory begins; None if it is empty."""
    if not buffer:
        return None
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
