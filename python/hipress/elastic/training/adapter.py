"""Part of a framework in one view of an elastic job, and the workers of the view.

A front end implements :class:`FrameworkAdapter`. All decisions are in :mod:`.session`, which calls
the adapter; an adapter calls only :class:`ViewMembers`.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hipress.elastic.membership.agent import Agent
from hipress.elastic.membership.view import View
from hipress.elastic.training.state import TrainingState
from hipress.elastic.training.undecided_step import TransactionalSynchronizer
from hipress.errors import HipressError

_MIN_SETUP_SECONDS = 2.0
"""Minimum timeout of operations that set up a view, in seconds, for a busy host."""


class ViewMembers:
    """The workers of one view, and the short texts that they exchange.

    Args:
        timeout: seconds to wait for a worker that lives but is far behind
        error: type of the error when the view has ended
    """

    def __init__(
        self, agent: Agent, view: View, timeout: float, error: type[Exception] = HipressError
    ) -> None:
        self.agent, self.view, self.timeout, self._error = agent, view, timeout, error
        self.ids = [member.id for member in view.members]
        self.rank, self.size = self.ids.index(agent.id), len(self.ids)
        self.interrupted = ""
        """Reason why this worker must not wait for others any more, or ""."""
        # All members have reported that they are here. Only this timeout ends the wait for one
        # that then is silent.
        self.setup_seconds = max(_MIN_SETUP_SECONDS, agent.heartbeat_timeout)

    def share(self, key: str, text: str) -> None:
        """Give a text to the members that :meth:`fetch` it."""
        self.agent.share(self.view.epoch, key, text)

    def fetch(self, key: str, rank: int, timeout: float | None = None) -> str:
        """Wait for a text that the member of this rank shares.

        By default, the timeout is the state's, and a member that does not reach this point in time
        is excluded from the next view.
        """
        seconds = self.timeout if timeout is None else timeout
        return self.agent.fetch(self.view.epoch, key, seconds, rank, required=timeout is None)

    def exchange(self, what: str, value: str = "", timeout: float | None = None) -> list[str]:
        """Exchange a short text with all members, by rank, when all have reached this point.

        Unlike an operation of a process group, this ends when a member dies, and may take as long
        as a slow step does. ``what`` names the point, and is different each time.
        """
        self.share(f"{what}/{self.rank}", value)
        return [
            value if rank == self.rank else self.fetch(f"{what}/{rank}", rank, timeout)
            for rank in range(self.size)
        ]

    def report_copied(self, part: int) -> None:
        """Report that this worker, which is behind, has copied a part of the state.

        It shows that the worker does not hang.
        """
        self.share(f"has/{self.rank}/{part}", "")

    def await_copy(self, rank: int, parts: int) -> None:
        """Wait for all parts of a copy. Each part may take as long as the state's timeout."""
        for part in range(parts):
            self.fetch(f"has/{rank}/{part}", rank)

    def check(self) -> None:
        """Raise an error if the view has ended.

        Call this before a new wait that an earlier :meth:`FrameworkAdapter.fail` could not have
        ended.
        """
        if why := self.interrupted or self.agent.ended(self.view.epoch):
            raise self._error(why)


class FrameworkAdapter(abc.ABC):
    """Part of a framework in one view: connect workers, and copy a state to others.

    :class:`hipress.elastic.training.state.TrainingState` is the other part: it copies weights and
    optimizer state out of the framework and into it.
    """

    errors: tuple[type[Exception], ...] = (HipressError,)
    """Errors that a step raises if a member has died or is silent."""

    def __init__(self, state: TrainingState, members: ViewMembers) -> None:
        self.state, self.members = state, members

    @staticmethod
    def environment(timeout: float) -> Mapping[str, str]:
        """Return the environment variables that describe this process's job.

        Args:
            timeout: seconds to wait for other processes
        """
        return os.environ

    def open(self) -> None:  # noqa: B027
        """Prepare :meth:`connect` and :meth:`transfer`. All members call this together."""

    @abc.abstractmethod
    def transfer(
        self, source: int, behind: Sequence[int], what: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Copy ``what`` from rank ``source`` to the ranks that are behind, and return it there.

        All members call this. Ranks that are behind report their progress
        (:meth:`ViewMembers.report_copied`), and other ranks wait for that.
        """

    @abc.abstractmethod
    def connect(
        self, ranks: Sequence[int], known_choice: Callable[[], Mapping[str, Any] | None]
    ) -> TransactionalSynchronizer | None:
        """Return a new compression of these ranks; None on other ranks. All members call this.

        ``known_choice`` returns the choice of type "auto" in the previous view. All of these ranks
        call it, with type "auto" only. HipressError is raised if a rank is missing.
        """

    @abc.abstractmethod
    def prepare(self, ranks: Sequence[int]) -> None:
        """Create the keys of the compression, which has its states now, on all of these ranks."""

    @abc.abstractmethod
    def disconnect(self) -> None:
        """Close, on the connected ranks, what :meth:`connect` made, without a failure."""

    @abc.abstractmethod
    def fail(self, why: str) -> None:
        """Fail operations in the engine that this worker waits for."""

    @abc.abstractmethod
    def close(self, without_failure: bool) -> None:
        """Leave the engine, and the view.

        Args:
            without_failure: whether no member waits for anything any more
        """

    def involves_other_workers(self, error: Exception) -> bool:
        """Return whether an error may come from a script's own operation with other workers."""
        return False
