"""Rounds: elastic training that synchronises weights every H steps (DiLoCo), in any framework.

A worker makes the H *inner steps* of a round by itself, whatever becomes of the others. The
synchronisation at its end is what the workers do together: the step of the membership protocol, and
the transaction that is put back and made again by those that are left. Until it succeeds nothing
changes but what error feedback remembers, so nobody makes an inner step again.
"""

from __future__ import annotations

import abc
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from hipress.fragments import Schedule

_log = logging.getLogger("hipress")

_DILOCO_ONLY = ("fragments", "fragment_sync_delay", "fragment_update_alpha", "backup_device")


def wanted(
    sync_every: Any, outer_optimizer: object, early_steps: Any, early_sync_every: Any,
    others: Iterable[str], diloco: str,
) -> Schedule | None:  # fmt: skip
    """The rounds that a State was asked for, if it was.

    :param others: names of what else it was given
    :param diloco: names what has fragments
    :raises ValueError: if one of the arguments does not go with the others
    """
    if sync_every is None:
        if outer_optimizer is None and not early_steps:
            return None
        name = "early_steps" if outer_optimizer is None else "outer_optimizer"
        raise ValueError(f"{name} needs sync_every: the steps of a round")
    schedule = Schedule(sync_every, early_steps, early_sync_every)
    if outer_optimizer is None:
        raise ValueError("sync_every needs outer_optimizer, which steps the outer weights")
    for name in _DILOCO_ONLY:
        if name in others:
            raise ValueError(
                "elastic training synchronises the model as one fragment, without delay, in host "
                f"memory: leave {name} out ({diloco} has it)"
            )
    return schedule


class Rounds(abc.ABC):
    """The outer weights and optimizer of a job, which outlive its views. What is abstract is the
    framework's.

    :param outer_optimizer: its name
    """

    def __init__(self, schedule: Schedule, outer_optimizer: str) -> None:
        self.schedule, self._outer_optimizer = schedule, outer_optimizer
        self.completed = 0
        """Rounds that are complete, of all workers together."""
        self.step = 0
        """The inner step after which the present synchronisation is."""
        self.inner_steps = 0
        """Steps of this worker since the last synchronisation that it has the result of."""
        self._seconds, self._last = 0.0, time.perf_counter()
        self._loaded = False

    # What the framework does.

    @abc.abstractmethod
    def average(self, compression: Any) -> bool:
        """Averages how far the workers have come since the last synchronisation, makes the outer
        optimizer's step with that, or in an early round the outer weights the workers' mean, and
        the weights the outer weights.

        :param compression: of the view's
        :returns: whether the mean is finite; if not, which it is on all workers or on none, there
            is no step
        :raises HipressError: if a worker has died or is silent; weights have not changed then
        """

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
        if self.inner_steps <= 1:  # the first one's time is that of beginning, too
            self._seconds = 0.0
        self._seconds += now - self._last
        self.inner_steps, self._last = self.inner_steps + 1, now

    @property
    def step_seconds(self) -> float:
        """Seconds of an inner step of this round, in the mean, without the first if there are
        others."""
        return max(self._seconds / max(self.inner_steps - 1, 1), 1e-6)

    def _end_round(self) -> None:
        self.inner_steps, self._last = 0, time.perf_counter()

    def synchronize(self, compression: Any) -> None:
        """Completes a round.

        :raises HipressError: if a worker has died or is silent; weights have not changed then
        """
        if not self.average(compression):
            _log.warning(
                "round %d: a pseudo-gradient has a NaN or Inf; weights are those of the round "
                "before again", self.completed + 1,
            )  # fmt: skip
        self.completed += 1
        self._end_round()

    def take_outer_weights(self) -> None:
        """Makes the model's weights the outer weights; what was trained since is given up."""
        self.give_outer_weights()
        self._end_round()

    def settings(self) -> dict[str, str]:
        """Texts that must be the same on all workers, by name."""
        return {
            "sync_every": str(self.schedule.sync_every), "early_steps": self.schedule.early or "0",
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
