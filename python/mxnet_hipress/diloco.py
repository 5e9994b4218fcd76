"""Gluon training that synchronizes weights every H steps instead of gradients in each (DiLoCo)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon

from hipress.config import CompressionConfig
from hipress.dtypes import NUMPY
from hipress.local_sgd.arrays import ArrayWeights
from hipress.local_sgd.fragment_scheduler import DiLoCoMethods
from hipress.local_sgd.node_job import NodeDiLoCo
from hipress.local_sgd.outer import Fragment
from hipress.local_sgd.schedule import Schedule
from mxnet_hipress import elastic_store
from mxnet_hipress._commands import STORE_SHIFT
from mxnet_hipress._errors import sentences
from mxnet_hipress._states import load_optimizer
from mxnet_hipress.kvstore import KVStore

_INNER = "inner"
_NESTEROV = {"learning_rate": 0.7, "momentum": 0.9}


class DiLoCoTrainer(DiLoCoMethods, gluon.Trainer):
    """A Trainer that synchronizes weights every ``sync_every`` steps, and no gradients.

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
        """Make an inner step after ``allreduce_grads()``, for example to clip gradients first."""
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
        load_optimizer(self.optimizer, self._updaters, found[_INNER].tobytes())


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


def check_names(parameters: list[gluon.Parameter]) -> None:
    """Check that parameter names, which identify parameters across workers, are unique."""
    seen: dict[str, gluon.Parameter] = {}
    for parameter in parameters:
        if seen.setdefault(parameter.name, parameter) is not parameter:
            raise ValueError(
                f"two parameters are called {parameter.name!r}: give one of the nets another prefix"
            )


def check_values(parameter: gluon.Parameter) -> None:
    """Check that a parameter has values."""
    if parameter._data is None:
        raise ValueError(
            f"parameter {parameter.name!r} has no values yet: initialize the net, and call it once "
            "if its layers find out their shapes by that"
        )


def array_of(values: np.ndarray, dtype: object) -> mx.nd.NDArray:
    """Return an array of the parameters' kind: NumPy's with npx.set_np(), otherwise an NDArray."""
    array = mx.nd.array(values, dtype=dtype)
    return array.as_np_ndarray() if mx.util.is_np_array() else array


class Weights(ArrayWeights):
    """Values of Gluon parameters."""

    def __init__(self, parameters: list[gluon.Parameter], trainer: gluon.Trainer) -> None:
        self._trainer = trainer
        check_names(parameters)
        self.parameters = {parameter.name: parameter for parameter in parameters}
        for name, parameter in self.parameters.items():
            kind = np.dtype(parameter.dtype).name
            if kind not in NUMPY or {parameter._stype, parameter._grad_stype} != {"default"}:
                raise ValueError(
                    f"parameter {name!r} or its gradient is sparse, or of type {kind}: DiLoCo "
                    f"synchronizes dense ones, of {' or '.join(NUMPY)}"
                )
            check_values(parameter)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return shapes by name, in the order of the layers."""
        return {name: parameter.shape for name, parameter in self.parameters.items()}

    def read(self, name: str) -> np.ndarray:
        """Return the values of the first device."""
        parameter = self.parameters[name]
        return parameter.data(parameter.list_ctx()[0]).asnumpy()

    def write(self, name: str, values: np.ndarray) -> None:
        """Copy values to all devices."""
        parameter = self.parameters[name]
        parameter.set_data(array_of(values, parameter.dtype))  # a copy

    def forget_non_finite(self) -> None:
        """Delete states with a NaN or Inf; the next step creates them again."""
        optimizer = self._trainer.optimizer
        for updater in self._trainer._updaters:
            for number, state in list(updater.states.items()):
                if not all(np.isfinite(array.asnumpy()).all() for array in _arrays(state)):
                    del updater.states[number]
                    for counts in optimizer._all_index_update_counts.values():
                        counts.pop(number, None)  # used for Adam's bias correction


def _arrays(state: Any) -> Iterator[mx.nd.NDArray]:
    """Yield the arrays in an optimizer's state of one weight: one, a tuple of them, or none."""
    if isinstance(state, mx.nd.NDArray):
        yield state
    elif isinstance(state, (tuple, list)):
        for part in state:
            yield from _arrays(part)


class Outer:
    """MXNet optimizer on NumPy arrays; see :class:`hipress.local_sgd.outer.OuterOptimizer`."""

    def __init__(
        self,
        inner: mx.optimizer.Optimizer,
        optimizer: str | mx.optimizer.Optimizer,
        params: Mapping[str, Any] | None,
        weights: Weights,
    ) -> None:
        if isinstance(optimizer, str):
            default = _NESTEROV if optimizer.lower() == "nag" and params is None else {}
            optimizer = mx.optimizer.create(optimizer, **(params or default))
        elif not isinstance(optimizer, mx.optimizer.Optimizer):
            raise ValueError(
                f"outer_optimizer is an Optimizer or its name, not a {type(optimizer).__name__}"
            )
        elif params:
            raise ValueError("outer_optimizer_params belong to an optimizer that is given by name")
        if optimizer is inner:
            raise ValueError("outer_optimizer must be another one than the inner optimizer")
        if optimizer.num_update:
            raise ValueError("outer_optimizer has made steps before: give a new one")
        float16 = any(np.dtype(p.dtype) != np.float32 for p in weights.parameters.values())
        if inner.multi_precision and float16:
            raise ValueError(
                "with multi_precision the inner optimizer has float32 copies of float16 weights, "
                "of which a synchronization would not know: train float32 weights"
            )
        self.optimizer, self.kind = optimizer, type(optimizer).__name__
        self._updater = mx.optimizer.get_updater(optimizer)
        self._numbers: dict[str, int] = {}

    def attach(self, outer: Mapping[str, np.ndarray]) -> None:
        """Number the weights in the order of the layers."""
        self._numbers = {name: number for number, name in enumerate(outer)}

    def step(self, fragment: Fragment) -> None:
        """Change the outer weights in their memory."""
        for name, weight in fragment.outer.items():
            arrays = [
                mx.nd.from_numpy(each.view(), zero_copy=True)
                for each in (fragment.mean[name], weight)
            ]
            self._updater(self._numbers[name], *arrays)
            arrays[1].wait_to_read()  # the gradient is not read after this, either

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the updater's states and the optimizer, pickled by MXNet."""
        states = self._updater.get_states(dump_optimizer=True)
        return {"optimizer/states": np.frombuffer(states, np.uint8)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what :meth:`state_dict` returned."""
        # The optimizer stays the same object, because the script may also use it.
        load_optimizer(self.optimizer, [self._updater], state["optimizer/states"].tobytes())
