"""The method that was chosen, and the reasons.

All numbers that decide are maxima over the ranks, which have the same bits on all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from hipress.autotune.explanation import Explanation, Row, number
from hipress.autotune.frontend import TuningFrontend
from hipress.autotune.measurement import SLACK_SECONDS, Measurement, least_lossy
from hipress.autotune.methods import Method
from hipress.autotune.quality_guard import MAX_ERROR, rounding_error

NEEDS_SGD = "with SGD only"
SLOWER = "slower in smaller samples"
UNKNOWN = 0.5
"""Result of :func:`forbids_feedback` for an optimizer that is not known."""

_log = logging.getLogger("hipress")


def forbids_feedback(allowed: bool | None) -> float:
    """Return 1 or 0, whether an optimizer supports no error feedback, or :data:`UNKNOWN`."""
    return UNKNOWN if allowed is None else 1.0 - allowed


def feedback_from(forbidden: float) -> bool | None:
    """Return whether all optimizers support error feedback, from the maximum over the ranks."""
    return None if forbidden == UNKNOWN else not forbidden


class MethodChoice:
    """The chosen method of a model's gradients, and the reasons.

    ``methods`` begin with the least lossy. ``feedback`` is whether the optimizer supports error
    feedback, or None if that is unknown. ``found`` has a measurement of each method, or nothing.
    ``what`` and ``max_error`` are those of :class:`~hipress.autotune.frontend.TuningFrontend`.
    """

    def __init__(
        self,
        methods: list[Method],
        feedback: bool | None,
        elements: int,
        measure: Callable[[], Sequence[Measurement]],
        found: Sequence[Measurement] = (),
        what: str = "gradients",
        max_error: float | None = None,
    ) -> None:
        self.methods, self.feedback = methods, feedback
        self._elements, self._measure = elements, measure
        self._too_lossy: set[int] = set()
        self._left_out: set[int] = set()
        self.index = 0
        """Index of the chosen method."""
        self.explanation = Explanation("", what=what)
        self._max_error = max_error
        if found:
            self._load(found)
            self.explanation.sentence = f"auto: {self._reason()}"

    @property
    def method(self) -> Method:
        """The chosen method."""
        return self.methods[self.index]

    @property
    def max_error(self) -> float:
        """Largest allowed relative rounding error."""
        return MAX_ERROR if self._max_error is None else self._max_error

    @property
    def any_feedback(self) -> bool:
        """Whether one of the methods uses error feedback."""
        return any(method.feedback for method in self.methods)

    @property
    def is_measured(self) -> bool:
        """Whether there are measurements to choose by."""
        return bool(self.explanation.rows)

    @property
    def fastest(self) -> int:
        """Index of the allowed method whose gradients take the least time."""
        rows = self.explanation.rows
        allowed = [i for i, row in enumerate(rows) if not row.note]
        return min(allowed, key=lambda i: rows[i].gradients_ms)

    def record_step(self, seconds: float) -> None:
        """Record the seconds of a step with the chosen method on the slowest rank."""
        self.explanation.rows[self.index].step_ms = 1e3 * seconds
        self.explanation.predict()

    def choose(self, index: int) -> None:
        """Choose the method with this index."""
        self.index = index
        slower = set() if index in self._left_out else self._left_out
        for i, row in enumerate(self.explanation.rows):
            row.chosen = i == index
            row.note = NEEDS_SGD if self.methods[i].feedback and not self.feedback else ""
            row.note = SLOWER if i in slower else row.note
            row.note = "too coarse" if i in self._too_lossy else row.note

    def _load(self, found: Sequence[Measurement]) -> None:
        """Choose by new measurements."""
        self._left_out = {i for i, each in enumerate(found) if each.left_out}
        self.explanation.rows = [
            Row(method.name, 1e3 * each.seconds, min(1.0, each.elements / self._elements))
            for method, each in zip(self.methods, found)
        ]
        self.choose(self._select())

    def _select(self) -> int:
        """Return the least lossy allowed method that is within the tolerance of the fastest."""
        rows = self.explanation.rows
        allowed = self._best_measured(
            [
                i
                for i, method in enumerate(self.methods)
                if i not in self._too_lossy and (self.feedback or not method.feedback)
            ]
        )
        milliseconds = [rows[i].gradients_ms for i in allowed]
        return allowed[least_lossy(milliseconds, slack=1e3 * SLACK_SECONDS)]

    def _best_measured(self, indices: list[int]) -> list[int]:
        """Return the methods that had all samples, or all methods if there are none."""
        return [i for i in indices if i not in self._left_out] or indices

    def _reason(self) -> str:
        rows, fastest = self.explanation.rows, self.fastest
        why = "the fastest"
        if fastest != self.index:
            why = f"about as fast as the fastest, {rows[fastest].method}, and less lossy"
        rest = "; ".join(
            f"{row.method} {number(row.gradients_ms)} ms{f' ({row.note})' if row.note else ''}"
            for row in rows
            if not row.chosen
        )
        return (
            f"{self.method.name}, {why}: a step's {self.explanation.what} take "
            f"{number(rows[self.index].gradients_ms)} ms ({rest})"
        )

    def set_feedback(self, feedback: bool, step: int) -> str:
        """Choose again when the ranks know of error feedback. Return the reason for a change."""
        before, self.feedback = self.method, feedback
        self.choose(self._select() if feedback or before.feedback else self.index)
        if self.method is before:
            return ""
        return self.explanation.say(
            f"auto: from step {step} on, as the optimizer is {'' if feedback else 'not '}SGD, "
            f"{self._reason()}"
        )

    def measure_again(self, step: int, ratio: float) -> str:
        """Measure all methods again, since they take ``ratio`` as long. Return a sentence."""
        self._load(self._measure())
        return self.explanation.say(
            f"auto: {self.explanation.what} take {ratio:.2g} times as long as they did; from step "
            f"{step} on {self._reason()}"
        )

    def use_less_lossy(self, problem: str, spread: float, step: int) -> str:
        """Choose a less lossy method, as the present one has a ``problem``. Return the reason."""
        before, rows = self.method, self.explanation.rows
        self._too_lossy.add(self.index)
        less_lossy = [
            i
            for i, method in enumerate(self.methods[: self.index])
            if i not in self._too_lossy and rounding_error(method.params, spread) <= self.max_error
        ]
        self.choose(min(self._best_measured(less_lossy), key=lambda i: rows[i].gradients_ms))
        return self.explanation.say(
            f"auto: {self.method.name} from step {step} on, for {before.name} {problem}"
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the state from which a choice among the same methods continues, as JSON."""
        return {
            "ways": [method.name for method in self.methods],
            "number": self.index,
            "too_coarse": sorted(self._too_lossy),
            "left_out": sorted(self._left_out),
            "explanation": msgspec.to_builtins(self.explanation),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from the result of :meth:`state_dict`."""
        self.explanation.load(saved["explanation"])
        self._too_lossy, self.index = set(saved["too_coarse"]), saved["number"]
        self._left_out = set(saved["left_out"])


def choose(
    frontend: TuningFrontend,
    methods: list[Method],
    feedback: bool | None,
    largest: int,
    min_size: int,
    known: Mapping[str, Any] | None = None,
) -> MethodChoice:
    """Choose a method before the first step, on all ranks together. Measure if there is a choice.

    ``known`` is the state of an earlier choice, equal on all ranks. It replaces the measurement if
    the methods are the same.
    """
    why = ""
    if frontend.num_ranks == 1:
        why = f"there is one {frontend.rank_noun}"
    elif not largest:
        why = "no gradient may be compressed"
    elif largest < min_size:
        why = f"no gradient has {min_size} elements (min_size)"

    def measure() -> list[Measurement]:
        return frontend.measure(methods)

    about: dict[str, Any] = {"what": frontend.what, "max_error": frontend.max_error}
    if known and not why and known["ways"] == [method.name for method in methods]:
        choice = MethodChoice(methods, feedback, frontend.elements, measure, **about)
        choice.load_state_dict(known)
        return choice
    found = () if why else measure()
    choice = MethodChoice(methods, feedback, frontend.elements, measure, found, **about)
    if why:
        choice.explanation.sentence = f"auto: {choice.method.name}, for {why}"
    if frontend.rank == 0:
        _log.warning("%s", choice.explanation.sentence)
    return choice
