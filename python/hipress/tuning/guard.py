"""Watches what rounding does to a model's gradients where the ranks have chosen ``maxmin``.

In buckets of very different elements rounding leaves little of the small ones. In a step now and
then each rank finds out how large its own rounding error is beside its gradient. That takes no
encoding: ``maxmin`` rounds at random to the nearest two levels, which are ``range / (2^bits - 1)``
apart, and the mean square of the error is about a sixth of that distance's square.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

MAX_ERROR = 0.4
"""The norm of the error over that of the gradient, for each parameter, that is allowed: what it was
at most where training kept its loss (5 bits; `python -m benchmarks rounding` and `convergence`)."""
EVERY = 100
"""Steps of which one is looked at."""
BUCKET = 1024
"""Elements that share a range, the codec's default."""


def squares(values: np.ndarray) -> tuple[float, float]:
    """The sum of the squared ranges of a gradient's buckets, each times its elements, and that of
    its squared elements.

    :param values: one-dimensional
    """
    values = values.astype(np.float32, copy=False)
    whole = values.size // BUCKET * BUCKET
    found = 0.0
    for rows in (values[:whole].reshape(-1, BUCKET), values[whole:].reshape(1, -1)):
        if rows.size:
            with np.errstate(invalid="ignore"):  # Inf - Inf
                found += float(np.square(np.ptp(rows, axis=1)).sum()) * rows.shape[1]
    return found, float(np.dot(values, values))


class Guard:
    """The rounding error of one rank's gradients in the steps that are looked at."""

    def __init__(self) -> None:
        self._squares: list[Sequence[float]] = []
        self._looked_at, self._next = -1, 0

    def looks_at(self, step: int) -> bool:
        """Whether a step's gradients are to be given to :meth:`add`."""
        if step >= self._next:
            self._looked_at, self._next = step, step + EVERY
        return step == self._looked_at

    def add(self, squares: Sequence[float]) -> None:
        """Adds the two :func:`squares` of a gradient that is about to be compressed; they may be in
        the memory of a GPU, and are read later."""
        self._squares.append(squares)

    def spread(self) -> float | None:
        """The largest of the gradients' errors with one bit, where levels are farthest apart, each
        over the gradient's norm.

        None if no step was looked at since the last call. What is NaN or Inf, and gradients of
        zeros, do not count.
        """
        if not self._squares:
            return None
        ranges, norms = np.array([[float(a), float(b)] for a, b in self._squares]).T
        self._squares = []
        with np.errstate(all="ignore"):
            found = np.sqrt(ranges / 6 / norms)
        found = found[np.isfinite(found)]
        return float(found.max()) if found.size else 0.0


def error_of(params: Mapping[str, object], spread: float) -> float:
    """The error of ``maxmin`` with these parameters, beside a gradient's norm; 0 of other ways."""
    bits = int(params.get("bits", 0))
    return spread / (2**bits - 1) if bits else 0.0
