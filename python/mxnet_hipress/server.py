"""What a server does beyond summing: runs the optimizer, keeps its states, answers commands."""

from __future__ import annotations

import pickle
import threading
from types import ModuleType

import numpy as np
from hipress.node import HipressError, Node

from mxnet_hipress._commands import Head
from mxnet_hipress._compat import import_mxnet
from mxnet_hipress._sparse_server import SparseServer


class Server:
    """One server's optimizer and the commands around it.

    MXNet is imported when the first optimizer arrives: it takes seconds that a job without one
    need not spend.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._mx: ModuleType | None = None
        self._lock = threading.Lock()
        self._updater = None
        self._calls: dict[int, int] = {}
        self._applied = 0
        self._body = b""
        self._weights: dict[tuple[int, int, int], object] = {}
        self._sparse: SparseServer | None = None

    def control(self, worker: int, head: int, body: bytes) -> bytes:
        """Answers a command of a worker.

        :raises HipressError: with the sentence that the worker gets
        """
        if head == Head.SET_OPTIMIZER:
            self._set_optimizer(worker, body)
        elif head == Head.HAS_OPTIMIZER:
            return b"1" if self._updater else b""
        elif head == Head.GET_STATES:
            with self._lock:
                return self._needed().get_states(dump_optimizer=bool(body))
        elif head == Head.SET_STATES:
            with self._lock:
                self._needed().set_states(body)
        elif head == Head.START_SPARSE:
            if self._sparse is None:
                self._sparse = SparseServer(self._import(), self._update_sparse)
            return self._sparse.start(self._node, body)
        return b""  # as MXNet's servers answer heads that they do not know

    def close(self) -> None:
        """Ends what this server started."""
        if self._sparse is not None:
            self._sparse.close()

    def _import(self) -> ModuleType:
        if self._mx is None:
            self._mx = import_mxnet()
        return self._mx

    def _needed(self):  # noqa: ANN202 - mxnet.optimizer.Updater, which may not be imported yet
        if self._updater is None:
            raise HipressError("the servers have no optimizer: call set_optimizer first")
        return self._updater

    def _set_optimizer(self, worker: int, body: bytes) -> None:
        """All workers send the optimizer: the first one counts, unless rank 0's is another."""
        self._calls[worker] = self._calls.get(worker, 0) + 1
        late = self._calls[worker] <= self._applied
        if late and (worker != 0 or body == self._body):
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
            self._updater = mx.optimizer.get_updater(optimizer)
        self._applied = max(self._applied, self._calls[worker])
        self._body = body
        self._node.set_updater(self._update)

    def _update(self, key: int, _name: str, gradient: np.ndarray, weight: np.ndarray) -> None:
        """weight <- optimizer(weight, gradient), in place; float32[n] each."""
        mx = self._mx
        with self._lock:
            gradient_nd = mx.nd.from_numpy(gradient, zero_copy=True)
            where = (key, weight.ctypes.data, weight.size)
            weight_nd = self._weights.get(where)
            if weight_nd is None:
                weight_nd = self._weights[where] = mx.nd.from_numpy(weight, zero_copy=True)
            self._updater(key, gradient_nd, weight_nd)
            weight_nd.wait_to_read()
            # The memory of the gradient is not ours after the return.
            mx.base.check_call(mx.base._LIB.MXNDArrayWaitToWrite(gradient_nd.handle))

    def _update_sparse(self, key: int, gradient: object, weight: object) -> None:
        with self._lock:
            self._needed()(key, gradient, weight)
