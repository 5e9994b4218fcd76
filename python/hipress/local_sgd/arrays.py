"""Weights of frameworks whose arrays NumPy can read, and means of NumPy arrays."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping

import numpy as np


class ArrayWeights(abc.ABC):
    """See :class:`hipress.local_sgd.outer.Weights`; a framework reads and writes."""

    @abc.abstractmethod
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return shapes by name, in the order of the layers."""

    @abc.abstractmethod
    def read(self, name: str) -> np.ndarray:
        """Return the values, float32 or float16; may be a view."""

    @abc.abstractmethod
    def write(self, name: str, values: np.ndarray) -> None:
        """Copy float32 values to the framework's weights."""

    @abc.abstractmethod
    def forget_non_finite(self) -> None:
        """See :meth:`hipress.local_sgd.outer.Weights.forget_non_finite`."""

    def check(self) -> None:  # noqa: B027
        """Do nothing: these front ends cannot unfreeze weights later."""

    def copy(self, name: str) -> np.ndarray:
        """Return a float32 copy."""
        return np.array(self.read(name), np.float32, order="C")

    def subtract(self, name: str, outer: np.ndarray, out: np.ndarray) -> None:
        """Write outer weights minus weights to ``out``."""
        np.subtract(outer, self.read(name), out=out)

    def update(self, name: str, outer: np.ndarray, alpha: float) -> None:
        """Set the weights to ``alpha * weights + (1 - alpha) * outer``."""
        mixed = outer
        if alpha:
            own = self.read(name).astype(np.float32)
            mixed = outer + np.float32(alpha) * (own - outer)
        self.write(name, mixed)


def is_finite(arrays: Iterable[np.ndarray]) -> bool:
    """Return whether there is no NaN or Inf."""
    return all(bool(np.isfinite(values).all()) for values in arrays)


def divide_if_finite(sums: Mapping[str, np.ndarray], workers: int) -> bool:
    """Divide sums by the number of workers, if all are finite; return whether they are."""
    finite = is_finite(sums.values())
    if finite:
        for values in sums.values():
            values /= np.float32(workers)
    return finite
