"""The size from which on compression pays: what ``plan="auto"`` of every front end measures.

All ranks together time gradients of a few sizes, uncompressed and compressed. The geometric means
over the ranks give two curves. Rank 0 compares them, and all ranks use its result.
"""

from __future__ import annotations

import logging
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from hipress.autotune.frontend import RankReductions
from hipress.planning.curve import Curve, fit

SIZES = (1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20)
"""Elements of the gradients that are timed."""
REPETITIONS = 4
"""Repetitions of each size, in turns. The shortest counts, except for the first repetition."""
CONCURRENT_ELEMENTS = 1 << 17
"""Elements of a size that travel together. In training, small gradients share a link with other
ones. A single one would pass in a burst."""
MAX_CURVE_ELEMENTS = 1 << 30
"""Elements up to which the curves are compared."""
GAIN_RATIO = 0.97
"""Maximum time over the present choice's time that replaces the present choice."""
NEVER = 1 << 62
"""A ``min_size`` that no gradient reaches, so that nothing is compressed."""
PREVIEW_REPETITIONS, PREVIEW_SECONDS = 5, 4.0
"""Maximum repetitions of a preview that count, and seconds after which no repetition begins. One
repetition precedes them, in which memory is allocated. At least one counts."""

_log = logging.getLogger("hipress.autotune")


class SizeFrontend(ABC):
    """Times gradients of one size for ``plan="auto"``. Every method is collective."""

    rank: int
    reductions: RankReductions

    @abstractmethod
    def time_size(self, size: int, compressed: bool) -> float:
        """Return the seconds of one of several gradients of ``size`` elements on this rank."""


def measure_sizes(frontend: SizeFrontend, sizes: Sequence[int]) -> np.ndarray:
    """Return the ranks' geometric means of the seconds by size, uncompressed and compressed."""
    found = []
    for size in sizes:
        seconds = [
            [frontend.time_size(size, compressed) for compressed in (False, True)]
            for _ in range(REPETITIONS)
        ]
        shortest = np.min(seconds[1:], axis=0)
        found.append(np.exp(frontend.reductions.mean(np.log(shortest))))
    return np.array(found).T


def threshold(raw: Curve, compressed: Curve) -> int | None:
    """Return the smallest size from which on compression pays, or None.

    The size is a power of two times 1, 1.25, 1.5 or 1.75. The result is None if compression pays at
    no size, or not at the largest.
    """
    exponents = range(8, MAX_CURVE_ELEMENTS.bit_length())
    least = None
    for size in reversed([int((4 + q) * (1 << e) / 4) for e in exponents for q in range(4)]):
        if compressed(size) > GAIN_RATIO * raw(size):
            break
        least = size
    return least


def least_size(frontend: SizeFrontend, times: np.ndarray, codec: str) -> tuple[int, list[Curve]]:
    """Return the elements from which on a codec pays, or NEVER, and the two curves."""
    curves = [fit(SIZES, row).curve for row in times]
    # Rank 0 decides, since arithmetic on another machine may round differently.
    mine = (threshold(*curves) or NEVER) if frontend.rank == 0 else 0
    least = frontend.reductions.from_rank_0(frontend.rank, mine)
    if frontend.rank == 0:
        if least == NEVER:
            _log.warning(
                "plan auto: nothing is compressed, for %s would not save %.0f%% of the time of "
                "uncompressed gradients here",
                codec,
                100 * (1 - GAIN_RATIO),
            )
        else:
            _log.info("plan auto: %s pays from %d elements on", codec, least)
        rows = zip(SIZES, *times)
        detail = ", ".join(f"{size}: {1e3 * a:.3g} and {1e3 * b:.3g}" for size, a, b in rows)
        _log.info("plan auto: ms by elements, uncompressed and compressed: %s", detail)
    return least, curves


def preview(first: Callable[[], float], second: Callable[[], float]) -> float:
    """Return the time of one kind of step over another's, in the median repetition."""
    kinds, ratios, spent = (first, second), [], 0.0
    while len(ratios) < 2 or (len(ratios) <= PREVIEW_REPETITIONS and spent < PREVIEW_SECONDS):
        seconds = [0.0, 0.0]
        for turn in (0, 1) if len(ratios) % 2 else (1, 0):
            seconds[turn] = kinds[turn]()
        spent += sum(seconds)
        ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios[1:])
