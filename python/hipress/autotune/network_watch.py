"""Detection of a changed network from times that training measures anyway.

Each rank adds up the seconds of each step's communication. The maximum over the ranks of the median
of a few steps is one block. The first blocks after a choice define the usual time. If several
blocks in a row take at least twice, or at most half, as long, the choice may be wrong. Busy
processors look like a slower network, but seldom for long, and seldom like one that is much slower.
So two blocks are enough for a large difference; otherwise four are needed. Times at which another
measurement led to the same choice do not cause a measurement again. A network that is tenfold
slower or faster is detected within :data:`BLOCK_STEPS` times 3 steps, unless the communication does
not depend on it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

BLOCK_STEPS = 5
FACTOR = 2.0
"""Time over the usual time, or its inverse, from which on the network may have changed."""
NOTICEABLE = 5e-3
"""Smallest difference of a step's seconds that is worth a measurement."""
LARGE = 3.0
"""Time over the usual time, or its inverse, for which few blocks are enough."""
BLOCKS, LARGE_BLOCKS = 4, 2
"""Unusual blocks in a row that are needed, and those of a large difference. Processors may be busy
in a single block."""
SPAN = 3.0
"""Longest over shortest time at which the same choice was made, at most. A tenfold time is then
more than :data:`LARGE` beyond them."""
USUAL_BLOCKS = 3
"""Blocks whose median is the usual time."""
PATIENCE = 4
"""Blocks after a choice in which no change is reported. It doubles after each measurement that
changed nothing."""
MAX_PATIENCE = 512


class NetworkWatch:
    """The usual times on one rank, with the same results on all of them."""

    def __init__(self) -> None:
        self._steps: list[float] = []
        self._first: list[float] = []
        self._blocks, self._patience = 0, PATIENCE
        self._unusual: list[float] = []
        """Times of the last blocks over the nearest usual time."""
        self._last = 0.0
        """Seconds of the last block."""
        self._known: tuple[float, float] | None = None
        """Shortest and longest time at which the same choice was made before."""

    def add(self, seconds: float) -> float | None:
        """Add this rank's seconds of a step, and return the median at the end of a block."""
        self._steps.append(seconds)
        if len(self._steps) < BLOCK_STEPS:
            return None
        median, self._steps = statistics.median(self._steps), []
        return median

    def end_block(self, slowest: float) -> float | None:
        """Add the slowest rank's median. Return its time over the usual if the network changed."""
        self._blocks += 1
        self._last = slowest
        if len(self._first) < USUAL_BLOCKS:
            self._first.append(slowest)
            return None
        low, high = self._usual()
        beyond = slowest / (low if slowest < low else max(high, 1e-9))
        is_far = not low - NOTICEABLE <= slowest <= high + NOTICEABLE
        if not is_far or 1 / FACTOR < beyond < FACTOR:
            self._unusual = []
            return None
        before = [each for each in self._unusual if (each > 1) == (beyond > 1)]
        self._unusual = [*before, beyond][-BLOCKS:]
        last = self._unusual[-LARGE_BLOCKS:]
        large = len(last) == LARGE_BLOCKS and not any(1 / LARGE < each < LARGE for each in last)
        if not (large or len(self._unusual) == BLOCKS) or self._blocks <= self._patience:
            return None
        return slowest / max(statistics.median(self._first), 1e-9)

    def _usual(self) -> tuple[float, float]:
        """Return the shortest and longest time for which the choice is known to be right."""
        usual = statistics.median(self._first)
        return _spanned(self._known or (usual, usual), usual)

    def state_dict(self) -> dict[str, Any]:
        """Return the usual times, as JSON."""
        return {
            "first": self._first,
            "blocks": self._blocks,
            "patience": self._patience,
            "known": self._known and list(self._known),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from the result of :meth:`state_dict`."""
        self._first, self._blocks = list(saved["first"]), saved["blocks"]
        self._patience, known = saved["patience"], saved.get("known")
        self._known = known and (known[0], known[1])

    def begin(self, changed: bool) -> None:
        """Begin again after a choice that differs from the last one, or does not."""
        self._patience = PATIENCE if changed else min(2 * self._patience, MAX_PATIENCE)
        if changed or not self._first:
            self._known = None
        else:
            self._known = _spanned(self._usual(), self._last)
        self._steps, self._first, self._blocks, self._unusual = [], [], 0, []


def _spanned(known: tuple[float, float], seconds: float) -> tuple[float, float]:
    """Return a range of times with ``seconds`` and as much of the known range as SPAN allows."""
    low, high = min(*known, seconds), max(*known, seconds)
    return max(low, seconds / SPAN), min(high, seconds * SPAN)
