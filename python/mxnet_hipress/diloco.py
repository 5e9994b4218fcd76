"""Gluon training that synchronizes weights every H steps instead of gradients in each (DiLoCo)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon

from hipress.config import CompressionConfig
from hipress.local_sgd.fragment_scheduler import DiLoCoMethods
from hipress.local_sgd.node_job import NodeDiLoCo
from hipress.local_sgd.schedule import Schedule
from mxnet_hipress import _states, elastic_store
from mxnet_hipress._commands import STORE_SHIFT
from mxnet_hipress._errors import sentences
from mxnet_hipress._outer import Outer, Weights
from mxnet_hipress.kvstore import KVStore

_INNER = "inner"


class DiLoCoTrainer(DiLoCoMethods, gluon.Trainer):
    """A Trainer whose steps are this worker's own, but for one synchronization every
    ``sync_every`` steps.

    >>> trainer = mxnet_hipress.DiLoCoTrainer(
    ...     net.collect_params(), "adam", {"learning_rate": 1e-3}, sync_every=30,
    ...     compression_params={"type": "maxmin", "bits": 4})
    >>> for data, label in batches:
    ...     with autograd.record():
    ...         loss = loss_of(net(data), label)
    ...     loss.backward()
    ...     trainer.step(len(data))
    >>> trainer.finish()

    :mod:`hipress.local_sgd` describes the algorithm. All workers make the Trainer together, start
    from worker 0's values, and make the same number of steps. Parameters without a gradient, such
    as batch normalization's running means, stay different on each worker.

    Args:
        params: Parameters as for a Trainer, with values; dense, float32 or float16. Gradients on
            several devices of a worker are summed in each step.
        optimizer: The inner optimizer, with ``optimizer_params``.
        sync_every: H, the number of inner steps between two outer steps of the same weights.
        outer_optimizer: A new Optimizer for float32 copies of the weights, or a name; default:
            "nag", SGD with Nesterov momentum.
        outer_optimizer_params: With a name; default of "nag": learning rate 0.7, momentum 0.9.
        compression_params: As for a Trainer: type, its parameters, topology, ...
        kvstore: Type of a synchronous HiPress store, or such a store. The Trainer makes another
            store of this type.
        fragments: Number of parts of about equal size, with outer steps at different times.
        fragment_sync_delay: Number of inner steps during which an average may run (overlap).
        fragment_update_alpha: Share of its weights that a worker keeps in an outer step, in [0, 1).
        early_steps: Number of inner steps at the beginning, such as a fifth of all, that average
            all weights every ``early_sync_every`` steps.
        early_sync_every: See ``early_steps``.

    Raises:
        ValueError: If an argument is wrong.
        MXNetError: On all workers, if settings or models differ, or a worker is missing.
    """

    def __init__(
        self,
        params: gluon.ParameterDict | Mapping[str, gluon.Parameter] | list[gluon.Parameter],
        optimizer: str | mx.optimizer.Optimizer,
        optimizer_params: Mapping[str, Any] | None = None,
        sync_every: int = 30,
        *,
        outer_optimizer: str | mx.optimizer.Optimizer = "nag",
        outer_optimizer_params: Mapping[str, Any] | None = None,
        compression_params: Mapping[str, Any] | CompressionConfig | None = None,
        kvstore: str | KVStore = "dist_sync_hipress",
        fragments: int = 1,
        fragment_sync_delay: int = 0,
        fragment_update_alpha: float = 0.0,
        early_steps: int = 0,
        early_sync_every: int = 5,
    ) -> None:
        schedule = Schedule(
            sync_every, early_steps, early_sync_every, fragment_sync_delay, fragment_update_alpha
        )
        if compression_params:
            with sentences():
                CompressionConfig.of(compression_params).refuse_auto()
        super().__init__(
            params, optimizer, optimizer_params, kvstore="device", update_on_kvstore=False
        )
        # In the order of the layers; the Trainer sorts them by name.
        in_order = params.values() if hasattr(params, "values") else params
        weights = Weights([p for p in in_order if p.grad_req != "null"], self)
        outer = Outer(self._optimizer, outer_optimizer, outer_optimizer_params, weights)
        self.store = _store(kvstore)
        """Store of the synchronizations, for example for its ``stats()``."""
        if compression_params:
            self.store.set_gradient_compression(compression_params)
        keys = itertools.count(self.store._number << STORE_SHIFT)
        self._diloco = NodeDiLoCo(self.store._node, keys, weights, outer, schedule, fragments)
        self._scheduler = self._diloco.scheduler

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Make an inner step, and a synchronization if it is due.

        Args:
            batch_size: Size of this worker's own batch.
            ignore_stale_grad: As for a Trainer.

        Raises:
            MXNetError: If a worker has died or is silent.
        """
        super().step(batch_size, ignore_stale_grad)
        self._scheduler.advance()

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Make an inner step as :meth:`step` does, after ``allreduce_grads()``, to clip gradients
        before."""
        super().update(batch_size, ignore_stale_grad)
        self._scheduler.advance()

    def save_states(self, fname: str) -> None:
        """Save the inner and outer optimizers, outer weights, running averages, and residuals.

        Every worker calls it after the same step, and also saves its own parameters, which differ
        between synchronizations. Each writes ``fname.diloco-RANK``, and residuals to
        ``fname.worker-RANK``. Blocks.

        Raises:
            MXNetError: If a file cannot be written. An existing file is then unchanged.
        """
        inner = np.frombuffer(self._updaters[0].get_states(dump_optimizer=True), np.uint8)
        with sentences():
            self._diloco.save(fname, {_INNER: inner})

    def load_states(self, fname: str) -> None:
        """Restore the states that :meth:`save_states` saved in a job of the same shape.

        Training then continues bit for bit. Every worker calls it, and loads its parameters before.
        Blocks.

        Raises:
            MXNetError: If the file is missing, incomplete, or of another job or model.
        """
        with sentences():
            found = self._diloco.load(fname)
        _states.load_optimizer(self.optimizer, self._updaters, found[_INNER].tobytes())


def _store(kvstore: str | KVStore) -> KVStore:
    """Return a new store for the keys of a DiLoCoTrainer."""
    if elastic_store.is_asked_for():
        raise ValueError(
            "DiLoCoTrainer needs a job whose workers stay: in an elastic one "
            "mxnet_hipress.elastic.State(..., sync_every=30, outer_optimizer=...) does the same"
        )
    store = mx.kv.create(kvstore if isinstance(kvstore, str) else kvstore.type)
    if not isinstance(store, KVStore) or "async" in store.type:
        raise ValueError(
            f"DiLoCoTrainer needs a synchronous distributed store such as 'dist_sync_hipress', not "
            f"{kvstore!r}"
        )
    return store
