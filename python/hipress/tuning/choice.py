"""The way that was chosen, and the first steps of training in which it is tried.

All numbers that decide are maxima over the ranks, which have the same bits on all of them.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from hipress.secopa.choice import SLACK_SECONDS, TRIAL_SECONDS, Measured, StepTrial, gentlest
from hipress.secopa.explanation import Explanation, Row, number
from hipress.tuning.guard import MAX_ERROR, error_of
from hipress.tuning.ways import UNCOMPRESSED, Way

NEEDS_SGD = "with SGD only"
SLOWER = "slower in smaller samples"

_log = logging.getLogger("hipress")


class Meter(Protocol):
    """Measures what a model's gradients take by each way, on all ranks together."""

    elements: int
    """Of all gradients of a step."""

    def measure(self) -> Sequence[Measured]:
        """:raises HipressError: if a rank dies or is silent meanwhile"""

    def measure_again(self) -> Sequence[Measured]:
        """The same while the model trains."""


class Choice:
    """A way that was chosen, and why.

    :param ways: from gentle to lossy
    :param feedback: whether the optimizer bears error feedback; None: it is not known yet
    :param elements: of all gradients of a step
    :param measure: measures all ways anew, on all ranks together
    :param found: what was measured of each way; none if there was nothing to measure
    """

    def __init__(
        self, ways: list[Way], feedback: bool | None, elements: int,
        measure: Callable[[], Sequence[Measured]], found: Sequence[Measured] = (),
    ) -> None:  # fmt: skip
        self.ways, self.feedback = ways, feedback
        self._elements, self._measure = elements, measure
        self._too_coarse: set[int] = set()
        self._left_out: set[int] = set()
        self.number = 0
        """Of the way that was chosen."""
        self.explanation = Explanation("")
        if found:
            self._take(found)
            self.explanation.sentence = f"auto: {self._reason()}"

    @property
    def way(self) -> Way:
        """The one that was chosen."""
        return self.ways[self.number]

    @property
    def any_feedback(self) -> bool:
        """Whether one of the ways has error feedback."""
        return any(way.feedback for way in self.ways)

    @property
    def is_measured(self) -> bool:
        """Whether there is anything to choose from."""
        return bool(self.explanation.rows)

    def time(self, seconds: float) -> None:
        """Takes what a step takes now, on the slowest rank."""
        self.explanation.rows[self.number].step_ms = 1e3 * seconds
        self.explanation.predict()

    def _take(self, found: Sequence[Measured]) -> None:
        """Takes what was measured, and chooses."""
        total = self._elements
        self._left_out = {i for i, each in enumerate(found) if each.left_out}
        self.explanation.rows = [
            Row(way.name, 1e3 * each.seconds, min(1.0, each.elements / total))
            for way, each in zip(self.ways, found)
        ]
        self.choose(self._pick())

    def choose(self, number: int) -> None:
        """Chooses the way with this number."""
        self.number = number
        slower = set() if number in self._left_out else self._left_out
        for i, row in enumerate(self.explanation.rows):
            row.chosen = i == number
            row.note = NEEDS_SGD if self.ways[i].feedback and not self.feedback else ""
            row.note = SLOWER if i in slower else row.note
            row.note = "too coarse" if i in self._too_coarse else row.note

    def _pick(self) -> int:
        """The gentlest of the usable ways that are about as fast as the fastest of them."""
        rows = self.explanation.rows
        usable = [
            i for i, way in enumerate(self.ways)
            if i not in self._too_coarse and (self.feedback or not way.feedback)
        ]  # fmt: skip
        usable = self._best_measured(usable)
        return usable[gentlest([rows[i].gradients_ms for i in usable], slack=1e3 * SLACK_SECONDS)]

    def _best_measured(self, numbers: list[int]) -> list[int]:
        """Those of these ways that had all samples, if there are any."""
        return [i for i in numbers if i not in self._left_out] or numbers

    @property
    def fastest(self) -> int:
        """The number of the usable way whose gradients take least."""
        rows = self.explanation.rows
        usable = [i for i, row in enumerate(rows) if not row.note]
        return min(usable, key=lambda i: rows[i].gradients_ms)

    def _reason(self) -> str:
        rows, fastest = self.explanation.rows, self.fastest
        why = (
            "the fastest" if fastest == self.number
            else f"about as fast as the fastest, {rows[fastest].way}, and gentler"
        )  # fmt: skip
        others = [
            f"{row.way} {number(row.gradients_ms)} ms{f' ({row.note})' if row.note else ''}"
            for row in rows if not row.chosen
        ]  # fmt: skip
        return (
            f"{self.way.name}, {why}: a step's gradients take "
            f"{number(rows[self.number].gradients_ms)} ms ({'; '.join(others)})"
        )

    def learn(self, feedback: bool, step: int) -> str:
        """Takes what the ranks have found out about the optimizer.

        :returns: the sentence that says what changes; empty if nothing does
        """
        before, self.feedback = self.way, feedback
        self.choose(self._pick() if feedback or before.feedback else self.number)
        if self.way is before:
            return ""
        return self.explanation.say(
            f"auto: from step {step} on, as the optimizer is {'' if feedback else 'not '}SGD, "
            f"{self._reason()}"
        )

    def measure_again(self, step: int, ratio: float) -> str:
        """Measures all ways anew, on all ranks together, and chooses.

        :param ratio: the times as long as before that gradients take
        :returns: the sentence that says what was found
        :raises HipressError: if a rank dies or is silent meanwhile
        """
        self._take(self._measure())
        return self.explanation.say(
            f"auto: gradients take {ratio:.2g} times as long as they did; from step {step} on "
            f"{self._reason()}"
        )

    def state_dict(self) -> dict[str, Any]:
        """What a later :class:`Choice` of the same ways goes on with, to be written as JSON."""
        return {
            "ways": [way.name for way in self.ways],
            "number": self.number,
            "too_coarse": sorted(self._too_coarse),
            "left_out": sorted(self._left_out),
            "explanation": asdict(self.explanation),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on with what :meth:`state_dict` returned."""
        self.explanation.load(saved["explanation"])
        self._too_coarse, self.number = set(saved["too_coarse"]), saved["number"]
        self._left_out = set(saved["left_out"])

    def soften(self, problem: str, spread: float, step: int) -> str:
        """Takes a gentler way, as this one is too coarse for these gradients; returns the sentence
        that says so.

        :param problem: what is wrong, as the end of a sentence
        :param spread: see :meth:`hipress.tuning.guard.Guard.spread`; 0 if it is not known
        """
        before, rows = self.way, self.explanation.rows
        self._too_coarse.add(self.number)
        gentler = [
            i for i, way in enumerate(self.ways[: self.number])
            if i not in self._too_coarse and error_of(way.params, spread) <= MAX_ERROR
        ]  # fmt: skip
        self.choose(min(self._best_measured(gentler), key=lambda i: rows[i].gradients_ms))
        return self.explanation.say(
            f"auto: {self.way.name} from step {step} on, for {before.name} {problem}"
        )


def choose(
    ways: list[Way], feedback: bool | None, meter: Meter, ranks: tuple[int, str], largest: int,
    min_size: int, logs: bool, known: Mapping[str, Any] | None = None,
) -> Choice:  # fmt: skip
    """Chooses before the first step, on all ranks together; measures if there is a choice.

    :param ways: from gentle to lossy
    :param feedback: whether the optimizer bears error feedback; None: it is not known yet
    :param ranks: how many there are, and what one is called
    :param largest: elements of the largest gradient that may be compressed
    :param min_size: elements from which on gradients are compressed
    :param logs: whether this rank says what was chosen
    :param known: of an earlier choice, its state, the same on all ranks: goes on with that, if the
        ways are the same and there is anything to choose from
    :raises HipressError: if a rank dies or is silent meanwhile
    """
    count, name = ranks
    why = ""
    if count == 1:
        why = f"there is one {name}"
    elif not largest:
        why = "no gradient may be compressed"
    elif largest < min_size:
        why = f"no gradient has {min_size} elements (min_size)"
    if known and not why and known["ways"] == [way.name for way in ways]:
        choice = Choice(ways, feedback, meter.elements, meter.measure_again)
        choice.load_state_dict(known)
        return choice
    found = () if why else meter.measure()
    choice = Choice(ways, feedback, meter.elements, meter.measure_again, found)
    if why:
        choice.explanation.sentence = f"auto: uncompressed, for {why}"
    if logs:
        _log.warning("%s", choice.explanation.sentence)
    return choice


class StepTimer:
    """Tries a choice in the first steps of training against the framework's own ways.

    A step's time is that from when it begins until the next one does.

    :param codecs: whether also against the way that was the fastest for gradients alone: where they
        are most of a step, a gentler one may cost more of it than it should
    :param whole: see :class:`hipress.secopa.choice.StepTrial`
    """

    def __init__(self, choice: Choice, codecs: bool = False, whole: bool = False) -> None:
        self._choice = choice
        seconds = [row.gradients_ms / 1e3 for row in choice.explanation.rows]
        tried = {i for i, way in enumerate(choice.ways[: len(seconds)]) if way.own}
        if codecs and seconds:
            tried.add(choice.fastest)
        if choice.way is UNCOMPRESSED:
            tried = {i for i in tried if seconds[i] < seconds[0]}
        self._trial = StepTrial(
            [each if i in tried else math.inf for i, each in enumerate(seconds)], choice.number,
            whole,
        )  # fmt: skip
        self._began: float | None = None
        self.over = not tried
        """Whether all steps go by :attr:`way` from now on."""

    @property
    def way(self) -> Way:
        """The way of the step that has begun."""
        return self._choice.way if self.over else self._choice.ways[self._trial.way]

    @property
    def is_at_edge(self) -> bool:
        """Whether steps begin to count with the one that begins now, or one did last."""
        return not self.over and self._trial.is_at_edge

    def begin_step(self) -> float | None:
        """To be called when a step begins.

        :returns: perhaps seconds, of which the maximum over all ranks is then to be given to
            :meth:`end_block`
        """
        if self.over:
            return None
        began, self._began = self._began, time.perf_counter()
        return None if began is None else self._trial.add(self._began - began)

    def end_block(self, slowest: float) -> tuple[int, str]:
        """Takes the maximum over all ranks.

        :returns: the level and the sentence for the log, which is empty until the trial is over
        """
        self._trial.end_block(slowest)
        self._began = time.perf_counter()
        self.over = self._trial.over
        return self._report() if self.over else (logging.INFO, "")

    def _report(self) -> tuple[int, str]:
        choice, rows = self._choice, self._choice.explanation.rows
        before = choice.way
        for i, seconds in self._trial.seconds.items():
            rows[i].step_ms = 1e3 * seconds
        choice.choose(self._trial.way)
        choice.explanation.predict()
        tried = "; ".join(f"{r.way} {number(r.step_ms)} ms" for r in rows if r.step_ms)
        if self._trial.was_cut:
            tried += f"; there was not time for more in {TRIAL_SECONDS:g} s"
        if choice.way is before:
            sentence = f"auto: {before.name} stays: a step takes {tried}"
            if self._trial.was_cut:
                choice.explanation.say(sentence)
            return logging.INFO, sentence
        sentence = choice.explanation.say(
            f"auto: {choice.way.name}, for in training it is as fast as {before.name}, or faster: "
            f"a step takes {tried}"
        )
        return logging.WARNING, sentence
