"""One view of an elastic job: its workers meet, copy state, make steps, compare weights, and end.

A step is an optimizer step, or with ``sync_every`` an outer step of DiLoCo after H inner steps
(:mod:`.outer_steps`). :mod:`.undecided_step` explains what happens to a step that fails.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hipress.elastic.membership.agent import Agent
from hipress.elastic.membership.membership_errors import ElasticError
from hipress.elastic.membership.notes import OVER
from hipress.elastic.membership.view import View
from hipress.elastic.training.adapter import FrameworkAdapter, ViewMembers
from hipress.elastic.training.journal import Journal
from hipress.elastic.training.state import TrainingState
from hipress.elastic.training.undecided_step import CarriedState, TransactionalSynchronizer

_log = logging.getLogger("hipress")


class ViewChange(Exception):
    """Signal that the view ends at this step or outer step, which all workers have completed."""


class WeightsDiffer(Exception):
    """Error: workers have different weights, by a defect or a memory failure. Training ends."""


class Session:
    """Part of this worker in one view.

    Args:
        adapter_type: the framework's part
        carried: state of the compression from the previous view
    """

    def __init__(
        self,
        state: TrainingState,
        adapter_type: type[FrameworkAdapter],
        agent: Agent,
        view: View,
        carried: CarriedState,
        journal: Journal,
    ) -> None:
        self.view, self.carried = view, carried
        self._state, self._agent, self._journal = state, agent, journal
        self.members = ViewMembers(agent, view, state.timeout, adapter_type.errors[0])
        self.adapter = adapter_type(state, self.members)
        self.rank, self.size = self.members.rank, self.members.size
        self.compression: TransactionalSynchronizer | None = None
        self.trains_alone = False
        """Whether this worker makes inner steps, which continue when other workers fail."""
        self._trained: list[int] = []
        """Ranks that repeated an outer step; other ranks copy its result."""
        self._failed: Exception | None = None
        """Error of the pending outer step, if it could not start."""
        self._waking = threading.Lock()
        self._all_done = False
        self.norms: dict[str, float] = {}
        """Norms of the members' residuals at their last comparison, by id."""

    # Beginning.

    def open(self) -> None:
        """Connect the members, and return when all have the same weights. All members call this.

        Raises:
            HipressError: if a member dies meanwhile
            RuntimeError: if a member dies meanwhile
        """
        state = self._state
        state.rank, state.size, state.epoch = self.rank, self.size, self.view.epoch
        inner_steps = state.outer_steps.inner_steps if state.outer_steps else 0
        mine = [self._has_trained(), state.completed if state.is_part else -1, inner_steps]
        here = [json.loads(text) for text in self.members.exchange("here", json.dumps(mine))]
        self._trained = [rank for rank, (trained, *_) in enumerate(here) if trained]
        self.decide(max(completed for _, completed, _ in here))
        self.adapter.open()
        if self._trained:
            self._repeat_outer_step(average=not any(here[rank][2] for rank in self._trained))
        self._copy_state(*self._copies())
        if self.compression is None:
            self._connect(range(self.size))
        self._compare(self._digest())
        self.trains_alone = state.outer_steps is not None

    def decide(self, completed: int) -> None:
        """Roll back the undecided step, unless it counts. Then this worker copies its result.

        Args:
            completed: highest number of completed steps of any member
        """
        step = self.carried.undecided
        if step is not None and not step.counts(completed):
            self.carried.roll_back()
            self._write("rollback", {})

    def _has_trained(self) -> bool:
        """Return whether this worker has inner steps of an outer step that failed.

        If it is an outer step behind, other workers have the result that includes them.
        """
        steps = self._state.outer_steps
        return bool(steps and steps.unfinished and steps.completed == self.view.step)

    def _repeat_outer_step(self, average: bool) -> None:
        """Repeat an outer step that failed, among the ranks that trained for it.

        A worker that joins has no part in the mean, and copies the result.

        Args:
            average: Average without the outer optimizer, see :meth:`_end_last_outer_step`.
        """
        trained, state = self._trained, self._state
        self._connect(trained)
        if self.rank in trained:
            state.outer_steps.start(self.compression, state.step, delayed=False, average=average)
            self._complete_outer_step(len(trained))
        if len(trained) == self.size:
            return
        self.members.exchange("synchronized")
        if self.rank in trained:
            self.carried.take_from(self.compression)
            self.adapter.disconnect()
            self.compression = None

    def _connect(self, ranks: Sequence[int]) -> None:
        """Start the steps of a new compression of these ranks. All members call this."""
        compression = self.adapter.connect(ranks, lambda: self.known_choice(ranks))
        if compression is None:
            return
        self.compression = compression
        self.members.check()
        self.carried.give_to(compression)
        self.adapter.prepare(ranks)
        compression.begin_transaction()

    def known_choice(self, ranks: Sequence[int]) -> Mapping[str, Any] | None:
        """Return the choice of type "auto" in the previous view; all of these ranks call this.

        It is the choice of the worker whose state counts, because other workers may have been about
        to change theirs.
        """
        source, _ = self._copies()
        key = "choice" if len(ranks) == self.size else "again/choice"
        if self.rank == source:
            self.members.share(key, json.dumps(self.carried.choice))
            return self.carried.choice
        return json.loads(self.members.fetch(key, source))

    def _copies(self) -> tuple[int, list[int]]:
        """Return the rank whose state counts, and the ranks that are behind."""
        if self._trained:
            return self._trained[0], [r for r in range(self.size) if r not in self._trained]
        ids, view = self.members.ids, self.view
        source = ids.index(view.source)
        return source, [r for r, i in enumerate(ids) if i in view.behind and r != source]

    def _copy_state(self, source: int, behind: Sequence[int]) -> None:
        """Copy the source's state to the members that are behind."""
        state, epoch = self._state, self.view.epoch
        if behind:
            what = None
            if self.rank == source:
                about = {"settings": state.settings(), "carried": self.carried.to_copy()}
                what = {**state.to_copy(), **about}
            copied = self.adapter.transfer(source, behind, what)
            if self.rank in behind:
                state.check(copied["settings"])
                if not state.is_part and state.step > copied["step"]:
                    _log.warning(
                        "this worker was at step %d, and goes on from step %d, which it copies of "
                        "slot %d, whose state counts",
                        state.step,
                        copied["step"],
                        self.view.members[source].slot,
                    )
                state.copy(copied)
                self.carried.copy(copied["carried"])
                self._journal.write("copied", epoch=epoch, step=state.step)
        state.is_part = True
        # At once: if the source dies while other members copy, this member has the step.
        self._agent.completed(state.completed, True, epoch)
        if behind:
            self.members.exchange("copied")

    # Steps.

    def applied(self) -> None:
        """Record that the optimizer has made its step, before it is committed."""
        if self._state.outer_steps is None:
            self._agent.completed(self._state.step + 1, False, self.view.epoch)

    def end_step(self, figures: Mapping[str, float]) -> None:
        """End a step of this view, or an inner step.

        Raises:
            ViewChange: if the next view begins here
        """
        steps = self._state.outer_steps
        if steps is None:
            self._go_on(self._complete("step", figures))
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
        except self.adapter.errors as error:
            self._failed = error
        self.trains_alone = True

    def _end_outer_step(self) -> None:
        self.trains_alone = False
        digest = self._complete_outer_step(self.size)
        if digest is None:
            # A worker without the result could not join the next outer step of the other workers.
            self.members.exchange(f"round {self._state.completed}")
        self._go_on(digest)
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
        self.members.check()
        steps.complete(self.compression)
        return self._complete("round", {"round": steps.completed, "trained": trained})

    def _complete(self, event: str, figures: Mapping[str, float]) -> str | None:
        """Record a completed step or outer step.

        Return a digest of the weights if they must be compared now.
        """
        state = self._state
        self.compression.begin_transaction()  # a committed step is not rolled back
        self._agent.completed(state.completed, True, self.view.epoch)
        digest = self._digest() if state.completed % state.check_every == 0 else None
        self._write(event, {"digest": digest, **figures})
        return digest

    def _write(self, event: str, figures: Mapping[str, object]) -> None:
        own = {
            "event": event,
            "epoch": self.view.epoch,
            "step": self._state.step,
            "size": self.size,
            "rank": self.rank,
        }
        self._journal.write(**{**figures, **own})  # a script's figures may have the same names

    def _go_on(self, digest: str | None) -> None:
        """Compare the members' weights, if there is a digest.

        Raises:
            ViewChange: if the next view begins here
        """
        state = self._state
        if digest is not None:
            self._compare(digest)
        newest = self._agent.view()
        if newest is None or newest.epoch > self.view.epoch:
            if newest is not None and newest.boundary is not None:
                if state.completed < newest.boundary:
                    return
                self.members.exchange(f"step {state.step}")
                self._all_done = True
            raise ViewChange

    def _digest(self) -> str:
        steps = self._state.outer_steps
        outer = () if steps is None else steps.weights()
        own = () if steps is not None and steps.keeps_own else self._state.weights()
        return digest(itertools.chain(own, outer))

    def _compare(self, digest: str) -> None:
        """Compare the members' weights, and exchange the norms of their residuals.

        Raises:
            WeightsDiffer: on all members
        """
        step = self._state.step
        mine = json.dumps([digest, step, self.compression.error_feedback.norm()])
        # Two outer steps may end after the last step of a job.
        what = "step" if self._state.outer_steps is None else "round"
        point = f"weights after {what} {self._state.completed}"
        reports = [json.loads(each) for each in self.members.exchange(point, mine)]
        for rank, theirs in enumerate(reports):
            if theirs[:2] != reports[0][:2]:
                raise WeightsDiffer(
                    f"the weights of ranks 0 and {rank} differ: digest {reports[0][0]} after step "
                    f"{reports[0][1]} and {theirs[0]} after step {theirs[1]}"
                )
        self.norms = {member: theirs[2] for member, theirs in zip(self.members.ids, reports)}

    # Ending.

    def await_end(self) -> None:
        """Wait until all members have reached the end of training, or one has recorded that."""
        steps = self._state.outer_steps
        if steps is not None:
            if steps.due is not None:
                self._end_outer_step()
            self._end_last_outer_step()
        self.trains_alone = False
        try:
            self.members.exchange("end")
        except ElasticError:  # perhaps a member has left since
            self._agent.fetch(self.view.epoch, OVER, 0.0)
        self.members.share(OVER, "1")
        self._all_done = True

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
        left = self.members.exchange("left", mine)
        if any(left):
            self._start_outer_step(delayed=False, average="steps" not in left)
            self._end_outer_step()

    def end_for_all(self, timeout: float) -> None:
        """End training for all members, including workers that joined later and would continue.

        Args:
            timeout: seconds to wait for other members, so that they get the last step's result
        """
        self.members.share(OVER, "1")
        try:
            self.members.exchange("end", timeout=timeout)
            self._all_done = True
        except ElasticError:  # other workers are in a sum, which fails when this worker leaves
            pass

    def is_over(self) -> bool:
        """Return whether a member has ended training for all."""
        try:
            return bool(self._agent.fetch(self.view.epoch, OVER, 0.0))
        except ElasticError:
            return False

    def interrupt(self, why: str) -> None:
        """Fail what this worker waits for, from another thread."""
        with self._waking:
            if not self.members.interrupted:
                self.adapter.fail(why)
            self.members.interrupted = why

    def close(self) -> None:
        """Leave the view, and drop the gradients of an incomplete step."""
        with self._waking:
            self.members.interrupted = "this view is over"
        # If no member waits for anything, this end must not look like a failure.
        self.adapter.close(self._all_done)
        self._state.drop_gradients()


def digest(weights: Iterable[tuple[str, memoryview]]) -> str:
    """Return a hash of weights as 16 hexadecimal digits. Equal bits give equal hashes."""
    hasher = hashlib.blake2b(digest_size=8)
    for name, data in weights:
        hasher.update(name.encode())
        hasher.update(data)
    return hasher.hexdigest()
