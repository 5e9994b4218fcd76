"""The optimizer of a store without servers: each worker runs it itself, on the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import mxnet as mx
from mxnet import optimizer as opt
from mxnet.base import MXNetError
from mxnet.ndarray.ndarray import _DTYPE_MX_TO_NP

from mxnet_hipress import _engine

if TYPE_CHECKING:
    from hipress.runtime.node import Node
    from mxnet_hipress._keys import Key

Update = Callable[[int, mx.nd.NDArray, mx.nd.NDArray], None]


class LocalOptimizer:
    """Weights of a store's keys, and what updates them.

    Every worker starts with worker 0's values and applies the same update to the same sum, so
    weights stay identical bit for bit. All runs on MXNet's engine; nothing here blocks.

    :param update: ``update(index, gradient, weight)`` changes ``weight`` in place
    """

    def __init__(self, node: Node, update: Update) -> None:
        self._node = node
        self.update = update
        self._weights: dict[int, mx.nd.NDArray] = {}

    def weight(self, key: Key) -> mx.nd.NDArray:
        """Return a key's weight; at first the store's value of it."""
        weight = self._weights.get(key.number)
        if weight is None:
            weight = mx.nd.empty(key.shape, mx.cpu(), _DTYPE_MX_TO_NP[key.dtype])
            _engine.pull(key.handle, weight, 0)
            self._weights[key.number] = weight
        return weight

    def push(self, key: Key, gradient: mx.nd.NDArray, priority: int) -> None:
        """Sum ``gradient`` over the workers and update the weight; ``gradient`` stays."""
        weight = self.weight(key)
        total = key.buffer
        if gradient is not total:
            gradient.as_nd_ndarray().reshape(total.shape).copyto(total)
        _engine.push_pull(key.handle, total, total, priority)
        self.update(key.index, total, weight)

    def states(self, dump_optimizer: bool) -> bytes:
        """Return the optimizer's states, as mxnet.optimizer.Updater gives them."""
        return self._updater().get_states(dump_optimizer)

    def set_states(self, states: bytes) -> None:
        """Take what :meth:`states` gave, on this worker or another."""
        self._updater().set_states(states)

    def _updater(self) -> opt.Updater:
        if not isinstance(self.update, opt.Updater):
            raise MXNetError("this store has no optimizer with states: call set_optimizer first")
        return self.update
