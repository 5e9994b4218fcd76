"""Finds out, by times that training gives anyway, whether a network has become another one.

Workers add up how long each step's gradients are on their way. The median of a few steps in a row
is compared between the workers; the slowest one's counts. The first such blocks after a choice are
what later ones are compared with. Where some blocks in a row take twice as long as that or longer,
or half of it or less, the choice may be wrong now. Busy processors look like a slower network, too,
but seldom for long, or like one that is much slower. So two blocks are enough where the difference
is large, else it takes four. And times at which measuring anew has led to the same choice are no
reason to measure again. A network that is tenfold slower or faster is noticed within
:data:`BLOCK_STEPS` times 3 steps, unless what is sent does not depend on it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

BLOCK_STEPS = 5
FACTOR = 2.0
"""The times as long, or the part, from which on another network is supposed."""
NOTICEABLE = 5e-3
"""Seconds of a step that must have come or gone besides: less is not worth measuring for."""
LARGE = 3.0
"""The times as long, or the part, for which few blocks are enough."""
BLOCKS, LARGE_BLOCKS = 4, 2
"""Blocks in a row that must say so, and those of a large difference: one alone may be of a time
when processors were busy."""
SPAN = 3.0
"""The longest of the times at which the same choice was made over the shortest, at most: what is
tenfold is then more than :data:`LARGE` beyond them."""
USUAL_BLOCKS = 3
"""Blocks whose median is usual."""
PATIENCE = 4
"""Blocks after a choice in which nothing is supposed; twice as many after each time that measuring
anew changed nothing."""
MAX_PATIENCE = 512


class NetworkWatch:
    """What one worker knows; all come to the same, as :meth:`end_block` is given the same."""

    def __init__(self) -> None:
        self._steps: list[float] = []
        self._first: list[float] = []
        self._blocks, self._patience = 0, PATIENCE
        self._odd: list[float] = []
        """How far the last blocks are beyond what is usual: the times as long, or the part."""
        self._last = 0.0
        """Seconds of the last block."""
        self._known: tuple[float, float] | None = None
        """The shortest and the longest of the times at which the same choice was made before."""

    def add(self, seconds: float) -> float | None:
        """Takes this worker's seconds of a step's gradients.

        :returns: at the end of a block its median, of which all workers' maximum is to be given to
            :meth:`end_block`
        """
        self._steps.append(seconds)
        if len(self._steps) < BLOCK_STEPS:
            return None
        median, self._steps = statistics.median(self._steps), []
        return median

    def end_block(self, slowest: float) -> float | None:
        """Takes the slowest worker's median of a block.

        :returns: the times as long as usual that gradients take, if another network is to be
            supposed; then all is to be measured anew, and :meth:`begin` to be called
        """
        self._blocks += 1
        self._last = slowest
        if len(self._first) < USUAL_BLOCKS:
            self._first.append(slowest)
            return None
        low, high = self._usual()
        beyond = slowest / (low if slowest < low else max(high, 1e-9))
        far = not low - NOTICEABLE <= slowest <= high + NOTICEABLE
        if not far or 1 / FACTOR < beyond < FACTOR:
            self._odd = []
            return None
        before = [each for each in self._odd if (each > 1) == (beyond > 1)]
        self._odd = [*before, beyond][-BLOCKS:]
        last = self._odd[-LARGE_BLOCKS:]
        large = len(last) == LARGE_BLOCKS and not any(1 / LARGE < each < LARGE for each in last)
        if not (large or len(self._odd) == BLOCKS) or self._blocks <= self._patience:
            return None
        return slowest / max(statistics.median(self._first), 1e-9)

    def _usual(self) -> tuple[float, float]:
        """The shortest and the longest time for which the choice is known to be right."""
        usual = statistics.median(self._first)
        return _spanned(self._known or (usual, usual), usual)

    def state_dict(self) -> dict[str, Any]:
        """What is usual, to be written as JSON."""
        return {
            "first": self._first, "blocks": self._blocks, "patience": self._patience,
            "known": self._known and list(self._known),
        }  # fmt: skip

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on with what :meth:`state_dict` returned."""
        self._first, self._blocks = list(saved["first"]), saved["blocks"]
        self._patience, known = saved["patience"], saved.get("known")
        self._known = known and (known[0], known[1])

    def begin(self, changed: bool) -> None:
        """Begins anew after a choice.

        :param changed: whether it is another one than before
        """
        self._patience = PATIENCE if changed else min(2 * self._patience, MAX_PATIENCE)
        if changed or not self._first:
            self._known = None
        else:
            self._known = _spanned(self._usual(), self._last)
        self._steps, self._first, self._blocks, self._odd = [], [], 0, []


def _spanned(known: tuple[float, float], seconds: float) -> tuple[float, float]:
    """The shortest and the longest of these times and another one, of which the latter is at most
    :data:`SPAN` times the former; the other one is between them, or one of them."""
    low, high = min(*known, seconds), max(*known, seconds)
    return max(low, seconds / SPAN), min(high, seconds * SPAN)
