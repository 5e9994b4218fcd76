"""Outer weights in NumPy arrays, and how a worker's own become them.

The weights of the last synchronisation, in float32 and the same on all workers, are the *outer
weights*; a *pseudo-gradient* is outer weights minus the worker's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

State = dict[str, np.ndarray]


class Weights(Protocol):
    """A worker's own trained weights, by name, which a framework holds."""

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """In the order of the layers."""

    def read(self, name: str) -> np.ndarray:
        """The present values, float32 or float16; may be a view."""

    def write(self, name: str, values: np.ndarray) -> None:
        """Takes float32 values, which change later."""

    def forget_non_finite(self) -> None:
        """Has the inner optimizer begin anew with those weights of which it remembers a NaN or Inf,
        such as a momentum: with that its next step would make them NaN again."""


class Optimizer(Protocol):
    """A framework's optimizer on outer weights."""

    def step(
        self, fragment: int, weights: Mapping[str, np.ndarray], gradients: Mapping[str, np.ndarray]
    ) -> None:
        """Changes a fragment's outer weights in place: float32, C-contiguous, as gradients are."""

    def state_dict(self) -> State:
        """What it remembers, such as a momentum."""

    def load_state_dict(self, state: State) -> None:
        """Goes on from what :meth:`state_dict` returned.

        :raises ValueError: if it does not fit
        """


class Fragment:
    """Weights that are synchronised together.

    :param number: from 0, in the order of the fragments' turns
    :param names: of its weights
    """

    def __init__(self, number: int, weights: Weights, names: Sequence[str]) -> None:
        shapes = weights.shapes()
        self.number, self._weights = number, weights
        self.outer = {name: np.zeros(shapes[name], np.float32) for name in names}
        self.sums = {name: np.zeros(shapes[name], np.float32) for name in names}
        """Pseudo-gradients; after the exchange their sums over the workers."""
        self.due, self.under_way = 0, False

    def begin_with_weights(self) -> None:
        """Makes the outer weights what the weights are."""
        for name, outer in self.outer.items():
            outer[...] = self._weights.read(name)

    def subtract(self) -> bool:
        """Puts this worker's pseudo-gradients into ``sums``; says whether all of them are finite.
        """
        for name, difference in self.sums.items():
            np.subtract(self.outer[name], self._weights.read(name), out=difference)
        return self.finite()

    def finite(self) -> bool:
        """Whether ``sums`` has no NaN or Inf."""
        return all(bool(np.isfinite(values).all()) for values in self.sums.values())

    def take(
        self, optimizer: Optimizer, workers: int, alpha: float = 0.0, lost: bool = False,
        average: bool = False,
    ) -> bool:  # fmt: skip
        """Makes the outer optimizer's step with the mean of ``workers``, whose sums are there, and
        the weights. If a sum has a NaN or Inf, its weights are the outer weights again, and the
        inner optimizer forgets what is not finite.

        :param alpha: see :meth:`update`
        :param lost: whether some worker had a NaN or Inf that sums do not show
        :param average: whether the outer weights become the mean of the workers' instead
        :returns: whether there was none
        """
        finite = not lost and self.finite()
        if finite:
            for values in self.sums.values():
                values /= np.float32(workers)
            if average:
                for name, outer in self.outer.items():
                    outer -= self.sums[name]
            else:
                optimizer.step(self.number, self.outer, self.sums)
        else:
            self._weights.forget_non_finite()
        self.update(alpha if finite else 0.0)
        return finite

    def update(self, alpha: float = 0.0) -> None:
        """Makes the weights alpha times what they are, and the rest outer weights."""
        for name, outer in self.outer.items():
            mixed = outer
            if alpha:
                own = self._weights.read(name).astype(np.float32)
                mixed = outer + np.float32(alpha) * (own - outer)
            self._weights.write(name, mixed)

    def state_dict(self) -> State:
        """Outer weights, and the sums of what is under way, whose exchange is over."""
        found = {f"outer/{name}": values.copy() for name, values in self.outer.items()}
        if self.under_way:
            found[f"under_way/{self.number}"] = np.array(self.due)
            found.update({f"sums/{name}": values.copy() for name, values in self.sums.items()})
        return found

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what :meth:`state_dict` returned.

        :raises ValueError: if it is another model's, or was cut into other fragments
        """
        due = state.get(f"under_way/{self.number}")
        self._take(state, "outer", self.outer)
        if due is not None:
            self._take(state, "sums", self.sums)
            self.due = int(due)
        self.under_way = due is not None

    def _take(
        self, state: Mapping[str, np.ndarray], kind: str, arrays: Mapping[str, np.ndarray]
    ) -> None:
        for name, array in arrays.items():
            values = state.get(f"{kind}/{name}")
            if values is None or values.shape != array.shape:
                raise ValueError(f"the state has no {kind} of {name!r} of shape {array.shape}")
            array[...] = values
