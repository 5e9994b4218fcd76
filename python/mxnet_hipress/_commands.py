"""Commands of workers to servers, beyond pushes and pulls, and their bodies.

A row_sparse key's table is a matrix: one row per index of the first dimension, one column per
element of the remaining dimensions. A large table is partitioned by rows over the servers. Indices
in messages count from the first row of the server's share. Many rows are sent as several messages,
ordered by index.
"""

from __future__ import annotations

import ctypes
import enum
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Literal

import msgspec
import numpy as np

from hipress.dtypes import NUMPY

STORE_SHIFT = 32
"""Number of bits by which a store's number is shifted in the servers' key numbers."""

_STORE = struct.Struct("<I")


class Head(enum.IntEnum):
    """Head of a command, whose body starts with the store's number.

    0 is MXNet's. The other values are larger than those that scripts are likely to use.
    """

    SET_OPTIMIZER = 0
    """Body: pickled optimizer."""
    HAS_OPTIMIZER = 0x48690001
    """Answer: b"1" or b""."""
    GET_STATES = 0x48690002
    """Body: b"1" to include the optimizer. Answer: from mxnet.optimizer.Updater.get_states."""
    SET_STATES = 0x48690003
    """Body: the answer of GET_STATES."""
    SET_RATE = 0x48690008
    """Body: the learning rate, in digits."""
    VALUE_OF_ROWS = 0x48690004
    """Command of worker 0, sent before its INIT_ROWS. Body: Rows with values."""
    INIT_ROWS = 0x48690005
    """Command of every worker, answered when all workers have sent it. Body: TableShape."""
    PUSH_ROWS = 0x48690006
    """Body: Rows with values."""
    PULL_ROWS = 0x48690007
    """Body: Rows without values. Answer: the values, which include this worker's pushes."""


def pack(store: int, body: bytes) -> bytes:
    """Return the body of a command about a store."""
    return _STORE.pack(store) + body


def unpack(body: bytes) -> tuple[int, bytes]:
    """Return the store's number and the body that `pack` received."""
    if len(body) < _STORE.size:
        raise ValueError(f"a command's body starts with a store's number, got {len(body)} bytes")
    return _STORE.unpack_from(body)[0], body[_STORE.size :]


ROWS = (Head.VALUE_OF_ROWS, Head.INIT_ROWS, Head.PUSH_ROWS, Head.PULL_ROWS)
"""Commands about row_sparse keys."""
_HEADER = struct.Struct("<IBxxxQQ")
_INDEX = np.dtype("<i8")
MESSAGE_BYTES = 4 << 20
"""Approximate bytes of one message. Larger ones would delay heartbeats and other keys."""


class TableShape(msgspec.Struct, frozen=True):
    """Properties of a server's share of a table, on which all workers must agree."""

    name: str
    """The key as the user wrote it."""
    rows: Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]
    columns: Annotated[int, msgspec.Meta(gt=0, lt=1 << 40)]
    dtype: Literal[NUMPY]
    """A dtype of NumPy's, because tables are NumPy arrays."""
    sync: bool
    """Whether a push takes effect only when all workers have pushed."""

    def pack(self, index: int) -> bytes:
        """Return the body of INIT_ROWS."""
        return msgspec.json.encode({"index": index, **msgspec.structs.asdict(self)})

    @classmethod
    def unpack(cls, body: bytes) -> tuple[int, TableShape]:
        """Return the index and the shape from a body that :meth:`pack` made."""
        try:
            index = msgspec.json.decode(body, type=_Index).index
            return index, msgspec.json.decode(body, type=cls)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ValueError("a malformed description of a row_sparse key") from error


class _Index(msgspec.Struct):
    index: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]


@dataclass(frozen=True)
class Rows:
    """Rows of a table, or a request for them."""

    index: int
    """Number of the key for the store's optimizer."""
    ids: np.ndarray
    """int64[n], ascending."""
    values: np.ndarray | None = None
    """float32 or float16 [n, columns]; None: a request."""
    pushes: int = 0
    """Number of this worker's earlier pushes of the key, in a request."""
    last: bool = True
    """Whether this is the last message of a push."""

    def pack(self) -> bytes:
        """Return the body of VALUE_OF_ROWS, PUSH_ROWS or PULL_ROWS."""
        header = _HEADER.pack(self.index, self.last, self.pushes, len(self.ids))
        values = b"" if self.values is None else np.ascontiguousarray(self.values).tobytes()
        return header + self.ids.astype(_INDEX).tobytes() + values

    def pieces(self, columns: int, itemsize: int) -> Iterator[Rows]:
        """Yield the same rows in one or more pieces, none much larger than MESSAGE_BYTES."""
        count = max(1, MESSAGE_BYTES // (columns * itemsize))
        for begin in range(0, max(1, len(self.ids)), count):
            piece = slice(begin, begin + count)
            values = None if self.values is None else self.values[piece]
            last = begin + count >= len(self.ids)
            yield Rows(self.index, self.ids[piece], values, self.pushes, last)


def index_of(body: bytes) -> int:
    """Return the key's number from a body of :meth:`Rows.pack`."""
    if len(body) < _HEADER.size:
        raise ValueError(f"a message about rows has {_HEADER.size} bytes or more, got {len(body)}")
    return _HEADER.unpack_from(body)[0]


def unpack_rows(body: bytes, shape: TableShape, with_values: bool) -> Rows:
    """Decode a body of :meth:`Rows.pack` and check it against the table."""
    index_of(body)
    index, last, pushes, count = _HEADER.unpack_from(body)
    row = shape.columns * np.dtype(shape.dtype).itemsize if with_values else 0
    if len(body) != _HEADER.size + count * (_INDEX.itemsize + row):
        raise ValueError(
            f"a message about {count} rows of key {shape.name!r} cannot have {len(body)} bytes"
        )
    ids = np.frombuffer(body, _INDEX, count, _HEADER.size)
    if count and (ids[0] < 0 or ids[-1] >= shape.rows or (np.diff(ids) <= 0).any()):
        raise ValueError(
            f"the indices of rows of key {shape.name!r} must ascend from 0 to {shape.rows - 1}"
        )
    values = None
    if with_values:
        begin = _HEADER.size + count * _INDEX.itemsize
        values = np.frombuffer(body, shape.dtype, count * shape.columns, begin)
        values = values.reshape(count, shape.columns)
    return Rows(index, ids, values, pushes, bool(last))


def joined(pieces: list[Rows]) -> Rows:
    """Return pieces with values joined to one, in the order of their indices."""
    if len(pieces) == 1:
        return pieces[0]
    ids = np.concatenate([piece.ids for piece in pieces])
    if (np.diff(ids) <= 0).any():
        raise ValueError("the messages of a push of rows are not in the order of their indices")
    return Rows(pieces[0].index, ids, np.concatenate([piece.values for piece in pieces]))


def total(pushes: list[Rows]) -> Rows:
    """Return the float32 sum of all workers' pushes, added in the order of the list."""
    ids = np.unique(np.concatenate([push.ids for push in pushes]))
    values = np.zeros((len(ids), pushes[0].values.shape[1]), np.float32)
    for push in pushes:
        values[np.searchsorted(ids, push.ids)] += push.values
    return Rows(pushes[0].index, ids, values)


def memory(mx: ModuleType, array: object, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Return the memory of a row_sparse array's values. MXNet must not be computing the array."""
    pointer = ctypes.c_void_p()
    mx.base.check_call(mx.base._LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
    dtype = np.dtype(dtype)
    size = shape[0] * shape[1] * dtype.itemsize
    bytes_ = (ctypes.c_char * size).from_address(pointer.value)
    return np.frombuffer(bytes_, dtype).reshape(shape)
