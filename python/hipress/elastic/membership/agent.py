"""A process's door to elastic membership: join, learn of views, say how far it is."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hipress.base import addresses
from hipress.elastic.membership import notes
from hipress.elastic.membership.agent_thread import AgentThread
from hipress.elastic.membership.errors import ElasticError, Evicted, TrainingOver, ViewChanged
from hipress.elastic.membership.settings import SECRET_CHARACTERS, from_environment
from hipress.elastic.membership.status import waits_for
from hipress.elastic.membership.view import NO_STATE, View

_ASK_SECONDS = 0.25  # between two requests for a note
_LEAVE_SECONDS = 1.0  # for the others to go on without a member that leaves


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, as in file names that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


class Agent:
    """One per process. All methods may be called from any thread.

    A view is *entered* with ``join`` or ``await_view``, one with a boundary after ``completed`` of
    that step. The steps that ``completed`` reports belong to the view entered last. A worker's
    loop::

        agent.completed(step)
        newest = agent.view()
        ahead = newest.boundary is not None and newest.boundary > step
        if newest.epoch > view.epoch and not ahead:
            view = agent.await_view(view.epoch, timeout)

    A member of ``view.behind`` copies the state of ``view.source`` (after ``view.step``) and then
    calls ``completed(view.step)``. Until then it counts as one whose state is not clean.

    :param agents: the (host, port) of each slot's agent, the same in all processes
    :param slot: this process's slot; it listens on that address
    :param secret: the job's secret, 16 bytes or more
    :param min_members: a view has that many members or more
    :param restart: how often the slot's process has been restarted; only those with 0 form the
        first view. Nobody needs to count if all processes take ``view.uncounted(time.time())``
    :param heartbeat_timeout: seconds of silence after which a process is left out
    :param start_timeout: seconds after which the first view may be formed without all slots
    :param on_change: called in the agent's thread, with the newest view, when an epoch ends at
        once: a member failed, the next view is there (unless it has a boundary), or this process is
        evicted. It must return quickly, as no sign of life is sent meanwhile
    :param on_status: called in the agent's thread, too, several times in a heartbeat timeout, with
        what ``status`` returns, and with None when the agent ends
    :param tls_mode: ``auto`` (encrypt connections between machines), ``on`` or ``off``
    :param ended_file: file in which the supervisor reports which slots' processes have ended
    :raises ElasticError: an argument is wrong, or the address is taken
    """

    def __init__(
        self,
        agents: Sequence[tuple[str, int]],
        slot: int,
        secret: bytes,
        min_members: int,
        restart: int = 0,
        heartbeat_timeout: float = 5.0,
        start_timeout: float = 60.0,
        on_change: Callable[[View], None] | None = None,
        on_status: Callable[[dict[str, Any] | None], None] | None = None,
        tls_mode: str = "auto",
        ended_file: str = "",
    ) -> None:
        if not 0 <= slot < len(agents):
            raise ElasticError(f"there is no slot {slot}: {len(agents)} agent addresses are given")
        if not 1 <= min_members <= len(agents):
            raise ElasticError(f"min_members is {min_members}; it takes 1 to {len(agents)}")
        if len(secret) < SECRET_CHARACTERS:
            raise ElasticError(
                f"the secret has {len(secret)} bytes; it must have {SECRET_CHARACTERS} or more"
            )
        if restart < 0 or heartbeat_timeout <= 0 or start_timeout < 0:
            raise ElasticError(
                f"restart ({restart}), heartbeat_timeout ({heartbeat_timeout}) or start_timeout "
                f"({start_timeout}) is too small"
            )
        self._thread = AgentThread(
            list(agents),
            slot,
            secret,
            min_members,
            restart,
            heartbeat_timeout,
            start_timeout,
            on_change,
            on_status,
            tls_mode,
            ended_file,
        )
        self.heartbeat_timeout = heartbeat_timeout
        self._machine = self._thread.machine
        self._changed = self._thread.changed

    @classmethod
    def from_environment(
        cls,
        on_change: Callable[[View], None] | None = None,
        environ: Mapping[str, str] = os.environ,
        on_status: Callable[[dict[str, Any] | None], None] | None = None,
    ) -> Agent:
        """The agent of a process that ``hipress launch --elastic`` started, or one like it.

        :raises ElasticError: a variable is missing or wrong, or the address is taken
        """
        found = from_environment(environ)
        return cls(
            found.agents,
            found.slot,
            found.secret,
            found.min_members,
            found.restart,
            found.heartbeat_timeout,
            on_change=on_change,
            on_status=on_status,
            tls_mode=found.tls_mode,
            ended_file=found.ended_file,
        )

    @property
    def id(self) -> str:
        """This process's id as a member; another one after it was evicted and joins again."""
        return self._machine.me.id

    @property
    def address(self) -> str:
        """By which the others reach this process's machine."""
        host = self._machine.me.host
        return self._thread.other_address or addresses.resolve(host) or host

    @property
    def slot(self) -> int:
        """This process's slot."""
        return self._machine.me.slot

    def join(self, timeout: float) -> View:
        """Becomes a member, and enters the view.

        :param timeout: seconds
        :raises ElasticError: it took longer; the message says what was waited for
        :raises TrainingOver: there is nothing to take part in any more
        """
        with self._changed:
            now = time.monotonic()
            if self._thread.evicted is not None or self.expelled:
                self._thread.evicted = None
                self._machine.rejoin(now, uuid.uuid4().hex)
            else:
                self._machine.join(now)
            self._thread.flush()
            return self._await(0, timeout, "this process is no member")

    def view(self) -> View | None:
        """The newest view, if this process is in it; its boundary may be ahead. Enters nothing."""
        with self._changed:
            return self._machine.newest if self._machine.is_member else None

    def completed(self, step: int, clean: bool = True, epoch: int | None = None) -> None:
        """Says that this process's state is that after ``step``.

        Also to be called after a member that was ``behind`` has copied the source's state. Sends
        nothing. While a boundary is being decided it waits for that, a round trip, before it passes
        it.

        :param clean: the state is exactly that; others need not copy it only if it is
        :param epoch: of the view in which the step was done; the one entered last, if left out
        """
        with self._changed:
            epoch = self._machine.entered if epoch is None else epoch
            self._machine.completed(time.monotonic(), step, clean, epoch)
            self._thread.flush()
            while (
                self._machine.gate is not None
                and step >= self._machine.gate
                and self._thread.error is None
            ):
                self._changed.wait(0.01)

    def request_change(self, reason: str, epoch: int) -> None:
        """Asks for a new view at once, because this epoch's communicator failed.

        Does nothing if a newer view is there. Then ``await_view``.
        """
        with self._changed:
            self._machine.request_change(time.monotonic(), _encodable(reason), epoch)
            self._thread.flush()

    def await_view(self, after: int, timeout: float) -> View:
        """Waits for a view of a later epoch than ``after``, and enters it.

        A view that is known to end already is not returned. One whose boundary is ahead is returned
        at once, and not entered yet.

        :param timeout: seconds
        :raises ElasticError: it took longer; the message says what was waited for
        :raises Evicted: the others went on without this process; it may ``join`` again
        """
        with self._changed:
            return self._await(after, timeout, f"there is no view after epoch {after}")

    def _await(self, after: int, timeout: float, what: str) -> View:
        with self._thread.calls.waiting("the next view", after):
            return self._await_view(after, timeout, what)

    def _await_view(self, after: int, timeout: float, what: str) -> View:
        machine = self._machine
        deadline = time.monotonic() + timeout
        while True:
            self._check()
            view = machine.newest
            if machine.is_member and view.epoch > after and not machine.trouble:
                machine.enter(time.monotonic(), view.epoch)
                self._thread.flush()
                return view
            if machine.step == NO_STATE and self._thread.notes.over:
                raise TrainingOver("the others have come to the end of training without this one")
            restarted = machine.joining and machine.me.incarnation
            if restarted and self._thread.alone():
                raise ElasticError(
                    "no other worker is left to join: the addresses of all others refuse "
                    f"connections, and have done so for {machine.start_timeout:g} s; the job is "
                    "over, or gateways on the way refuse them"
                )
            left = deadline - time.monotonic()
            if left <= 0:
                why = waits_for(machine)
                raise ElasticError(f"{what} after {timeout:g} s" + (f": {why}" if why else ""))
            self._changed.wait(min(left, 1.0))

    def _check(self) -> None:
        if self._thread.error is not None:
            raise ElasticError(self._thread.error)
        view, me = self._thread.evicted, self._machine.me.id
        if view is not None:
            why = {member.id: f": {why}" for member, why in view.departed}.get(me, "")
            raise Evicted(f"epoch {view.epoch} goes on without this process{why}")
        if self.expelled:
            raise Evicted(f"the others go on without this process: {self.expelled}")

    @property
    def expelled(self) -> str:
        """Why others have asked this process to leave, though it is still a member; empty: they
        have not."""
        return self._machine.expelled.get(self._machine.me.id, "")

    def ended(self, epoch: int) -> str:
        """Why this epoch is over, or about to be; empty if its members work on."""
        with self._changed:
            machine = self._machine
            if self._thread.error is not None:
                return self._thread.error
            if not machine.is_member:
                return "the others go on without this process"
            if epoch < max(machine.base_epoch, machine.entered):
                return f"epoch {machine.newest.epoch} follows"
            return machine.trouble if epoch <= machine.newest.epoch else ""

    @property
    def is_over(self) -> bool:
        """Whether a member has come to the end of training."""
        with self._changed:
            return self._thread.notes.over

    def share(self, epoch: int, key: str, value: str) -> None:
        """Leaves a short text for the members of a view. The first value of a key counts.

        :raises ValueError: it is too long
        """
        value = _encodable(value)
        notes.check(key, value)
        with self._changed:
            view = self._thread.identity(epoch)
            self._thread.notes.put(view, key, value, [view])
            self._changed.notify_all()
            self._thread.send_note([view, key, value], sorted(self._machine.other_slots()))

    def fetch(
        self, epoch: int, key: str, timeout: float, rank: int = -1, required: bool = False
    ) -> str:
        """Waits for a text that a member of the view left.

        :param timeout: seconds
        :param rank: of the member that is to leave it, if that is known
        :param required: that member must be at work: if it lives but does not come so far in time,
            a member with the job's state asks it to leave, and the others go on without it
        :raises ViewChanged: the view has ended
        :raises Evicted: the others went on without this process
        :raises ElasticError: it took longer
        """
        machine = self._machine
        deadline = time.monotonic() + timeout
        last = deadline + self.heartbeat_timeout if required else deadline
        next_request = 0.0
        with self._changed, self._thread.calls.waiting(key, epoch, rank):
            while True:
                view = self._thread.identity(epoch)
                value = self._thread.notes.get(view, key)
                if value is not None:
                    return value
                self._check()
                why = self.ended(epoch)
                if why:
                    raise ViewChanged(f"epoch {epoch} has ended: {why}")
                now = time.monotonic()
                if now >= last:
                    raise ElasticError(
                        f"no member of epoch {epoch} has left '{key}' after {timeout:g} s"
                    )
                if now >= next_request:
                    next_request = now + _ASK_SECONDS
                    self._thread.send_note([view, key], sorted(machine.other_slots()))
                    if now >= deadline:
                        self._expel(epoch, rank, f"the others have waited {timeout:g} s for it")
                self._changed.wait(min(last, next_request) - now)

    def _expel(self, epoch: int, rank: int, why: str) -> None:
        machine = self._machine
        for view in (machine.newest, machine.previous):
            if view.epoch == epoch:
                machine.expel(time.monotonic(), view.ids[rank], epoch, why)
                self._thread.flush()

    def status(self) -> dict[str, Any]:
        """Return the agent's state for people, in JSON's types; see :mod:`.status`."""
        return self._thread.status()

    def leave(self, at_boundary: bool = False, timeout: float = 60.0) -> View | None:
        """Leaves in peace. ``close`` comes after it.

        :param at_boundary: False: leaves at once. The others need no step of this process any more,
            or do their present step again without it. True: waits for the view that goes on without
            this process and returns it; the caller completes its boundary step first
        :param timeout: seconds to wait for that view
        :raises ElasticError: it took longer
        """
        machine = self._machine
        deadline = time.monotonic() + (timeout if at_boundary else _LEAVE_SECONDS)
        with self._changed:
            machine.leave(time.monotonic(), at_boundary)
            self._thread.flush()
            while machine.is_member and self._thread.error is None:
                others = set(machine.newest.ids) - {machine.me.id}
                if not at_boundary and others <= {*machine.leaving, *machine.dead}:
                    break
                left = deadline - time.monotonic()
                if left <= 0:
                    if at_boundary:
                        raise ElasticError(f"the others did not let it go within {timeout:g} s")
                    break
                self._changed.wait(min(left, 0.05))
            return machine.newest if at_boundary and not machine.is_member else None

    def close(self) -> None:
        """Ends the agent. To the others this process is dead then."""
        self._thread.close()

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
