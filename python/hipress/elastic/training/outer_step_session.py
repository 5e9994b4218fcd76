"""Steps of one view, or with ``sync_every`` its outer steps (DiLoCo)."""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hipress.elastic.training import session
from hipress.elastic.training.session import ViewChange


class OuterStepSession(session.Session):
    """This worker's part of one view; see :class:`hipress.elastic.training.session.Session`.

    Abstract methods belong to the framework.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._trained: list[int] = []
        """Ranks that repeated an outer step; other ranks copy its result."""
        self._failed: Exception | None = None
        """Error of the pending outer step, if it could not start."""

    # The framework's part.

    def gather(self) -> None:
        """Prepare :meth:`connect_ranks` and :meth:`transfer`; all members call this."""

    @abc.abstractmethod
    def connect_ranks(self, ranks: Sequence[int]) -> None:
        """Call :meth:`begin` on these ranks with a new compression; all members call this.

        Raises:
            HipressError: If one of them is missing.
        """

    @abc.abstractmethod
    def leave_ranks(self) -> None:
        """Close, on the connected ranks, what :meth:`connect_ranks` made, without a failure."""

    # Beginning.

    def open(self) -> None:
        """See :meth:`hipress.elastic.training.session.Session.open`."""
        super().open()
        self.trains_alone = self._state.outer_steps is not None

    def meet(self) -> None:
        """Wait for all members, and repeat an outer step that failed."""
        state = self._state
        steps = state.outer_steps.inner_steps if state.outer_steps else 0
        mine = [self._has_trained(), state.completed if state.is_part else -1, steps]
        here = [json.loads(text) for text in self.exchange("here", json.dumps(mine))]
        self._trained = [rank for rank, (trained, *_) in enumerate(here) if trained]
        self.roll_back(max(completed for _, completed, _ in here))
        self.gather()
        if self._trained:
            self._repeat_outer_step(self._trained, not any(here[r][2] for r in self._trained))

    def _has_trained(self) -> bool:
        """Return whether this worker has inner steps of an outer step that failed.

        If it is an outer step behind, other workers have the result that includes them.
        """
        steps = self._state.outer_steps
        return bool(steps and steps.unfinished and steps.completed == self.view.step)

    def _repeat_outer_step(self, trained: Sequence[int], average: bool) -> None:
        """Repeat an outer step that failed, among the ranks that trained for it.

        A worker that joins has no part in the mean, and copies the result.

        Args:
            trained: Ranks that trained for it.
            average: Average without the outer optimizer, see :meth:`_end_last_outer_step`.
        """
        self.connect_ranks(trained)
        if self.rank in trained:
            self._state.outer_steps.start(
                self.compression, self._state.step, delayed=False, average=average
            )
            self._complete_outer_step(len(trained))
        if len(trained) == self.size:
            return
        self.exchange("synchronised")
        if self.rank in trained:
            self.carried.take_from(self.compression)
            self.leave_ranks()
            self.compression = None

    def copies(self) -> tuple[int, list[int]]:
        """Return the rank whose state counts, and the ranks that are behind."""
        if self._trained:
            return self._trained[0], [r for r in range(self.size) if r not in self._trained]
        return super().copies()

    def connect(self) -> None:
        """Connect the workers, unless a repeated outer step connected all of them."""
        if self.compression is None:
            self.connect_ranks(range(self.size))

    def known_choice(self, ranks: Sequence[int]) -> Mapping[str, Any] | None:
        """Return the choice of type "auto" in the previous view; all of these ranks call this.

        It is the choice of the worker whose state counts, because other workers may have been about
        to change theirs.
        """
        source, _ = self.copies()
        key = "choice" if len(ranks) == self.size else "again/choice"
        if self.rank == source:
            self._agent.share(self.view.epoch, key, json.dumps(self.carried.choice))
            return self.carried.choice
        return json.loads(self.fetch(key, source))

    # Steps.

    def applied(self) -> None:
        """Record that the optimizer has made its step, before it is committed."""
        if self._state.outer_steps is None:
            super().applied()

    def end_step(self, figures: Mapping[str, float]) -> None:
        """End a step of this view.

        Raises:
            ViewChange: If the next view begins here.
        """
        steps = self._state.outer_steps
        if steps is None:
            super().end_step(figures)
            return
        steps.count_inner_step()
        self._write("step", figures)
        if self._agent.view() is None:  # other workers continued without this one
            self.trains_alone = False
            raise ViewChange
        if steps.due is None and steps.schedule.starts(self._state.step):
            self._start_outer_step()
        if steps.due == self._state.step:
            self._end_outer_step()

    def _start_outer_step(self, delayed: bool = True, average: bool = False) -> None:
        """Start an outer step.

        An error is raised when the outer step is due. Then all workers, also those whose start
        succeeded, repeat it after the same inner step.
        """
        self.trains_alone = False
        try:
            self._state.outer_steps.start(self.compression, self._state.step, delayed, average)
        except self.errors as error:
            self._failed = error
        self.trains_alone = True

    def _end_outer_step(self) -> None:
        self.trains_alone = False
        self._go_on(self._complete_outer_step(self.size))
        self.trains_alone = True

    def _complete_outer_step(self, trained: int) -> str | None:
        """Complete the outer step that is due, as :meth:`_complete` does.

        Args:
            trained: Number of workers that have a part in the mean.
        """
        steps = self._state.outer_steps
        if self._failed is not None:
            raise self._failed
        # The mean may have arrived some inner steps ago. If the view has ended since, other workers
        # may have rolled back their parts, and send them again.
        self.check()
        steps.complete(self.compression)
        return self._complete("round", {"round": steps.completed, "trained": trained})

    def _go_on(self, digest: str | None) -> None:
        """See :meth:`hipress.elastic.training.session.Session._go_on`."""
        if digest is None and self._state.outer_steps is not None:
            # A worker without the result could not join the next outer step of the other workers.
            self.exchange(f"round {self._state.completed}")
        super()._go_on(digest)

    # Ending.

    def await_end(self) -> None:
        """Wait until all members have reached the end of training, or one knows that they have."""
        steps = self._state.outer_steps
        if steps is not None:
            if steps.due is not None:
                self._end_outer_step()
            self._end_last_outer_step()
        self.trains_alone = False
        super().await_end()

    def _end_last_outer_step(self) -> None:
        """Make a last outer step of fewer inner steps, if any member has inner steps.

        A member that copied the last result has none; other members may have made some during the
        delay. If no member has any, some may have kept a share of their own weights in the last
        outer step. Then all members get the mean of the weights.
        """
        steps = self._state.outer_steps
        self.trains_alone = False
        # Other members may have started when this worker learns that the view has ended.
        steps.unfinished = steps.inner_steps > 0 or steps.has_own
        mine = "steps" if steps.inner_steps else "own" if steps.has_own else ""
        left = self.exchange("left", mine)
        if any(left):
            self._start_outer_step(delayed=False, average="steps" not in left)
            self._end_outer_step()
