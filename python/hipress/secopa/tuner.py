"""The size from which on compressing a gradient pays: what every ``plan="auto"`` measures.

All workers together time gradients of a few sizes, uncompressed and compressed. The geometric means
over the workers give two curves. Worker 0 compares them, and all take its answer. How a gradient is
sent is the front end's part, its :class:`Meter`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hipress.secopa.curve import Curve, fit
from hipress.secopa.trial import GAIN_RATIO

SIZES = (1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20)
"""Elements of the gradients that are timed."""
ROUNDS = 4
"""Times that each is timed, in turns; the first does not count, the least of the others does."""
CONCURRENT_ELEMENTS = 1 << 17
"""Elements of a size that are under way together: in training, small gradients share a link with
others; one alone would pass in a burst."""
MAX_CURVE_ELEMENTS = 1 << 30
"""Elements up to which the curves are compared."""
NEVER = 1 << 62
"""A min_size that no gradient reaches: nothing is compressed."""

_log = logging.getLogger("hipress.secopa")


class Meter(Protocol):
    """Times gradients and compares notes between workers. All methods are collective."""

    rank: int

    def seconds(self, size: int, compressed: bool) -> float:
        """Seconds of one gradient of ``size`` elements on this worker."""

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean over all workers, float[n], with the same bits on each."""

    def from_worker_0(self, number: int) -> int:
        """Worker 0's number, on all."""


def measure(meter: Meter, sizes: Sequence[int]) -> np.ndarray:
    """The workers' geometric means of seconds: a row uncompressed and one compressed, by size."""
    found = []
    for size in sizes:
        rounds = [[meter.seconds(size, way) for way in (False, True)] for _ in range(ROUNDS)]
        found.append(np.exp(meter.mean(np.log(np.min(rounds[1:], axis=0)))))
    return np.array(found).T


def threshold(raw: Curve, compressed: Curve) -> int | None:
    """The least size (a power of two times 1, 1.25, 1.5 or 1.75) from which on compression gains.

    None if it gains at no size, or no longer at the largest.
    """
    exponents = range(8, MAX_CURVE_ELEMENTS.bit_length())
    least = None
    for size in reversed([int((4 + q) * (1 << e) / 4) for e in exponents for q in range(4)]):
        if compressed(size) > GAIN_RATIO * raw(size):
            break
        least = size
    return least


def least_size(meter: Meter, times: np.ndarray, codec: str) -> tuple[int, list[Curve]]:
    """The elements from which on ``codec`` pays, or NEVER, and the curves that say so.

    :param times: as :func:`measure` gives them
    """
    curves = [fit(SIZES, row).curve for row in times]
    # Worker 0 decides: another machine's arithmetic may round otherwise.
    least = meter.from_worker_0((threshold(*curves) or NEVER) if meter.rank == 0 else 0)
    if meter.rank == 0:
        if least == NEVER:
            _log.warning(
                "plan auto: nothing is compressed, for %s would not save %.0f%% of the time of "
                "uncompressed gradients here", codec, 100 * (1 - GAIN_RATIO),
            )  # fmt: skip
        else:
            _log.info("plan auto: %s pays from %d elements on", codec, least)
        rows = zip(SIZES, *times)
        detail = ", ".join(f"{size}: {1e3 * a:.3g} and {1e3 * b:.3g}" for size, a, b in rows)
        _log.info("plan auto: ms by elements, uncompressed and compressed: %s", detail)
    return least, curves
