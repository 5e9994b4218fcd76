"""Outer weights of Gluon's parameters, and MXNet's optimizers on them (DiLoCo)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon

from hipress.dtypes import NUMPY
from hipress.local_sgd.arrays import ArrayWeights
from hipress.local_sgd.outer import Fragment
from mxnet_hipress._states import load_optimizer

_NESTEROV = {"learning_rate": 0.7, "momentum": 0.9}


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
        self._parameters = {parameter.name: parameter for parameter in parameters}
        for name, parameter in self._parameters.items():
            kind = np.dtype(parameter.dtype).name
            if kind not in NUMPY or {parameter._stype, parameter._grad_stype} != {"default"}:
                raise ValueError(
                    f"parameter {name!r} or its gradient is sparse, or of type {kind}: DiLoCo "
                    f"synchronises dense ones, of {' or '.join(NUMPY)}"
                )
            check_values(parameter)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: parameter.shape for name, parameter in self._parameters.items()}

    @property
    def any_float16(self) -> bool:
        """Whether a weight is not float32."""
        return any(np.dtype(p.dtype) != np.float32 for p in self._parameters.values())

    def read(self, name: str) -> np.ndarray:
        parameter = self._parameters[name]
        return parameter.data(parameter.list_ctx()[0]).asnumpy()

    def write(self, name: str, values: np.ndarray) -> None:
        parameter = self._parameters[name]
        parameter.set_data(array_of(values, parameter.dtype))  # a copy

    def forget_non_finite(self) -> None:
        optimizer = self._trainer.optimizer
        for updater in self._trainer._updaters:
            for number, state in list(updater.states.items()):
                if not all(np.isfinite(array.asnumpy()).all() for array in _arrays(state)):
                    del updater.states[number]  # the next step creates it again
                    for counts in optimizer._all_index_update_counts.values():
                        counts.pop(number, None)  # used for Adam's bias correction


def _arrays(state: Any) -> Iterator[mx.nd.NDArray]:
    """Yield the arrays in an optimizer's state of one weight: an array, a tuple of them, or
    none."""
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
        if inner.multi_precision and weights.any_float16:
            raise ValueError(
                "with multi_precision the inner optimizer has float32 copies of float16 weights, "
                "of which a synchronisation would not know: train float32 weights"
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
