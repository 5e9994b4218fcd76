"""Parts of a model that are synchronised every H steps, each at a step of its own.

This is what training that synchronises weights has alike in all frameworks: into which *fragments*
a model is cut, and after which inner step a fragment is sent and taken (Douillard et al., Streaming
DiLoCo, arXiv:2501.18512).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


def is_count(value: Any) -> bool:
    """Whether it is a whole number of 1 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def check_sync_every(sync_every: Any) -> None:
    """:raises ValueError: if it is no number of inner steps"""
    if not is_count(sync_every):
        raise ValueError(f"sync_every must be 1 or more, not {sync_every!r}")


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


class Rounds:
    """Counts inner steps, and has fragments begun and taken after those that are their turns.

    :param fragments: in the order of their turns
    :param begin: sends a fragment's pseudo-gradient; the result is taken after the step that is
        given, or at once if that is the present one
    :param take: waits for a fragment's result and uses it; given the share of a worker's own
        weights that stays
    :param sync_every: inner steps between two synchronisations of the same fragment
    :param delay: inner steps that a fragment may travel, fewer than ``sync_every``
    :param alpha: that share, of what is sent in its turn
    :raises ValueError: for what cannot be
    """

    def __init__(
        self,
        fragments: Sequence[Any],
        begin: Callable[[Any, int], None],
        take: Callable[[Any, float], None],
        sync_every: int,
        delay: int = 0,
        alpha: float = 0.0,
    ) -> None:
        self.check(len(fragments), sync_every, delay, alpha)
        self.step, self.sync_every, self.delay, self.alpha = 0, sync_every, delay, alpha
        self._fragments, self._begin, self._take = fragments, begin, take

    @staticmethod
    def check(fragments: int, sync_every: int, delay: int, alpha: float) -> None:
        """:raises ValueError: for what cannot be"""
        check_sync_every(sync_every)
        check_fragments(fragments, sync_every)
        if delay != 0 and not (is_count(delay) and delay < sync_every):
            raise ValueError(
                f"fragment_sync_delay must be in [0, sync_every) = [0, {sync_every}), not {delay!r}"
            )
        if not 0 <= alpha < 1:
            raise ValueError(f"fragment_update_alpha must be in [0, 1), not {alpha!r}")

    def advance(self) -> None:
        """Notes that the inner optimizer has made a step; all workers make the same number."""
        self.step += 1
        for fragment in self._fragments:
            if fragment.under_way and self.step == fragment.due:
                self._take(fragment, self.alpha)
            its_turn = turn(fragment.number, len(self._fragments), self.sync_every)
            if self.step % self.sync_every == its_turn % self.sync_every:
                self._begin(fragment, self.step + self.delay)
                if not self.delay:
                    self._take(fragment, self.alpha)

    def synchronize(self) -> None:
        """Synchronises all fragments now, whosever turn it is, after which all workers have the
        same weights. The count of steps goes on."""
        self.finish()
        for fragment in self._fragments:
            self._begin(fragment, self.step)
        for fragment in self._fragments:
            self._take(fragment, 0.0)

    def finish(self) -> None:
        """Waits for the fragments that are under way, and takes their results."""
        for fragment in self._fragments:
            if fragment.under_way:
                self._take(fragment, self.alpha)
