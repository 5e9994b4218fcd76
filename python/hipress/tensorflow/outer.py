"""Outer weights of a Keras model's variables, and Keras's optimizers on them (DiLoCo)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from hipress.diloco.outer import State
from hipress.dtypes import NUMPY
from hipress.tensorflow.gradients import name_of


def check_variables(variables: Sequence[keras.Variable]) -> None:
    """:raises ValueError: if there are none, or two have the same path, by which workers know them
    """
    if not variables:
        raise ValueError("the model has no weights yet: give it an Input, or call it once")
    seen: dict[str, keras.Variable] = {}
    for variable in variables:
        if seen.setdefault(name_of(variable), variable) is not variable:
            raise ValueError(
                f"two of the model's variables have the path {name_of(variable)!r}: give their "
                "layers names of their own"
            )


class Weights:
    """The values of variables; see :class:`hipress.diloco.outer.Weights`.

    :param inner: the inner optimizer, if it is known
    :raises ValueError: for variables that cannot be synchronised
    """

    def __init__(
        self, variables: Sequence[keras.Variable],
        inner: Callable[[], keras.optimizers.Optimizer | None],
    ) -> None:  # fmt: skip
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
            variable for variable in getattr(self._inner(), "variables", ())
            if len(variable.shape) and str(variable.dtype).startswith("float")
        ]  # fmt: skip
        if all(np.isfinite(np.asarray(slot)).all() for slot in slots):
            return
        for slot in slots:  # all: a momentum without its second moment makes a huge step
            slot.assign(np.zeros(slot.shape, slot.dtype))


class Outer:
    """An optimizer of Keras's on NumPy arrays; see :class:`hipress.diloco.outer.Optimizer`.

    :param optimizer: a new one; None: SGD with Nesterov's momentum 0.9 and learning rate 0.7
    :param inner: another one, it must not be
    :raises ValueError: for one that cannot be used
    """

    def __init__(
        self,
        optimizer: keras.optimizers.Optimizer | None,
        weights: Weights,
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
        self._variables = {
            name: keras.Variable(np.zeros(shape, np.float32), name=name.replace("/", "_"))
            for name, shape in weights.shapes().items()
        }
        optimizer.build(list(self._variables.values()))

    def step(
        self, fragment: int, weights: Mapping[str, np.ndarray], gradients: Mapping[str, np.ndarray]
    ) -> None:
        variables = [self._variables[name] for name in weights]
        for variable, values in zip(variables, weights.values()):
            variable.assign(_tensor(values))
        # Optimizers count calls of apply(), and all fragments of a round are one step.
        made = int(self._optimizer.iterations.numpy())
        self._optimizer.iterations.assign(max(0, made - (fragment > 0)))
        self._optimizer.apply([_tensor(gradients[name]) for name in weights], variables)
        for variable, values in zip(variables, weights.values()):
            values[...] = np.asarray(variable)

    def state_dict(self) -> State:
        variables = self._optimizer.variables
        return {str(i): np.array(variable) for i, variable in enumerate(variables)}

    def load_state_dict(self, state: State) -> None:
        variables = self._optimizer.variables
        if [state[n].shape for n in sorted(state, key=int)] != [tuple(v.shape) for v in variables]:
            raise ValueError("the state is of another outer optimizer")
        for i, variable in enumerate(variables):
            variable.assign(state[str(i)])


def _tensor(values: np.ndarray) -> tf.Tensor:
    """A copy: TensorFlow may use the memory of an array that it is given, and ours changes."""
    return tf.convert_to_tensor(values.copy())
