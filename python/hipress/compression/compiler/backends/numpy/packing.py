"""Vectors to and from the bytes of a payload, in NumPy."""

from __future__ import annotations

import numpy as np

_DENSE = {"f32": np.float32, "u32": np.uint32, "i32": np.int32, "u16": np.uint16}


def packed_bytes(count: int, bits: int, multiple: int) -> int:
    """Return the bytes of `count` codes, padded to a multiple of `multiple` codes and to a byte."""
    padded = -(-count // multiple) * multiple
    return -(-padded * bits // 8)


def pack(codes: np.ndarray, bits: int, order: str, multiple: int) -> bytes:
    """Return codes (ints below 2^bits) as bytes, the first at the lsb or msb end of byte 0."""
    size = packed_bytes(codes.size, bits, multiple)
    shifts = np.arange(bits) if order == "lsb" else np.arange(bits)[::-1]
    ones = ((codes.astype(np.int64)[:, None] >> shifts) & 1).astype(np.uint8).ravel()
    stream = np.zeros(size * 8, np.uint8)
    stream[: ones.size] = ones
    return np.packbits(stream, bitorder="little" if order == "lsb" else "big").tobytes()


def unpack(data: bytes, count: int, bits: int, order: str) -> np.ndarray:
    """Return int32[count] codes of packed bytes."""
    raw = np.frombuffer(data, np.uint8)
    stream = np.unpackbits(raw, bitorder="little" if order == "lsb" else "big")
    ones = stream[: count * bits].reshape(count, bits).astype(np.int32)
    shifts = np.arange(bits) if order == "lsb" else np.arange(bits)[::-1]
    return (ones << shifts).sum(axis=1, dtype=np.int32)


# Ascending indices (Elias, "Efficient storage and retrieval by content and address of static
# files", J. ACM 1974; Fano 1971): of k indices below n each one's lowest l bits as they are, l =
# log2(n / k) rounded down, and what is above them in unary, bit (index >> l) + j for index j. That
# takes about half a bit an index more than the best code of k random ones. From n / 4 on a mask of
# n bits is smaller.


def _low_bits(count: int, n: int) -> int:
    """Return the bits of an index that are packed as they are; 0: the indices are a mask."""
    return (n // count).bit_length() - 1 if 0 < 4 * count < n else 0


def ascending_bytes(count: int, n: int) -> int:
    """Return the bytes of ``count`` ascending indices below ``n``, 0 <= count <= n."""
    if count <= 0:
        return 0
    low = _low_bits(count, n)
    if low == 0:
        return -(-n // 8)
    return -(-(count + (n - 1 >> low)) // 8) + -(-count * low // 8)


def pack_ascending(index: np.ndarray, n: int) -> bytes:
    """Return the bytes of ascending indices: a mask, or unary parts and then lowest bits."""
    count = index.size
    if count == 0:
        return b""
    low = _low_bits(count, n)
    bits = n if low == 0 else count + (n - 1 >> low)
    mask = np.zeros(bits, np.uint8)
    mask[index if low == 0 else (index >> low) + np.arange(count)] = 1
    upper = np.packbits(mask, bitorder="little").tobytes()
    return upper if low == 0 else upper + pack(index & ((1 << low) - 1), low, "lsb", 1)


def unpack_ascending(data: bytes, count: int, n: int) -> np.ndarray | None:
    """Return int32[count] indices, or None if these are not the bytes of so many below ``n``."""
    if count == 0:
        return np.zeros(0, np.int32)
    low = _low_bits(count, n)
    bits = n if low == 0 else count + (n - 1 >> low)
    size = -(-bits // 8)
    ones = np.flatnonzero(np.unpackbits(np.frombuffer(data[:size], np.uint8), bitorder="little"))
    if ones.size != count:
        return None
    if low == 0:
        index = ones
    else:
        index = (ones - np.arange(count) << low) | unpack(data[size:], count, low, "lsb")
    if index[-1] >= n or (np.diff(index) <= 0).any():
        return None
    return index.astype(np.int32)


def to_float16(values: np.ndarray) -> np.ndarray:
    """Round float32 to float16 bits (uint16), to nearest even. NaNs become quiet, as in half.h."""
    bits = values.view(np.uint32)
    with np.errstate(all="ignore"):
        halves = values.astype(np.float16).view(np.uint16)
    nan = ((bits >> 16 & 0x8000) | 0x7E00 | (bits >> 13 & 0x3FF)).astype(np.uint16)
    return np.where(np.isnan(values), nan, halves)


def from_float16(halves: np.ndarray) -> np.ndarray:
    """Return float32 of float16 bits. NaNs become quiet."""
    wide = halves.view(np.float16).astype(np.float32)
    quiet = (wide.view(np.uint32) | 0x400000).view(np.float32)
    return np.where(np.isnan(wide), quiet, wide)


def to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Round float32 to bfloat16 bits (uint16), to nearest even."""
    bits = values.view(np.uint32)
    with np.errstate(over="ignore"):
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), bits >> 16 | 0x40, rounded).astype(np.uint16)


def from_bfloat16(halves: np.ndarray) -> np.ndarray:
    """Return float32 of bfloat16 bits."""
    return (halves.astype(np.uint32) << 16).view(np.float32)


def to_storage(values: np.ndarray, elem: str) -> np.ndarray:
    """Return the elements as memory of a storage type (not packed) holds them."""
    values = np.ascontiguousarray(values)
    if elem == "f16":
        return to_float16(values)
    if elem == "bf16":
        return to_bfloat16(values)
    return values.astype(_DENSE[elem])


def from_storage(data: bytes, elem: str) -> np.ndarray:
    """Return the elements of little-endian memory as the IR's values: float32, int32 or uint32."""
    if elem == "f16":
        return from_float16(np.frombuffer(data, np.uint16))
    if elem == "bf16":
        return from_bfloat16(np.frombuffer(data, np.uint16))
    values = np.frombuffer(data, _DENSE[elem])
    return values.astype(np.int32) if elem == "u16" else values
