"""The worker's side of row_sparse keys: MXNet's own store, created when the first such key is."""

from __future__ import annotations

import ctypes
import os
import pickle
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import mxnet as mx
from mxnet.base import _LIB, KVStoreHandle, MXNetError, check_call
from mxnet.kvstore import KVStore as MXNetKVStore

from hipress.node import Node
from mxnet_hipress._commands import Head, pack
from mxnet_hipress._sparse_watch import SparseWatch

if TYPE_CHECKING:
    from mxnet_hipress._keys import Key, KeyTable


class _StockKVStore(MXNetKVStore):
    """MXNet's store without the destructor that waits for all other workers, dead or alive."""

    def __del__(self) -> None:
        """Nothing: SparseStore.close frees the handle."""


class SparseStore:
    """row_sparse keys of this job.

    :param sync: whether a push counts when all workers have pushed
    """

    def __init__(self, node: Node, sync: bool) -> None:
        self._node = node
        self._type = "dist_sync" if sync else "dist_async"
        self._kv: _StockKVStore | None = None
        self._watch: SparseWatch | None = None
        self._has_optimizer = False
        self._pushes: Counter[int] = Counter()  # by key
        self._names: dict[int, object] = {}
        self._purpose = ""

    @property
    def started(self) -> bool:
        """Whether the job has row_sparse keys."""
        return self._kv is not None

    def init(self, key: Key, value: mx.nd.NDArray) -> None:
        """Initialises a key; all workers do, in the same order."""
        if self._kv is None:
            self._start()
        with self._waiting(f"to initialise key {key.user_key!r}"):
            # Of the other ranks' values MXNet takes storage type, shape and dtype alone.
            self._kv.init(key.index, _all_rows(value) if self._kv.rank == 0 else value)
        self._names[key.index] = key.user_key

    def push(self, key: Key, arrays: list[mx.nd.NDArray], priority: int) -> None:
        """Pushes row_sparse gradients, one a device."""
        for array in arrays:
            if array.stype != "row_sparse":
                raise MXNetError(
                    f"key {key.user_key!r} is row_sparse: a {array.stype} gradient cannot be pushed"
                )
        self._kv.push(key.index, arrays, priority)
        self._pushes[key.index] += 1

    def pull(
        self, key: Key, arrays: list[mx.nd.NDArray], priority: int, ignore_sparse: bool
    ) -> None:
        """Pulls whole values, as far as MXNet's store does that."""
        self._kv.pull(key.index, arrays, priority, ignore_sparse)

    def row_sparse_pull(
        self, keys: KeyTable, key: object, out: object, priority: int, row_ids: object
    ) -> None:
        """Pulls the rows `row_ids`; key, out and row_ids as in MXNet's row_sparse_pull."""
        many = isinstance(key, (list, tuple))
        numbers = (
            [keys.get(k, "pull rows of").index for k in key]
            if many
            else (keys.get(key, "pull rows of").index)
        )
        self._kv.row_sparse_pull(numbers, out, priority, row_ids)

    def set_optimizer(self) -> None:
        """The servers have an optimizer now: MXNet's servers are to use it, too."""
        self._has_optimizer = True
        if self._kv is not None:
            self._kv._send_command_to_servers(0, "optimizer")

    def close(self) -> None:
        """Leaves in peace, when everything is done, without waiting for the other workers."""
        if self._kv is not None:
            check_call(_LIB.MXKVStoreSetBarrierBeforeExit(self._kv.handle, ctypes.c_int(0)))
            check_call(_LIB.MXKVStoreFree(self._kv.handle))
            self._kv = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    @contextmanager
    def _waiting(self, purpose: str) -> Iterator[None]:
        """For what MXNet's scheduler, which might be stopped, and all workers have a part in."""
        self._purpose, timeout = purpose, self._node.timeout
        try:
            with self._watch.within(
                timeout,
                f"waited {timeout} s for MXNet's scheduler, which server 0 runs, or for "
                f"another worker {purpose} (HIPRESS_TIMEOUT changes this)",
            ):
                yield
        finally:
            self._purpose = ""

    def _deserted(self) -> str:
        """Who has left in peace without what this worker waits for; empty if nobody has.

        Who has left had its pushes answered, so that all of them are among the servers' updates.
        """
        answers = [
            pickle.loads(self._node.command(server, Head.SPARSE_PROGRESS, pack(0, b"")))
            for server in range(self._node.num_servers)
        ]
        left = answers[0][0]
        if left and self._purpose:
            return f"{left} left the job, and this worker waited for all {self._purpose}"
        if not left or self._type != "dist_sync":
            return ""
        for key, pushes in self._pushes.copy().items():
            updates = max(updates[key] for _, updates in answers)  # not all servers hold each key
            if pushes > updates:
                return (
                    f"{left} left the job while push {updates + 1} of row_sparse key "
                    f"{self._names[key]!r} still waits: every worker must push equally often"
                )
        return ""

    def _tell(self, sentence: str) -> None:
        """All workers are to fail with this sentence."""
        self._node.command(0, Head.FAIL_JOB, pack(0, sentence.encode()))

    def _start(self) -> None:
        address = self._node.command(0, Head.START_SPARSE, pack(0, b""))
        for server in range(self._node.num_servers):
            self._node.command(server, Head.START_SPARSE, pack(0, address))
        host, port = pickle.loads(address)
        handle = KVStoreHandle()
        if self._watch is None:
            self._watch = SparseWatch(self._node, self._deserted, self._tell)
        environment = _environment(
            DMLC_ROLE="worker", DMLC_PS_ROOT_URI=host, DMLC_PS_ROOT_PORT=str(port)
        )
        with environment, self._waiting("to start the store of row_sparse keys"):
            check_call(_LIB.MXKVStoreCreate(self._type.encode(), ctypes.byref(handle)))
        self._kv = _StockKVStore(handle)
        if self._has_optimizer:
            self.set_optimizer()


def _all_rows(value: mx.nd.NDArray) -> mx.nd.NDArray:
    """The same value with every row stored: MXNet's server takes the rows that it is initialised
    with for all rows, in their order; it aborts if there are none."""
    rows = mx.nd.arange(value.shape[0], ctx=value.context, dtype="int64")
    return mx.nd.sparse.row_sparse_array((value.tostype("default"), rows), shape=value.shape)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Changes this process's environment for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
