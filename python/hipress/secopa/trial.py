"""Finds out in steps of training which of several plans is the fastest.

What gradients of one size take by themselves does not say what a step takes: raw, small ones may
spare processors but need more of a link that large ones keep busy. So plans take turns, a block of
steps each, to and fro (a b c, c b a, ...): what makes steps slower or faster for a while, or little
by little, does so to all of them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

from hipress.compression import Compressor, codecs

BLOCK, LONGEST = 4, 32
"""Steps of a block that are timed, at least and at most. One more comes before them: in it plans
allocate what they need, and a link that was idle lets a burst pass."""
SECONDS = 0.1
"""That a block is to take: a shorter one says more of other programs' turns than of the plan."""
ROUNDS = 8
"""Blocks of each plan, at most."""
LOSSES = 2
"""Rounds that a plan may lose against the first one: three out of four must be won."""
GAIN = 0.97
"""What takes another's place must take at most this part of its time."""


def harmless(params: Mapping[str, object]) -> bool:
    """Whether gradients may go compressed and raw by turns, with these compression parameters.

    Where a codec sends a share of the elements, as one does that has a ``ratio`` or whose decoder
    is not one pass that writes them all, a residual holds tens to hundreds of gradients, and all of
    them would come with the next raw one. With momentum, compressed keys learn several times as
    fast as raw ones.
    """
    type_ = str(params.get("type", "none"))
    given = {param.name: param.default for param in codecs()[type_].typed_params()}
    given.update((name, params[name]) for name in given if name in params)
    codec = Compressor(type_, **{k: v for k, v in given.items() if v is not None})
    return codec.dense and "ratio" not in given and float(given.get("momentum") or 0) == 0


def block_of(seconds: float) -> int:
    """Timed steps of a block, if one takes ``seconds``."""
    return min(max(BLOCK, math.ceil(SECONDS / max(seconds, 1e-6))), LONGEST)


class Trial:
    """Says whose turn it is, takes what the blocks took, and chooses.

    The first plan is kept unless another is clearly faster: in three rounds out of four, and by 3%
    in the median round. One that can no longer be that is not run any more. Whoever is given the
    same seconds chooses the same: only quotients, means of two and comparisons decide.

    :param plans: how many there are; the first has number 0
    """

    def __init__(self, plans: int) -> None:
        self._rivals = list(range(1, plans))
        self._ratios: dict[int, list[float]] = {rival: [] for rival in self._rivals}
        self._round = 0
        self._turns = [0, *self._rivals]
        self._seconds: dict[int, float] = {}

    @property
    def over(self) -> bool:
        """Whether enough blocks were run."""
        return not self._rivals or self._round >= ROUNDS

    @property
    def plan(self) -> int:
        """Whose block is the next; when all is over, the plan to keep."""
        if not self.over:
            return self._turns[0]
        fastest = min(self._rivals, key=self.ratio, default=0)
        return fastest if self.ratio(fastest) <= GAIN else 0

    def ratio(self, plan: int) -> float:
        """A plan's time over the first one's, in the median round."""
        return statistics.median(self._ratios[plan]) if plan > 0 else 1.0

    def add(self, seconds: float) -> None:
        """What the block of :attr:`plan` took."""
        self._seconds[self._turns.pop(0)] = seconds
        if self._turns:
            return
        for rival in self._rivals:
            self._ratios[rival].append(self._seconds[rival] / self._seconds[0])
        self._rivals = [rival for rival in self._rivals if self._losses(rival) <= LOSSES]
        self._round += 1
        self._turns = [0, *self._rivals][:: -1 if self._round % 2 else 1]

    def _losses(self, rival: int) -> int:
        return sum(ratio >= 1 for ratio in self._ratios[rival])
