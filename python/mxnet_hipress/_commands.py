"""Commands of workers to servers, beyond pushes and pulls."""

from __future__ import annotations

import enum
import struct

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
    """Command of worker 0, sent before its INIT_ROWS. Body: _rows.Rows with values."""
    INIT_ROWS = 0x48690005
    """Command of every worker, answered when all workers have sent it. Body: _rows.TableShape."""
    PUSH_ROWS = 0x48690006
    """Body: _rows.Rows with values."""
    PULL_ROWS = 0x48690007
    """Body: _rows.Rows without values. Answer: the values, which include this worker's pushes."""


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
