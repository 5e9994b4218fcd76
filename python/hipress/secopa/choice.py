"""Chooses among ways to synchronise gradients, from gentle to lossy, by what workers measure.

Two questions, one after the other. Before the first step: what do gradients of the model's sizes
take by each way (:func:`compare`)? Of those that are about as fast as the fastest one, the gentlest
is the choice. In the first steps of training: is a step with it faster than one by another way?
Where computing hides what is sent, or needs the processors that encoding takes, it may not be
(:class:`StepTrial`). A way that takes longer for its gradients alone than a whole step with the
choice cannot be faster, and is not tried.

Whoever is given the same seconds chooses the same: there are only medians, quotients and
comparisons.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hipress.secopa.trial import BLOCK_STEPS, block_steps

TOLERANCE = 1.1
"""The times the fastest way's time that a gentler one may take for gradients alone."""
STEP_TOLERANCE = 1.03
"""The same for a step of training."""
SLACK_SECONDS = 2e-4
"""Seconds more than the fastest way that a gentler one may take, too: less is noise."""
FIRST_ELEMENTS, GROWTH = 1 << 16, 4
"""Elements of the first sample, and how many times as large the next one is."""
ROUNDS = 3
"""Times that each way is timed with a sample, in turns; one more, before these, does not count."""
BUDGET_SECONDS = 6.0
"""Seconds of all samples, about; on a network where the first one takes longer, its one round."""
BEATEN = 3.0
"""Times the fastest way's time from which on a way gets no larger sample."""
HOPELESS = 1.5
"""Times the fastest way's time of a step from which on a way has lost a round of a trial."""
SETTLING_STEPS = 3
"""Steps of training before the first one that is timed: DDP makes new buckets after its first."""
STEP_ROUNDS = 4
"""Blocks of steps of each way, at most."""
LOST_ROUNDS = 2
"""Rounds in which a way is hopeless before it is left out."""
TRIAL_SECONDS = 30.0
"""Seconds in which ways take turns in training. Where steps are so long that a round of blocks does
not fit in, blocks are shorter; where not even a step of each way does, none is tried."""


def gentlest(
    seconds: Sequence[float], tolerance: float = TOLERANCE, slack: float = 0.0
) -> int:
    """The number of the first way that takes no longer than ``tolerance`` times the fastest, or no
    more than ``slack`` longer, in the unit of all times."""
    limit = max(tolerance * min(seconds), min(seconds) + slack)
    return next(i for i, each in enumerate(seconds) if each <= limit)


def samples(total: int, first: int = FIRST_ELEMENTS) -> Iterator[int]:
    """Elements of the samples of a model's ``total``, of which the last one is all."""
    size = first
    while size < total:
        yield size
        size *= GROWTH
    yield total


@dataclass
class Measured:
    """What a way takes for all gradients of a step, by the largest sample that it was given."""

    seconds: float
    """As samples predict it."""
    elements: int
    """Of the last sample."""
    left_out: bool = False
    """Whether it had fewer samples than others, so that its seconds say little beside theirs; of
    ways that are always allowed, fewer than others of those."""


def extrapolated(taken: Sequence[tuple[int, float]], size: int) -> float:
    """Seconds of so many elements, by the elements and seconds of the last two samples: what does
    not depend on their size, such as round trips, counts once."""
    elements, seconds = taken[-1]
    if len(taken) < 2:
        return seconds * size / elements
    fewer, before = taken[-2]
    return seconds + max(seconds - before, 0.0) * (size - elements) / max(elements - fewer, 1)


def compare(
    measure: Callable[[int, int], tuple[float, int]], ways: int, total: int, most: int,
    first: int = FIRST_ELEMENTS, apart: Collection[int] = (),
) -> list[Measured]:  # fmt: skip
    """Measures what a step's gradients take by each way, in some :data:`BUDGET_SECONDS`.

    Samples grow. A way that is beaten gets no larger ones; nor, where there is not time for all,
    those that promise least.

    :param measure: synchronises a sample of about so many elements by the way of this number, and
        returns the slowest worker's seconds, the same on all workers, and the sample's elements
    :param ways: how many there are
    :param total: elements of a model's gradients
    :param most: elements of the largest sample
    :param first: elements of the first sample
    :param apart: ways that may turn out not to be allowed: they beat one another only
    """
    left, spent = list(range(ways)), 0.0
    taken: list[list[tuple[int, float]]] = [[] for _ in range(ways)]
    for size in samples(min(total, most), first):
        if taken[0]:
            left = _not_beaten(taken, left, total, apart)
            left = _affordable(taken, left, size, total, BUDGET_SECONDS - spent)
            if len(left) < 2:
                break
        times: dict[int, list[float]] = {way: [] for way in left}
        for number in range(1 + ROUNDS):
            for way in left[:: -1 if number % 2 else 1]:
                seconds, elements = measure(way, size)
                spent += seconds
                times[way].append(seconds)
            if spent > BUDGET_SECONDS:
                break
        for way, values in times.items():
            taken[way].append((elements, statistics.median(values[1:] or values)))
    found = []
    for way, each in enumerate(taken):
        most_samples = max(len(taken[rival]) for rival in _rivals(range(ways), way, apart))
        left_out = len(each) < most_samples
        found.append(Measured(extrapolated(each, total), each[-1][0], left_out))
    return found


Samples = Sequence[Sequence[tuple[int, float]]]


def _rivals(left: Iterable[int], way: int, apart: Collection[int]) -> list[int]:
    """The ways of ``left`` that may beat this one, which is among them."""
    return [rival for rival in left if way in apart or rival not in apart]


def _not_beaten(
    taken: Samples, left: Sequence[int], total: int, apart: Collection[int]
) -> list[int]:
    """The ways that may be less than BEATEN times as slow as the fastest, whether all of their
    samples' time depends on the size or what the last two say."""
    low, high = {}, {}
    for way in left:
        elements, seconds = taken[way][-1]
        in_proportion, by_two = seconds * total / elements, extrapolated(taken[way], total)
        high[way] = max(in_proportion, by_two)
        low[way] = min(in_proportion, by_two) if len(taken[way]) > 1 else seconds
    return [
        way for way in left
        if low[way] < BEATEN * min(high[rival] for rival in _rivals(left, way, apart))
    ]  # fmt: skip


def _affordable(
    taken: Samples, left: Sequence[int], size: int, total: int, seconds: float
) -> list[int]:
    """The ways that promise most of those that get a sample of so many elements in this time."""
    found = []
    for way in sorted(left, key=lambda way: extrapolated(taken[way], total)):
        seconds -= (1 + ROUNDS) * extrapolated(taken[way], size)
        if seconds < 0:
            break
        found.append(way)
    return sorted(found)


class StepTrial:
    """A trial in steps of training: are others as fast as the choice?

    First only steps by the choice are timed. Then others that may be as fast take turns with it, a
    block of steps each, until a few rounds are made or :data:`TRIAL_SECONDS` are over. Of those
    that are about as fast as the fastest one, the gentlest is kept.

    >>> while not trial.over:
    ...     median = trial.add(seconds_of_a_step_by(trial.way))
    ...     if median is not None:
    ...         trial.end_block(maximum_over_workers(median))

    :param gradients: seconds of a step's gradients by each way, from gentle to lossy; infinite for
        one that is not to be tried
    :param choice: the number of the way that was chosen
    :param whole: whether a block's steps count as a whole, by their mean, and not by their median:
        for where a step may begin while the last one is not over, unless :attr:`is_at_edge`
    """

    def __init__(self, gradients: Sequence[float], choice: int, whole: bool = False) -> None:
        self._gradients, self._choice = gradients, choice
        self._average = statistics.fmean if whole else statistics.median
        self._ways = self._turns = [self._choice]
        self._probe: float | None = None
        self._rounds: list[dict[int, float]] = []
        self._block: dict[int, float] = {}
        self._steps: list[float] = []
        self._length, self._skip = BLOCK_STEPS, SETTLING_STEPS
        self._spent = 0.0
        self.over = False
        """Whether :attr:`way` is the one to keep."""
        self.was_cut = False
        """Whether there was no time for all rounds."""

    @property
    def way(self) -> int:
        """The number of the way by which the next step is to go."""
        return self._choice if self.over else self._turns[0]

    @property
    def seconds(self) -> dict[int, float]:
        """The median seconds of a step by each way that was tried."""
        found = {} if self._probe is None else {self._choice: [self._probe]}
        for way in sorted({way for of in self._rounds for way in of}):
            found[way] = [of[way] for of in self._rounds if way in of]
        return {way: statistics.median(each) for way, each in sorted(found.items())}

    @property
    def is_at_edge(self) -> bool:
        """Whether the seconds that :meth:`add` takes next are of the last step before those of a
        block that count, or of the last of these."""
        return self._skip == 1 or (not self._skip and len(self._steps) + 1 >= self._length)

    def add(self, seconds: float) -> float | None:
        """Takes this worker's seconds of a step by :attr:`way`.

        :returns: at the end of a block its median, or mean, of which all workers' maximum is to be
            given to :meth:`end_block` before the next step
        """
        if self._skip:  # a way's first step allocates what it needs
            self._skip -= 1
            return None
        self._steps.append(seconds)
        return None if len(self._steps) < self._length else self._average(self._steps)

    def end_block(self, seconds: float) -> None:
        """Takes the slowest worker's seconds of a step of the block."""
        self._steps, self._skip = [], 1
        if self._probe is None:
            self._probe = seconds
            self._ways = [
                way for way, gradients in enumerate(self._gradients)
                if way == self._choice or gradients < seconds
            ]  # fmt: skip
        else:
            self._block[self.way] = seconds
            self._spent += (1 + self._length) * seconds
            self._turns = self._turns[1:]
            if self._turns and self._spent < TRIAL_SECONDS:
                return
            self._rounds.append(self._block)
            self.was_cut, self._block = bool(self._turns), {}
            self._ways = [way for way in self._ways if self._lost(way) < LOST_ROUNDS]
        if len(self._ways) < 2 or len(self._rounds) == STEP_ROUNDS or not self._is_time():
            self._end()
        self._turns = self._ways[:: -1 if len(self._rounds) % 2 else 1]

    def _is_time(self) -> bool:
        """Whether another round may begin; before the first one says how long blocks are."""
        known = self.seconds
        seconds = sum(known.get(way, self._probe) for way in self._ways)
        fit = math.floor((TRIAL_SECONDS - self._spent) / max(seconds, 1e-9)) - 1
        if not self._rounds:
            self._length = max(1, min(block_steps(self._probe), fit))
        self.was_cut = fit < self._length
        return not self.was_cut

    def _lost(self, way: int) -> int:
        return sum(of.get(way, 0.0) > HOPELESS * min(of.values()) for of in self._rounds)

    def _end(self) -> None:
        medians = self.seconds
        tried = [way for way in self._ways if way in medians]
        self._choice = tried[gentlest([medians[way] for way in tried], STEP_TOLERANCE)]
        self.over = True
