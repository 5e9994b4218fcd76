"""Measurement of methods on samples of a model's gradients, and selection by the measured times.

Every rank that receives the same times returns the same result: only medians, quotients and
comparisons are used.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

TOLERANCE = 1.1
"""Maximum time of a less lossy method over the fastest method's, for gradients alone."""
STEP_TOLERANCE = 1.03
"""The same ratio for a step of training."""
SLACK_SECONDS = 2e-4
"""Seconds by which a less lossy method may always exceed the fastest, because less is noise."""
FIRST_ELEMENTS, GROWTH = 1 << 16, 4
"""Elements of the first sample, and the factor from one sample to the next."""
REPETITIONS = 3
"""Repetitions of each sample, in turns. One more, before these, does not count."""
BUDGET_SECONDS = 6.0
"""Approximate seconds of all samples. If the first repetition takes longer, it is the only one."""
METHOD_SECONDS = 3.0
"""Approximate seconds of one method's samples in :func:`measure_alone`."""
BEATEN = 3.0
"""Time over the fastest method's from which on a method gets no larger sample."""


def least_lossy(seconds: Sequence[float], tolerance: float = TOLERANCE, slack: float = 0.0) -> int:
    """Return the index of the first of some times that is within the tolerance of the shortest.

    The times are of methods, the least lossy first. One that is at most ``slack`` longer than the
    shortest is also accepted.
    """
    limit = max(tolerance * min(seconds), min(seconds) + slack)
    return next(i for i, each in enumerate(seconds) if each <= limit)


def samples(total: int, first: int = FIRST_ELEMENTS) -> Iterator[int]:
    """Yield the elements of growing samples of ``total`` elements; the last sample is all."""
    size = first
    while size < total:
        yield size
        size *= GROWTH
    yield total


@dataclass
class Measurement:
    """Time of all gradients of a step by one method, from the largest sample it was given."""

    seconds: float
    """Prediction from the samples."""
    elements: int
    """Elements of the last sample."""
    left_out: bool = False
    """Whether the method had fewer samples than its competitors, so its time cannot be compared.
    Methods without error feedback compete with each other only."""


def extrapolated(taken: Sequence[tuple[int, float]], size: int) -> float:
    """Predict the seconds of ``size`` elements from the elements and seconds of two samples."""
    elements, seconds = taken[-1]
    if len(taken) < 2:
        return seconds * size / elements
    fewer, before = taken[-2]
    return seconds + max(seconds - before, 0.0) * (size - elements) / max(elements - fewer, 1)


TimeSample = Callable[[int, int], "tuple[float, int]"]
"""Function that synchronizes a sample of elements by a method. Its arguments are the method's index
and the approximate number of elements. It returns the slowest rank's seconds, equal on all ranks,
and the elements."""


def compare_methods(
    time_sample: TimeSample,
    methods: int,
    total: int,
    most: int,
    first: int = FIRST_ELEMENTS,
    feedback: Collection[int] = (),
) -> list[Measurement]:
    """Measure the gradients of a step by each method, in about :data:`BUDGET_SECONDS`.

    Samples grow. A method that is beaten gets no larger sample. If time is short, the methods that
    promise least are left out.

    Methods with the indices ``feedback`` may turn out not to be allowed. They beat each other only.
    """
    left, spent = list(range(methods)), 0.0
    taken: list[list[tuple[int, float]]] = [[] for _ in range(methods)]
    for size in samples(min(total, most), first):
        if taken[0]:
            left = _not_beaten(taken, left, total, feedback)
            left = _affordable(taken, left, size, total, BUDGET_SECONDS - spent)
            if len(left) < 2:
                break
        times: dict[int, list[float]] = {index: [] for index in left}
        for number in range(1 + REPETITIONS):
            for index in left[:: -1 if number % 2 else 1]:
                seconds, elements = time_sample(index, size)
                spent += seconds
                times[index].append(seconds)
            if spent > BUDGET_SECONDS:
                break
        for index, values in times.items():
            taken[index].append((elements, statistics.median(values[1:] or values)))
    found = []
    for index, each in enumerate(taken):
        most_samples = max(len(taken[i]) for i in _competitors(range(methods), index, feedback))
        left_out = len(each) < most_samples
        found.append(Measurement(extrapolated(each, total), each[-1][0], left_out))
    return found


Samples = Sequence[Sequence[tuple[int, float]]]


def _competitors(left: Iterable[int], index: int, feedback: Collection[int]) -> list[int]:
    """Return the methods of ``left`` that can beat a method."""
    return [other for other in left if index in feedback or other not in feedback]


def _not_beaten(
    taken: Samples, left: Sequence[int], total: int, feedback: Collection[int]
) -> list[int]:
    """Return the methods that may take less than BEATEN times as long as the fastest.

    A time has two estimates: in proportion to the size, and extrapolated from the last two samples.
    A method's lower estimate is compared with the higher ones of its competitors.
    """
    low, high = {}, {}
    for index in left:
        elements, seconds = taken[index][-1]
        in_proportion, by_two = seconds * total / elements, extrapolated(taken[index], total)
        high[index] = max(in_proportion, by_two)
        low[index] = min(in_proportion, by_two) if len(taken[index]) > 1 else seconds
    return [
        index
        for index in left
        if low[index] < BEATEN * min(high[other] for other in _competitors(left, index, feedback))
    ]


def _affordable(
    taken: Samples, left: Sequence[int], size: int, total: int, seconds: float
) -> list[int]:
    """Return the most promising methods whose samples of ``size`` elements fit in the time."""
    found = []
    for index in sorted(left, key=lambda index: extrapolated(taken[index], total)):
        seconds -= (1 + REPETITIONS) * extrapolated(taken[index], size)
        if seconds < 0:
            break
        found.append(index)
    return sorted(found)


def measure_alone(
    time_sample: Callable[[int], tuple[float, int]],
    total: int,
    most: int,
    first: int = FIRST_ELEMENTS,
) -> Measurement:
    """Measure the weights of a model by one method, in about :data:`METHOD_SECONDS`.

    It gets at least two growing samples, so that round trips can be separated. A method that sends
    less gets larger samples.
    """
    taken: list[tuple[int, float]] = []
    spent = 0.0
    for size in samples(min(total, most), first):
        repetitions = 1 + REPETITIONS
        if len(taken) > 1 and spent + repetitions * extrapolated(taken, size) > METHOD_SECONDS:
            break
        times: list[float] = []
        while len(times) < repetitions and (not times or spent < METHOD_SECONDS):
            seconds, elements = time_sample(size)
            times.append(seconds)
            spent += seconds
        taken.append((elements, statistics.median(times[1:] or times)))
    return Measurement(extrapolated(taken, total), taken[-1][0])
