"""Floats with all their bits in fewer bytes, in NumPy: the format is floats.h's.

A block of 1024 elements has a number that says how it is coded (:class:`_Block`), a mask of what is
not +0 if that is worth it, the exponents' codes, one plane of bits after the other, the other bits
of the elements, and the exponents that have no code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hipress.compression.compiler.backends.numpy import packing
from hipress.compression.compiler.compiler_errors import PayloadError

BLOCK = 1024
_RAW, _ZERO = 0, 7 << 8
_MOST_ESCAPES, _MOST_WIDTH, _SAMPLED = 511, 5, 16


class _Format(NamedTuple):
    """Positions of an element type's bits.

    :ivar shift: of the exponent
    :ivar exponents: its largest value
    :ivar upper: bits that are neither in the exponent nor in the byte that each element has
    """

    element: type
    shift: int
    exponents: int
    upper: tuple[int, ...] = ()


# In the order of CompllType: float32, float16, bfloat16.
_FORMATS = (
    _Format(np.uint32, 23, 0xFF),
    _Format(np.uint16, 10, 0x1F, (8, 9, 15)),
    _Format(np.uint16, 7, 0xFF),
)
_TYPES = {"float32": 0, "float16": 1, "uint16": 2}
_FLOAT32, _FLOAT16 = 0, 1


def most_bytes(n: int) -> int:
    """Return the most bytes that n float32 take."""
    return _table_bytes(n) + 4 * n + 7


def _table_bytes(n: int) -> int:
    return _up8(4 + 4 * -(-n // BLOCK))


def _up8(size: int) -> int:
    return -(-size // 8) * 8


def _plane(bits: np.ndarray) -> bytes:
    """Return a bit for each element, in whole words of 64."""
    data = np.packbits(bits != 0, bitorder="little").tobytes()
    return data.ljust(-(-bits.size // 64) * 8, b"\0")


def _padded(values: np.ndarray) -> bytes:
    data = values.tobytes()
    return data.ljust(_up8(len(data)), b"\0")


def pack(gradient: np.ndarray) -> bytes:
    """Return the payload of float32[n], float16[n], or uint16[n] that holds bfloat16."""
    type_ = _TYPES[gradient.dtype.name]
    elements = gradient.view(_FORMATS[type_].element)
    blocks = [_pack_block(elements[i : i + BLOCK], type_) for i in range(0, gradient.size, BLOCK)]
    table = np.array([type_, *(number for number, _ in blocks)], np.uint32)
    return _padded(table) + b"".join(data for _, data in blocks)


def _pack_block(x: np.ndarray, type_: int) -> tuple[int, bytes]:
    """Return a block's number and bytes."""
    form = _FORMATS[type_]
    nonzero = np.count_nonzero(x)
    if nonzero == 0:
        return _ZERO, b""
    masked = 16 * (x.size - nonzero) >= x.size
    kept = x[x != 0] if masked else x
    brief = type_ == _FLOAT32 and not (x & 0xFFFF).any()
    exponents = (kept >> form.shift & form.exponents).astype(np.int64)
    base, width = _window(exponents[np.arange(kept.size) % 64 < _SAMPLED])
    top = (1 << width) - 1
    codes = np.where((exponents < base) | (exponents >= base + top), top, exponents - base)
    escaped = exponents[codes == top]
    parts = [_plane(x)] if masked else []
    parts += [_plane(codes >> p & 1) for p in range(width)]
    parts += [_plane(kept >> p & 1) for p in form.upper]
    parts.append(_padded(_byte(kept, type_)))
    if type_ == _FLOAT32 and not brief:
        parts.append(_padded((kept & 0xFFFF).astype(np.uint16)))
    parts.append(_padded(escaped.astype(np.uint8)))
    data, raw = b"".join(parts), _padded(x)
    if escaped.size > _MOST_ESCAPES or len(data) >= len(raw):
        return _RAW, raw
    number = base | width << 8 | brief << 11 | escaped.size << 12 | (masked and nonzero) << 21
    return int(number), data


def _window(sample: np.ndarray) -> tuple[int, int]:
    """Return (base, width), the cheapest for a sample of exponents, or the least of several."""
    counts = np.bincount(sample, minlength=256)
    low, high = int(sample.min()), int(sample.max())
    found = []
    for width in range(1, _MOST_WIDTH + 1):
        size = (1 << width) - 1
        bases = range(low, max(low, high - size + 1) + 1)
        within = [int(counts[base : base + size].sum()) for base in bases]
        most = max(within)
        bits = width * sample.size + 8 * (sample.size - most)
        found.append((bits, width, bases[within.index(most)]))
    _, width, base = min(found)
    return base, width


def _byte(x: np.ndarray, type_: int) -> np.ndarray:
    """Return uint8: the lower bits of a float16, otherwise sign and upper bits of the mantissa."""
    if type_ == _FLOAT16:
        return (x & 0xFF).astype(np.uint8)
    high = x >> (16 if type_ == _FLOAT32 else 0)
    return (high >> 8 & 0x80 | high & 0x7F).astype(np.uint8)


def _from_byte(byte: np.ndarray, type_: int) -> np.ndarray:
    if type_ == _FLOAT16:
        return byte
    return ((byte & 0x80) << 8 | byte & 0x7F) << (16 if type_ == _FLOAT32 else 0)


class _Block:
    """Parameters of a block, from its number.

    :raises PayloadError: if no block of ``n`` elements has it
    """

    def __init__(self, number: int, n: int, type_: int) -> None:
        self.n, self.type, self.form = n, type_, _FORMATS[type_]
        self.raw, self.zero = number == _RAW, number == _ZERO
        self.base, self.width = number & 0xFF, number >> 8 & 7
        self.brief, self.escapes = bool(number >> 11 & 1), number >> 12 & 0x1FF
        self.masked, self.kept = bool(number >> 21), number >> 21 & 0x3FF or n
        if self.raw or self.zero:
            return
        wrong = not 1 <= self.width <= _MOST_WIDTH or number >> 31 or self.escapes > self.kept
        masked_all = self.masked and self.kept >= n
        if wrong or masked_all or (self.brief and type_ != _FLOAT32):
            raise PayloadError("the payload must have blocks that can be")

    def sizes(self) -> list[int]:
        """Return the bytes of its parts."""
        if self.raw or self.zero:
            return [_up8(self.n * self.form.element().itemsize)] if self.raw else []
        plane = 8 * -(-self.kept // 64)
        lows = self.type == _FLOAT32 and not self.brief
        return [
            8 * -(-self.n // 64) if self.masked else 0,
            *[plane] * (self.width + len(self.form.upper)),
            _up8(self.kept),
            _up8(2 * self.kept) if lows else 0,
            _up8(self.escapes),
        ]

    def unpack(self, data: bytes) -> np.ndarray:
        """Return the block's elements."""
        element = self.form.element
        if self.raw or self.zero:
            whole = data if self.raw else bytes(self.n * element().itemsize)
            return np.frombuffer(whole, element)[: self.n]
        parts = np.split(np.frombuffer(data, np.uint8), np.cumsum(self.sizes())[:-1])
        mask, *planes, byte, lows, escaped = parts
        mask = _bits(mask, self.n) != 0 if self.masked else np.ones(self.n, bool)
        planes = [_bits(plane, self.kept).astype(np.uint32) for plane in planes]
        code = sum(plane << p for p, plane in enumerate(planes[: self.width]))
        open_ = code == (1 << self.width) - 1
        if np.count_nonzero(mask) != self.kept or np.count_nonzero(open_) != self.escapes:
            raise PayloadError("the payload must have as many codes as it says")
        exponent = code + self.base
        exponent[open_] = escaped[: self.escapes]
        bits = (exponent & self.form.exponents) << self.form.shift
        bits |= _from_byte(byte[: self.kept].astype(np.uint32), self.type)
        for p, plane in zip(self.form.upper, planes[self.width :]):
            bits |= plane << p
        if lows.size:
            bits |= lows.view(np.uint16)[: self.kept]
        out = np.zeros(self.n, element)
        out[mask] = bits.astype(element)
        return out


def _bits(plane: np.ndarray, count: int) -> np.ndarray:
    return np.unpackbits(plane, bitorder="little")[:count]


def unpack_elements(payload: bytes, n: int) -> tuple[np.ndarray, int]:
    """Return (elements, CompllType) of a payload of n floats.

    :returns: uint32[n] or uint16[n]
    :raises PayloadError: for a malformed payload
    """
    begin = _table_bytes(n)
    if len(payload) < begin:
        raise PayloadError(f"the payload must have at least {begin} bytes, not {len(payload)}")
    type_, *numbers = np.frombuffer(payload, np.uint32, 1 + -(-n // BLOCK)).tolist()
    if type_ >= len(_FORMATS):
        raise PayloadError("the payload must be of float32, float16 or bfloat16")
    blocks = [_Block(number, min(n - k * BLOCK, BLOCK), type_) for k, number in enumerate(numbers)]
    offsets = begin + np.cumsum([0, *(sum(block.sizes()) for block in blocks)])
    if offsets[-1] != len(payload):
        raise PayloadError(f"the payload must have {offsets[-1]} bytes, not {len(payload)}")
    parts = [block.unpack(payload[a:b]) for block, a, b in zip(blocks, offsets, offsets[1:])]
    return np.concatenate([np.zeros(0, _FORMATS[type_].element), *parts]), type_


def unpack(payload: bytes, n: int) -> np.ndarray:
    """Return float32[n] of a payload, as :func:`unpack_elements`."""
    elements, type_ = unpack_elements(payload, n)
    return packing.from_storage(elements.tobytes(), ("f32", "f16", "bf16")[type_]).copy()
