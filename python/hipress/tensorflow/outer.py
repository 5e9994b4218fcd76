"""Outer weights of a Keras model's variables, and Keras's optimizers on them (DiLoCo)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from hipress.dtypes import NUMPY
from hipress.local_sgd.arrays import ArrayWeights
from hipress.local_sgd.outer import Fragment
from hipress.tensorflow.gradients import name_of

_PREFIX = "optimizer/"
"""Start of the names of the outer optimizer's variables in a state."""


def check_variables(variables: Sequence[keras.Variable]) -> None:
    """Check the variables."""
    if not variables:
        raise ValueError("the model has no weights yet: give it an Input, or call it once")
    seen: dict[str, keras.Variable] = {}
    for variable in variables:
        if seen.setdefault(name_of(variable), variable) is not variable:
            raise ValueError(
                f"two of the model's variables have the path {name_of(variable)!r}: give their "
                "layers names of their own"
            )


class Weights(ArrayWeights):
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
                    f"variable {name} is {variable.dtype}: DiLoCo synchronises {' or '.join(NUMPY)}"
                )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(variable.shape) for name, variable in self._variables.items()}

    def read(self, name: str) -> np.ndarray:
        return np.asarray(self._variables[name])

    def write(self, name: str, values: np.ndarray) -> None:
        self._variables[name].assign(_tensor(values))

    def forget_non_finite(self) -> None:
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
