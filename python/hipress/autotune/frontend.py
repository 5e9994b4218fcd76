"""The protocol between the autotuner and a front end, whose gradients it tunes.

All ranks call the reductions, :meth:`TuningFrontend.time_gradients` and
:meth:`TuningFrontend.measure` together, in the same order. These, and all methods of the autotuner
that call them, raise HipressError if a rank fails or is silent.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hipress.autotune.measurement import FIRST_ELEMENTS, Measurement, compare_methods
from hipress.autotune.methods import Method, feedback_indices
from hipress.autotune.quality_guard import GradientStatistics

MAX_ELEMENTS = 1 << 23
"""Maximum elements of a sample, approximately. Of a larger model every second (third, ...) gradient
in order of size is measured. A gradient that is larger than this is cut to this size."""
MAX_NUMBERS = 8
"""Numbers of a rank that one reduction compares, at most."""


class RankReductions(ABC):
    """Reductions of a few numbers over all ranks, whose results have the same bits on each."""

    @abstractmethod
    def begin_max(self, values: Sequence[float]) -> Any:
        """Begin the maximum of up to :data:`MAX_NUMBERS` numbers, without waiting."""

    @abstractmethod
    def end_max(self, begun: Any) -> list[float]:
        """Wait for the result of :meth:`begin_max`."""

    @abstractmethod
    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of a vector, float32[n] or float64[n], over all ranks."""

    def max(self, *values: float) -> list[float]:
        """Return the maximum of each number over all ranks."""
        return self.end_max(self.begin_max(values))

    def from_rank_0(self, rank: int, number: int) -> int:
        """Return rank 0's number on all ranks: a small one, or a power of two times one, or 0."""
        return int(self.max(number if rank == 0 else 0)[0])


class SumReductions(RankReductions):
    """Reductions by sums of float32.

    In the sum for a maximum, each rank has separate elements, so rounding of other ranks' numbers
    does not affect them.
    """

    def __init__(self, rank: int, num_ranks: int) -> None:
        self._rank, self._num_ranks = rank, num_ranks

    @abstractmethod
    def begin_sum(self, values: np.ndarray) -> Callable[[], np.ndarray]:
        """Begin the sum of float32[n] over all ranks, and return a function that waits for it."""

    def begin_max(self, values: Sequence[float]) -> tuple[Callable[[], np.ndarray], int]:
        """Begin the maximum of some numbers over all ranks."""
        mine = np.zeros((self._num_ranks, MAX_NUMBERS), np.float32)
        mine[self._rank, : len(values)] = values
        return self.begin_sum(mine.reshape(-1)), len(values)

    def end_max(self, begun: tuple[Callable[[], np.ndarray], int]) -> list[float]:
        """Return the maxima when all ranks have sent theirs."""
        wait, count = begun
        return wait().reshape(-1, MAX_NUMBERS).max(axis=0)[:count].tolist()

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of an array over all ranks."""
        if not values.size:
            return values
        return self.begin_sum(values.astype(np.float32))() / np.float32(self._num_ranks)


class TuningFrontend(ABC):
    """Gradients, or pseudo-gradients, that the autotuner measures and tunes on one rank."""

    rank: int
    """Rank of this process among those that choose together."""
    num_ranks: int
    rank_noun = "rank"
    """Name of a rank in messages."""
    reductions: RankReductions
    elements: int
    """Elements of all gradients of a step."""
    what = "gradients"
    """Name of what is synchronized, in messages."""
    rounded = "a gradient", "the gradient's"
    """Name of what the rounding guard observes, in messages, and its possessive form."""
    max_error: float | None = None
    """Largest allowed relative rounding error; None: the bound for gradients."""
    first_elements = FIRST_ELEMENTS
    """Elements of the first sample."""

    @property
    def log_rank(self) -> int:
        """Rank of this process in the job. Rank 0 writes the log and the journal."""
        return self.rank

    @abstractmethod
    def time_gradients(self, method: Method, size: int) -> tuple[float, int]:
        """Return the slowest rank's seconds of a sample of gradients, and the sample's elements."""

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Enclose calls of :meth:`time_gradients`; free the memory of the sample at the end."""
        yield

    @abstractmethod
    def use(self, method: Method) -> None:
        """Synchronize all later gradients by a method. Residuals are kept."""

    @abstractmethod
    def bytes_sent(self) -> int:
        """Return the bytes that this rank has sent so far."""

    def measure(self, methods: Sequence[Method]) -> list[Measurement]:
        """Measure all gradients by each method, the least lossy first."""
        with self.measuring():
            return compare_methods(
                lambda index, size: self.time_gradients(methods[index], size),
                len(methods),
                self.elements,
                MAX_ELEMENTS,
                self.first_elements,
                feedback_indices(methods),
            )


class StepFrontend(TuningFrontend):
    """Gradients of training steps, for a :class:`~hipress.autotune.controller.TuningController`."""

    step: int
    """Number of the step that begins."""
    keeps_error_feedback: bool
    """Whether a residual is added to the next gradient for every method. Otherwise only a codec
    adds it, and uncompressed gradients do not. A method with error feedback is then followed by one
    step of ``maxmin``, which adds the residuals and sends them."""
    compares_results: bool
    """Whether results are means of gradients (not weights), and all of them reach this rank."""
    statistics: type[GradientStatistics] = GradientStatistics

    @abstractmethod
    def residual_norm(self) -> float:
        """Return the 2-norm of all residuals of this rank."""

    @abstractmethod
    def allows_feedback(self) -> bool | None:
        """Return whether all optimizers support error feedback, or None if that is unknown."""
