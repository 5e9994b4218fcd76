"""Rounds: elastic training that synchronises weights every H steps (DiLoCo), in any framework.

A worker makes the H *inner steps* of a round by itself, whatever becomes of the others. The
synchronisation at its end is what the workers do together: the step of the membership protocol, and
the transaction that is put back and made again by those that are left. Until it succeeds nothing
changes but what error feedback remembers, so nobody makes an inner step again.

With a *delay* workers begin to synchronise at a round's end and go on with the next one, so many
steps of which they make before they take the result. If that fails, or the view ends before, those
that are left synchronise what they have by then.
"""

from __future__ import annotations

import abc
import logging
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hipress import fragments
from hipress.fragments import Schedule

_log = logging.getLogger("hipress")

_DILOCO_ONLY = ("fragments", "backup_device")


@dataclass(frozen=True)
class RoundSettings:
    """The rounds of a job.

    :param delay: inner steps that a result may travel, fewer than a round's; 0 in early steps
    :param alpha: the share of a worker's own weights that stays when it takes a result
    """

    schedule: Schedule
    delay: int = 0
    alpha: float = 0.0


def wanted(
    sync_every: Any, outer_optimizer: object, early_steps: Any, early_sync_every: Any,
    delay: Any, alpha: float, others: Iterable[str], diloco: str,
) -> RoundSettings | None:  # fmt: skip
    """The rounds that a State was asked for, if it was.

    :param delay, alpha: ``fragment_sync_delay`` and ``fragment_update_alpha``
    :param others: names of what else it was given
    :param diloco: names what has fragments
    :raises ValueError: if one of the arguments does not go with the others
    """
    if sync_every is None:
        given = {
            "outer_optimizer": outer_optimizer is not None, "early_steps": early_steps,
            "fragment_sync_delay": delay, "fragment_update_alpha": alpha,
        }  # fmt: skip
        for name in filter(given.get, given):
            raise ValueError(f"{name} needs sync_every: the steps of a round")
        return None
    schedule = Schedule(sync_every, early_steps, early_sync_every)
    if outer_optimizer is None:
        raise ValueError("sync_every needs outer_optimizer, which steps the outer weights")
    for name in _DILOCO_ONLY:
        if name in others:
            raise ValueError(
                "elastic training synchronises the model as one fragment, in host memory: leave "
                f"{name} out ({diloco} has it)"
            )
    fragments.Rounds.check(1, sync_every, delay, alpha)
    return RoundSettings(schedule, delay, alpha)


class Rounds(abc.ABC):
    """The outer weights and optimizer of a job, which outlive its views. What is abstract is the
    framework's.

    :param outer_optimizer: its name
    """

    def __init__(self, settings: RoundSettings, outer_optimizer: str) -> None:
        self.schedule, self._settings = settings.schedule, settings
        self._outer_optimizer = outer_optimizer
        self.completed = 0
        """Rounds that are complete, of all workers together."""
        self.step = 0
        """The inner step after which the present synchronisation is."""
        self.inner_steps = 0
        """Steps of this worker that no synchronisation has, of those that it has the result of."""
        self.due: int | None = None
        """The inner step after which the result of what is under way is taken, if anything is."""
        self.unfinished = False
        """Whether a synchronisation was begun that this worker does not have the result of."""
        self._since = 0  # steps of this worker since it began to synchronise last
        self._alpha = 0.0  # of the present synchronisation
        self.averages = False
        """Whether that makes the outer weights the workers' mean, without a step of the outer
        optimizer."""
        self.has_own = False
        """Whether this worker kept a share of its own weights in the last round."""
        self._seconds, self._last = [], time.perf_counter()
        self._loaded = False

    # What the framework does.

    @abc.abstractmethod
    def start(self, compression: Any) -> None:
        """Starts to average how far the workers have come since the last synchronisation.

        :param compression: of the view's
        :raises HipressError: if a worker has died or is silent
        """

    @abc.abstractmethod
    def take(self, compression: Any, alpha: float) -> bool:
        """Waits for the mean, makes the outer optimizer's step with it, or with :attr:`averages`
        the outer weights the workers' mean, and the weights the outer weights.

        :param alpha: the share of the worker's own weights that stays
        :returns: whether the mean is finite; if not, which it is on all workers or on none, there
            is no step
        :raises HipressError: if a worker has died or is silent; weights have not changed then
        """

    @abc.abstractmethod
    def abandon(self) -> None:
        """Forgets what is under way, for which nobody waits any more."""

    @abc.abstractmethod
    def begin_with_weights(self) -> None:
        """Makes the outer weights what the weights are."""

    @abc.abstractmethod
    def give_outer_weights(self) -> None:
        """Makes the weights the outer weights."""

    @abc.abstractmethod
    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """The bytes of the outer weights, by name."""

    @abc.abstractmethod
    def outer_state(self) -> dict[str, Any]:
        """Outer weights, and what the outer optimizer remembers."""

    @abc.abstractmethod
    def load_outer_state(self, saved: Mapping[str, Any]) -> None:
        """Goes on from what :meth:`outer_state` returned.

        :raises ValueError: if it is another model's
        """

    # What all frameworks have alike.

    @property
    def early(self) -> bool:
        """Whether the present round is one of the early steps."""
        return self.step <= self.schedule.early_steps

    def begin(self) -> None:
        """Begins with the model's weights, or with the outer weights that were loaded."""
        if self._loaded:
            self.take_outer_weights()
        else:
            self.begin_with_weights()

    def count_step(self) -> None:
        """Notes that this worker has made an inner step."""
        now = time.perf_counter()
        self._seconds.append(now - self._last)
        self.inner_steps, self._since, self._last = self.inner_steps + 1, self._since + 1, now

    @property
    def step_seconds(self) -> float:
        """Seconds of an inner step since the last result was taken, in the mean, without the first,
        whose time is that of taking it, too, if there are others."""
        return max(statistics.fmean(self._seconds[1:] or self._seconds or [0.0]), 1e-6)

    def _end_round(self, inner_steps: int = 0) -> None:
        self.inner_steps, self.due, self.unfinished = inner_steps, None, False
        self._seconds, self._last = [], time.perf_counter()

    def begin_synchronizing(
        self, compression: Any, step: int, delayed: bool = True, average: bool = False
    ) -> None:
        """Begins what completes a round, after an inner step.

        :param delayed: whether the result may travel while the next steps are made, and workers
            may keep a share of their own weights
        :param average: see :attr:`averages`
        :raises HipressError: if a worker has died or is silent; weights have not changed then, and
            the result is due nevertheless
        """
        self.step, self.unfinished = step, True
        in_turn = delayed and not self.early
        self._alpha, self.averages = self._settings.alpha if in_turn else 0.0, self.early or average
        self.due = step + self._settings.delay * in_turn
        since, self._since = self._since, 0
        compression.before_round(step, max(since, 1), self.step_seconds)
        self.start(compression)

    def complete(self, compression: Any) -> None:
        """Completes the round whose synchronisation is under way.

        :raises HipressError: if a worker has died or is silent; weights have not changed then
        """
        self.due = None
        finite = self.take(compression, self._alpha)
        if not finite:
            _log.warning(
                "round %d: a pseudo-gradient has a NaN or Inf; weights are those of the round "
                "before again", self.completed + 1,
            )  # fmt: skip
        self.completed += 1
        self.has_own = finite and self._alpha > 0
        self._end_round(self._since if self.has_own else 0)

    def take_outer_weights(self) -> None:
        """Makes the model's weights the outer weights; what was trained since is given up."""
        self.abandon()
        self.give_outer_weights()
        self.has_own = False
        self._end_round()

    @property
    def keeps_own(self) -> bool:
        """Whether workers have weights of their own after a round, beside the outer weights."""
        return self._settings.alpha > 0

    def settings(self) -> dict[str, str]:
        """Texts that must be the same on all workers, by name."""
        delay, alpha = self._settings.delay, self._settings.alpha
        return {
            "sync_every": str(self.schedule.sync_every), "early_steps": self.schedule.early or "0",
            "fragment_sync_delay": str(delay), "fragment_update_alpha": f"{alpha:g}",
            "outer_optimizer": self._outer_optimizer,
        }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Rounds, outer weights and the outer optimizer."""
        return {"completed": self.completed, **self.outer_state()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on from what :meth:`state_dict` returned.

        :raises ValueError: if it is another model's
        """
        self.load_outer_state(saved)
        self.completed, self._loaded = saved["completed"], True
