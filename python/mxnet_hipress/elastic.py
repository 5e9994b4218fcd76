"""Gluon training that continues when a worker dies, leaves or joins, with compressed gradients.

>>> import mxnet_hipress.elastic as elastic
>>> state = elastic.State(net, trainer, {"type": "onebit"})
>>> @elastic.run
... def train(state):
...     while state.step < 1000:
...         images, labels = batch(state.step, state.rank, state.size)
...         with autograd.record():
...             loss = loss_of(net(images), labels)
...         loss.backward()
...         state.trainer.step(BATCH)
...         state.commit()
>>> train(state)

Start it with ``hipress launch --elastic -n 4 python train.py``. There are no servers and no
kvstore: the workers of the present *view* sum gradients among themselves. When a worker is lost,
the remaining workers agree on the next view and roll back the error feedback of the failed step.
Then ``train`` is called again for the same step. A joining process copies the parameters, the
Trainer with its optimizer's states and schedule, and the step from another worker.

With ``State(..., sync_every=H, outer_optimizer="nag")`` the workers synchronize weights every H
steps (:class:`mxnet_hipress.DiLoCoTrainer`), and views change only then.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon

from hipress.config import CompressionConfig
from hipress.dtypes import NUMPY
from hipress.elastic.training import view_loop
from hipress.elastic.training.arrays import ArrayAdapter, ArrayState
from hipress.elastic.training.outer_steps import ArrayOuterSteps, schedule_of
from mxnet_hipress import _states
from mxnet_hipress._states import allows_feedback
from mxnet_hipress._sums import SumArrays
from mxnet_hipress.diloco import Outer, Weights, array_of, check_names, check_values

__all__ = ["State", "Trainer", "run"]


def run(train: Callable[..., Any]) -> Callable[..., Any]:
    """Make a training function continue when workers die, leave or join.

    Args:
        train: Function whose first argument is a :class:`State`. It is called in each view and
            continues from ``state.step``. Its own variables must depend only on ``state.step``,
            ``state.rank`` and ``state.size``.

    Returns:
        A function with the same arguments and result.

    Raises:
        hipress.elastic.ElasticError: If too few workers remain for too long, or this process has
            taken part in such training before.
    """
    return view_loop.run(train, ArrayAdapter)


class State(ArrayState):
    """State of a training job whose workers may join and leave.

    Args:
        net: A Block, or its parameters: a ParameterDict, a dict or a list. All have their shapes
            and are on one device.
        trainer: Trainer of some or all of them, without a distributed kvstore, or an Optimizer, for
            which a Trainer is made. Use ``state.trainer`` in its place, which sums gradients first.
            With ``sync_every`` it makes the inner steps, and sums nothing.
        compression_params: As for a Trainer: type, its parameters, min_size (1024), topology, plan,
            warmup_steps. "auto" chooses automatically, see :meth:`explain`. None: no compression.
        sync_every: H, to synchronize weights every H steps instead of gradients in each, see
            :class:`mxnet_hipress.DiLoCoTrainer`. When a worker dies or joins, the other workers
            lose none of the H steps.
        outer_optimizer: With ``sync_every``: a new Optimizer, or a name.
        outer_optimizer_params: With a name; default of "nag": learning rate 0.7, momentum 0.9.
        early_steps: With ``sync_every``, see :class:`mxnet_hipress.DiLoCoTrainer`.
        early_sync_every: See ``early_steps``.
        fragment_sync_delay: See ``early_steps``.
        fragment_update_alpha: See ``early_steps``.
        check_every: Steps between bitwise comparisons of all workers' weights. With ``sync_every``,
            check_every and warmup_steps count outer steps.
        timeout: Seconds to wait for enough workers, and for a slow one. It must be longer than a
            copy of the state to a joining worker, and than three outer steps.
        kept: Further state that a joining worker copies: objects with ``state_dict()`` and
            ``load_state_dict()``, and plain values, which become attributes.

    Raises:
        ValueError: If an argument is invalid.
    """

    module = "mxnet_hipress.elastic"

    def __init__(
        self,
        net: gluon.Block | gluon.ParameterDict | Mapping[str, gluon.Parameter] | list,
        trainer: gluon.Trainer | mx.optimizer.Optimizer,
        compression_params: str | Mapping[str, Any] | CompressionConfig | None = None,
        *,
        sync_every: int | None = None,
        outer_optimizer: str | mx.optimizer.Optimizer | None = None,
        outer_optimizer_params: Mapping[str, Any] | None = None,
        early_steps: int = 0,
        early_sync_every: int = 5,
        fragment_sync_delay: int = 0,
        fragment_update_alpha: float = 0.0,
        check_every: int = 100,
        timeout: float = 300.0,
        **kept: Any,
    ) -> None:
        super().__init__(check_every, timeout)
        found = net.collect_params() if isinstance(net, gluon.Block) else net
        parameters = list(found.values() if hasattr(found, "values") else found)
        check_names(parameters)
        self._parameters = {parameter.name: parameter for parameter in parameters}
        if isinstance(trainer, mx.optimizer.Optimizer):
            trainer = gluon.Trainer(parameters, trainer, kvstore=None)
        self._trained = _trained(trainer, self._parameters)
        self.config = CompressionConfig.of(compression_params or "none")
        self.config.check_sums(self._trained)
        self.trainer = Trainer(self, trainer)
        schedule = schedule_of(
            sync_every,
            outer_optimizer,
            early_steps,
            early_sync_every,
            fragment_sync_delay,
            fragment_update_alpha,
            kept,
            "mxnet_hipress.DiLoCoTrainer",
        )
        if schedule is not None:
            weights = Weights(list(self._trained.values()), trainer)
            outer = Outer(trainer.optimizer, outer_optimizer, outer_optimizer_params, weights)
            _check_copied(outer.optimizer)
            self.outer_steps = ArrayOuterSteps(weights, outer, outer.kind, schedule)
        elif outer_optimizer_params is not None:
            raise ValueError("outer_optimizer_params need sync_every and outer_optimizer")
        self.keep(kept)

    def sizes(self) -> dict[str, tuple[int, str]]:
        """Return elements and type of each summed gradient, by name."""
        return {n: (p.grad().size, np.dtype(p.dtype).name) for n, p in self._trained.items()}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each gradient, by name."""
        return {name: parameter.shape for name, parameter in self._trained.items()}

    def allows_feedback(self) -> bool:
        """Return whether the Trainer's optimizer supports error feedback."""
        return allows_feedback(self.trainer.wrapped.optimizer)

    def settings(self) -> dict[str, str]:
        """Return texts that must be equal on all workers, by name."""
        about = [f"{n} {p.shape} {np.dtype(p.dtype).name}" for n, p in self._parameters.items()]
        optimizer = type(self.trainer.wrapped.optimizer).__name__
        return {**super().settings(), "optimizer": optimizer, "model": "; ".join(about)}

    def state_dict(self) -> dict[str, Any]:
        """Return all state except that of compression, for a checkpoint.

        It holds NumPy arrays by parameter name, the Trainer's states as
        :meth:`mxnet.gluon.Trainer.save_states` writes them, and further values.
        """
        parameters = {name: p.data().asnumpy() for name, p in self._parameters.items()}
        states = self.trainer.wrapped._updaters[0].get_states(dump_optimizer=True)
        return {**super().state_dict(), "parameters": parameters, "trainer": states}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned, in a process with the same model."""
        for name, value in saved["parameters"].items():
            self._parameters[name].set_data(array_of(value, value.dtype))
        trainer = self.trainer.wrapped
        _states.load_optimizer(trainer.optimizer, trainer._updaters, saved["trainer"])
        super().load_state_dict(saved)

    def to_copy(self) -> dict[str, Any]:
        """Return the state that a joining or late worker must :meth:`copy`."""
        copied = self.state_dict()
        if self.outer_steps is not None:  # after an outer step the weights are the outer weights
            for name in self._trained:
                del copied["parameters"][name]
        return copied

    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """Yield names and bytes of the trained parameters."""
        for name, parameter in self._trained.items():
            yield name, memoryview(parameter.data().asnumpy()).cast("B")

    def drop_gradients(self) -> None:
        """Discard the gradients of an incomplete step, where the next step would add to them."""
        for parameter in self._trained.values():
            if parameter.grad_req == "add":
                parameter.zero_grad()


class Trainer:
    """Wrapper of the user's Trainer, whose ``step()`` first sums gradients over the present view.

    With ``sync_every`` it makes inner steps instead. Every other attribute is the wrapped
    Trainer's.
    """

    def __init__(self, state: State, trainer: gluon.Trainer) -> None:
        self._state, self.wrapped = state, trainer
        self._arrays = SumArrays()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = name in ("_state", "wrapped", "_arrays")
        object.__setattr__(self if own else self.wrapped, name, value)

    def step(self, batch_size: int) -> None:
        """Sum the gradients and make the optimizer's step.

        Args:
            batch_size: Divisor of the sums: the samples of all workers in this step; with
                ``sync_every``, those of this worker.

        Raises:
            hipress.HipressError: If a worker has died or is silent. Weights have not changed.
        """
        self.allreduce_grads()
        self.update(batch_size)

    def allreduce_grads(self) -> None:
        """Replace the gradients by their sums over all workers, for example to clip them.

        Call :meth:`update` afterwards. With ``sync_every`` gradients stay this worker's own.
        """
        if self._state.applied:
            raise RuntimeError("call state.commit() after each state.trainer.step()")
        sums, trained = self._session().compression, self._state._trained
        if self._state.outer_steps is not None:
            return
        gradients = {name: each.grad().as_nd_ndarray() for name, each in trained.items()}
        for name, total in self._arrays.reduce(sums, gradients):
            total.copyto(gradients[name])

    def update(self, batch_size: int) -> None:
        """Make the optimizer's step with the sums.

        Args:
            batch_size: See :meth:`step`.
        """
        session = self._session()
        self.wrapped.update(batch_size)
        self._state.applied = True
        session.applied()

    def _session(self) -> Any:
        if self._state.session is None:
            raise RuntimeError(f"state.trainer {self._state.belongs}")
        return self._state.session


def _trained(
    trainer: gluon.Trainer, parameters: Mapping[str, gluon.Parameter]
) -> dict[str, gluon.Parameter]:
    """Return the parameters whose gradients are summed, by name.

    Raises:
        ValueError: If the Trainer or a parameter is not supported.
    """
    if not isinstance(trainer, gluon.Trainer):
        raise ValueError(
            f"the second argument is a gluon.Trainer or an Optimizer, not {type(trainer).__name__}"
        )
    kvstore = trainer._kvstore_params["kvstore"]
    if "dist" in str(getattr(kvstore, "type", kvstore)):
        raise ValueError(
            "elastic training needs no kvstore, as its workers come and go: give the Trainer "
            f"kvstore=None instead of {getattr(kvstore, 'type', kvstore)!r}"
        )
    if trainer._compression_params or trainer._kvstore_params["update_on_kvstore"]:
        raise ValueError(
            "compression_params belong to elastic.State, and update_on_kvstore to a kvstore, which "
            "elastic training has none of: leave them out of the Trainer"
        )
    for name, parameter in parameters.items():
        check_values(parameter)
        if len(parameter.list_ctx()) > 1:
            raise ValueError(
                f"parameter {name!r} is on {len(parameter.list_ctx())} devices; start a worker for "
                "each instead"
            )
    summed = {p.name for p in trainer._params if p.grad_req != "null"}
    if unknown := sorted(summed - set(parameters)):
        raise ValueError(f"the Trainer's parameter {unknown[0]!r} is not among those of the net")
    trained = {name: p for name, p in parameters.items() if name in summed}  # in the net's order
    for name, parameter in trained.items():
        kind = np.dtype(parameter.dtype).name
        if kind not in NUMPY or parameter._grad_stype != "default":
            raise ValueError(
                f"the gradient of {name!r} is {parameter._grad_stype} {kind}; elastic training "
                f"sums dense ones, of {' or '.join(NUMPY)}"
            )
    if not trained:
        raise ValueError("the Trainer has no parameter with a gradient")
    _check_copied(trainer.optimizer)
    return trained


def _check_copied(optimizer: mx.optimizer.Optimizer) -> None:
    """Check that an optimizer can be copied to a joining worker.

    Raises:
        ValueError: If it cannot be pickled.
    """
    try:
        pickle.dumps(optimizer)
    except Exception as error:
        raise ValueError(
            f"the optimizer or its schedule cannot be copied to a worker that joins: {error}"
        ) from error
