"""Type "auto" while a model trains: which way each step goes, and what changes it.

What makes ranks change their minds is compared between them when a step begins, before its first
gradient, so that all of them change at the same step. What runs, and how numbers are compared, is
the front end's part, its :class:`Front`.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from hipress.secopa.network_watch import BLOCK_STEPS, NetworkWatch
from hipress.tuning.choice import Choice, StepTimer
from hipress.tuning.feedback_guard import FeedbackGuard
from hipress.tuning.guard import EVERY, MAX_ERROR, Guard, error_of
from hipress.tuning.journal import Journal
from hipress.tuning.ways import MAXMIN8, Way

MAX_SHARE, MAX_MEAN_ERROR = 3.5, 1.3
"""Bounds of :mod:`hipress.tuning.feedback_guard`'s figures. Where training kept its loss within
half a percent they were up to 3.4 and 1.2. Where shares grew to 4.1 and more it lost 0.7% to 1.8%,
and with 10 3% (`python -m benchmarks feedback` and `quality`)."""

SOON = 8
"""Steps in which most optimizers are seen."""

UNKNOWN = 0.5

_log = logging.getLogger("hipress")


def forbids(allowed: bool | None) -> float:
    """Whether an optimizer forbids error feedback, as a number of which ranks compare maxima: 0 or
    1, and between them :data:`UNKNOWN`."""
    return UNKNOWN if allowed is None else 1.0 - allowed


class Front(Protocol):
    """What a front end does for a :class:`Follower`. Numbers are compared on all ranks together."""

    rank: int
    """Of whose processes 0 logs."""
    step: int
    """That begins."""
    sends_all_it_leaves: bool
    """Whether whoever has a residual adds it to the next gradient, however that is sent. Else only
    a codec does, and the way uncompressed is none: a way with error feedback is left by a step of
    ``maxmin``, which takes over its residuals and sends them."""
    compares_results: bool
    """Whether results are means of gradients that the front end sees (not weights)."""

    def begin_maxima(self, values: Sequence[float]) -> Any:
        """Begins to compare numbers; waits for nobody."""

    def end_maxima(self, begun: Any) -> list[float]:
        """The maxima over all ranks, with the same bits on each.

        :raises HipressError: if a rank dies or is silent meanwhile
        """

    def mean(self, sample: np.ndarray) -> np.ndarray:
        """The mean of float32[n] over all ranks.

        :raises HipressError: if a rank dies or is silent meanwhile
        """

    def use(self, way: Way) -> None:
        """Sets the compression up for this way; nothing that waits in residuals is lost."""

    def residual_norm(self) -> float:
        """The norm of all residuals of this rank."""

    def allows_feedback(self) -> bool | None:
        """Whether all optimizers bear error feedback; None: it is not known yet."""

    def bytes_sent(self) -> int:
        """Bytes that this rank has sent so far."""


class Follower:
    """The way of each step of a model, on one rank.

    :param choice: made before the first step, of several ways
    :param raw: bytes of a step, uncompressed, that this rank sends
    :param tries: whether there are ways of the framework's own, which steps of training may try;
        else what has no codec goes as the rest does, and is counted
    :param overlaps: whether steps begin while what others have begun is under way, but where
        :attr:`settles` says so
    """

    def __init__(
        self, choice: Choice, front: Front, raw: float, tries: bool = True, overlaps: bool = False
    ) -> None:
        self.choice, self._front, self._tries, self._overlaps = choice, front, tries, overlaps
        self._codec = choice.way
        """The way that the compression is set up for; in a trial some steps may go past it, by
        ways of the framework's own."""
        self._flushing = self._owes = False
        self._timer = self._new_timer()
        self._guard = Guard()
        self._feedback_guard: FeedbackGuard | None = None
        self._network = NetworkWatch()
        self._asked: Any = None
        self.seconds: list[float] = []
        """Of what was on its way of the step that has begun."""
        self._seconds_before: list[float] = []
        """Of the step before, of which the last one's may come when that has been waited for."""
        self._step, self._began = 0, None
        self._first: int | None = None
        """The step that began first here; in a job that goes on it is not 0."""
        self._steps: deque[float] = deque(maxlen=BLOCK_STEPS)
        """Seconds of the last steps."""
        self.step_seconds = 0.0
        """Of a step, where they are known better than by the times at which steps begin."""
        self._known: dict[str, float] = {}
        """The guard's latest figures of the way."""
        self._journal = Journal(front.rank, raw, front.bytes_sent())
        self.way = choice.way
        """That of the step that has begun."""

    def _new_timer(self) -> StepTimer:
        timer = StepTimer(self.choice, codecs=self._front.sends_all_it_leaves, whole=self._overlaps)
        timer.over = timer.over or not self._tries
        return timer

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another way, and the optimizer is known, or was not soon."""
        known = self.choice.feedback is not None or self._step - (self._first or 0) > SOON
        return self._timer.over and known

    @property
    def compares_results(self) -> bool:
        """Whether :meth:`guard`'s FeedbackGuard is to be shown samples, too."""
        return self._front.compares_results

    @property
    def is_trying(self) -> bool:
        """Whether steps are timed that try another way."""
        return not self._timer.over

    @property
    def settles(self) -> bool:
        """Whether what has been begun is to be over before :meth:`begin_step`, as steps that try a
        way are timed from here on, or were until here."""
        return self._timer.is_at_edge

    def begin_step(self) -> Way:
        """Decides by which way the step that begins goes, on all ranks the same.

        :raises HipressError: if a rank dies or is silent meanwhile
        """
        front, before = self._front, self.choice.way
        step = self._step = front.step
        self._first = step if self._first is None else self._first
        self._time_step()
        said = self._watch_network()
        mine = self._figures()
        if mine:
            found = front.end_maxima(front.begin_maxima(list(mine.values())))
            said += self._decide(dict(zip(mine, found)), step)
        for level, sentence in said if front.rank == 0 else ():
            if sentence:
                _log.log(level, "%s", sentence)
        if self.choice.way is not before:
            self._network.begin(changed=True)
            self._guard, self._feedback_guard, self._known = Guard(), None, {}
        last, self.way = self.way, self._set_up()
        if self.way is not last:
            self._journal.count_from(step, front.bytes_sent())
        counts = front.sends_all_it_leaves or not self.way.own or not self._tries
        self._journal.write(self.choice.explanation, step, front.bytes_sent, counts, self._known)
        return self.way

    def _time_step(self) -> None:
        now = time.perf_counter()
        if self._began is not None:
            self._steps.append(now - self._began)
        self._began = now

    def _watch_network(self) -> list[tuple[int, str]]:
        """Takes the times of the last step but one, and measures all ways anew if the network seems
        to be another one; returns sentences for the log, with their levels.

        What is compared between the ranks travels during a step, so nobody waits for it.
        """
        seconds = sum(self._seconds_before)
        self._seconds_before, self.seconds = self.seconds, []
        asked, self._asked = self._asked, None
        ratio = None
        if asked is not None:
            begun, way = asked
            on_the_way, step = self._front.end_maxima(begun)
            if way is self.choice.way:
                ratio = self._network.end_block(on_the_way)
                if self._codec is way:
                    self.choice.time(step)
        if not self._timer.over or self._flushing or self._codec is not self.choice.way:
            return []
        if ratio is not None:
            before = self.choice.way
            sentence = self.choice.measure_again(self._step, ratio)
            self._journal.count_from(self._step, self._front.bytes_sent())
            changed = self.choice.way is not before
            self._network.begin(changed)
            if changed:
                self._timer = self._new_timer()
            return [(logging.WARNING if changed else logging.INFO, sentence)]
        median = self._network.add(seconds)
        if median is not None:
            step = self.step_seconds or statistics.median(self._steps)
            self._asked = self._front.begin_maxima([median, step]), self.choice.way
        return []

    def _figures(self) -> dict[str, float]:
        """What is to be compared now: this rank's, of the same names on all ranks."""
        front, step = self._front, self._step
        mine = {
            "median": self._timer.begin_step(),
            "spread": self._guard.spread(),
            "forbidden": self._forbidden(step),
        }
        if self._flushing:
            mine["left"] = front.residual_norm()
        guard = self._feedback_guard
        if guard is not None and guard.is_over(step):
            mine["share"] = guard.share(front.residual_norm())
            if front.compares_results:
                mine["error"] = guard.error(front.mean(guard.sample()))
        return {name: value for name, value in mine.items() if value is not None}

    def _forbidden(self, step: int) -> float | None:
        """What :func:`forbids` says; in the first steps and now and then."""
        since = step - self._first
        if not self.choice.any_feedback or not (since % EVERY == 0 or since & (since - 1) == 0):
            return None
        return forbids(self._front.allows_feedback())

    def _decide(self, found: dict[str, float], step: int) -> list[tuple[int, str]]:
        """Takes the maxima over all ranks; returns sentences for the log, with their levels."""
        said, before = [], self.choice.way
        if "left" in found:
            self._flushing = found["left"] > 0
        if "median" in found:
            said.append(self._timer.end_block(found["median"]))
        forbidden = found.get("forbidden", UNKNOWN)
        if forbidden != UNKNOWN and self.choice.feedback != (not forbidden):
            said.append((logging.WARNING, self.choice.learn(not forbidden, step)))
            if self.choice.way is not before or not self._timer.over:
                self._timer = self._new_timer()  # it may try a way that is not safe any more
        rounding = error_of(self._codec.params, found["spread"]) if "spread" in found else None
        known = {"rounding": rounding, "error": found.get("error"), "share": found.get("share")}
        self._known |= {name: value for name, value in known.items() if value is not None}
        problem = self._problem(found)
        if problem and self.choice.way is self._codec:
            spread = found.get("spread", 0.0)
            said.append((logging.WARNING, self.choice.soften(problem, spread, step)))
        if "share" in found:
            self._feedback_guard.next_window()
            off = ""
            if "error" in found:
                off = f"what it sent in some steps is off by {found['error']:.2g} times its norm, "
            said.append((logging.INFO, (
                f"auto: {self._codec.name}: {off}residuals are {found['share']:.2g} times a "
                "gradient's norm"
            )))  # fmt: skip
        return said

    def _problem(self, found: dict[str, float]) -> str:
        """What is wrong with the codec by these figures; empty if nothing is."""
        rounding = error_of(self._codec.params, found.get("spread", 0.0))
        if not self._codec.feedback and rounding > MAX_ERROR:
            return (
                "rounds a gradient too coarsely: the norm of its error is "
                f"{rounding:.2f} times the gradient's (at most {MAX_ERROR:g})"
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

    def _set_up(self) -> Way:
        """Sets the compression up for the choice, and returns the way of this step."""
        if self._flushing:
            return self._codec
        simple = self._front.sends_all_it_leaves
        wanted = self._timer.way if simple else self.choice.way
        if wanted is not self._codec or self._owes:
            self._flushing = not simple and (self._codec.feedback or self._owes)
            self._owes = False
            self._codec = MAXMIN8 if self._flushing else wanted
            self._front.use(self._codec)
            if self._flushing:
                return self._codec
        if self._timer.over and self._codec.feedback and self._feedback_guard is None:
            self._feedback_guard = FeedbackGuard(self._step)
        return self._timer.way

    def set_up_for(self, type: str) -> None:
        """Sets the compression up for the residuals of another way, which are about to be loaded.

        :param type: of the compression that has left them
        """
        if self._codec.feedback and self._codec.type == type:
            return
        for way in self.choice.ways:
            if way.feedback and way.type == type:
                self._front.use(way)
                self._codec = way
                return

    def resume(self, waits: bool) -> None:
        """Takes note of what was loaded, of another step, maybe: what was seen before says nothing
        of what comes.

        :param waits: whether residuals are among it: a framework's own way would not send them
        """
        self._owes = waits and self._codec.own
        self._guard, self._feedback_guard, self._first = Guard(), None, None
        self._journal.begin(self._front.step, self._front.bytes_sent())

    def state_dict(self) -> dict[str, Any]:
        """What the follower of another job goes on with, as JSON: the choice, and what is usual on
        this network."""
        return {**self.choice.state_dict(), "network": self._network.state_dict()}

    def load_network(self, saved: Mapping[str, Any]) -> None:
        """Takes what is usual from what :meth:`state_dict` returned; the choice is made of it."""
        self._network.load_state_dict(saved["network"])

    def guard(self) -> Guard | FeedbackGuard | None:
        """What is to be shown those gradients of this step that are compressed; a FeedbackGuard
        also what has become of them, if the front end compares results."""
        if not self._timer.over or self._flushing:
            return None
        if not self._codec.feedback:
            looks = "bits" in self._codec.params and self._guard.looks_at(self._step)
            return self._guard if looks else None
        guard = self._feedback_guard
        return guard if guard.looks_at(self._step) else None
