"""Finds out in steps of training which of several choices is the fastest.

What gradients of one size take by themselves does not say what a step takes: uncompressed, small
ones may spare processors but need more of a link that large ones keep busy. So choices take turns,
to and fro (a b c, c b a, ...): what makes steps slower or faster for a while, or little by little,
does so to all of them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping

from hipress.compression import Compressor, codecs

BLOCK_STEPS, MAX_BLOCK_STEPS = 4, 32
"""Steps of a block that are timed, at least and at most. One more comes before them: in it a choice
allocates what it needs, and a link that was idle lets a burst pass."""
BLOCK_SECONDS = 0.1
"""Seconds of a block: a shorter one says more of other programs' turns than of the choice."""
MAX_ROUNDS = 8
"""Blocks of each choice, at most."""
MAX_LOSSES = 2
"""Rounds that a choice may lose against the first one: three out of four must be won."""
GAIN_RATIO = 0.97
"""The part of the first choice's time that another one may take, to replace it."""
PREVIEW_ROUNDS, PREVIEW_SECONDS = 5, 4.0
"""Rounds of a preview that count, at most, and seconds after which no round begins; one comes
before them, in which memory is allocated, and at least one counts."""


def is_harmless(codec: str, params: Mapping[str, object]) -> bool:
    """Whether gradients may go compressed and uncompressed by turns.

    Where a codec sends a share of the elements, as one does that has a ``ratio`` or whose decoder
    is not one pass that writes them all, a residual holds tens to hundreds of gradients, and all of
    them would come with the next uncompressed one. With momentum, compressed keys learn several
    times as fast as uncompressed ones.
    """
    given = {param.name: param.default for param in codecs()[codec].typed_params()}
    given.update(params)
    made = Compressor(codec, **{k: v for k, v in given.items() if v is not None})
    return made.dense and "ratio" not in given and float(given.get("momentum") or 0) == 0


def block_steps(seconds: float) -> int:
    """Timed steps of a block, if one takes ``seconds``."""
    return min(max(BLOCK_STEPS, math.ceil(BLOCK_SECONDS / max(seconds, 1e-6))), MAX_BLOCK_STEPS)


def preview(first: Callable[[], float], second: Callable[[], float]) -> float:
    """The time of one kind of step over another's, in the median round.

    :param first, second: run a step and return its seconds, the same on all workers
    """
    kinds, ratios, spent = (first, second), [], 0.0
    while len(ratios) < 2 or (len(ratios) <= PREVIEW_ROUNDS and spent < PREVIEW_SECONDS):
        seconds = [0.0, 0.0]
        for turn in (0, 1) if len(ratios) % 2 else (1, 0):
            seconds[turn] = kinds[turn]()
        spent += sum(seconds)
        ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios[1:])


class Trial:
    """A trial of several choices in turns: takes the seconds of their blocks, and chooses.

    The first choice is kept unless another is faster in three rounds out of four, and by 3% in the
    median round. One that can no longer be that is not run any more. Whoever is given the same
    seconds chooses the same: only quotients, means of two and comparisons decide.

    :param choices: how many there are; the first has number 0
    """

    def __init__(self, choices: int) -> None:
        self._rivals = list(range(1, choices))
        self._ratios: dict[int, list[float]] = {rival: [] for rival in self._rivals}
        self._round = 0
        self._turns = [0, *self._rivals]
        self._seconds: dict[int, float] = {}

    @property
    def over(self) -> bool:
        """Whether enough blocks were run."""
        return not self._rivals or self._round >= MAX_ROUNDS

    @property
    def choice(self) -> int:
        """The number whose block is the next; when all is over, the one to keep."""
        if not self.over:
            return self._turns[0]
        fastest = min(self._rivals, key=self.ratio, default=0)
        return fastest if self.ratio(fastest) <= GAIN_RATIO else 0

    def ratio(self, choice: int) -> float:
        """A choice's time over the first one's, in the median round."""
        return statistics.median(self._ratios[choice]) if choice > 0 else 1.0

    def add(self, seconds: float) -> None:
        """Takes the seconds of the block of :attr:`choice`."""
        self._seconds[self._turns.pop(0)] = seconds
        if self._turns:
            return
        for rival in self._rivals:
            self._ratios[rival].append(self._seconds[rival] / self._seconds[0])
        self._rivals = [rival for rival in self._rivals if self._losses(rival) <= MAX_LOSSES]
        self._round += 1
        self._turns = [0, *self._rivals][:: -1 if self._round % 2 else 1]

    def _losses(self, rival: int) -> int:
        return sum(ratio >= 1 for ratio in self._ratios[rival])
