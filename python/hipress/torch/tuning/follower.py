"""Type "auto" while a model trains: which way each step goes, and what changes it.

What makes ranks change their minds is compared between them when a step begins, before its first
bucket, so that all of them change at the same step. A way with error feedback is left by a step of
``maxmin``, which takes over its residuals and sends them, so nothing is lost.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from hipress.secopa.network_watch import BLOCK_STEPS, NetworkWatch
from hipress.torch.executors.engine import HipressError
from hipress.torch.gradient import Gradient
from hipress.torch.synchronizer import Synchronizer
from hipress.torch.tuning.choice import Choice, StepTimer
from hipress.torch.tuning.feedback_guard import FeedbackGuard, residual_norm
from hipress.torch.tuning.guard import EVERY, MAX_ERROR, Guard, error_of
from hipress.torch.tuning.journal import Journal
from hipress.torch.tuning.optimizers import Optimizers
from hipress.torch.tuning.ways import MAXMIN8, Way

MAX_SHARE, MAX_MEAN_ERROR = 6.0, 1.3
"""Bounds of :mod:`hipress.torch.tuning.feedback_guard`'s figures: where training kept its loss they
were up to 4.3 and 1.2, and with ``onebit``, which lost 3%, a share was 10 (`python -m benchmarks
feedback`)."""

SOON = 8
"""Steps in which most optimizers are seen."""

_log = logging.getLogger("hipress")


class Follower:
    """The way of each step of a model, on one rank.

    :param choice: made before the first step, of several ways
    :param optimizers: of the parameters that are compressed
    :param of: the compression
    """

    def __init__(self, choice: Choice, optimizers: Optimizers, of: Synchronizer) -> None:
        self.choice, self._optimizers = choice, optimizers
        self._codec = choice.way
        """The way that the compression is set up for; in a trial some steps go by DDP's own."""
        self._flushing = self._owes = False
        self._timer = StepTimer(choice)
        self._guard = Guard()
        self._feedback_guard: FeedbackGuard | None = None
        self._network = NetworkWatch()
        self._asked: tuple[dist.Work, torch.Tensor] | None = None
        self._seconds: list[float] = []
        """Of the buckets of the step that has begun."""
        self._seconds_before: list[float] = []
        """Of the step before, of which the last one's may come when that has been waited for."""
        self._step, self._began = 0, None
        self._steps: deque[float] = deque(maxlen=BLOCK_STEPS)
        """Seconds of the last steps."""
        self._known: dict[str, float] = {}
        """The guard's latest figures of the way."""
        self._journal = Journal(of, choice.gradient_bytes)
        self.way = choice.way
        """That of the step that has begun."""

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another way, and the optimizer is known, or was not soon."""
        known = self.choice.feedback is not None or self._step > SOON
        return self._timer.over and known

    def begin_step(self, of: Synchronizer, device: torch.device) -> Way:
        """Decides by which way the step that begins goes, on all ranks the same.

        :param of: the compression, which this sets up for the way
        :param device: where gradients are
        :raises HipressError: if a rank dies or is silent meanwhile
        """
        before, step = self.choice.way, of.step
        self._step = step
        self._time_step()
        said = self._watch_network(of, device)
        mine = self._figures(of, device)
        if mine:
            values = torch.tensor(list(mine.values()), dtype=torch.float64, device=device)
            found = _reduced(of, values, dist.ReduceOp.MAX).tolist()
            said += self._decide(dict(zip(mine, found)), step)
        for level, sentence in said if of.rank == 0 else ():
            if sentence:
                _log.log(level, "%s", sentence)
        if self.choice.way is not before:
            self._network.begin(changed=True)
            self._guard, self._feedback_guard, self._known = Guard(), None, {}
        self.way = self._set_up(of)
        own = self.way.hook is not None
        self._journal.write(self.choice.explanation, of, own, self._known)
        return self.way

    def _time_step(self) -> None:
        now = time.perf_counter()
        if self._began is not None:
            self._steps.append(now - self._began)
        self._began = now

    def _watch_network(self, of: Synchronizer, device: torch.device) -> list[tuple[int, str]]:
        """Takes the times of the last step but one, and measures all ways anew if the network seems
        to be another one; returns sentences for the log, with their levels.

        What is compared between the ranks travels during a step, so nobody waits for it.
        """
        seconds = sum(self._seconds_before)
        self._seconds_before, self._seconds = self._seconds, []
        asked, self._asked = self._asked, None
        ratio = None
        if asked is not None:
            on_the_way, step = _waited(of, *asked).tolist()
            ratio = self._network.end_block(on_the_way)
            if self._codec is self.choice.way:
                self.choice.time(step)
        if not self._timer.over or self._flushing or self._codec is not self.choice.way:
            return []
        if ratio is not None:
            before = self.choice.way
            try:
                sentence = self.choice.measure_again(of.step, ratio)
            except HipressError as error:
                raise of.engine.fail(error, "auto") from error
            changed = self.choice.way is not before
            self._network.begin(changed)
            if changed:
                self._timer = StepTimer(self.choice)
            return [(logging.WARNING if changed else logging.INFO, sentence)]
        median = self._network.add(seconds)
        if median is not None:
            step = statistics.median(self._steps)
            mine = torch.tensor([median, step], dtype=torch.float64, device=device)
            self._asked = _begin_reduce(of, mine, dist.ReduceOp.MAX), mine
        return []

    def timed(self, future: torch.futures.Future) -> torch.futures.Future:
        """Takes the time of a bucket of this step, from now until its results are there."""
        began, seconds = time.perf_counter(), self._seconds
        future.add_done_callback(lambda _: seconds.append(time.perf_counter() - began))
        return future

    def _figures(self, of: Synchronizer, device: torch.device) -> dict[str, float]:
        """What is to be compared now: this rank's, of the same names on all ranks."""
        mine = {
            "median": self._timer.begin_step(),
            "spread": self._guard.spread(),
            "forbidden": self._forbidden(of.step),
        }
        if self._flushing:
            mine["left"] = residual_norm(of.error_feedback)
        guard = self._feedback_guard
        if guard is not None and guard.is_over(of.step):
            exact = _reduced(of, guard.sample().to(device), dist.ReduceOp.SUM) / of.world_size
            mine |= {"error": guard.error(exact), "share": guard.share(of.error_feedback)}
        return {name: value for name, value in mine.items() if value is not None}

    def _forbidden(self, step: int) -> float | None:
        """Whether the optimizer forbids error feedback: 0 or 1, and between them if that is not
        known yet; in the first steps and now and then."""
        if not self.choice.any_feedback or not (step % EVERY == 0 or step & (step - 1) == 0):
            return None
        allowed = self._optimizers.allow_feedback
        return 0.5 if allowed is None else 1.0 - allowed

    def _decide(self, found: dict[str, float], step: int) -> list[tuple[int, str]]:
        """Takes the maxima over all ranks; returns sentences for the log, with their levels."""
        said, before = [], self.choice.way
        if "left" in found:
            self._flushing = found["left"] > 0
        if "median" in found:
            said.append(self._timer.end_block(found["median"]))
        if found.get("forbidden", 0.5) != 0.5 and self.choice.feedback != (not found["forbidden"]):
            said.append((logging.WARNING, self.choice.learn(not found["forbidden"], step)))
            if self.choice.way is not before:
                self._timer = StepTimer(self.choice)
        rounding = error_of(self._codec.params, found["spread"]) if "spread" in found else None
        known = {"rounding": rounding, "error": found.get("error"), "share": found.get("share")}
        self._known |= {name: value for name, value in known.items() if value is not None}
        problem = self._problem(found)
        if problem and self.choice.way is self._codec:
            spread = found.get("spread", 0.0)
            said.append((logging.WARNING, self.choice.soften(problem, spread, step)))
        if "error" in found:
            self._feedback_guard.next_window()
            said.append((logging.INFO, (
                f"auto: what {self._codec.name} sent in some steps is off by {found['error']:.2g} "
                f"times its norm, residuals are {found['share']:.2g} times a gradient's"
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

    def _set_up(self, of: Synchronizer) -> Way:
        """Sets the compression up for the choice, and returns the way of this step."""
        if self._flushing:
            return self._codec
        if self.choice.way is not self._codec or self._owes:
            self._flushing, self._owes = self._codec.feedback or self._owes, False
            self._codec = MAXMIN8 if self._flushing else self.choice.way
            of.replace_codec(self.choice.settings(self._codec))
            if self._flushing:
                return self._codec
        if self._timer.over and self._codec.feedback and self._feedback_guard is None:
            self._feedback_guard = FeedbackGuard(of.step)
        return self._timer.way

    def set_up_for(self, of: Synchronizer, type: str) -> None:
        """Sets the compression up for the residuals of another way, which are about to be loaded.

        :param type: of the compression that has left them
        """
        for way in self.choice.ways:
            if way.feedback and way.type == type and way is not self._codec:
                of.replace_codec(self.choice.settings(way))
                self._codec = way

    def resume(self, of: Synchronizer) -> None:
        """Takes note of what was loaded: DDP's own ways would not send it."""
        waits = of.error_feedback.loaded or of.error_feedback.to_reshard
        self._owes = bool(waits) and self._codec.hook is not None

    def watch(
        self, of: Synchronizer, flat: torch.Tensor, gradients: Sequence[Gradient]
    ) -> Callable[[torch.Tensor], None] | None:
        """Looks at a bucket of this step, which is about to go by a codec.

        :returns: what is to be called with the bucket's results, if anything
        """
        if not self._timer.over or self._flushing:
            return None
        compressed = [g for g in gradients if of.compresses(g.name, g.count)]
        if not self._codec.feedback:
            if "bits" in self._codec.params and self._guard.looks_at(of.step):
                for gradient in compressed:
                    self._guard.add(flat, gradient)
            return None
        guard = self._feedback_guard
        if not guard.looks_at(of.step):
            return None
        guard.before(flat, compressed, of.step)
        return lambda results: guard.after(results, compressed)


def _begin_reduce(of: Synchronizer, mine: torch.Tensor, op: dist.ReduceOp) -> dist.Work:
    return dist.all_reduce(mine, op, of.collective.group, async_op=True)


def _waited(of: Synchronizer, work: dist.Work, mine: torch.Tensor) -> torch.Tensor:
    try:
        of.engine.wait(work, "auto", mine.device)
    except HipressError as error:
        raise of.engine.fail(error, "auto") from error
    return mine


def _reduced(of: Synchronizer, mine: torch.Tensor, op: dist.ReduceOp) -> torch.Tensor:
    """The sum, or the maximum, over all ranks, which wait for it."""
    return _waited(of, _begin_reduce(of, mine, op), mine)
