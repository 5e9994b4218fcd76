"""Gluon training that goes on when a worker dies, leaves or joins, with compressed gradients.

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

Started by ``hipress launch --elastic -n 4 python train.py``. There are neither servers nor a
kvstore: the workers of the present *view* sum gradients among themselves. When one of them is gone,
the others agree on the next view, put back what error feedback remembers of the step that failed,
and ``train`` is called again for that same step. A process that joins copies the parameters, the
Trainer with its optimizer's states and schedule, and the step from another one.

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
from hipress.elastic.training import loop
from hipress.elastic.training.array_outer_steps import ArrayOuterSteps
from hipress.elastic.training.arrays import ArraySession, ArrayState
from hipress.elastic.training.outer_steps import schedule_of
from mxnet_hipress import _states
from mxnet_hipress._optimizers import bears_feedback
from mxnet_hipress._outer import Outer, Weights, array_of, check_names, check_values
from mxnet_hipress._sums import SumArrays

__all__ = ["State", "Trainer", "run"]


def run(train: Callable[..., Any]) -> Callable[..., Any]:
    """Make a training function go on when workers die, leave or join.

    :param train: takes a :class:`State` first. It is called anew in each view, and goes on from
        ``state.step``: what it has of its own is to depend on that, ``state.rank`` and
        ``state.size``
    :returns: a function with the same arguments and result
    :raises hipress.elastic.ElasticError: if too few workers are left, for too long, or this process
        has taken part in such training before
    """
    return loop.run(train, ArraySession)


class State(ArrayState):
    """The state of a training job whose workers come and go.

    :param net: a Block, or its parameters: a ParameterDict, a dict or a list. All have their shapes
        and lie on one device
    :param trainer: of some or all of them, without a distributed kvstore; use ``state.trainer`` in
        its place, which sums gradients first. Or an Optimizer, for which one is made. With
        ``sync_every`` it makes the inner steps, and sums nothing
    :param compression_params: as a Trainer takes them: type, its parameters, min_size (1024),
        topology, plan, warmup_steps; "auto" chooses by itself, see :meth:`explain`; None: gradients
        go uncompressed
    :param sync_every: H, to synchronize weights every H steps instead of gradients in each, see
        :class:`mxnet_hipress.DiLoCoTrainer`. A worker that dies or joins costs
        the other workers none of the H steps
    :param outer_optimizer, outer_optimizer_params: with ``sync_every``; a new Optimizer, or a name.
        Those of "nag" are learning rate 0.7 and momentum 0.9, unless others are given
    :param early_steps, early_sync_every, fragment_sync_delay, fragment_update_alpha: with
        ``sync_every``, see :class:`mxnet_hipress.DiLoCoTrainer`
    :param check_every: steps between comparisons of all workers' weights, bit by bit; with
        ``sync_every`` this and warmup_steps count outer steps
    :param timeout: seconds to wait for enough workers, and for one that lives but is far behind;
        longer than it takes to copy all to a worker that joins, and than three outer steps take
    :param kept: more that a worker which joins copies: objects with ``state_dict()`` and
        ``load_state_dict()``, and plain values, which become attributes
    :raises ValueError: for what cannot be
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
        """Return the elements and type of each gradient that is summed, by name."""
        return {n: (p.grad().size, np.dtype(p.dtype).name) for n, p in self._trained.items()}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each gradient by name."""
        return {name: parameter.shape for name, parameter in self._trained.items()}

    def allows_feedback(self) -> bool:
        """Return whether the Trainer's optimizer bears error feedback."""
        return bears_feedback(self.trainer.wrapped.optimizer)

    def settings(self) -> dict[str, str]:
        """Texts that must be the same on all workers, by name."""
        about = [f"{n} {p.shape} {np.dtype(p.dtype).name}" for n, p in self._parameters.items()]
        optimizer = type(self.trainer.wrapped.optimizer).__name__
        return {**super().settings(), "optimizer": optimizer, "model": "; ".join(about)}

    def state_dict(self) -> dict[str, Any]:
        """Return all but the compression's part, for a checkpoint: NumPy arrays by the parameters'
        names, the Trainer's states as :meth:`mxnet.gluon.Trainer.save_states` writes them, and
        more."""
        parameters = {name: p.data().asnumpy() for name, p in self._parameters.items()}
        states = self.trainer.wrapped._updaters[0].get_states(dump_optimizer=True)
        return {**super().state_dict(), "parameters": parameters, "trainer": states}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state_dict` returned, in a process that has the same model."""
        for name, value in saved["parameters"].items():
            self._parameters[name].set_data(array_of(value, value.dtype))
        _states.load_trainer(self.trainer.wrapped, saved["trainer"])
        super().load_state_dict(saved)

    def to_copy(self) -> dict[str, Any]:
        """Return what a worker that joins or is behind must :meth:`copy`."""
        found = self.state_dict()
        if self.outer_steps is not None:  # after an outer step the weights are the outer weights
            for name in self._trained:
                del found["parameters"][name]
        return found

    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """The bytes of the parameters that are trained."""
        for name, parameter in self._trained.items():
            yield name, memoryview(parameter.data().asnumpy()).cast("B")

    def drop_gradients(self) -> None:
        """Discard the gradients of an incomplete step, where the next step would add to them."""
        for parameter in self._trained.values():
            if parameter.grad_req == "add":
                parameter.zero_grad()


class Trainer:
    """The user's Trainer, whose ``step()`` first sums gradients over the present view, unless it
    makes inner steps.

    Every other attribute is the wrapped Trainer's.
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
        """Sum the gradients and makes the optimizer's step.

        :param batch_size: by which sums are divided: the samples of this step of all workers; with
            ``sync_every`` of this one
        :raises hipress.HipressError: if a worker has died or is silent; weights have not changed
        """
        self.allreduce_grads()
        self.update(batch_size)

    def allreduce_grads(self) -> None:
        """Replace the gradients by their sums over all workers, e.g. to clip them before
        :meth:`update`. With ``sync_every`` they stay this worker's own."""
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

        :param batch_size: see :meth:`step`
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

    :raises ValueError: for what cannot be
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
    """:raises ValueError: if a worker that joins could not copy it"""
    try:
        pickle.dumps(optimizer)
    except Exception as error:
        raise ValueError(
            f"the optimizer or its schedule cannot be copied to a worker that joins: {error}"
        ) from error
