"""Work of a server beyond summing: optimizers, their states, and tables of row_sparse keys."""

from __future__ import annotations

import pickle
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType

import numpy as np

from hipress.runtime.node import LATER, HipressError, Later, Node
from hipress.topology.graph import Role
from mxnet_hipress import _commands
from mxnet_hipress._commands import ROWS, STORE_SHIFT, Head, Rows, TableShape, unpack
from mxnet_hipress._compat import import_mxnet

_AHEAD = 16
"""Pushes of one worker that a server keeps before all workers have pushed. The next one waits."""


@dataclass
class _Store:
    """Optimizer of one of the workers' stores."""

    updater: object = None
    """mxnet.optimizer.Updater, or None if values are sums."""
    body: bytes = b""
    """Pickled optimizer of the updater."""
    calls: dict[int, int] = field(default_factory=dict)
    """Number of times that each worker has set the optimizer."""
    applied: int = 0
    """Number of times that a new optimizer has taken effect."""


class Server:
    """Optimizers and commands of one server.

    MXNet is imported when the first optimizer arrives, because the import takes seconds.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._mx: ModuleType | None = None
        self._lock = threading.Lock()
        self._stores: defaultdict[int, _Store] = defaultdict(_Store)
        self._weights: dict[tuple[int, int, int], object] = {}
        self._sparse = SparseServer(node, self._import, self._update_rows)

    def control(self, worker: int, head: int, body: bytes) -> bytes | Later:
        """Answer a command of a worker."""
        number, body = unpack(body)
        if head in ROWS:
            return self._sparse.control(worker, number, head, body)
        store = self._stores[number]
        if head == Head.SET_OPTIMIZER:
            self._set_optimizer(store, worker, body)
        elif head == Head.HAS_OPTIMIZER:
            return b"1" if store.updater else b""
        elif head == Head.GET_STATES:
            with self._lock:
                return _updater_of(store).get_states(dump_optimizer=bool(body))
        elif head == Head.SET_STATES:
            with self._lock:
                _updater_of(store).set_states(body)
        elif head == Head.SET_RATE:
            with self._lock:
                _updater_of(store).optimizer.lr = float(body)
        return b""  # MXNet's servers answer unknown heads in this way

    def _import(self) -> ModuleType:
        if self._mx is None:
            self._mx = import_mxnet()
            self._mx.optimizer.Test.update = _test_update
        return self._mx

    def _set_optimizer(self, store: _Store, worker: int, body: bytes) -> None:
        """Set the optimizer, which all workers send: the first counts, unless rank 0's differs."""
        store.calls[worker] = store.calls.get(worker, 0) + 1
        late = store.calls[worker] <= store.applied
        if late and (worker != 0 or body == store.body):
            return
        mx = self._import()
        try:
            optimizer = pickle.loads(body)
        except Exception as error:
            raise HipressError(
                f"the servers cannot load the optimizer ({error}): its class, and that of its "
                "lr_scheduler, must be in a module that they can import"
            ) from error
        with self._lock:
            store.updater = mx.optimizer.get_updater(optimizer)
        store.applied = max(store.applied, store.calls[worker])
        store.body = body
        self._node.set_updater(self._update)

    def _update(self, key: int, _name: str, gradient: np.ndarray, weight: np.ndarray) -> None:
        """Run the optimizer on gradient and weight, float32[n] each, in the weight's memory."""
        mx = self._mx
        with self._lock:
            updater = self._stores[key >> STORE_SHIFT].updater
            if updater is None:  # another store of this job has one
                weight[:] = gradient
                return
            gradient_array = mx.nd.from_numpy(gradient, zero_copy=True)
            memory = (key, weight.ctypes.data, weight.size)
            weight_array = self._weights.get(memory)
            if weight_array is None:
                weight_array = self._weights[memory] = mx.nd.from_numpy(weight, zero_copy=True)
            updater(key & (1 << STORE_SHIFT) - 1, gradient_array, weight_array)
            weight_array.wait_to_read()
            # The gradient's memory belongs to the caller after the return.
            mx.base.check_call(mx.base._LIB.MXNDArrayWaitToWrite(gradient_array.handle))

    def _update_rows(self, store: int, index: int, gradient: object, weight: object) -> None:
        with self._lock:
            _updater_of(self._stores[store])(index, gradient, weight)
            weight.wait_to_read()


def _test_update(self, index, weight, grad, state) -> None:
    """Update a weight as MXNet's optimizer for tests does, also for row_sparse weights.

    The original method raises after changing a row_sparse weight, which MXNet's servers ignore.
    """
    weight[:] += grad * self.rescale_grad
    weight.copyto(state)


def _updater_of(store: _Store):  # mxnet.optimizer.Updater, which may not be imported yet
    if store.updater is None:
        raise HipressError("the servers have no optimizer: call set_optimizer first")
    return store.updater


class _Table:
    """Rows of one key, in float32, as MXNet stores float16 keys with an optimizer."""

    def __init__(self, mx: ModuleType, shape: TableShape, values: np.ndarray) -> None:
        self.shape = shape
        self.completed = 0
        """Number of optimizer runs so far, in a synchronous table."""
        self.pushed: defaultdict[int, int] = defaultdict(int)
        """Number of each worker's pushes so far."""
        self.pieces: defaultdict[int, list[Rows]] = defaultdict(list)
        """Received parts of incomplete pushes, by worker."""
        self.waiting: defaultdict[int, deque[Rows]] = defaultdict(deque)
        """Pushes that wait for other workers' pushes, by worker."""
        self.late_since: float | None = None
        """Time at which a worker began to wait for the next update, or None."""
        self._mx = mx
        self._hold(values)

    def _hold(self, values: np.ndarray) -> None:
        ids = np.arange(self.shape.rows, dtype=np.int64)
        self._weight = self._mx.nd.sparse.row_sparse_array(
            (values, ids), shape=values.shape, dtype=np.float32
        )

    def values(self) -> np.ndarray:
        """Return the weight's memory, float32[rows, columns]."""
        shape = (self.shape.rows, self.shape.columns)
        return _commands.memory(self._mx, self._weight, shape, np.float32)

    def update(self, pushes: list[Rows], update: Callable[[object, object], None]) -> None:
        """Update the weight with the sum of the pushes, as row_sparse arrays. Blocks."""
        gradient = _commands.total(pushes)
        sparse, shape = self._mx.nd.sparse, (self.shape.rows, self.shape.columns)
        if len(gradient.ids):
            array = sparse.row_sparse_array(
                (gradient.values, gradient.ids), shape=shape, dtype=np.float32
            )
        else:
            array = sparse.zeros("row_sparse", shape)
        memory = self.values().ctypes.data
        update(array, self._weight)
        if self.values().ctypes.data != memory:
            # An optimizer has replaced the weight: add the rows of zeros that it has left out.
            ids = self._weight.indices.asnumpy()
            if len(ids) < self.shape.rows:
                values = np.zeros(shape, np.float32)
                values[ids] = self._weight.data.asnumpy()
                self._hold(values)
        self.completed += 1
        self.late_since = None


@dataclass
class _Init:
    """Key whose initialization is not yet complete on, or not yet reported to, all workers."""

    shapes: dict[int, TableShape] = field(default_factory=dict)
    """Shape from each worker."""
    informed: set[int] = field(default_factory=set)
    """Workers that have the result."""
    error: str | None = None


class SparseServer:
    """Tables of row_sparse keys. Only the serving thread uses them.

    Args:
        node: The node of this server.
        mx: Function that imports the mxnet module.
        update: ``update(store, index, gradient, weight)`` applies a store's optimizer, and blocks.
    """

    def __init__(
        self,
        node: Node,
        mx: Callable[[], ModuleType],
        update: Callable[[int, int, object, object], None],
    ) -> None:
        self._node = node
        self._mx = mx
        self._update = update
        self._values: defaultdict[tuple[int, int], list[bytes]] = defaultdict(list)
        self._inits: defaultdict[tuple[int, int], _Init] = defaultdict(_Init)
        self._tables: dict[tuple[int, int], _Table] = {}

    def control(self, worker: int, store: int, head: int, body: bytes) -> bytes | Later:
        """Answer a command about rows."""
        try:
            if head == Head.INIT_ROWS:
                return self._init(worker, store, *TableShape.unpack(body))
            key = store, _commands.index_of(body)
            if head == Head.VALUE_OF_ROWS:
                if worker == 0 and key not in self._tables:
                    self._values[key].append(body)
                return b""
            table = self._tables.get(key)
            if table is None:
                raise HipressError("this key has no rows here: initialize it first")
            rows = _commands.unpack_rows(body, table.shape, with_values=head == Head.PUSH_ROWS)
            if head == Head.PUSH_ROWS:
                return self._push(worker, store, table, rows)
            return self._pull(worker, store, table, rows)
        except ValueError as error:
            raise HipressError(f"worker {worker} sent {error}") from error

    def _init(self, worker: int, store: int, index: int, shape: TableShape) -> bytes | Later:
        key = store, index
        init = self._inits[key]
        init.shapes[worker] = shape
        missing = set(range(self._node.num_workers)) - init.shapes.keys()
        if missing:
            what = f", and this worker waited for all to initialize key {shape.name!r}"
            self._check_left(missing, what)
            return LATER
        if init.error is None:
            init.error = self._make(key, init)
        init.informed.add(worker)
        if len(init.informed) == self._node.num_workers:
            del self._inits[key]
        if init.error:
            raise HipressError(init.error)
        return b""

    def _make(self, key: tuple[int, int], init: _Init) -> str:
        """Make the table and return "", or return a message if the workers disagree."""
        messages, first = self._values.pop(key, []), init.shapes[0]
        for worker, shape in sorted(init.shapes.items()):
            if shape != first:
                return (
                    f"worker 0 initialized row_sparse key {first.name!r} as {_words(first)}, "
                    f"and worker {worker} key {shape.name!r} as {_words(shape)}"
                )
        values = np.zeros((first.rows, first.columns), np.float32)
        for message in messages:
            rows = _commands.unpack_rows(message, first, with_values=True)
            values[rows.ids] = rows.values
        self._tables[key] = _Table(self._mx(), first, values)
        return ""

    def _push(self, worker: int, store: int, table: _Table, rows: Rows) -> bytes | Later:
        if len(table.waiting[worker]) >= _AHEAD:
            self._check_progress(table, table.pushed[worker])
            return LATER
        pieces = table.pieces[worker]
        pieces.append(rows)
        if not rows.last:
            return b""
        push = _commands.joined(table.pieces.pop(worker))
        table.pushed[worker] += 1
        if not table.shape.sync:
            if len(push.ids):
                self._apply(store, table, [push])
            return b""
        table.waiting[worker].append(push)
        workers = range(self._node.num_workers)
        while all(table.waiting[w] for w in workers):
            self._apply(store, table, [table.waiting[w].popleft() for w in workers])
        return b""

    def _apply(self, store: int, table: _Table, pushes: list[Rows]) -> None:
        index = pushes[0].index
        try:
            table.update(pushes, partial(self._update, store, index))
        except Exception as error:
            own = isinstance(error, HipressError)
            what = str(error) if own else f"{type(error).__name__}: {error}"
            name = f"row_sparse key {table.shape.name!r}"
            self._node.fail_job(f"server {self._node.rank} cannot update {name}: {what}")
            raise

    def _pull(self, worker: int, store: int, table: _Table, rows: Rows) -> bytes | Later:
        done = table.completed if table.shape.sync else table.pushed[worker]
        if done < rows.pushes:
            if table.shape.sync:
                self._check_progress(table, rows.pushes)
            return LATER
        return table.values()[rows.ids].astype(table.shape.dtype, copy=False).tobytes()

    def _check_progress(self, table: _Table, pushes: int) -> None:
        """Fail the job if the missing workers cannot push any more, as far as is known."""
        name, push = table.shape.name, table.completed + 1
        missing = {w for w in range(self._node.num_workers) if table.pushed[w] < pushes}
        self._check_left(
            missing,
            f" while push {push} of row_sparse key {name!r} still waits: "
            "every worker must push equally often",
        )
        now, timeout = time.monotonic(), self._node.timeout
        if table.late_since is None:
            table.late_since = now
        elif now - table.late_since > timeout * 0.9:  # before the waiting worker times out
            names = ", ".join(f"worker {w}" for w in sorted(missing))
            self._fail(
                f"waited {timeout} s for {names} to push row_sparse key {name!r}, push {push} "
                "(HIPRESS_TIMEOUT changes this)"
            )

    def _check_left(self, missing: set[int], what: str) -> None:
        left = missing & {node.rank for node in self._node.nodes_left() if node.role == Role.WORKER}
        if left:
            who = " and ".join(f"worker {w}" for w in sorted(left))
            self._fail(f"{who} left the job{what}")

    def _fail(self, sentence: str) -> None:
        self._node.fail_job(sentence)
        raise HipressError(sentence)


def _words(shape: TableShape) -> str:
    mode = "synchronous" if shape.sync else "asynchronous"
    return f"{shape.rows} rows of {shape.columns} {shape.dtype} elements here, {mode}"
