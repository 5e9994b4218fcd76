"""Selection of method, fragments and delay of outer steps (DiLoCo) from measured times.

An outer step follows H inner steps. A synchronization costs the time for which workers wait for it:
all of it, or with a delay of d inner steps the part that these do not hide. The selection prefers
quality. Nothing is compressed if ranks wait at most :data:`MAX_WAITING` of the time. Otherwise a
codec is used, because these codecs kept the loss. Only if ranks wait longer with all codecs, there
is a delay. It is as short as possible, because late results cost quality (Douillard et al.,
Streaming DiLoCo, arXiv:2501.18512, figure 9). A model in several fragments needs a shorter delay.

Every rank that receives the same times returns the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hipress.autotune.measurement import least_lossy

MAX_WAITING = 0.01
"""Share of the time that ranks may wait before a more lossy method or a delay is used."""
WHILE_COMPUTING = 1.25
"""Time of a fragment while inner steps run, over its time alone: both need the processors."""
MAX_FRAGMENTS = 8
"""Maximum number of fragments of a model, because each needs separate round trips."""
FIRST_STEPS = 5
"""Maximum inner steps before the choice. If there are several, the first is not timed."""


class OuterSchedule(NamedTuple):
    """Method, fragments and delay of outer steps."""

    method: int
    """Index of the method."""
    fragments: int
    delay: int
    """Inner steps for which a fragment may travel."""
    waiting: float
    """Predicted share of the time that ranks wait."""


def first_steps(sync_every: int) -> int:
    """Return the inner step after which the choice is made.

    Early steps, and fragments that are synchronized before it, are not compressed.
    """
    return max(1, min(FIRST_STEPS, sync_every // 4))


def waiting(fragments: Sequence[float], step: float, sync_every: int, delay: int) -> float:
    """Return the share of the time that ranks wait.

    ``fragments`` are the seconds of each fragment's synchronization alone, and ``step`` those of an
    inner step.
    """
    if not delay:
        waited = sum(fragments)
    else:
        travel = [WHILE_COMPUTING * each for each in fragments]
        late = sum(max(each - delay * step, 0.0) for each in travel)
        waited = max(late, sum(travel) - sync_every * step)
    return waited / (sync_every * step + waited)


def least_lossy_method(shares: Sequence[float], seconds: Sequence[float]) -> int:
    """Return the index of the first method with a share of at most MAX_WAITING.

    If there is none, return that of the first method within the tolerance of the fastest.
    """
    few = [index for index, share in enumerate(shares) if share <= MAX_WAITING]
    return few[0] if few else least_lossy(seconds)


def shortest_delay(fragments: Sequence[float], step: float, sync_every: int) -> int:
    """Return the fewest inner steps of delay with which ranks hardly wait.

    Ranks may also wait hardly longer than with any delay. Arguments are those of :func:`waiting`.
    """
    least = waiting(fragments, step, sync_every, sync_every - 1)
    enough = max(MAX_WAITING, least + MAX_WAITING)
    return next(
        delay
        for delay in range(sync_every)
        if waiting(fragments, step, sync_every, delay) <= enough
    )


def fragment_counts(sync_every: int) -> list[int]:
    """Return the numbers of fragments to consider, in ascending order.

    With these, no fragment is synchronized before the choice.
    """
    most = min(MAX_FRAGMENTS, sync_every // first_steps(sync_every))
    return [number for number in (1, 2, 4, 8) if number <= most]


def choose_fragments(
    seconds: Callable[[int], Sequence[float]],
    numbers: Sequence[int],
    delay: int | None,
    step: float,
    sync_every: int,
) -> tuple[int, int, float]:
    """Choose the number of fragments with the shortest delay, or for which a given delay suffices.

    ``seconds`` measures the synchronization of each of so many fragments alone, and its results are
    equal on all ranks. Return fragments, delay, and the share of the time that ranks wait.
    """
    found = []
    for number in numbers:
        each = seconds(number)
        steps = shortest_delay(each, step, sync_every) if delay is None else delay
        found.append((number, steps, waiting(each, step, sync_every, steps)))
        if steps <= 1 and found[-1][2] <= MAX_WAITING:
            break  # no delay is shorter
    if delay is None:
        return min(found, key=lambda each: (each[1], each[0]))
    return next((each for each in found if each[2] <= MAX_WAITING), min(found, key=lambda e: e[2]))
