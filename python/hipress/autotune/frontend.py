"""The protocol between the autotuner and a front end, whose gradients it tunes.

All ranks call the collective methods together and in the same order.
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
"""Elements of the largest sample, about. Of a larger model every second (third, ...) gradient in
order of size is measured. A gradient that is larger than this is cut to this size."""
MAX_NUMBERS = 8
"""Numbers of a rank that one reduction compares, at most."""


class RankReductions(ABC):
    """Reductions of a few numbers over all ranks, whose results have the same bits on each."""

    @abstractmethod
    def begin_max(self, values: Sequence[float]) -> Any:
        """Begin the maximum of up to :data:`MAX_NUMBERS` numbers, without waiting."""

    @abstractmethod
    def end_max(self, begun: Any) -> list[float]:
        """Wait for the result of :meth:`begin_max`.

        Raises:
            HipressError: If a rank fails or is silent.
        """

    @abstractmethod
    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of a vector over all ranks.

        Args:
            values: float32[n] or float64[n].

        Raises:
            HipressError: If a rank fails or is silent.
        """

    def max(self, *values: float) -> list[float]:
        """Return the maximum of each number over all ranks."""
        return self.end_max(self.begin_max(values))

    def from_rank_0(self, rank: int, number: int) -> int:
        """Return rank 0's number on all ranks.

        Args:
            rank: Rank of this process.
            number: A small number, or a power of two times one; at least 0.
        """
        return int(self.max(number if rank == 0 else 0)[0])


class TuningFrontend(ABC):
    """Gradients, or pseudo-gradients, that the autotuner measures and tunes on one rank."""

    rank: int
    """Rank of this process. Rank 0 writes the log."""
    num_ranks: int
    rank_noun = "rank"
    """Name of a rank in messages."""
    reductions: RankReductions
    elements: int
    """Elements of all gradients of a step."""
    first_elements = FIRST_ELEMENTS
    """Elements of the first sample."""

    @abstractmethod
    def time_gradients(self, method: Method, size: int) -> tuple[float, int]:
        """Synchronize a sample of the gradients by a method.

        Args:
            size: Elements of the sample, about. The last size is kept in memory.

        Returns:
            Seconds of the slowest rank, and elements of the sample.

        Raises:
            HipressError: If a rank fails or is silent.
        """

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

    def measure(
        self,
        methods: Sequence[Method],
        compare: Callable[..., list[Measurement]] = compare_methods,
    ) -> list[Measurement]:
        """Measure all gradients by each method.

        Args:
            methods: The least lossy first.
            compare: :func:`~hipress.autotune.measurement.compare_methods` or
                :func:`~hipress.autotune.measurement.measure_each`.

        Raises:
            HipressError: If a rank fails or is silent.
        """
        with self.measuring():
            return compare(
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
    adds it, and uncompressed gradients do not: a method with error feedback is then followed by one
    step of ``maxmin``, which adds the residuals and sends them."""
    compares_results: bool
    """Whether results are means of gradients (not weights), and all of them reach this rank."""
    statistics: type[GradientStatistics] = GradientStatistics

    @abstractmethod
    def residual_norm(self) -> float:
        """Return the 2-norm of all residuals of this rank."""

    @abstractmethod
    def allows_feedback(self) -> bool | None:
        """Return whether all optimizers support error feedback; None if it is not known yet."""
