"""Chooses how weights are synchronised every H steps, by what workers measure (DiLoCo).

A *round* is H inner steps. A synchronisation costs time where workers wait for it: all of it, or
with a delay of d steps what these do not hide. What is chosen is gentle first: uncompressed if
that costs at most :data:`MAX_WAITING` of the time; else a codec, as the gentle ones cost no
quality; and only if waiting costs more by all of them a delay, as short as can be, for results that
come late do cost quality (Douillard et al., Streaming DiLoCo, arXiv:2501.18512, figure 9). A model
that is cut into fragments needs a shorter one.

Whoever is given the same seconds chooses the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from hipress.secopa.choice import (
    FIRST_ELEMENTS,
    ROUNDS,
    Measured,
    extrapolated,
    gentlest,
    samples,
)

MAX_WAITING = 0.01
"""The share of the time that workers may wait without anything being done about it."""
WHILE_COMPUTING = 1.25
"""Times as long as alone that a fragment is reckoned to travel while inner steps are made: they
need the processors, too."""
MAX_FRAGMENTS = 8
"""Parts into which a model is cut, at most: each costs round trips of its own."""
FIRST_STEPS = 5
"""Inner steps before the choice, at most; the first of several is not timed."""
WAY_SECONDS = 3.0
"""Seconds of measuring a way, about."""


class Plan(NamedTuple):
    """How weights are synchronised."""

    way: int
    """The number of the way."""
    fragments: int
    delay: int
    """Inner steps that a fragment may travel."""
    waiting: float
    """The share of the time that workers wait, as predicted."""


def first_steps(sync_every: int) -> int:
    """The inner step after which the choice is made. What is sent before, in early steps or by a
    fragment whose turn comes sooner, is uncompressed."""
    return max(1, min(FIRST_STEPS, sync_every // 4))


def measure_each(
    measure: Callable[[int, int], tuple[float, int]], ways: int, total: int, most: int,
    first: int = FIRST_ELEMENTS, apart: Collection[int] = (),
) -> list[Measured]:  # fmt: skip
    """Measures what all weights take by each way, in some :data:`WAY_SECONDS` for each.

    Samples grow, two of them at least: so what does not depend on their size, such as round trips,
    is told apart. A way that sends less gets larger ones.

    :param measure: synchronises a sample of about so many elements by the way of this number, and
        returns the slowest worker's seconds, the same on all workers, and the sample's elements
    :param ways: how many there are
    :param total: elements of all weights
    :param most: elements of the largest sample
    :param first: elements of the first sample
    :param apart: of no bearing, as ways are not compared here
    """
    return [
        _measured(lambda size, way=way: measure(way, size), total, min(total, most), first)
        for way in range(ways)
    ]


def _measured(
    measure: Callable[[int], tuple[float, int]], total: int, most: int, first: int
) -> Measured:
    taken: list[tuple[int, float]] = []
    spent = 0.0
    for size in samples(most, first):
        if len(taken) > 1 and spent + (1 + ROUNDS) * extrapolated(taken, size) > WAY_SECONDS:
            break
        times: list[float] = []
        while len(times) < 1 + ROUNDS and (not times or spent < WAY_SECONDS):
            seconds, elements = measure(size)
            times.append(seconds)
            spent += seconds
        taken.append((elements, statistics.median(times[1:] or times)))
    return Measured(extrapolated(taken, total), taken[-1][0])


def waiting(fragments: Sequence[float], step: float, sync_every: int, delay: int) -> float:
    """The share of the time that workers wait.

    :param fragments: seconds that a synchronisation of each takes alone
    :param step: seconds of an inner step
    :param delay: inner steps that a fragment may travel
    """
    if not delay:
        waited = sum(fragments)
    else:
        travel = [WHILE_COMPUTING * each for each in fragments]
        late = sum(max(each - delay * step, 0.0) for each in travel)
        waited = max(late, sum(travel) - sync_every * step)
    return waited / (sync_every * step + waited)


def gentlest_way(shares: Sequence[float], seconds: Sequence[float]) -> int:
    """The number of the first way by which workers hardly wait; if there is none, of the first that
    is about as fast as the fastest.

    :param shares: of the time that they wait, by way, from gentle to lossy
    :param seconds: of a synchronisation
    """
    few = [way for way, share in enumerate(shares) if share <= MAX_WAITING]
    return few[0] if few else gentlest(seconds)


def shortest_delay(fragments: Sequence[float], step: float, sync_every: int) -> int:
    """The fewest inner steps by which workers hardly wait, or wait hardly longer than by any number
    of them.

    :param fragments, step: see :func:`waiting`
    """
    least = waiting(fragments, step, sync_every, sync_every - 1)
    enough = max(MAX_WAITING, least + MAX_WAITING)
    if waiting(fragments, step, sync_every, 0) <= enough:
        return 0
    return next(
        delay for delay in range(1, sync_every)
        if waiting(fragments, step, sync_every, delay) <= enough
    )  # fmt: skip


def cuts(sync_every: int) -> list[int]:
    """Numbers of fragments that are worth a look, from few to many: none is sent before the
    choice."""
    most = min(MAX_FRAGMENTS, sync_every // first_steps(sync_every))
    return [number for number in (1, 2, 4, 8) if number <= most]


def choose_fragments(
    seconds: Callable[[int], Sequence[float]], numbers: Sequence[int], delay: int | None,
    step: float, sync_every: int,
) -> tuple[int, int, float]:  # fmt: skip
    """Cuts the model so that a delay is short, or is one that was asked for and suffices.

    :param seconds: measures what a synchronisation of each fragment takes alone, if there are so
        many; the same on all workers
    :param numbers: of fragments, from few to many
    :param delay: that was asked for; None: it is to be found
    :returns: fragments, delay, and the share of the time that workers wait
    """
    found = []
    for number in numbers:
        each = seconds(number)
        steps = shortest_delay(each, step, sync_every) if delay is None else delay
        found.append((number, steps, waiting(each, step, sync_every, steps)))
        if steps <= 1 and found[-1][2] <= MAX_WAITING:
            break  # nothing is shorter than this
    if delay is None:
        return min(found, key=lambda each: (each[1], each[0]))
    return next((each for each in found if each[2] <= MAX_WAITING), min(found, key=lambda e: e[2]))
