"""Guards that detect a codec that is too lossy for a model's gradients.

**Rounding** (``maxmin``): in a bucket of very different elements, rounding leaves little of the
small ones. Every 100 steps each rank computes the relative rounding error of its gradients. That
needs no encoding: ``maxmin`` rounds at random to one of the two nearest levels, whose distance is
``range / (2^bits - 1)``. The mean square of the error is about a sixth of the distance's square.

**Error feedback**: a residual delays a part of each gradient. In a window of steps each rank adds
up a sample of its gradients, and of the results. At the end one mean of the sample gives the exact
sum of the results. Two numbers describe the effect:

    error   |results - exact means| / |exact means|, of the sums over the window
    share   |residuals| / |gradient| of one rank in the last step: about the steps of delay, if
            gradients of successive steps are similar

The error of one step means nothing, because the next step may send the rest. In theory (Karimireddy
et al., ICML 2019, lemma 3), the share is at most 2 sqrt(1 - d) / d. Here d is the part of a
vector's square that the codec keeps.

**Weights** that are gathered (``blocks``, ``differences``): ranks compute gradients at weights that
are off by the rounding error. The same guard compares the error of each module's weights, on their
owner, with the norm of these weights. A small relative error is what training with quantized
weights also has. The error of differences is a share of the last change of the weights, so it is
large only if weights jump.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

MAX_ERROR = 0.4
"""Largest allowed norm of the rounding error over the norm of the gradient, for each parameter. It
is the largest with which training kept its loss (5 bits; ``python -m benchmarks rounding`` and
``convergence``)."""
MAX_SHARE, MAX_MEAN_ERROR = 3.5, 1.3
"""Largest allowed share and error of error feedback. Where training kept its loss within half a
percent they were up to 3.4 and 1.2. With shares of 4.1 and more it lost 0.7% to 1.8%, and with 10
it lost 3% (``python -m benchmarks feedback`` and ``quality``)."""
MAX_WEIGHTS_ERROR = 0.02
"""Largest allowed norm of the error of gathered weights over the norm of the weights, for each
module on each rank. It is 0.007 for normally distributed weights in blocks of 8 bits, with which
ZeRO++ (Wang et al. 2023) kept the loss, and 0.03 in blocks of 6 bits."""
EVERY = 100
"""Steps from one observation to the next."""
BUCKET = 1024
"""Elements that share a range in ``maxmin``, the codec's default."""
FIRST, WINDOW = 10, 8
"""First step of error feedback that is observed, and steps of a window."""
SAMPLE = 1024
"""Elements of each gradient that are added up, at most."""


def squares(values: np.ndarray) -> tuple[float, float]:
    """Return a vector's sum of squared ranges of buckets, times elements, and of squares."""
    values = values.astype(np.float32, copy=False)
    whole = values.size // BUCKET * BUCKET
    found = 0.0
    for rows in (values[:whole].reshape(-1, BUCKET), values[whole:].reshape(1, -1)):
        if rows.size:
            with np.errstate(invalid="ignore"):  # Inf - Inf
                found += float(np.square(np.ptp(rows, axis=1)).sum()) * rows.shape[1]
    return found, float(np.dot(values, values))


def rounding_error(params: Mapping[str, object], spread: float) -> float:
    """Return the relative error of ``maxmin`` with these parameters; 0 for other codecs."""
    bits = int(params.get("bits", 0))
    return spread / (2**bits - 1) if bits else 0.0


class GradientStatistics:
    """Statistics of the one-dimensional parts of a gradient for the guards, in NumPy."""

    @staticmethod
    def squares(parts: Sequence[Any]) -> Sequence[float]:
        """Return :func:`squares` of a gradient."""
        return tuple(map(sum, zip(*map(squares, parts))))

    @staticmethod
    def square(part: Any) -> float:
        """Return the sum of the squared elements."""
        part = part.astype(np.float32, copy=False)
        return float(np.dot(part, part))

    @staticmethod
    def sample(part: Any, stride: int) -> np.ndarray:
        """Return every ``stride``-th element as float32."""
        return part[::stride].astype(np.float32, copy=False)


class RoundingGuard:
    """Relative rounding error of one rank's gradients in the observed steps."""

    compares_results = False

    def __init__(self, statistics: type[GradientStatistics] = GradientStatistics) -> None:
        self._statistics = statistics
        self._squares: list[Sequence[float]] = []
        self._observed, self._next = -1, 0

    def observes(self, step: int) -> bool:
        """Return whether the gradients of a step must be passed to :meth:`before`."""
        if step >= self._next:
            self._observed, self._next = step, step + EVERY
        return step == self._observed

    def before(self, gradients: Iterable[tuple[str, Sequence[Any]]]) -> None:
        """Observe gradients, by name and one-dimensional parts, that are about to be compressed."""
        for _, parts in gradients:
            self.add(self._statistics.squares(parts))

    def add(self, squares: Sequence[float]) -> None:
        """Add the two :func:`squares` of a gradient, which may be in a GPU's memory."""
        self._squares.append(squares)

    def spread(self) -> float | None:
        """Return the largest relative error of a gradient with one bit (the coarsest levels).

        It is None if no step was observed since the last call. NaN, Inf and gradients of zeros do
        not count.
        """
        if not self._squares:
            return None
        ranges, norms = np.array([[float(a), float(b)] for a, b in self._squares]).T
        self._squares = []
        with np.errstate(all="ignore"):
            found = np.sqrt(ranges / 6 / norms)
        found = found[np.isfinite(found)]
        return float(found.max()) if found.size else 0.0


def sample_stride(count: int) -> int:
    """Return the odd distance of the sampled elements of a gradient, in several columns."""
    return -(-count // SAMPLE) | 1


class FeedbackGuard:
    """Error and share of one rank while one codec with error feedback is used, from ``step`` on."""

    def __init__(
        self,
        step: int,
        statistics: type[GradientStatistics] = GradientStatistics,
        compares_results: bool = True,
    ) -> None:
        self._begin, self._statistics = step + FIRST, statistics
        self.compares_results = compares_results
        """Whether results must be passed to :meth:`after`."""
        self._is_last = False
        self._own: dict[str, np.ndarray] = {}
        self._results: dict[str, np.ndarray] = {}
        self._square = 0.0

    def observes(self, step: int) -> bool:
        """Return whether gradients of a step must be passed to :meth:`before` and :meth:`after`."""
        self._is_last = step == self._begin + WINDOW - 1
        return self._begin <= step < self._begin + WINDOW

    def is_over(self, step: int) -> bool:
        """Return whether the window ended before this step, and its numbers can be computed."""
        return step >= self._begin + WINDOW

    def before(self, gradients: Iterable[tuple[str, Sequence[Any]]]) -> None:
        """Observe gradients, by name and one-dimensional parts, that are about to be compressed."""
        for name, parts in gradients:
            if self._is_last:
                self._square += sum(map(self._statistics.square, parts))
            if self.compares_results:
                self._add(self._own, name, parts[0])

    def after(self, results: Iterable[tuple[str, Any]], scale: float = 1.0) -> None:
        """Observe the results of these gradients, times ``scale``, in any thread."""
        for name, values in results:
            self._add(self._results, name, values, scale)

    def _add(self, sums: dict[str, np.ndarray], name: str, values: Any, scale: float = 1.0) -> None:
        sample = self._statistics.sample(values, sample_stride(len(values)))
        # A sample may be a view of the gradient, which changes.
        sums[name] = np.float32(scale) * sample + sums.get(name, np.float32(0))

    def sample(self) -> np.ndarray:
        """Return the sums of this rank's sample, float32[n]. Their mean is for :meth:`error`."""
        return _joined(self._own)

    def error(self, exact: np.ndarray) -> float:
        """Return the error relative to the mean of all ranks' :meth:`sample`, or 0."""
        results = _joined(self._results)
        if results.shape != exact.shape or not exact.size:
            return 0.0
        with np.errstate(all="ignore"):
            found = float(np.linalg.norm(results - exact) / np.linalg.norm(exact))
        return found if math.isfinite(found) else 0.0

    def share(self, residual_norm: float) -> float:
        """Return the norm of this rank's residuals over the norm of its last gradient."""
        found = residual_norm / math.sqrt(self._square) if self._square > 0 else 0.0
        return found if math.isfinite(found) else 0.0

    def next_window(self) -> None:
        """Start the next window."""
        self._begin += EVERY
        self._own, self._results, self._square = {}, {}, 0.0


def _joined(sums: dict[str, np.ndarray]) -> np.ndarray:
    if not sums:
        return np.zeros(0, np.float32)
    return np.concatenate([sums[name] for name in sorted(sums)])
