"""Keras training that synchronizes weights every H steps instead of gradients in each (DiLoCo)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from hipress.config import CompressionConfig
from hipress.dtypes import NUMPY
from hipress.local_sgd.arrays import ArrayWeights
from hipress.local_sgd.fragment_scheduler import DiLoCoMethods
from hipress.local_sgd.node_job import NodeDiLoCo
from hipress.local_sgd.outer import Fragment
from hipress.local_sgd.schedule import Schedule
from hipress.tensorflow.gradients import name_of
from hipress.tensorflow.worker_job import join

_PREFIX = "optimizer/"
"""Start of the names of the outer optimizer's variables in a state."""


class DiLoCo(DiLoCoMethods, keras.callbacks.Callback):
    """Callback that synchronizes a model's weights over the workers every ``sync_every`` steps.

    >>> model.compile(keras.optimizers.AdamW(1e-3), loss)
    >>> diloco = hvd.DiLoCo(model, sync_every=30, compression={"type": "maxmin", "bits": 4})
    >>> model.fit(images, labels, callbacks=[diloco])

    In a custom loop, call :meth:`step` after each step of the optimizer, and :meth:`finish` at the
    end.

    :mod:`hipress.local_sgd` describes the algorithm. All workers make it together, start from
    worker 0's weights, and make the same number of steps. Variables that are not trained, such as
    batch normalization's means, stay different on each worker. Nothing is sent from within a
    ``tf.function``, so XLA may compile the model.

    Args:
        model: A built Keras 3 model; its trained variables are float32 or float16.
        sync_every: H, the number of inner steps between two outer steps of the same weights.
        outer_optimizer: A new Keras 3 optimizer for float32 copies of the weights; default: SGD
            with Nesterov momentum 0.9 and learning rate 0.7.
        compression: A codec's name; a mapping with "type" and other arguments of
            ``kv.set_gradient_compression``; or a :class:`hipress.CompressionConfig`.
        fragments: Number of parts of about equal size, with outer steps at different times.
        fragment_sync_delay: Number of inner steps during which an average may run (overlap).
        fragment_update_alpha: Share of its weights that a worker keeps in an outer step, in [0, 1).
        early_steps: Number of inner steps at the beginning, such as a fifth of all, that average
            all weights every ``early_sync_every`` steps.
        early_sync_every: See ``early_steps``.

    Raises:
        ValueError: If an argument is wrong, or the job has another compression.
        HipressError: If a compression is not allowed; on all workers, if settings or models differ,
            or a worker is missing.
    """

    def __init__(
        self,
        model: keras.Model,
        sync_every: int,
        outer_optimizer: keras.optimizers.Optimizer | None = None,
        compression: str | Mapping[str, object] | CompressionConfig = "none",
        *,
        fragments: int = 1,
        fragment_sync_delay: int = 0,
        fragment_update_alpha: float = 0.0,
        early_steps: int = 0,
        early_sync_every: int = 5,
    ) -> None:
        super().__init__()
        schedule = Schedule(
            sync_every, early_steps, early_sync_every, fragment_sync_delay, fragment_update_alpha
        )
        CompressionConfig.of(compression).refuse_auto()
        weights = KerasWeights(model.trainable_variables, lambda: getattr(model, "optimizer", None))
        job = join()
        outer = Outer(outer_optimizer)
        job.compress(compression)
        self._of = model
        self._diloco = NodeDiLoCo(job.node, job.keys, weights, outer, schedule, fragments)
        self._scheduler = self._diloco.scheduler

    def step(self) -> None:
        """Count a step of the optimizer; make outer steps that are due.

        Raises:
            HipressError: If a worker died or is silent.
        """
        self._scheduler.advance()

    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Save outer weights, the outer optimizer, running averages, and residuals.

        Every worker calls it after the same step, and also saves its own model and optimizer, which
        differ between synchronizations. Each writes ``path.diloco-RANK``, and residuals to
        ``path.worker-RANK``, as :func:`hipress.tensorflow.save_states` does.

        Raises:
            HipressError: If a file cannot be written. An existing file is then unchanged.
        """
        self._diloco.save(path)

    def load_states(self, path: str | os.PathLike[str]) -> None:
        """Restore the states that :meth:`save_states` saved in a job of the same shape.

        Training then continues bit for bit. Every worker calls it, and loads its model and
        optimizer before.

        Raises:
            HipressError: If the file is missing, incomplete, or of another job.
            ValueError: If it is of another model or outer optimizer.
        """
        self._diloco.load(path)

    # Interface of Keras's callbacks.

    def set_model(self, model: keras.Model) -> None:
        """Check the model that Keras passes.

        Raises:
            ValueError: If it is another model.
        """
        if model is not self._of:
            raise ValueError("this DiLoCo synchronizes another model than the one that is trained")
        if (steps := getattr(model, "steps_per_execution", 1)) != 1:
            raise ValueError(
                f"DiLoCo counts batches: model.compile must have steps_per_execution=1, not {steps}"
            )
        super().set_model(model)

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        """Count a step."""
        self.step()

    def on_train_end(self, logs: object = None) -> None:
        """Complete the outer steps that have started."""
        self.finish()


def check_variables(variables: Sequence[keras.Variable]) -> None:
    """Check the variables."""
    if not variables:
        raise ValueError("the model has no weights yet: give it an Input, or call it once")
    seen: dict[str, keras.Variable] = {}
    for variable in variables:
        if seen.setdefault(name_of(variable), variable) is not variable:
            raise ValueError(
                f"two of the model's variables have the path {name_of(variable)!r}: give their "
                "layers different names"
            )


class KerasWeights(ArrayWeights):
    """Values of Keras variables."""

    def __init__(
        self,
        variables: Sequence[keras.Variable],
        inner: Callable[[], keras.optimizers.Optimizer | None],
    ) -> None:
        self._inner = inner
        check_variables(variables)
        self._variables = {name_of(variable): variable for variable in variables}
        for name, variable in self._variables.items():
            if variable.dtype not in NUMPY:
                raise ValueError(
                    f"variable {name} is {variable.dtype}: DiLoCo synchronizes {' or '.join(NUMPY)}"
                )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return shapes by name, in the order of the layers."""
        return {name: tuple(variable.shape) for name, variable in self._variables.items()}

    def read(self, name: str) -> np.ndarray:
        """Return the values."""
        return np.asarray(self._variables[name])

    def write(self, name: str, values: np.ndarray) -> None:
        """Copy values to the variable."""
        self._variables[name].assign(_tensor(values))

    def forget_non_finite(self) -> None:
        """Reset the inner optimizer if it has a NaN or Inf."""
        slots = [
            variable
            for variable in getattr(self._inner(), "variables", ())
            if len(variable.shape) and str(variable.dtype).startswith("float")
        ]
        if all(np.isfinite(np.asarray(slot)).all() for slot in slots):
            return
        for slot in slots:  # all: a momentum without its second moment makes a huge step
            slot.assign(np.zeros(slot.shape, slot.dtype))


class Outer:
    """Keras optimizer on NumPy arrays; see :class:`hipress.local_sgd.outer.OuterOptimizer`."""

    def __init__(
        self,
        optimizer: keras.optimizers.Optimizer | None,
        inner: keras.optimizers.Optimizer | None = None,
    ) -> None:
        if optimizer is None:
            optimizer = keras.optimizers.SGD(0.7, momentum=0.9, nesterov=True)
        if not isinstance(optimizer, keras.optimizers.Optimizer):
            raise ValueError(
                f"outer_optimizer must be one of Keras 3's, not a {type(optimizer).__name__}"
            )
        if optimizer is inner:
            raise ValueError("outer_optimizer must be another one than the inner optimizer")
        if optimizer.built:
            raise ValueError("outer_optimizer is in use: give a new one")
        self._optimizer = optimizer
        self._variables: dict[str, keras.Variable] = {}

    def attach(self, outer: Mapping[str, np.ndarray]) -> None:
        """Make a variable for each array."""
        self._variables = {
            name: keras.Variable(np.zeros(values.shape, np.float32), name=name.replace("/", "_"))
            for name, values in outer.items()
        }
        self._optimizer.build(list(self._variables.values()))

    def step(self, fragment: Fragment) -> None:
        """Change the outer weights through the variables."""
        variables = [self._variables[name] for name in fragment.outer]
        for variable, values in zip(variables, fragment.outer.values()):
            variable.assign(_tensor(values))
        # Optimizers count calls of apply(), but the outer steps of all fragments are one step.
        made = int(self._optimizer.iterations.numpy())
        self._optimizer.iterations.assign(max(0, made - (fragment.number > 0)))
        self._optimizer.apply([_tensor(fragment.mean[name]) for name in fragment.outer], variables)
        for variable, values in zip(variables, fragment.outer.values()):
            values[...] = np.asarray(variable)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return the optimizer's variables by index."""
        variables = self._optimizer.variables
        return {f"{_PREFIX}{i}": np.array(variable) for i, variable in enumerate(variables)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what :meth:`state_dict` returned."""
        variables = self._optimizer.variables
        saved = {name: values for name, values in state.items() if name.startswith(_PREFIX)}
        shapes = {f"{_PREFIX}{i}": tuple(v.shape) for i, v in enumerate(variables)}
        if shapes != {name: values.shape for name, values in saved.items()}:
            raise ValueError("the state is of another outer optimizer")
        for name, variable in zip(shapes, variables):
            variable.assign(saved[name])


def _tensor(values: np.ndarray) -> tf.Tensor:
    """Return a copy. TensorFlow may use an array's memory, and this one changes later."""
    return tf.convert_to_tensor(values.copy())
