"""Keras training that continues when a worker dies, leaves or joins, with compressed gradients.

>>> import hipress.tensorflow.elastic as elastic
>>> state = elastic.State(model, keras.optimizers.SGD(0.1), "onebit")
>>> @elastic.run
... def train(state):
...     while state.step < 1000:
...         images, labels = batch(state.step, state.rank, state.size)
...         with tf.GradientTape() as tape:
...             loss = loss_of(labels, model(images, training=True))
...         gradients = tape.gradient(loss, model.trainable_variables)
...         state.optimizer.apply(gradients, model.trainable_variables)
...         state.commit()
>>> train(state)

Alternatively, use ``model.compile(state.optimizer, loss, jit_compile=False)``, and ``model.fit(...,
callbacks=[state.callback()])`` instead of the loop. Its data then begins at ``state.step``. Start
the script with ``hipress launch --elastic -n 4 python train.py``.

With ``State(..., sync_every=H, outer_optimizer=outer)`` the workers synchronize weights every H
steps (:class:`hipress.tensorflow.DiLoCo`), and views change only then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from hipress.config import CompressionConfig
from hipress.elastic.training import view_loop
from hipress.elastic.training.arrays import ArrayAdapter, ArrayState
from hipress.elastic.training.outer_steps import ArrayOuterSteps, schedule_of
from hipress.elastic.training.sums import Gradients
from hipress.errors import HipressError
from hipress.tensorflow.diloco import KerasWeights, Outer, check_variables
from hipress.tensorflow.gradients import check_no_cond, check_not_compiled, name_of, to_tensor
from hipress.tensorflow.optimizer import allows_feedback, averaging, check_optimizer

__all__ = ["State", "run"]


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

    @functools.wraps(train)
    def named(state: State, *args: Any, **kwargs: Any) -> Any:
        state.failure = None
        try:
            return train(state, *args, **kwargs)
        except tf.errors.OpError as error:
            # TensorFlow replaces an error in a tf.function by another one.
            raise state.failure or error from None

    return view_loop.run(named, ArrayAdapter)


class State(ArrayState):
    """State of a training job whose workers may join and leave.

    Args:
        model: A built Keras 3 model.
        optimizer: A Keras 3 optimizer. It becomes ``state.optimizer``, which averages gradients
            over the present view before it uses them. With ``sync_every`` it is the inner
            optimizer, which averages nothing.
        compression: A codec's name; "auto", which chooses automatically, see :meth:`explain`; a
            mapping with "type", its parameters, min_size (1024), topology, plan and warmup_steps;
            or a :class:`hipress.CompressionConfig`.
        sync_every: H, to synchronize weights every H steps instead of gradients in each, see
            :class:`hipress.tensorflow.DiLoCo`. When a worker dies or joins, the other workers lose
            none of the H steps.
        outer_optimizer: With ``sync_every``: a new Keras 3 optimizer.
        early_steps: With ``sync_every``, see :class:`hipress.tensorflow.DiLoCo`.
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

    module = "hipress.tensorflow.elastic"

    def __init__(
        self,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        compression: str | Mapping[str, Any] | CompressionConfig = "none",
        *,
        sync_every: int | None = None,
        outer_optimizer: keras.optimizers.Optimizer | None = None,
        early_steps: int = 0,
        early_sync_every: int = 5,
        fragment_sync_delay: int = 0,
        fragment_update_alpha: float = 0.0,
        check_every: int = 100,
        timeout: float = 300.0,
        **kept: Any,
    ) -> None:
        super().__init__(check_every, timeout)
        check_variables(model.trainable_variables)
        self.config = CompressionConfig.of(compression)
        self.config.check_sums([name_of(v) for v in model.trainable_variables])
        self.model, self.failure = model, None
        schedule = schedule_of(
            sync_every,
            outer_optimizer,
            early_steps,
            early_sync_every,
            fragment_sync_delay,
            fragment_update_alpha,
            kept,
            "hipress.tensorflow.DiLoCo",
        )
        check_optimizer(optimizer)
        self._allows_feedback = allows_feedback(optimizer)
        if schedule is not None:
            weights = KerasWeights(model.trainable_variables, lambda: optimizer)
            outer = Outer(outer_optimizer, optimizer)
            self.optimizer = optimizer
            name = type(outer_optimizer).__name__
            self.outer_steps = ArrayOuterSteps(weights, outer, name, schedule)
        else:
            self.optimizer = averaging(optimizer, self._averages)
        self.optimizer.build(model.trainable_variables)
        self.keep(kept)

    def callback(self) -> keras.callbacks.Callback:
        """Return a callback that commits each batch of ``model.fit`` as a step."""
        return _Commit(self)

    def sizes(self) -> dict[str, tuple[int, str]]:
        """Return elements and type of each gradient, by its variable's path."""
        variables = self.model.trainable_variables
        return {name_of(v): (int(np.prod(v.shape)), v.dtype) for v in variables}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each gradient, by its variable's path."""
        return {name_of(v): tuple(v.shape) for v in self.model.trainable_variables}

    def allows_feedback(self) -> bool:
        """Return whether the optimizer supports error feedback."""
        return self._allows_feedback

    def settings(self) -> dict[str, str]:
        """Return texts that must be equal on all workers, by name."""
        about = [f"{name_of(v)} {tuple(v.shape)} {v.dtype}" for v in self.model.variables]
        optimizer = type(self.optimizer).__name__
        return {**super().settings(), "optimizer": optimizer, "model": "; ".join(about)}

    def state_dict(self) -> dict[str, Any]:
        """Return all state except that of compression, for a checkpoint.

        It holds NumPy arrays in the order of the model's and the optimizer's variables, and further
        values.
        """
        return {
            **super().state_dict(),
            "model": [np.asarray(v) for v in self.model.variables],
            "optimizer": [np.asarray(v) for v in self.optimizer.variables],
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned, in a process with the same model."""
        for of in ("model", "optimizer"):
            for variable, value in zip(getattr(self, of).variables, saved[of]):
                if value is not None:  # to_copy leaves some out
                    variable.assign(value)
        super().load_state_dict(saved)

    def to_copy(self) -> dict[str, Any]:
        """Return the state that a joining or late worker must :meth:`copy`."""
        copied = self.state_dict()
        if self.outer_steps is not None:  # after an outer step the weights are the outer weights
            trained = {id(variable) for variable in self.model.trainable_variables}
            for number, variable in enumerate(self.model.variables):
                if id(variable) in trained:
                    copied["model"][number] = None
        return copied

    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """Yield names and bytes of the trained variables."""
        for variable in self.model.trainable_variables:
            yield name_of(variable), memoryview(np.array(variable).reshape(-1)).cast("B")

    def drop_gradients(self) -> None:
        """Do nothing: gradients belong to the step that made them."""

    def _averages(self, gradients: Sequence, variables: Sequence) -> list[tf.Tensor]:
        """Return the averages over the present view. One ``tf.function`` serves all views."""
        check_no_cond()
        check_not_compiled()
        names = [name_of(variable) for variable in variables]
        missing = [n for n, gradient in zip(names, gradients) if gradient is None]
        missing += sorted(set(self.sizes()) - set(names))
        if missing:
            raise ValueError(f"variable {missing[0]} has no gradient; elastic training needs all")
        tensors = [to_tensor(g, v, False) for g, v in zip(gradients, variables)]
        exchange = functools.partial(self._exchange, names)
        found = tf.numpy_function(exchange, tensors, [tensor.dtype for tensor in tensors])
        averages = tf.nest.flatten(found)
        for average, variable in zip(averages, variables):
            average.set_shape(variable.shape)
        return averages

    def _exchange(self, names: Sequence[str], *gradients: np.ndarray) -> list[np.ndarray]:
        if self.session is None:
            raise RuntimeError(f"state.optimizer {self.belongs}")
        if self.applied:
            raise RuntimeError(
                "a step is committed before the next one: call state.commit(), or give model.fit "
                "state.callback(), and model.compile steps_per_execution=1"
            )
        own, means = dict(zip(names, gradients)), {}

        def load(bucket: Gradients) -> None:
            for name, span in bucket.slices.items():
                bucket.flat[span] = own[name].reshape(-1)

        try:
            for bucket in self.session.compression.reduce(load):
                mean = bucket.flat / bucket.flat.dtype.type(self.size)
                means.update({n: mean[s].reshape(own[n].shape) for n, s in bucket.slices.items()})
        except HipressError as error:
            self.failure = error
            raise
        self.applied = True  # the rest of the step needs no other worker
        self.session.applied()
        return [means[name] for name in names]


class _Commit(keras.callbacks.Callback):
    """Callback that commits each batch of ``model.fit``."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self._state = state

    def set_model(self, model: keras.Model) -> None:
        """Check the model that Keras passes.

        Raises:
            ValueError: If it makes several steps at once.
        """
        if (steps := getattr(model, "steps_per_execution", 1)) != 1:
            raise ValueError(
                f"each batch is committed: model.compile must have steps_per_execution=1, not "
                f"{steps}"
            )
        super().set_model(model)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float] | None = None) -> None:
        # Some metrics are vectors.
        self._state.commit(**{n: float(v) for n, v in (logs or {}).items() if np.ndim(v) == 0})
