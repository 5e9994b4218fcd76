"""Finds out, by times that training gives anyway, whether a network has become another one.

Workers add up how long each step's gradients are on their way. The median of a few steps in a row
is compared between the workers; the slowest one's counts. The first such blocks after a choice are
what later ones are compared with. Where two blocks in a row take twice as long as that or longer,
or half of it or less, the choice may be wrong now. A network that is tenfold slower or faster is
noticed within :data:`BLOCK_STEPS` times 3 steps, unless what is sent does not depend on it.
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
BLOCKS = 2
"""Blocks in a row that must say so: one alone may be of a time when processors were busy."""
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
        self._blocks, self._odd, self._patience = 0, 0, PATIENCE

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
        if len(self._first) < USUAL_BLOCKS:
            self._first.append(slowest)
            return None
        usual = statistics.median(self._first)
        ratio = slowest / max(usual, 1e-9)
        odd = abs(slowest - usual) > NOTICEABLE and not 1 / FACTOR < ratio < FACTOR
        self._odd = self._odd + 1 if odd else 0
        if self._odd < BLOCKS or self._blocks <= self._patience:
            return None
        return ratio

    def state_dict(self) -> dict[str, Any]:
        """What is usual, to be written as JSON."""
        return {"first": self._first, "blocks": self._blocks, "patience": self._patience}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on with what :meth:`state_dict` returned."""
        self._first, self._blocks = list(saved["first"]), saved["blocks"]
        self._patience = saved["patience"]

    def begin(self, changed: bool) -> None:
        """Begins anew after a choice.

        :param changed: whether it is another one than before
        """
        self._patience = PATIENCE if changed else min(2 * self._patience, MAX_PATIENCE)
        self._steps, self._first, self._blocks, self._odd = [], [], 0, 0
