"""Worker's side of row_sparse keys, whose rows are sent to the servers' tables as commands.

Calls return at once, as for dense keys. Pushes and pulls are operations of MXNet's engine.
HiPress's own threads carry them out, two per server, so that a pull that waits for other workers
delays no push.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import mxnet as mx
import numpy as np
from mxnet.base import MXNetError

from hipress.dtypes import NAMES, NUMPY
from hipress.runtime.node import Node
from mxnet_hipress import _engine
from mxnet_hipress._commands import Head, Rows, TableShape, memory, pack
from mxnet_hipress._errors import sentences

if TYPE_CHECKING:
    from mxnet_hipress._keys import Key

_LARGE = 1_000_000
"""Elements from which MXNet partitions a key over all servers, unless MXNET_KVSTORE_BIGARRAY_BOUND
is set."""


@dataclass(frozen=True)
class _Share:
    """A server's part of a key's table: rows from `begin` to `end`."""

    server: int
    begin: int
    end: int

    def of(self, ids: np.ndarray) -> slice:
        """Return the slice of ascending indices that belongs to this server."""
        return slice(*np.searchsorted(ids, (self.begin, self.end)))


class SparseStore:
    """All row_sparse keys of this job."""

    def __init__(self, node: Node, sync: bool) -> None:
        self._node = node
        self._sync = sync
        self._pushes: Counter[int] = Counter()  # by key number
        self._lock = threading.Lock()  # guards the lanes
        self._pushers: dict[int, _Lane] = {}  # by server
        self._pullers: dict[int, _Lane] = {}

    def init(self, key: Key, value: mx.nd.NDArray) -> None:
        """Initialize a key with rank 0's value. Blocks.

        All workers initialize their keys in the same order.
        """
        if NAMES[key.dtype] not in NUMPY:
            raise MXNetError(
                f"row_sparse key {key.user_key!r} has dtype {NAMES[key.dtype]}; "
                f"such keys are {' or '.join(NUMPY)}"
            )
        shares = self._shares(key)
        if self._node.rank == 0:
            rows = _rows_of(key, value.as_in_context(mx.cpu()))
            for share in shares:
                self._send(key, share, Head.VALUE_OF_ROWS, rows)
        for share in shares:
            shape = TableShape(
                str(key.user_key),
                share.end - share.begin,
                _columns(key),
                NAMES[key.dtype],
                self._sync,
            )
            self._command(key, share, Head.INIT_ROWS, shape.pack(key.index))
        key.handle = _engine.key_handle(
            self._node.handle, key.number, key.name, key.size, key.dtype
        )

    def push(self, key: Key, arrays: list[mx.nd.NDArray], priority: int) -> None:
        """Push row_sparse gradients, one per device."""
        for array in arrays:
            if array.stype != "row_sparse":
                raise MXNetError(
                    f"key {key.user_key!r} is row_sparse: a {array.stype} gradient cannot be pushed"
                )
        key.check(arrays, "push")
        with mx.autograd.pause():
            arrays = [array.as_in_context(mx.cpu()) for array in arrays]
            # A copy: the script may change its array before the gradient is sent.
            total = mx.nd.add_n(*arrays) if len(arrays) > 1 else arrays[0].copy()
        self._pushes[key.number] += 1
        lock, rows = threading.Lock(), []

        def send(share: _Share) -> None:
            with lock:  # the first server's thread converts the rows
                if not rows:
                    rows.append(_rows_of(key, total))
            self._send(key, share, Head.PUSH_ROWS, rows[0])

        start = partial(self._each, self._pushers, key, send)
        _engine.schedule(key.handle, total, False, priority, start)

    def pull_rows(
        self, key: Key, arrays: list[mx.nd.NDArray], row_ids: mx.nd.NDArray, priority: int
    ) -> None:
        """Pull the rows `row_ids` into every array. Blocks only until `row_ids` is known."""
        for array in arrays:
            if array.shape != key.shape:  # as in MXNet's stores, the dtype may differ
                raise MXNetError(
                    f"cannot pull rows into shape {array.shape} for key {key.user_key!r}: "
                    f"it was initialized with shape {key.shape}"
                )
            if array.stype != "row_sparse":
                raise MXNetError(
                    f"rows of key {key.user_key!r} are pulled into row_sparse arrays, "
                    f"not into a {array.stype} one"
                )
        ids = np.unique(row_ids.asnumpy().reshape(-1)).astype(np.int64)
        if len(ids) and not 0 <= ids[0] <= ids[-1] < key.shape[0]:
            raise MXNetError(
                f"key {key.user_key!r} has rows 0 to {key.shape[0] - 1}, "
                f"and row_ids asks for {ids[0] if ids[0] < 0 else ids[-1]}"
            )
        dtype = np.dtype(NAMES[key.dtype])
        if len(ids) == 0:
            result = mx.nd.sparse.zeros("row_sparse", key.shape, dtype=dtype)
        else:
            result = self._pulled(key, ids, dtype, priority)
        with mx.autograd.pause():  # Gluon pulls inside what it records
            for array in arrays:
                result.copyto(array)

    def await_pushes(self, key: Key) -> None:
        """Block until the servers have applied all pushes of this worker."""
        with sentences():
            for share in self._shares(key):
                none = Rows(key.index, np.empty(0, np.int64), pushes=self._pushes[key.number])
                for piece in none.pieces(_columns(key), np.dtype(NAMES[key.dtype]).itemsize):
                    self._command(key, share, Head.PULL_ROWS, piece.pack())

    def close(self) -> None:
        """Stop the threads. No operation may be scheduled afterwards."""
        for lane in (*self._pushers.values(), *self._pullers.values()):
            lane.add(None)

    def _pulled(self, key: Key, ids: np.ndarray, dtype: np.dtype, priority: int) -> mx.nd.NDArray:
        shape = (len(ids), *key.shape[1:])
        result = mx.nd.sparse.row_sparse_array(
            (np.empty(shape, dtype), ids), shape=key.shape, dtype=dtype
        )
        values = memory(mx, result, (len(ids), _columns(key)), dtype)
        pushes = self._pushes[key.number]

        def fetch(share: _Share) -> None:
            part = share.of(ids)
            out, begin = values[part], 0
            rows = Rows(key.index, ids[part] - share.begin, pushes=pushes)
            for piece in rows.pieces(out.shape[1], out.itemsize):
                answer = self._command(key, share, Head.PULL_ROWS, piece.pack())
                end = begin + len(piece.ids)
                out[begin:end] = np.frombuffer(answer, dtype).reshape(-1, out.shape[1])
                begin = end

        start = partial(self._each, self._pullers, key, fetch)
        _engine.schedule(key.handle, result, True, priority, start)
        return result

    def _send(self, key: Key, share: _Share, head: Head, rows: Rows) -> None:
        part = share.of(rows.ids)
        rows = Rows(key.index, rows.ids[part] - share.begin, rows.values[part])
        for piece in rows.pieces(rows.values.shape[1], rows.values.itemsize):
            self._command(key, share, head, piece.pack())

    def _command(self, key: Key, share: _Share, head: Head, body: bytes) -> bytes:
        return self._node.command(share.server, head, pack(key.store, body))

    def _shares(self, key: Key) -> list[_Share]:
        """Return the servers' shares of a key, partitioned as MXNet does."""
        rows, servers = key.shape[0], self._node.num_servers
        if key.size < int(os.environ.get("MXNET_KVSTORE_BIGARRAY_BOUND", _LARGE)):
            return [_Share(key.index % servers, 0, rows)]
        cuts = [rows * server // servers for server in range(servers + 1)]
        shares = [_Share(s, *cuts[s : s + 2]) for s in range(servers)]
        return [share for share in shares if share.begin < share.end]

    def _each(
        self,
        lanes: dict[int, _Lane],
        key: Key,
        work: Callable[[_Share], None],
        end: Callable[[str], None],
    ) -> None:
        """Run the work for all servers of a key in parallel, and call `end` after all of it."""
        shares = self._shares(key)
        together = _Together(len(shares), end)
        for share in shares:
            with self._lock:  # MXNet's threads call this for several keys at the same time
                if share.server not in lanes:
                    lanes[share.server] = _Lane()
            lanes[share.server].add(partial(together.run, partial(work, share)))


class _Together:
    """Operation that ends when all of its parts have ended."""

    def __init__(self, parts: int, end: Callable[[str], None]) -> None:
        self._lock = threading.Lock()
        self._parts = parts
        self._end = end
        self._error = ""

    def run(self, work: Callable[[], None]) -> None:
        """Run one part."""
        error = ""
        try:
            work()
        except Exception as problem:  # reaches the code that waits for the array
            error = str(problem) or type(problem).__name__
        with self._lock:
            self._error = self._error or error
            self._parts -= 1
            if self._parts:
                return
        self._end(self._error)


class _Lane:
    """Thread that runs tasks one after the other."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="hipress rows", daemon=True).start()

    def add(self, work: Callable[[], None] | None) -> None:
        """Add a task, which must not raise. None stops the thread after all earlier tasks."""
        self._work.put(work)

    def _run(self) -> None:
        for work in iter(self._work.get, None):
            work()


def _columns(key: Key) -> int:
    return key.size // key.shape[0]


def _rows_of(key: Key, value: mx.nd.NDArray) -> Rows:
    ids = value.indices.asnumpy().astype(np.int64, copy=False)
    values = value.data.asnumpy() if len(ids) else np.empty(0, value.dtype)
    return Rows(key.index, ids, values.reshape(len(ids), _columns(key)))
