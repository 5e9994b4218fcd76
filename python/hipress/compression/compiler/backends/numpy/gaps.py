"""Ascending indices in as few bytes as their gaps need, in NumPy: the format is indices.h's.

Rice, "Some practical universal noiseless coding techniques", JPL Publication 79-22, 1979: of each
gap the lowest l bits as they are, what is above them in unary; l is a choice of each 32 gaps.
"""

from __future__ import annotations

import numpy as np

from hipress.compression.compiler.backends.numpy.packing import pack, packed_bytes, unpack

BLOCK, CHOICES = 32, 4


def most_bytes(count: int, n: int) -> int:
    """Return the most bytes of ``count`` or fewer ascending indices below ``n``."""
    if count <= 0:
        return 0
    bits = min(n, *(count * (low + 1) + (n - count >> low) for low in range(1, 32)))
    return _choice_bytes(count) + -(-bits // 8) + 1  # two parts are rounded up


def pack_gaps(index: np.ndarray, n: int) -> bytes:
    """Return the bytes of ascending indices below ``n``."""
    count = index.size
    if count == 0:
        return b""
    gaps, most = np.diff(index.astype(np.int64), prepend=-1) - 1, _most_low(count, n)
    choices = _choose(gaps, most)
    low = most - np.repeat(choices, BLOCK)[:count]
    stops = np.cumsum((gaps >> low) + 1)
    unary = np.zeros(stops[-1], np.uint8)
    unary[stops - 1] = 1
    place = np.arange(low.max())
    lowest = (gaps[:, None] >> place & 1)[place < low[:, None]]
    return pack(choices, 2, "lsb", 1) + _bits(lowest) + _bits(unary)


def unpack_gaps(data: bytes, count: int, n: int) -> np.ndarray | None:
    """Return int32[count] indices, or None if these are not the bytes of so many below ``n``."""
    if count == 0:
        return None if data else np.zeros(0, np.int32)
    begin, blocks = _choice_bytes(count), -(-count // BLOCK)
    if len(data) <= begin:
        return None
    choices = unpack(data[:begin], blocks, 2, "lsb")
    low = np.maximum(_most_low(count, n) - np.repeat(choices, BLOCK)[:count], 0).astype(np.int64)
    middle = begin + packed_bytes(int(low.sum()), 1, 1)
    if pack(choices, 2, "lsb", 1) != data[:begin] or len(data) <= middle or data[-1] == 0:
        return None
    bits = np.unpackbits(np.frombuffer(data[begin:middle], np.uint8), bitorder="little")
    ones = np.flatnonzero(np.unpackbits(np.frombuffer(data[middle:], np.uint8), bitorder="little"))
    if bits[low.sum() :].any() or ones.size != count or ones[-1] + 1 - count > n:
        return None
    place = np.arange(max(low.max(), 1))
    lowest = np.zeros((count, place.size), np.int64)
    lowest[place < low[:, None]] = bits[: low.sum()]
    parts = np.diff(ones, prepend=-1) - 1
    index = np.cumsum((parts << low) + (lowest << place).sum(axis=1) + 1) - 1
    return index.astype(np.int32) if index[-1] < n else None


def _choose(gaps: np.ndarray, most: int) -> np.ndarray:
    """Return int64[blocks]: the number of bits below ``most`` for which each block is shortest."""
    padded = np.zeros(-(-gaps.size // BLOCK) * BLOCK, np.int64)
    padded[: gaps.size] = gaps
    sizes = np.full(padded.size // BLOCK, BLOCK)
    sizes[-1] = gaps.size - BLOCK * (sizes.size - 1)
    blocks = padded.reshape(-1, BLOCK)
    costs = [(blocks >> most - c).sum(axis=1) - c * sizes for c in range(min(CHOICES, most + 1))]
    return np.argmin(costs, axis=0)


def _bits(bits: np.ndarray) -> bytes:
    return np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()


def _choice_bytes(count: int) -> int:
    return packed_bytes(-(-count // BLOCK), 2, 1)


def _most_low(count: int, n: int) -> int:
    """Return log2(n / count), rounded down."""
    return (n // count).bit_length() - 1 if 0 < count <= n else 0
