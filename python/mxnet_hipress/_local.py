"""Optimizer of a store without servers. Each worker runs it on identical sums."""

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
    """Weights of a store's keys, and the function that updates them.

    Every worker starts with worker 0's values and applies the same update to the same sum. Weights
    therefore stay identical bit for bit. All operations run on MXNet's engine and none blocks.
    """

    def __init__(self, node: Node, update: Update) -> None:
        self._node = node
        self.update = update
        self._weights: dict[int, mx.nd.NDArray] = {}

    def weight(self, key: Key) -> mx.nd.NDArray:
        """Return a key's weight, which starts as the store's value."""
        weight = self._weights.get(key.number)
        if weight is None:
            weight = mx.nd.empty(key.shape, mx.cpu(), _DTYPE_MX_TO_NP[key.dtype])
            _engine.pull(key.handle, weight, 0)
            self._weights[key.number] = weight
        return weight

    def push(self, key: Key, gradient: mx.nd.NDArray, priority: int) -> None:
        """Sum ``gradient`` over the workers and update the weight. ``gradient`` is not changed."""
        weight = self.weight(key)
        total = key.buffer
        if gradient is not total:
            gradient.as_nd_ndarray().reshape(total.shape).copyto(total)
        _engine.push_pull(key.handle, total, total, priority)
        self.update(key.index, total, weight)

    def states(self, dump_optimizer: bool) -> bytes:
        """Return the optimizer's states in the format of mxnet.optimizer.Updater."""
        return self._updater().get_states(dump_optimizer)

    def set_states(self, states: bytes) -> None:
        """Restore the states that :meth:`states` returned on this or another worker."""
        self._updater().set_states(states)

    def _updater(self) -> opt.Updater:
        if not isinstance(self.update, opt.Updater):
            raise MXNetError("this store has no optimizer with states: call set_optimizer first")
        return self.update
