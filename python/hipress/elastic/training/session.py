"""One view of an elastic job: how its workers meet, copy state, compare weights and end.

A failure may interrupt a step when some workers have its result and others do not. The step counts
if any member of the next view has the result::

    step s fails in view v
      ├─ this worker has applied the result: the step counts, and its residuals stay
      └─ this worker has no result: its compression is ``undecided`` until view v+1
           ├─ a member has the result: copy it, and commit (what was sent stays sent)
           └─ no member has it: roll back (residuals as before step s), and repeat step s

The decision waits for the next view, because a worker that has the result may die before other
workers copy it.
"""

from __future__ import annotations

import abc
import hashlib
import itertools
import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from hipress.elastic.membership.agent import Agent
from hipress.elastic.membership.errors import ElasticError
from hipress.elastic.membership.notes import OVER
from hipress.elastic.membership.view import View
from hipress.elastic.training.journal import Journal
from hipress.elastic.training.state import State
from hipress.errors import HipressError

_MIN_SETUP_SECONDS = 2.0
"""Minimum timeout of operations that set up a view, in seconds, for a busy host."""
_log = logging.getLogger("hipress")


class ViewChange(Exception):
    """Signal that the view ends at this step or outer step, which all workers have completed."""


class WeightsDiffer(Exception):
    """Error: workers have different weights, by a defect or a memory failure. Training ends."""


class Compression(Protocol):
    """Encoder of the gradients of one view, in steps that can be rolled back."""

    def begin_transaction(self) -> None: ...

    def roll_back(self) -> None: ...

    def commit(self) -> None: ...


class Carried(Protocol):
    """State of error feedback that passes from one view to the next.

    A worker that joins has no residual. The residual of a departed worker is discarded.
    """

    undecided: Any
    """Compression whose last step counts if this worker can copy its result, otherwise None.

    If no member has the result, the step is rolled back. See the module's docstring.
    """
    choice: Mapping[str, Any] | None
    """Choice of type "auto", if there is one."""

    def take_from(self, compression: Any) -> None:
        """Adopt the states of a compression whose view has ended."""

    def give_to(self, compression: Any) -> None:
        """Give a new compression its states, before its first step."""

    def to_copy(self) -> dict[str, Any]:
        """Return what a worker that joins must also have."""

    def copy(self, found: Mapping[str, Any]) -> None:
        """Adopt another worker's :meth:`to_copy`, but keep this worker's residuals."""

    def norm(self, compression: Any) -> float:
        """Return the 2-norm of this worker's residuals, including those that no task uses yet."""


class Session(abc.ABC):
    """Part of this worker in one view. Frameworks implement the abstract methods.

    Args:
        carried: state of error feedback from the previous view
    """

    Carried: ClassVar[type[Carried]]
    errors: ClassVar[tuple[type[Exception], ...]] = (HipressError,)
    """Errors that a step raises if a member has died or is silent."""

    def __init__(
        self, state: State, agent: Agent, view: View, carried: Carried, journal: Journal
    ) -> None:
        self.view, self.carried = view, carried
        self._state, self._agent, self._journal = state, agent, journal
        self._ids = [member.id for member in view.members]
        self.rank, self.size = self._ids.index(agent.id), len(self._ids)
        self.compression: Compression | None = None
        self.trains_alone = False
        """Whether this worker makes inner steps, which continue when other workers fail."""
        self._waking = threading.Lock()
        self._interrupted = ""
        self._all_done = False
        # All members have reported that they are here. Only this timeout ends the wait for one
        # that then is silent.
        self._setup_seconds = max(_MIN_SETUP_SECONDS, agent.heartbeat_timeout)
        self.norms: dict[str, float] = {}
        """Norms of the members' residuals at their last comparison, by id."""

    @staticmethod
    def environment(timeout: float) -> Mapping[str, str]:
        """Return the environment variables that describe this process's job.

        Args:
            timeout: seconds to wait for other processes
        """
        return os.environ

    # Methods of the framework.

    @abc.abstractmethod
    def meet(self) -> None:
        """Wait for all members, and set up a way to copy state."""

    @abc.abstractmethod
    def transfer(
        self, source: int, behind: Sequence[int], what: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Copy ``what`` from rank ``source`` to the ranks that are behind, and return it there.

        All members call this. Ranks that are behind report their progress (:meth:`has_copied`), and
        other ranks wait for that (:meth:`await_copy`).
        """

    @abc.abstractmethod
    def connect(self) -> None:
        """Call :meth:`begin` with a compression of all members. All members call this."""

    @abc.abstractmethod
    def fail(self, why: str) -> None:
        """Fail operations in the engine that this worker waits for."""

    @abc.abstractmethod
    def disconnect(self, in_peace: bool) -> None:
        """Leave the engine.

        Args:
            in_peace: whether no member waits for anything any more
        """

    def is_of_others(self, error: Exception) -> bool:
        """Return whether an error may come from a script's own operation with other workers."""
        return False

    # Beginning.

    def open(self) -> None:
        """Connect the members, and return when all have the same weights. All members call this.

        Raises:
            HipressError: if a member dies meanwhile
            RuntimeError: if a member dies meanwhile
        """
        state = self._state
        state.rank, state.size, state.epoch = self.rank, self.size, self.view.epoch
        self.meet()
        self._copy_state(*self.copies())
        self.connect()
        self._compare(self._digest())

    def roll_back(self, completed: int) -> None:
        """Roll back the previous view's unfinished step, if no member has its result.

        Args:
            completed: highest number of completed steps of any member
        """
        undecided = self.carried.undecided
        if undecided is not None and self._state.completed == completed:
            undecided.roll_back()
            self._write("rollback", {})
            self.carried.take_from(undecided)

    def begin(self, compression: Compression) -> None:
        """Start the steps of a compression that the framework has created."""
        self.compression = compression
        self.carried.give_to(compression)
        compression.begin_transaction()
        self.check()

    def check(self) -> None:
        """Raise an error if the view has ended.

        Call this before a new wait that an earlier :meth:`fail` could not have ended.
        """
        if why := self._interrupted or self._agent.ended(self.view.epoch):
            raise self.errors[0](why)

    def exchange(self, what: str, value: str = "", timeout: float | None = None) -> list[str]:
        """Exchange a short text with all members, by rank, when all have reached this point.

        Unlike an operation of a process group, this ends when a member dies, and may take as long
        as a slow step does.

        Args:
            what: name of the point, different each time
            timeout: seconds to wait for each member; by default, the state's timeout
        """
        self._agent.share(self.view.epoch, f"{what}/{self.rank}", value)
        return [
            value if rank == self.rank else self.fetch(f"{what}/{rank}", rank, timeout)
            for rank in range(self.size)
        ]

    def fetch(self, key: str, rank: int, timeout: float | None = None) -> str:
        """Wait for a text that the member of this rank shares.

        Args:
            timeout: seconds. By default it is the state's, and a member that does not reach this
                point in time is excluded from the next view.
        """
        seconds = self._state.timeout if timeout is None else timeout
        return self._agent.fetch(self.view.epoch, key, seconds, rank, required=timeout is None)

    def copies(self) -> tuple[int, list[int]]:
        """Return the rank whose state counts, and the ranks that are behind."""
        source = self._ids.index(self.view.source)
        behind = [r for r, i in enumerate(self._ids) if i in self.view.behind and r != source]
        return source, behind

    def has_copied(self, part: int) -> None:
        """Report that this worker, which is behind, has copied a part of the state.

        It shows that the worker does not hang.
        """
        self._agent.share(self.view.epoch, f"has/{self.rank}/{part}", "")

    def await_copy(self, rank: int, parts: int) -> None:
        """Wait for all parts of a copy. Each part may take as long as the state's timeout."""
        for part in range(parts):
            self.fetch(f"has/{rank}/{part}", rank)

    def _copy_state(self, source: int, behind: Sequence[int]) -> None:
        """Copy the source's state to the members that are behind."""
        state, epoch = self._state, self.view.epoch
        if behind:
            what = None
            if self.rank == source:
                about = {"settings": state.settings(), "carried": self.carried.to_copy()}
                what = {**state.to_copy(), **about}
            found = self.transfer(source, behind, what)
            if self.rank in behind:
                state.check(found["settings"])
                if not state.is_part and state.step > found["step"]:
                    _log.warning(
                        "this worker was at step %d, and goes on from step %d, which it copies of "
                        "slot %d, whose state counts",
                        state.step,
                        found["step"],
                        self.view.members[source].slot,
                    )
                state.copy(found)
                self.carried.copy(found["carried"])
                self._journal.write("copied", epoch=epoch, step=state.step)
        state.is_part = True
        # At once: if the source dies while other members copy, this member has the step.
        self._agent.completed(state.completed, True, epoch)
        if behind:
            self.exchange("copied")

    # Steps.

    def applied(self) -> None:
        """Record that the optimizer has made its step, before it is committed."""
        self._agent.completed(self._state.step + 1, False, self.view.epoch)

    def end_step(self, figures: Mapping[str, float]) -> None:
        """End a step of this view.

        Raises:
            ViewChange: if the next view begins here
        """
        self._go_on(self._complete("step", figures))

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
                self.exchange(f"step {state.step}")
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
        mine = json.dumps([digest, step, self.carried.norm(self.compression)])
        # Two outer steps may end after the last step of a job.
        what = "step" if self._state.outer_steps is None else "round"
        point = f"weights after {what} {self._state.completed}"
        found = [json.loads(each) for each in self.exchange(point, mine)]
        for rank, theirs in enumerate(found):
            if theirs[:2] != found[0][:2]:
                raise WeightsDiffer(
                    f"the weights of ranks 0 and {rank} differ: digest {found[0][0]} after step "
                    f"{found[0][1]} and {theirs[0]} after step {theirs[1]}"
                )
        self.norms = {member: theirs[2] for member, theirs in zip(self._ids, found)}

    # Ending.

    def await_end(self) -> None:
        """Wait until all members have reached the end of training, or one has recorded that."""
        try:
            self.exchange("end")
        except ElasticError:  # perhaps a member has left since
            self._agent.fetch(self.view.epoch, OVER, 0.0)
        self._agent.share(self.view.epoch, OVER, "1")
        self._all_done = True

    def end_for_all(self, timeout: float) -> None:
        """End training for all members, including workers that joined later and would continue.

        Args:
            timeout: seconds to wait for other members, so that they get the last step's result
        """
        self._agent.share(self.view.epoch, OVER, "1")
        try:
            self.exchange("end", timeout=timeout)
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
            if not self._interrupted:
                self.fail(why)
            self._interrupted = why

    def close(self) -> None:
        """Leave the view, and drop the gradients of an incomplete step."""
        with self._waking:
            self._interrupted = "this view is over"
        # If no member waits for anything, this end must not look like a failure.
        self.disconnect(in_peace=self._all_done)
        self._state.drop_gradients()


def digest(weights: Iterable[tuple[str, memoryview]]) -> str:
    """Return a hash of weights as 16 hexadecimal digits. Equal bits give equal hashes."""
    found = hashlib.blake2b(digest_size=8)
    for name, data in weights:
        found.update(name.encode())
        found.update(data)
    return found.hexdigest()
