"""A step that failed on this worker, but may count, and what a worker takes to the next view.

A worker that dies in an all-reduce leaves the other workers with different results: some have the
sum, some do not. A worker without the sum does not know which case applies, because a worker that
has the sum may die before other workers copy it. So the step stays *undecided* until the workers of
the next view have compared how many steps each has completed::

    rank 0   sends gradient ... receives sum ... updates weights   "I have completed 72"
    rank 1   sends gradient ... error                              undecided: "... 71"
    rank 2   sends gradient ... dies

    next view: a rank has completed 72   the step counts: rank 1 copies that rank's weights and
                                         commits. What it sent is in the sum, so its residual
                                         stays the new one.
               no rank has               the step does not count: all ranks roll back to the
                                         residuals before the step, and repeat the step

A worker is at most one step behind, because a step needs all workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hipress.runtime.error_feedback import ErrorFeedback, OwnState


class TransactionalSynchronizer(Protocol):
    """Synchronization of the gradients of one view, in steps that can be rolled back."""

    error_feedback: ErrorFeedback
    engine: Any

    def reshard(self, states: dict[str, OwnState]) -> None:
        """Adopt this worker's states of an earlier view, before the first step."""

    def carry_over(self) -> dict[str, OwnState]:
        """Return this worker's states, when no step is in progress."""

    def common_state(self) -> dict[str, Any]:
        """Return the state that is the same on all workers, such as shared momentum."""

    def load_common_state(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`common_state` returned."""

    def choice(self) -> Mapping[str, Any] | None:
        """Return the choice of type "auto", or None if there is none."""

    def begin_transaction(self) -> None:
        """Start a step that can be rolled back."""

    def roll_back(self) -> None:
        """Restore all states from before the step."""

    def commit(self) -> None:
        """End a step whose result other workers have: what was sent stays sent."""


class UndecidedStep:
    """A step that failed on this worker, but may count; see the module's docstring.

    Args:
        compression: Compression of the view in which the step failed.
        completed: Number of steps that this worker has completed.
    """

    def __init__(self, compression: TransactionalSynchronizer, completed: int) -> None:
        self.compression, self._completed = compression, completed

    def counts(self, completed: int) -> bool:
        """Return whether the step counts.

        Args:
            completed: Highest number of completed steps of any worker of the next view.
        """
        return completed > self._completed


class CarriedState:
    """State of a worker's compression that passes from one view to the next.

    A worker that joins has no residual. The residual of a departed worker is discarded.
    """

    def __init__(self) -> None:
        self._residuals: dict[str, OwnState] = {}
        self._common: dict[str, Any] = {}
        self.choice: Mapping[str, Any] | None = None
        """Choice of type "auto", if there is one."""
        self.undecided: UndecidedStep | None = None

    def take_from(self, compression: TransactionalSynchronizer) -> None:
        """Adopt the states of a compression whose view has ended."""
        self.undecided, self._residuals = None, compression.carry_over()
        self._common, self.choice = compression.common_state(), compression.choice()

    def roll_back(self) -> None:
        """Roll back the undecided step, which does not count."""
        compression = self.undecided.compression
        compression.roll_back()
        self.take_from(compression)

    def give_to(self, compression: TransactionalSynchronizer) -> None:
        """Give a new compression its states, before its first step."""
        compression.load_common_state(self._common)
        compression.reshard(self._residuals)

    def to_copy(self) -> dict[str, Any]:
        """Return what a worker that joins must also have."""
        sizes = {name: [state.size, state.step] for name, state in self._residuals.items()}
        return {"common": self._common, "encoded": sizes, "choice": self.choice}

    def copy(self, copied: Mapping[str, Any]) -> None:
        """Adopt another worker's :meth:`to_copy`, but keep this worker's residuals.

        If a step is undecided, it counts: the other worker has its result.
        """
        if self.undecided is not None:
            compression = self.undecided.compression
            compression.commit()
            self.take_from(compression)
        self._common, self.choice = copied["common"], copied["choice"]
        for name, (size, step) in copied["encoded"].items():
            self._residuals.setdefault(name, OwnState(size)).step = step
