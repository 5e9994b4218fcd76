"""Work of a server beyond summing: optimizers, their states, and commands."""

from __future__ import annotations

import pickle
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from hipress.runtime.node import HipressError, Later, Node
from mxnet_hipress._commands import ROWS, STORE_SHIFT, Head, unpack
from mxnet_hipress._compat import import_mxnet
from mxnet_hipress._sparse_server import SparseServer


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
        """Set the optimizer, which all workers send: the first one counts, unless rank 0's
        differs."""
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
        """Run the optimizer on weight and gradient, float32[n] each; changes the weight in
        place."""
        mx = self._mx
        with self._lock:
            updater = self._stores[key >> STORE_SHIFT].updater
            if updater is None:  # another store of this job has one
                weight[:] = gradient
                return
            gradient_nd = mx.nd.from_numpy(gradient, zero_copy=True)
            where = (key, weight.ctypes.data, weight.size)
            weight_nd = self._weights.get(where)
            if weight_nd is None:
                weight_nd = self._weights[where] = mx.nd.from_numpy(weight, zero_copy=True)
            updater(key & (1 << STORE_SHIFT) - 1, gradient_nd, weight_nd)
            weight_nd.wait_to_read()
            # The gradient's memory belongs to the caller after the return.
            mx.base.check_call(mx.base._LIB.MXNDArrayWaitToWrite(gradient_nd.handle))

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
