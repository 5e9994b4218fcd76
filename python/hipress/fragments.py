"""Parts of a model that are synchronised every H steps, each at a step of its own.

This is what training that synchronises weights has alike in all frameworks: into which *fragments*
a model is cut, and after which inner step a fragment is sent and taken (Douillard et al., Streaming
DiLoCo, arXiv:2501.18512). Early steps may be synchronised more often: what workers learn then
differs most (Lin et al., post-local SGD, ICLR 2020, arXiv:1808.07217).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


def is_count(value: Any) -> bool:
    """Whether it is a whole number of 1 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


@dataclass(frozen=True)
class Schedule:
    """After which inner steps workers synchronise.

    :param sync_every: H, inner steps of a round
    :param early_steps: inner steps before the first round, in which weights become the mean of the
        workers' every ``early_sync_every`` steps, and after the last of them
    :raises ValueError: for what are no numbers of steps
    """

    sync_every: int
    early_steps: int = 0
    early_sync_every: int = 5

    def __post_init__(self) -> None:
        if not is_count(self.sync_every):
            raise ValueError(f"sync_every must be 1 or more, not {self.sync_every!r}")
        if self.early_steps != 0 and not is_count(self.early_steps):
            raise ValueError(f"early_steps must be 0 or more, not {self.early_steps!r}")
        if not is_count(self.early_sync_every):
            raise ValueError(f"early_sync_every must be 1 or more, not {self.early_sync_every!r}")

    def __str__(self) -> str:
        return f"every {self.sync_every}" + (f", early {self.early}" if self.early else "")

    @property
    def early(self) -> str:
        """The early steps in words; empty if there are none."""
        return f"{self.early_steps} every {self.early_sync_every}" if self.early_steps else ""

    def ends(self, step: int) -> bool:
        """Whether all weights are synchronised after this inner step, counted from 1."""
        if step <= self.early_steps:
            return step == self.early_steps or step % self.early_sync_every == 0
        return (step - self.early_steps) % self.sync_every == 0


def check_fragments(fragments: Any, sync_every: int) -> None:
    """:raises ValueError: if a model cannot be cut into so many, of which each has a step"""
    if not is_count(fragments):
        raise ValueError(f"fragments must be 1 or more, not {fragments!r}")
    if fragments > sync_every:
        raise ValueError(f"sync_every is {sync_every}, too few steps for {fragments} fragments")


def cut(sizes: Sequence[int], fragments: int) -> list[list[int]]:
    """Neighbours in so many runs of about equal size, of which none is empty: fewer than
    ``fragments`` where single ones are large.

    :param sizes: elements of each
    :returns: the indices in each run
    """
    total, before = sum(sizes), 0
    runs: dict[int, list[int]] = {}
    for index, size in enumerate(sizes):
        middle = before + size / 2
        runs.setdefault(int(middle * fragments / max(total, 1)), []).append(index)
        before += size
    return list(runs.values())


def turn(fragment: int, fragments: int, sync_every: int) -> int:
    """The step of a round, from 1 to ``sync_every``, after which a fragment is sent: they take
    turns, and the last one's is the last step."""
    return (fragment + 1) * sync_every // fragments


class Fragment(Protocol):
    """What is synchronised together."""

    number: int
    """From 0, in the order of their turns."""
    due: int
    """The inner step after which the result is taken."""

    @property
    def under_way(self) -> bool:
        """Whether it was begun and not taken yet."""

    def update(self, alpha: float) -> None:
        """Makes a worker's weights alpha times what they are, and the rest outer weights."""


class Rounds:
    """Counts inner steps, and has fragments begun and taken after those that are their turns.

    :param fragments: in the order of their turns
    :param begin: sends a fragment's pseudo-gradient; the result is taken after the step that is
        given, or at once if that is the present one
    :param take: waits for a fragment's result and uses it; given the share of a worker's own
        weights that stays, and whether the mean of the weights is taken as it is, without a step
        of the outer optimizer; returns whether all of the result was finite, which is so on all
        workers or on none
    :param delay: inner steps that a fragment may travel, fewer than ``sync_every``
    :param alpha: that share, of what is sent in its turn
    :raises ValueError: for what cannot be
    """

    def __init__(
        self,
        fragments: Sequence[Any],
        begin: Callable[[Any, int], None],
        take: Callable[[Any, float, bool], bool],
        schedule: Schedule,
        delay: int = 0,
        alpha: float = 0.0,
    ) -> None:
        self.check(len(fragments), schedule.sync_every, delay, alpha)
        self.step, self.schedule, self.delay, self.alpha = 0, schedule, delay, alpha
        self._fragments, self._begin, self._take_one = fragments, begin, take

    @staticmethod
    def check(fragments: int, sync_every: int, delay: int, alpha: float) -> None:
        """:raises ValueError: for what cannot be"""
        check_fragments(fragments, sync_every)
        if delay != 0 and not (is_count(delay) and delay < sync_every):
            raise ValueError(
                f"fragment_sync_delay must be in [0, sync_every) = [0, {sync_every}), not {delay!r}"
            )
        if not 0 <= alpha < 1:
            raise ValueError(f"fragment_update_alpha must be in [0, 1), not {alpha!r}")

    def go_by(self, fragments: Sequence[Any], delay: int) -> None:
        """Has other fragments take turns, or with another delay, while none is under way.

        :raises ValueError: for what cannot be
        """
        self.check(len(fragments), self.schedule.sync_every, delay, self.alpha)
        self._fragments, self.delay = fragments, delay

    def advance(self) -> None:
        """Notes that the inner optimizer has made a step; all workers make the same number."""
        self.step += 1
        sync_every = self.schedule.sync_every
        if self.step <= self.schedule.early_steps:
            if self.schedule.ends(self.step):
                self._average_all()
            return
        in_round = (self.step - self.schedule.early_steps) % sync_every
        for fragment in self._fragments:
            if fragment.under_way and self.step == fragment.due:
                self._take(fragment, self.alpha, False)
            its_turn = turn(fragment.number, len(self._fragments), sync_every)
            if in_round == its_turn % sync_every:
                self._begin(fragment, self.step + self.delay)
                if not self.delay:
                    self._take(fragment, self.alpha, False)

    def synchronize(self) -> None:
        """Makes all weights the mean of the workers' now, without a step of the outer optimizer:
        its momentum would move them although little or nothing was trained since the last one. The
        count of steps goes on."""
        self.finish()
        self._average_all()

    def _average_all(self) -> None:
        for fragment in self._fragments:
            self._begin(fragment, self.step)
        for fragment in self._fragments:
            if fragment.under_way:
                self._take(fragment, 0.0, True)

    def _take(self, fragment: Any, alpha: float, average: bool) -> None:
        """Takes a fragment's result. If it has a NaN or Inf, all fragments go back to the last
        synchronisation: what one worker lost has reached its other fragments, too, and would come
        back from there."""
        if self._take_one(fragment, alpha, average):
            return
        for other in self._fragments:
            if other.under_way:
                self._take_one(other, 0.0, average)
            other.update(0.0)

    def finish(self) -> None:
        """Waits for the fragments that are under way, and takes their results."""
        for fragment in self._fragments:
            if fragment.under_way:
                self._take(fragment, self.alpha, False)
