"""Trials in steps of training: is another choice faster than the present one?

The time of gradients alone does not say what a step takes. Computation can hide communication, and
encoding needs processors that computation also needs. So choices take turns in steps of training, a
block of steps each, in alternating order (a b c, c b a, ...). What makes steps slower or faster for
a while affects all of them.

Every rank that receives the same times returns the same result: only medians, means, quotients and
comparisons are used.
"""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections.abc import Sequence

from hipress.autotune.choice import MethodChoice
from hipress.autotune.explanation import number
from hipress.autotune.measurement import STEP_TOLERANCE, least_lossy
from hipress.autotune.methods import UNCOMPRESSED, Method

BLOCK_STEPS, MAX_BLOCK_STEPS = 4, 32
"""Minimum and maximum number of timed steps of a block. One more step precedes them, in which a
choice allocates memory and an idle link lets a burst pass."""
BLOCK_SECONDS = 0.1
"""Seconds of a block, at least: shorter blocks measure the turns of other programs."""
HOPELESS = 1.5
"""Time of a step over the fastest method's from which on a method has lost a turn of a trial."""
SETTLING_STEPS = 3
"""Steps of training before the first timed step: DDP makes new buckets after its first step."""
STEP_BLOCKS = 4
"""Blocks of each method, at most."""
LOST_BLOCKS = 2
"""Lost turns after which a method is left out."""
TRIAL_SECONDS = 30.0
"""Seconds of a trial. If one turn of all methods does not fit, blocks are shorter. If a step of
each method does not fit, there is no trial."""


def block_steps(seconds: float) -> int:
    """Return the timed steps of a block from the seconds of a step."""
    return min(max(BLOCK_STEPS, math.ceil(BLOCK_SECONDS / max(seconds, 1e-6))), MAX_BLOCK_STEPS)


class StepTrial:
    """A trial of methods in steps of training.

    First only steps with the choice are timed. Then other methods that may be as fast take turns
    with it, until each has had its blocks or :data:`TRIAL_SECONDS` have passed. A method whose
    gradients alone take longer than a whole step with the choice is not tried. The result is the
    least lossy method whose steps are within the tolerance of the fastest.

    >>> while not trial.over:
    ...     median = trial.add(seconds_of_a_step(trial.index))
    ...     if median is not None:
    ...         trial.end_block(maximum_over_ranks(median))

    ``gradients`` has the seconds of a step's gradients by each method, the least lossy first, and
    infinity for methods that are not tried. With ``whole`` a block is timed by the mean of its
    steps instead of the median: steps may then begin before the last one has ended, except at
    :attr:`is_at_edge`.
    """

    def __init__(self, gradients: Sequence[float], choice: int, whole: bool = False) -> None:
        self._gradients, self._choice = gradients, choice
        self._average = statistics.fmean if whole else statistics.median
        self._methods = self._turns = [self._choice]
        self._probe: float | None = None
        self._blocks: list[dict[int, float]] = []
        self._block: dict[int, float] = {}
        self._steps: list[float] = []
        self._length, self._skip = BLOCK_STEPS, SETTLING_STEPS
        self._spent = 0.0
        self.over = False
        """Whether :attr:`index` is the result."""
        self.was_cut = False
        """Whether there was not enough time for all blocks."""

    @property
    def index(self) -> int:
        """Index of the method of the next step."""
        return self._choice if self.over else self._turns[0]

    @property
    def seconds(self) -> dict[int, float]:
        """Median seconds of a step by each method that was tried."""
        found = {} if self._probe is None else {self._choice: [self._probe]}
        for index in sorted({index for block in self._blocks for index in block}):
            found[index] = [block[index] for block in self._blocks if index in block]
        return {index: statistics.median(each) for index, each in sorted(found.items())}

    @property
    def is_at_edge(self) -> bool:
        """Whether the next step is the one before a block's timed steps, or a block's last one."""
        return self._skip == 1 or (not self._skip and len(self._steps) + 1 >= self._length)

    def add(self, seconds: float) -> float | None:
        """Add the seconds of a step with :attr:`index`. Return the average of a full block."""
        if self._skip:  # a method's first step allocates memory
            self._skip -= 1
            return None
        self._steps.append(seconds)
        return None if len(self._steps) < self._length else self._average(self._steps)

    def end_block(self, seconds: float) -> None:
        """Add the slowest rank's seconds of a step of the block."""
        self._steps, self._skip = [], 1
        if self._probe is None:
            self._probe = seconds
            self._methods = [
                index
                for index, gradients in enumerate(self._gradients)
                if index == self._choice or gradients < seconds
            ]
        else:
            self._block[self.index] = seconds
            self._spent += (1 + self._length) * seconds
            self._turns = self._turns[1:]
            if self._turns and self._spent < TRIAL_SECONDS:
                return
            self._blocks.append(self._block)
            self.was_cut, self._block = bool(self._turns), {}
            self._methods = [i for i in self._methods if self._lost(i) < LOST_BLOCKS]
        if len(self._methods) < 2 or len(self._blocks) == STEP_BLOCKS or not self._is_time():
            self._end()
        self._turns = self._methods[:: -1 if len(self._blocks) % 2 else 1]

    def _is_time(self) -> bool:
        """Return whether there is time for another block of each. First, set its length."""
        known = self.seconds
        seconds = sum(known.get(index, self._probe) for index in self._methods)
        fit = math.floor((TRIAL_SECONDS - self._spent) / max(seconds, 1e-9)) - 1
        if not self._blocks:
            self._length = max(1, min(block_steps(self._probe), fit))
        self.was_cut = fit < self._length
        return not self.was_cut

    def _lost(self, index: int) -> int:
        return sum(b.get(index, 0.0) > HOPELESS * min(b.values()) for b in self._blocks)

    def _end(self) -> None:
        medians = self.seconds
        tried = [index for index in self._methods if index in medians]
        self._choice = tried[least_lossy([medians[index] for index in tried], STEP_TOLERANCE)]
        self.over = True


class StepTimer:
    """Timer of the first steps of training, in which the choice is tried against other methods.

    These are the framework's own, and with ``codecs`` the fastest method for gradients alone: if
    gradients are most of a step, a less lossy method may exceed the tolerance. A step lasts until
    the next one begins.
    """

    def __init__(self, choice: MethodChoice, codecs: bool = False, whole: bool = False) -> None:
        self._choice = choice
        seconds = [row.gradients_ms / 1e3 for row in choice.explanation.rows]
        methods = choice.methods[: len(seconds)]
        tried = {i for i, method in enumerate(methods) if method.by_framework}
        if codecs and seconds:
            tried.add(choice.fastest)
        if choice.method is UNCOMPRESSED:
            tried = {i for i in tried if seconds[i] < seconds[0]}
        gradients = [each if i in tried else math.inf for i, each in enumerate(seconds)]
        self._trial = StepTrial(gradients, choice.index, whole)
        self._began: float | None = None
        self.over = not tried
        """Whether all later steps use :attr:`method`."""

    @property
    def method(self) -> Method:
        """Method of the step that has begun."""
        return self._choice.method if self.over else self._choice.methods[self._trial.index]

    @property
    def is_at_edge(self) -> bool:
        """Whether a block's timed steps begin with this step, or ended with the last one."""
        return not self.over and self._trial.is_at_edge

    def begin_step(self) -> float | None:
        """Begin a step. Return None, or seconds whose maximum is for :meth:`end_block`."""
        if self.over:
            return None
        began, self._began = self._began, time.perf_counter()
        return None if began is None else self._trial.add(self._began - began)

    def end_block(self, slowest: float) -> tuple[int, str]:
        """Add the maximum over ranks, and return a line for the log, empty until the trial ends."""
        self._trial.end_block(slowest)
        self._began = time.perf_counter()
        self.over = self._trial.over
        return self._report() if self.over else (logging.INFO, "")

    def _report(self) -> tuple[int, str]:
        choice, rows = self._choice, self._choice.explanation.rows
        before = choice.method
        for i, seconds in self._trial.seconds.items():
            rows[i].step_ms = 1e3 * seconds
        choice.choose(self._trial.index)
        choice.explanation.predict()
        tried = "; ".join(f"{r.method} {number(r.step_ms)} ms" for r in rows if r.step_ms)
        if self._trial.was_cut:
            tried += f"; there was not time for more in {TRIAL_SECONDS:g} s"
        if choice.method is before:
            sentence = f"auto: {before.name} stays: a step takes {tried}"
            if self._trial.was_cut:
                choice.explanation.say(sentence)
            return logging.INFO, sentence
        sentence = choice.explanation.say(
            f"auto: {choice.method.name}, for in training it is as fast as {before.name}, or "
            f"faster: a step takes {tried}"
        )
        return logging.WARNING, sentence
