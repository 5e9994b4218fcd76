"""Type "auto" while a model trains: the method of each step, and what changes it.

The ranks compare the numbers that decide at the beginning of a step, before its first gradient. So
all ranks change the method at the same step.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from hipress.autotune.choice import UNKNOWN, MethodChoice, feedback_from, forbids_feedback
from hipress.autotune.frontend import StepFrontend
from hipress.autotune.journal import TuningJournal
from hipress.autotune.methods import MAXMIN8, Method
from hipress.autotune.network_watch import BLOCK_STEPS, NetworkWatch
from hipress.autotune.quality_guard import (
    EVERY,
    MAX_MEAN_ERROR,
    MAX_SHARE,
    FeedbackGuard,
    RoundingGuard,
    rounding_error,
)
from hipress.autotune.trial import StepTimer

EARLY_STEPS = 8
"""Steps in which most optimizers are seen."""

_log = logging.getLogger("hipress")
_LogLine = tuple[int, str]
"""Level and sentence; empty sentences are not logged."""


class TuningController:
    """The method of each step of a model, on one rank.

    ``raw`` is the number of bytes of an uncompressed step that this rank sends. If ``tries`` is
    false, no step of training tries methods of the framework's own, and gradients without a codec
    are sent and counted like compressed ones. With ``overlaps`` a step may begin before the last
    one ended, except when :attr:`settles` is true. ``has_journal`` is whether the files of the job
    describe this choice.
    """

    def __init__(
        self,
        choice: MethodChoice,
        frontend: StepFrontend,
        raw: float,
        tries: bool = True,
        overlaps: bool = False,
        has_journal: bool = True,
    ) -> None:
        self.choice, self._frontend = choice, frontend
        self._tries, self._overlaps = tries, overlaps
        self._codec = choice.method
        """Method that the front end uses. In a trial some steps bypass it."""
        self._flushing = self._has_residuals = False
        self._timer = self._new_timer()
        self._rounding_guard = RoundingGuard(frontend.statistics)
        self._feedback_guard: FeedbackGuard | None = None
        self._network = NetworkWatch()
        self._reduction: tuple[Any, Method] | None = None
        """The begun maximum of the network's times, and the method of these."""
        self.seconds: list[float] = []
        """Seconds of each bucket's communication in the step that has begun."""
        self._seconds_before: list[float] = []
        """The same for the last step, which may still grow."""
        self._step, self._began = 0, None
        self._first: int | None = None
        """First step since the beginning or the last load of a state."""
        self._steps: deque[float] = deque(maxlen=BLOCK_STEPS)
        """Seconds of the last steps."""
        self.step_seconds = 0.0
        """Seconds of a step, if the front end knows them better than from the steps' beginnings."""
        self.figures: dict[str, float] = {}
        """Latest numbers of the guards for the present method, such as "error"."""
        rank = frontend.log_rank if has_journal else -1
        self._journal = TuningJournal(rank, raw, frontend.bytes_sent)
        self.method = choice.method
        """Method of the step that has begun."""
        self.observer: RoundingGuard | FeedbackGuard | None = None
        """Guard that observes this step's compressed gradients, if any."""

    def _new_timer(self) -> StepTimer:
        codecs = self._frontend.keeps_error_feedback
        timer = StepTimer(self.choice, codecs=codecs, whole=self._overlaps)
        timer.over = timer.over or not self._tries
        return timer

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another method, and the optimizer is known, or was not seen."""
        known = self.choice.feedback is not None or self._step - (self._first or 0) > EARLY_STEPS
        return self._timer.over and known

    @property
    def is_trying(self) -> bool:
        """Whether timed steps try another method."""
        return not self._timer.over

    @property
    def settles(self) -> bool:
        """Whether all communication must have ended before :meth:`begin_step`, for its timing."""
        return self._timer.is_at_edge

    def begin_step(self) -> Method:
        """Return the method of the step that begins, the same on all ranks."""
        frontend, before = self._frontend, self.choice.method
        step = self._step = frontend.step
        self._first = step if self._first is None else self._first
        now = time.perf_counter()
        if self._began is not None:
            self._steps.append(now - self._began)
        self._began = now
        lines = self._watch_network()
        mine = self._numbers_to_compare()
        if mine:
            lines += self._decide(dict(zip(mine, frontend.reductions.max(*mine.values()))), step)
        for level, sentence in lines if frontend.log_rank == 0 else ():
            if sentence:
                _log.log(level, "%s", sentence)
        if self.choice.method is not before:
            self._network.begin(changed=True)
            self._rounding_guard = RoundingGuard(frontend.statistics)
            self._feedback_guard = None
            self.figures = {}
        last, self.method = self.method, self._apply()
        if self.method is not last:
            self._journal.count_from(step)
        counts = frontend.keeps_error_feedback or not self.method.by_framework or not self._tries
        self._journal.write(self.choice.explanation, step, counts, self.figures)
        self.observer = self._guard()
        return self.method

    def _watch_network(self) -> list[_LogLine]:
        """Add the times of the last step but one, and measure again if the network has changed.

        The maximum over the ranks is computed during the following step, so no rank waits for it.
        """
        seconds = sum(self._seconds_before)
        self._seconds_before, self.seconds = self.seconds, []
        reduction, self._reduction = self._reduction, None
        ratio = None
        if reduction is not None:
            begun, method = reduction
            communication, step = self._frontend.reductions.end_max(begun)
            if method is self.choice.method:
                ratio = self._network.end_block(communication)
                if self._codec is method:
                    self.choice.record_step(step)
        if not self._timer.over or self._flushing or self._codec is not self.choice.method:
            return []
        if ratio is not None:
            return [self._measure_again(ratio)]
        median = self._network.add(seconds)
        if median is not None:
            step = self.step_seconds or statistics.median(self._steps)
            begun = self._frontend.reductions.begin_max([median, step])
            self._reduction = begun, self.choice.method
        return []

    def _measure_again(self, ratio: float) -> _LogLine:
        before = self.choice.method
        sentence = self.choice.measure_again(self._step, ratio)
        self._journal.count_from(self._step)
        changed = self.choice.method is not before
        self._network.begin(changed)
        if changed:
            self._timer = self._new_timer()
        return logging.WARNING if changed else logging.INFO, sentence

    def _numbers_to_compare(self) -> dict[str, float]:
        """Return this rank's numbers, which have the same names on all ranks."""
        frontend, step = self._frontend, self._step
        mine = {
            "median": self._timer.begin_step(),
            "spread": self._rounding_guard.spread(),
            "forbidden": self._forbids_feedback(step),
        }
        if self._flushing:
            mine["left"] = frontend.residual_norm()
        guard = self._feedback_guard
        if guard is not None and guard.is_over(step):
            mine["share"] = guard.share(frontend.residual_norm())
            if frontend.compares_results:
                mine["error"] = guard.error(frontend.reductions.mean(guard.sample()))
        return {name: value for name, value in mine.items() if value is not None}

    def _forbids_feedback(self, step: int) -> float | None:
        """Return :func:`forbids_feedback` in the steps 0, 1, 2, 4, ... and every 100 steps."""
        since = step - self._first
        if not self.choice.any_feedback or not (since % EVERY == 0 or since & (since - 1) == 0):
            return None
        return forbids_feedback(self._frontend.allows_feedback())

    def _decide(self, found: dict[str, float], step: int) -> list[_LogLine]:
        """Change the choice by the maxima over all ranks."""
        lines, before = [], self.choice.method
        if "left" in found:
            self._flushing = found["left"] > 0
        if "median" in found:
            lines.append(self._timer.end_block(found["median"]))
        feedback = feedback_from(found.get("forbidden", UNKNOWN))
        if feedback is not None and self.choice.feedback != feedback:
            lines.append((logging.WARNING, self.choice.set_feedback(feedback, step)))
            if self.choice.method is not before or not self._timer.over:
                self._timer = self._new_timer()  # the old one may try a forbidden method
        if "spread" in found:
            self.figures["rounding"] = rounding_error(self._codec.params, found["spread"])
        self.figures |= {name: found[name] for name in ("error", "share") if name in found}
        problem = self._problem(found)
        if problem and self.choice.method is self._codec:
            sentence = self.choice.use_less_lossy(problem, found.get("spread", 0.0), step)
            lines.append((logging.WARNING, sentence))
        if "share" in found:
            self._feedback_guard.next_window()
            off = ""
            if "error" in found:
                off = f"what it sent in some steps is off by {found['error']:.2g} times its norm, "
            lines.append(
                (
                    logging.INFO,
                    f"auto: {self._codec.name}: {off}residuals are {found['share']:.2g} times a "
                    "gradient's norm",
                )
            )
        return lines

    def _problem(self, found: Mapping[str, float]) -> str:
        """Return the problem of the codec, or an empty string."""
        rounding = rounding_error(self._codec.params, found.get("spread", 0.0))
        most = self.choice.max_error
        if not self._codec.feedback and rounding > most:
            what, its = self._frontend.rounded
            return (
                f"rounds {what} too coarsely: the norm of its error is {rounding:.2f} times {its} "
                f"(at most {most:g})"
            )
        if found.get("share", 0.0) > MAX_SHARE:
            return (
                f"delays too much: its residuals' norm is {found['share']:.1f} times the "
                f"gradient's (at most {MAX_SHARE:g})"
            )
        if found.get("error", 0.0) > MAX_MEAN_ERROR:
            return (
                "leaves out too much: the sum of what it sent in some steps is off by "
                f"{found['error']:.2f} times its norm (at most {MAX_MEAN_ERROR:g})"
            )
        return ""

    def _apply(self) -> Method:
        """Make the front end use the choice, and return the method of this step."""
        if self._flushing:
            return self._codec
        keeps = self._frontend.keeps_error_feedback
        wanted = self._timer.method if keeps else self.choice.method
        if wanted is not self._codec or self._has_residuals:
            self._flushing = not keeps and (self._codec.feedback or self._has_residuals)
            self._has_residuals = False
            self._codec = MAXMIN8 if self._flushing else wanted
            self._frontend.use(self._codec)
            if self._flushing:
                return self._codec
        if self._timer.over and self._codec.feedback and self._feedback_guard is None:
            frontend = self._frontend
            self._feedback_guard = FeedbackGuard(
                self._step, frontend.statistics, frontend.compares_results
            )
        return self._timer.method

    def _guard(self) -> RoundingGuard | FeedbackGuard | None:
        """Return the guard that observes this step."""
        if not self._timer.over or self._flushing:
            return None
        if self._codec.feedback:
            guard = self._feedback_guard
            return guard if guard.observes(self._step) else None
        guard = self._rounding_guard
        return guard if "bits" in self._codec.params and guard.observes(self._step) else None

    def prepare_for(self, type: str) -> None:
        """Use a method whose residuals, of the codec ``type``, are about to be loaded."""
        if self._codec.feedback and self._codec.type == type:
            return
        for method in self.choice.methods:
            if method.feedback and method.type == type:
                self._frontend.use(method)
                self._codec = method
                return

    def resume(self, has_residuals: bool) -> None:
        """Continue after a state was loaded. Earlier observations are discarded.

        ``has_residuals`` is whether any rank has residuals, which the framework's own methods do
        not send.
        """
        self._has_residuals = has_residuals and self._codec.by_framework
        self._rounding_guard = RoundingGuard(self._frontend.statistics)
        self._feedback_guard = None
        self._first, self.observer = None, None
        self._journal.begin(self._frontend.step)

    def state_dict(self) -> dict[str, Any]:
        """Return the choice and the network's usual times for another controller, as JSON."""
        return {**self.choice.state_dict(), "network": self._network.state_dict()}

    def load_network(self, saved: Mapping[str, Any]) -> None:
        """Load the network's usual times from the result of :meth:`state_dict`, if it has them."""
        if "network" in saved:
            self._network.load_state_dict(saved["network"])
