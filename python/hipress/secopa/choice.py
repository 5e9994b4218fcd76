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

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hipress.secopa.trial import BLOCK_STEPS, block_steps

TOLERANCE = 1.1
"""The times the fastest way's time that a gentler one may take for gradients alone."""
STEP_TOLERANCE = 1.03
"""The same for a step of training."""
FIRST_ELEMENTS, GROWTH = 1 << 16, 4
"""Elements of the first sample, and how many times as large the next one is."""
ROUNDS = 3
"""Times that each way is timed with a sample, in turns; one more, before these, does not count."""
BUDGET_SECONDS = 4.0
"""Seconds of all samples, about; on a network where the first one takes longer, its one round."""
HOPELESS = 1.5
"""Times the fastest way's time from which on a way gets no larger sample that time is short for."""
SETTLING_STEPS = 3
"""Steps of training before the first one that is timed: DDP makes new buckets after its first."""
STEP_ROUNDS = 4
"""Blocks of steps of each way, at most."""
LOST_ROUNDS = 2
"""Rounds in which a way is hopeless before it is left out."""


def gentlest(seconds: Sequence[float], tolerance: float = TOLERANCE) -> int:
    """The number of the first way that takes no longer than ``tolerance`` times the fastest."""
    limit = tolerance * min(seconds)
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
    """Those of the sample, times how many of it there are in a model."""
    elements: int
    """Of the sample."""


def compare(
    measure: Callable[[int, int], tuple[float, int]], ways: int, total: int, most: int,
    first: int = FIRST_ELEMENTS,
) -> list[Measured]:  # fmt: skip
    """Measures what a step's gradients take by each way, in some :data:`BUDGET_SECONDS`.

    Samples grow. A way that is hopeless is left out where there is no time to give all of them the
    next sample.

    :param measure: synchronises a sample of about so many elements by the way of this number, and
        returns the slowest worker's seconds, the same on all workers, and the sample's elements
    :param ways: how many there are
    :param total: elements of a model's gradients
    :param most: elements of the largest sample
    :param first: elements of the first sample
    """
    left, spent = list(range(ways)), 0.0
    found: dict[int, Measured] = {}
    for size in samples(min(total, most), first):
        if found:
            costs = {way: (1 + ROUNDS) * found[way].seconds * size / total for way in left}
            if spent + sum(costs.values()) > BUDGET_SECONDS:
                fastest = min(costs.values())
                left = [way for way in left if costs[way] < HOPELESS * fastest]
            if spent + sum(costs[way] for way in left) > BUDGET_SECONDS or len(left) < 2:
                break
        times: dict[int, list[float]] = {way: [] for way in left}
        for number in range(1 + ROUNDS):
            for way in left[:: -1 if number % 2 else 1]:
                seconds, elements = measure(way, size)
                spent += seconds
                times[way].append(seconds * total / elements)
            if spent > BUDGET_SECONDS:
                break
        for way, values in times.items():
            found[way] = Measured(statistics.median(values[1:] or values), elements)
    return [found[way] for way in range(ways)]


class StepTrial:
    """A trial in steps of training: are others as fast as the choice?

    First only steps by the choice are timed. Then others that may be as fast take turns with it, a
    block of steps each. Of those that are about as fast as the fastest one, the gentlest is kept.

    >>> while not trial.over:
    ...     median = trial.add(seconds_of_a_step_by(trial.way))
    ...     if median is not None:
    ...         trial.end_block(maximum_over_workers(median))

    :param gradients: seconds of a step's gradients by each way, from gentle to lossy; infinite for
        one that is not to be tried
    :param choice: the number of the way that was chosen
    """

    def __init__(self, gradients: Sequence[float], choice: int) -> None:
        self._gradients, self._choice = gradients, choice
        self._ways = self._turns = [self._choice]
        self._probe: float | None = None
        self._rounds: list[dict[int, float]] = []
        self._block: dict[int, float] = {}
        self._steps: list[float] = []
        self._length, self._skip = BLOCK_STEPS, SETTLING_STEPS
        self.over = False
        """Whether :attr:`way` is the one to keep."""

    @property
    def way(self) -> int:
        """The number of the way by which the next step is to go."""
        return self._choice if self.over else self._turns[0]

    @property
    def seconds(self) -> dict[int, float]:
        """The median seconds of a step by each way that was tried."""
        if not self._rounds:
            return {} if self._probe is None else {self._choice: self._probe}
        return {
            way: statistics.median(of[way] for of in self._rounds if way in of)
            for way in sorted(self._rounds[0])
        }

    def add(self, seconds: float) -> float | None:
        """Takes this worker's seconds of a step by :attr:`way`.

        :returns: at the end of a block its median, of which all workers' maximum is to be given to
            :meth:`end_block` before the next step
        """
        if self._skip:  # a way's first step allocates what it needs
            self._skip -= 1
            return None
        self._steps.append(seconds)
        return None if len(self._steps) < self._length else statistics.median(self._steps)

    def end_block(self, seconds: float) -> None:
        """Takes the slowest worker's seconds of a step of the block."""
        self._steps, self._skip = [], 1
        self._block[self.way] = seconds
        self._turns = self._turns[1:]
        if self._turns:
            return
        if self._probe is None:
            self._probe, self._length = seconds, block_steps(seconds)
            self._ways = [
                way for way, gradients in enumerate(self._gradients)
                if way == self._choice or gradients < seconds
            ]  # fmt: skip
        else:
            self._rounds.append(self._block)
            self._ways = [way for way in self._ways if self._lost(way) < LOST_ROUNDS]
        self._block = {}
        if len(self._ways) < 2 or len(self._rounds) == STEP_ROUNDS:
            self._end()
        self._turns = self._ways[:: -1 if len(self._rounds) % 2 else 1]

    def _lost(self, way: int) -> int:
        return sum(of[way] > HOPELESS * min(of.values()) for of in self._rounds)

    def _end(self) -> None:
        medians = self.seconds
        self._choice = self._ways[gentlest([medians[way] for way in self._ways], STEP_TOLERANCE)]
        self.over = True
