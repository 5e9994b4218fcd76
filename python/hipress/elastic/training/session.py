"""One view of an elastic job: how its workers meet, copy, compare and end, and its steps."""

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
"""Timeout of operations that set a view up, at least: a busy machine may need so long."""
_log = logging.getLogger("hipress")


class ViewChange(Exception):
    """The workers change at this step or outer step, which all of them have completed."""


class WeightsDiffer(Exception):
    """Workers have different weights: a defect, or memory that fails; training ends."""


class Compression(Protocol):
    """What encodes the gradients of one view, in steps that can be put back."""

    def begin_transaction(self) -> None: ...

    def roll_back(self) -> None: ...

    def commit(self) -> None: ...


class Carried(Protocol):
    """What error feedback takes along from one view to the next. A worker that joins has no
    residual; one that is gone takes its own along."""

    undecided: Any
    """A compression whose last step counts if this worker can copy its result, and else is to be
    put back: whoever has the result may be gone before it is copied."""
    choice: Mapping[str, Any] | None
    """What type "auto" has chosen, if anything."""

    def take_from(self, compression: Any) -> None:
        """Takes over the states of a compression whose view is over."""

    def give_to(self, compression: Any) -> None:
        """Gives a new compression its states, before its first step."""

    def to_copy(self) -> dict[str, Any]:
        """What a worker that joins is to have, too."""

    def copy(self, found: Mapping[str, Any]) -> None:
        """Takes over what another worker's :meth:`to_copy` returned; residuals are this one's."""

    def norm(self, compression: Any) -> float:
        """The 2-norm of all residuals that this worker has, also those that no task uses yet."""


class Session(abc.ABC):
    """This worker's part of one view. What is abstract is the framework's.

    :param carried: what error feedback remembers of the view before
    """

    Carried: ClassVar[type[Carried]]
    errors: ClassVar[tuple[type[Exception], ...]] = (HipressError,)
    """What a step raises if a member has died or is silent."""

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
        # All have said that they are here: whoever is late then is silent, and nothing else would
        # end what the others wait for.
        self._setup_seconds = max(_MIN_SETUP_SECONDS, agent.heartbeat_timeout)
        self.norms: dict[str, float] = {}
        """The norms of the members' residuals when they were last compared, by id."""

    @staticmethod
    def environment(timeout: float) -> Mapping[str, str]:
        """The variables that tell this process of its job.

        :param timeout: seconds to wait for others
        """
        return os.environ

    # What the framework does.

    @abc.abstractmethod
    def meet(self) -> None:
        """Waits for all members, and makes a way to copy."""

    @abc.abstractmethod
    def transfer(
        self, source: int, behind: Sequence[int], what: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Brings ``what``, which ``source`` gives, to those that are behind, whose result it is;
        called by all members. Those that are behind say how far they are (:meth:`has_copied`), and
        the others wait for that (:meth:`await_copy`)."""

    @abc.abstractmethod
    def connect(self) -> None:
        """Has :meth:`begin` called with a compression of all members, which all call this."""

    @abc.abstractmethod
    def fail(self, why: str) -> None:
        """Ends what this worker waits for in the engine, if there is one."""

    @abc.abstractmethod
    def disconnect(self, in_peace: bool) -> None:
        """Leaves the engine; :param in_peace: nobody waits for anything any more."""

    def is_of_others(self, error: Exception) -> bool:
        """Whether an error may come of an operation of the script's own with other workers."""
        return False

    # Beginning.

    def open(self) -> None:
        """Connects the members, which all call this; returns when all have the same weights.

        :raises HipressError: if one of them dies meanwhile, as other operations do
        :raises RuntimeError: likewise
        """
        state = self._state
        state.rank, state.size, state.epoch = self.rank, self.size, self.view.epoch
        self.meet()
        self._copy_state(*self.copies())
        self.connect()
        self._compare(self._digest())

    def put_back(self, completed: int) -> None:
        """Puts back the step that was under way in the view before, if no member has its result.

        :param completed: by the member that is farthest
        """
        undecided = self.carried.undecided
        if undecided is not None and self._state.completed == completed:
            undecided.roll_back()
            self._write("rollback", {})
            self.carried.take_from(undecided)

    def begin(self, compression: Compression) -> None:
        """Begins the steps of a compression, which the framework has made."""
        self.compression = compression
        self.carried.give_to(compression)
        compression.begin_transaction()
        self.check()

    def check(self) -> None:
        """Fails if the view has ended: to be called when there is something new to wait for, which
        :meth:`fail` could not end before."""
        if why := self._interrupted or self._agent.ended(self.view.epoch):
            raise self.errors[0](why)

    def exchange(self, what: str, value: str = "", timeout: float | None = None) -> list[str]:
        """Gives all members a short text of each, by rank, when all have come to this point. Unlike
        operations of a process group this ends when a member dies, and may take as long as a slow
        step does.

        :param what: names the point; each time another one
        :param timeout: seconds to wait for each; the state's, if left out
        """
        self._agent.share(self.view.epoch, f"{what}/{self.rank}", value)
        return [
            value if rank == self.rank else self.fetch(f"{what}/{rank}", rank, timeout)
            for rank in range(self.size)
        ]

    def fetch(self, key: str, rank: int, timeout: float | None = None) -> str:
        """Waits for a text that a member of this rank shares.

        :param timeout: seconds. The state's, if left out; then the next view is without a member
            that does not come so far in time
        """
        seconds = self._state.timeout if timeout is None else timeout
        return self._agent.fetch(self.view.epoch, key, seconds, rank, required=timeout is None)

    def copies(self) -> tuple[int, list[int]]:
        """The rank whose state counts, and those that are behind."""
        source = self._ids.index(self.view.source)
        behind = [r for r, i in enumerate(self._ids) if i in self.view.behind and r != source]
        return source, behind

    def has_copied(self, part: int) -> None:
        """Says that this worker, which is behind, has a part of the state, so that the others know
        that it does not hang."""
        self._agent.share(self.view.epoch, f"has/{self.rank}/{part}", "")

    def await_copy(self, rank: int, parts: int) -> None:
        """Waits for all parts of a copy; each may take as long as the state's timeout."""
        for part in range(parts):
            self.fetch(f"has/{rank}/{part}", rank)

    def _copy_state(self, source: int, behind: Sequence[int]) -> None:
        """Has members that are behind copy the source's state."""
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
        # At once: if the source dies while others copy, this member has the step.
        self._agent.completed(state.completed, True, epoch)
        if behind:
            self.exchange("copied")

    # Steps.

    def applied(self) -> None:
        """Notes that the optimizer has made its step, before it is committed."""
        self._agent.completed(self._state.step + 1, False, self.view.epoch)

    def end_step(self, figures: Mapping[str, float]) -> None:
        """Ends a step of this view.

        :raises ViewChange: if the next view begins here
        """
        self._go_on(self._complete("step", figures))

    def _complete(self, event: str, figures: Mapping[str, float]) -> str | None:
        """Notes that this worker has completed what the workers complete together; returns a digest
        of the weights if they are to be compared."""
        state = self._state
        self.compression.begin_transaction()  # what is committed is not put back
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
        self._journal.write(**{**figures, **own})  # a script's figures may have such names, too

    def _go_on(self, digest: str | None) -> None:
        """Compares the members' weights, if there is a digest.

        :raises ViewChange: if the next view begins here
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
        """Compares the members' weights, and exchanges the norms of their residuals.

        :raises WeightsDiffer: on all members
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
        """Waits until all members have come to the end of training, or one knows that they have."""
        try:
            self.exchange("end")
        except ElasticError:  # one that left since, perhaps
            self._agent.fetch(self.view.epoch, OVER, 0.0)
        self._agent.share(self.view.epoch, OVER, "1")
        self._all_done = True

    def end_for_all(self, timeout: float) -> None:
        """Ends training for all members, also for those that joined later and would go on.

        :param timeout: seconds to wait for others, so that they have the last step's result
        """
        self._agent.share(self.view.epoch, OVER, "1")
        try:
            self.exchange("end", timeout=timeout)
            self._all_done = True
        except ElasticError:  # others are at a sum, which fails when this worker leaves
            pass

    def is_over(self) -> bool:
        """Whether a member has ended training for all."""
        try:
            return bool(self._agent.fetch(self.view.epoch, OVER, 0.0))
        except ElasticError:
            return False

    def interrupt(self, why: str) -> None:
        """Ends what this worker waits for, from another thread."""
        with self._waking:
            if not self._interrupted:
                self.fail(why)
            self._interrupted = why

    def close(self) -> None:
        """Leaves the view; gradients of a step that is not complete are dropped."""
        with self._waking:
            self._interrupted = "this view is over"
        # Where nobody waits for anything any more, nobody need take this for a death.
        self.disconnect(in_peace=self._all_done)
        self._state.drop_gradients()


def digest(weights: Iterable[tuple[str, memoryview]]) -> str:
    """A hash of weights, equal for equal bits: 16 hexadecimal digits."""
    found = hashlib.blake2b(digest_size=8)
    for name, data in weights:
        found.update(name.encode())
        found.update(data)
    return found.hexdigest()
