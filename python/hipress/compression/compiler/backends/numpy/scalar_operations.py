"""Definition of each scalar operation of the IR, in NumPy, for every backend."""

from __future__ import annotations

import math

import numpy as np

from hipress.compression.compiler.backends.numpy import floats, gaps, packing
from hipress.compression.compiler.ir.ir import OPS, Instr

_TYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "bool": np.bool_,
}
LANES = 32
EXTREMES = {
    "max": lambda a, b: np.where(a > b, a, b).astype(np.float32),
    "min": lambda a, b: np.where(a < b, a, b).astype(np.float32),
}


def spread(value: object, count: int, type_: str) -> np.ndarray:
    """Return a scalar for each of `count` elements; arrays stay."""
    if np.ndim(value):
        return value
    return np.full(count, value, _TYPES[type_])


def ordered(values: np.ndarray) -> np.ndarray:
    """Return uint32 keys in the order of float32 values: -NaN < -Inf < -0 < +0 < Inf < NaN."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return np.where(bits >> 31, ~bits, bits | np.uint32(0x80000000))


def take(values: np.ndarray, index: object, count: int) -> np.ndarray:
    """Return values[index], with the index clamped into the vector, and 0 from an empty one."""
    index = np.broadcast_to(np.asarray(index, np.int64), (count,))
    if values.size == 0:
        return np.zeros(count, values.dtype)
    return values[np.clip(index, 0, values.size - 1)]


def fold_blocks(values: np.ndarray, block: int, start: object, combine: object) -> np.ndarray:
    """Return one value for each block, in the order that defines a reduction.

    Element i of a block goes to lane i % 32; lanes begin with `start` and take their elements in
    order; then lane j takes in lane j + 16, + 8, + 4, + 2, + 1.
    """
    count = math.ceil(values.size / block)
    lanes = np.full((count, LANES), start, values.dtype)
    padded = np.zeros(count * block, values.dtype)
    padded[: values.size] = values
    valid = np.zeros(count * block, bool)
    valid[: values.size] = True
    rows = padded.reshape(count, block // LANES, LANES)
    valid = valid.reshape(rows.shape)
    for row in range(block // LANES):
        lanes = np.where(valid[:, row], combine(lanes, rows[:, row]), lanes)
    width = LANES
    while width > 1:
        width //= 2
        lanes = combine(lanes[:, :width], lanes[:, width : 2 * width])
    return lanes[:, 0] if count else np.zeros(0, values.dtype)


def compute(instr: Instr, args: list, params: dict) -> object:
    """Return the value of an operation on scalars or on arrays of elements."""
    op = instr.op
    if op == "const":
        value = instr.attrs["value"]
        return _TYPES[instr.type](value) if instr.type != "i64" else int(value)
    if op == "cast":
        return _finish(_cast(args[0], instr.args[0].type, instr.type), instr.type)
    if op in ("saturate", "wrap"):
        bits = instr.attrs["bits"]
        top = 2 ** (bits if isinstance(bits, int) else params[bits]) - 1
        if op == "wrap":
            return _finish(args[0] & top, instr.type)
        value = np.float32(args[0])
        clamped = np.where(value > 0, np.minimum(value, np.float32(top)), np.float32(0))
        return _finish(clamped.astype(np.int64), instr.type)
    if op == "bitcast":
        return np.asarray(args[0]).view(_TYPES[instr.type])[()]
    if op == "select":
        return _finish(np.where(args[0], args[1], args[2]), instr.type)
    if op in ("div", "mod") and instr.type in ("i32", "u32", "i64"):
        return _finish(_divide(op, *args), instr.type)
    if op in ("shl", "shr"):
        return _finish(_shift(op, args[0], args[1], instr.type), instr.type)
    if op == "ascending_bytes":
        return packing.ascending_bytes(*args)
    if op == "gaps_most":
        return gaps.most_bytes(*args)
    if op == "floats_bytes":
        return floats.most_bytes(*args)
    if instr.type == "i64":
        return OPS[op].python(*map(int, args))
    function = OPS[op].python or getattr(np, {"not": "logical_not"}.get(op, op))
    return _finish(function(*args), instr.type)


def _finish(value: object, type_: str) -> object:
    if type_ == "i64":
        return int(value)
    return np.asarray(value).astype(_TYPES[type_])[()]


def _cast(value: object, source: str, target: str) -> object:
    if source in ("f32", "f64") and target in ("i32", "u32", "i64"):
        value = np.asarray(value)
        # The largest float below 2^31, 2^32, 2^63. Larger values saturate, and NaN is 0.
        low, high = {
            "i32": (-(2.0**31), 2.0**31 - 128),
            "u32": (0.0, 2.0**32 - 256),
            "i64": (-(2.0**63), 2.0**63 - 2**39),
        }[target]
        clamped = np.clip(np.where(np.isnan(value), 0, value), low, high)
        return np.trunc(clamped).astype(np.int64)
    if source == "i64":
        value = np.int64(value)
    return np.asarray(value).astype(_TYPES[target])


def _divide(op: str, a: object, b: object) -> object:
    """Divide as C does, toward zero; x / 0 and x % 0 are 0."""
    a, b = np.asarray(a, np.int64), np.asarray(b, np.int64)
    safe = np.where(b == 0, 1, b)
    quotient = np.abs(a) // np.abs(safe) * np.sign(a) * np.sign(safe)
    return np.where(b == 0, 0, quotient if op == "div" else a - quotient * safe)


def _shift(op: str, value: object, by: object, type_: str) -> object:
    """Shift by the low five (i64: six) bits of `by`; signed types arithmetically."""
    by = np.asarray(by, np.int64) & (63 if type_ == "i64" else 31)
    value = np.asarray(value, np.int64)
    return value << by if op == "shl" else value >> by
