"""The steps of one view, where ``state.rounds`` may have them be rounds of inner steps (DiLoCo)."""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hipress.elastic_training import session
from hipress.elastic_training.session import ViewChange


class RoundSession(session.Session):
    """This worker's part of one view; see :class:`hipress.elastic_training.session.Session`. What
    is abstract is the framework's."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._trained: list[int] = []
        """The ranks that have made a synchronisation again: the others are behind."""
        self._failed: Exception | None = None
        """Why what is due cannot be there."""

    # What the framework does.

    def gather(self) -> None:
        """Makes what :meth:`connect_ranks` and :meth:`transfer` need of all members, which all call
        this."""

    @abc.abstractmethod
    def connect_ranks(self, ranks: Sequence[int]) -> None:
        """Has :meth:`begin` called on these ranks with a compression of theirs; all members call
        this.

        :raises HipressError: if one of them is missing
        """

    @abc.abstractmethod
    def leave_ranks(self) -> None:
        """Ends in peace, on the ranks that were connected, what :meth:`connect_ranks` has made."""

    # Beginning.

    def open(self) -> None:
        """See :meth:`hipress.elastic_training.session.Session.open`."""
        super().open()
        self.in_round = self._state.rounds is not None

    def meet(self) -> None:
        """Waits for all members, and makes a synchronisation that failed again."""
        state = self._state
        steps = state.rounds.inner_steps if state.rounds else 0
        mine = [self._has_trained(), state.completed if state.is_part else -1, steps]
        here = [json.loads(text) for text in self.exchange("here", json.dumps(mine))]
        self._trained = [rank for rank, (trained, *_) in enumerate(here) if trained]
        self.put_back(max(completed for _, completed, _ in here))
        self.gather()
        if self._trained:
            self._synchronize_again(self._trained, not any(here[r][2] for r in self._trained))

    def _has_trained(self) -> bool:
        """Whether this worker has steps that no result has, as their synchronisation failed. Those
        of one that is a round behind are in the result of others."""
        rounds = self._state.rounds
        return bool(rounds and rounds.unfinished and rounds.completed == self.view.step)

    def _synchronize_again(self, trained: Sequence[int], average: bool) -> None:
        """Makes a synchronisation that failed again, among the ranks that trained for it. Who joins
        has no part in the mean, and copies the result.

        :param average: of weights, see :meth:`_end_last_round`
        """
        self.connect_ranks(trained)
        if self.rank in trained:
            self._state.rounds.begin_synchronizing(
                self.compression, self._state.step, delayed=False, average=average
            )
            self._complete_round(len(trained))
        if len(trained) == self.size:
            return
        self.exchange("synchronised")
        if self.rank in trained:
            self.carried.take_from(self.compression)
            self.leave_ranks()
            self.compression = None

    def copies(self) -> tuple[int, list[int]]:
        """The rank whose state counts, and those that are behind."""
        if self._trained:
            return self._trained[0], [r for r in range(self.size) if r not in self._trained]
        return super().copies()

    def connect(self) -> None:
        """Connects the workers, unless a synchronisation did."""
        if self.compression is None:
            self.connect_ranks(range(self.size))

    def known_choice(self, ranks: Sequence[int]) -> Mapping[str, Any] | None:
        """What type "auto" has chosen in the view before, on these ranks, which all call this: that
        of the worker whose state counts, as others may have been about to change theirs."""
        source, _ = self.copies()
        key = "choice" if len(ranks) == self.size else "again/choice"
        if self.rank == source:
            self._agent.share(self.view.epoch, key, json.dumps(self.carried.choice))
            return self.carried.choice
        return json.loads(self.fetch(key, source))

    # Steps.

    def applied(self) -> None:
        """Notes that the optimizer has made its step, before it is committed."""
        if self._state.rounds is None:
            super().applied()

    def end_step(self, figures: Mapping[str, float]) -> None:
        """Ends a step of this view.

        :raises ViewChange: if the next view begins here
        """
        rounds = self._state.rounds
        if rounds is None:
            super().end_step(figures)
            return
        rounds.count_step()
        self._write("step", figures)
        if self._agent.view() is None:  # the others went on without this worker
            self.in_round = False
            raise ViewChange
        if rounds.due is None and rounds.schedule.ends(self._state.step):
            self._begin_synchronizing()
        if rounds.due == self._state.step:
            self._end_round()

    def _begin_synchronizing(self, delayed: bool = True, average: bool = False) -> None:
        """Begins what completes a round. If that fails, it does so when the result is due, as on
        others that have begun: all make it again after the same step."""
        self.in_round = False
        try:
            self._state.rounds.begin_synchronizing(
                self.compression, self._state.step, delayed, average
            )
        except self.errors as error:
            self._failed = error
        self.in_round = True

    def _end_round(self) -> None:
        self.in_round = False
        self._go_on(self._complete_round(self.size))
        self.in_round = True

    def _complete_round(self, trained: int) -> str | None:
        """Completes a round, as :meth:`_complete` does.

        :param trained: the number of workers that have a part in the mean
        """
        rounds = self._state.rounds
        if self._failed is not None:
            raise self._failed
        # A result may have been there for steps. If the view has ended since, others may have put
        # their parts back, and send them again.
        self.check()
        rounds.complete(self.compression)
        return self._complete("round", {"round": rounds.completed, "trained": trained})

    def _go_on(self, digest: str | None) -> None:
        """See :meth:`hipress.elastic_training.session.Session._go_on`."""
        if digest is None and self._state.rounds is not None:
            # Whoever lacks the result could only wait while others made the next round without it.
            self.exchange(f"round {self._state.completed}")
        super()._go_on(digest)

    # Ending.

    def await_end(self) -> None:
        """Waits until all members have come to the end of training, or one knows that they have."""
        rounds = self._state.rounds
        if rounds is not None:
            if rounds.due is not None:
                self._end_round()
            self._end_last_round()
        self.in_round = False
        super().await_end()

    def _end_last_round(self) -> None:
        """Ends a round that is shorter, if a member has steps of it: one that has copied the last
        result has none, others may have made some while it was on its way. If none has, but some
        kept a share of their own weights in the last round, all get the mean of all."""
        rounds = self._state.rounds
        self.in_round = False
        # Others may have begun when this worker learns that the view has ended.
        rounds.unfinished = rounds.inner_steps > 0 or rounds.has_own
        mine = "steps" if rounds.inner_steps else "own" if rounds.has_own else ""
        left = self.exchange("left", mine)
        if any(left):
            self._begin_synchronizing(delayed=False, average="steps" not in left)
            self._end_round()
