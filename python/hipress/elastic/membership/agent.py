"""Interface of a process to elastic membership: join, observe views, report completed steps."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hipress.base import addresses
from hipress.elastic.membership import notes
from hipress.elastic.membership.agent_thread import AgentThread
from hipress.elastic.membership.membership_errors import (
    ElasticError,
    Evicted,
    TrainingOver,
    ViewChanged,
)
from hipress.elastic.membership.settings import SECRET_CHARACTERS, AgentSettings, from_environment
from hipress.elastic.membership.status import waits_for
from hipress.elastic.membership.view import NO_STATE, View

_ASK_SECONDS = 0.25  # between two requests for a note
_LEAVE_SECONDS = 1.0  # for the job to continue without a member that leaves


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, as in file names that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


class Agent:
    """Connection of this process to the job's membership protocol. One agent exists per process.

    All methods may be called from any thread.

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

    Args:
        agents: the (host, port) of each slot's agent, the same in all processes
        slot: this process's slot; it listens on that address
        secret: the job's secret, 16 bytes or more
        min_members: a view has that many members or more
        restart: how often the slot's process has been restarted; only those with 0 form the first
            view. No count is needed if all processes use ``view.uncounted(time.time())``
        heartbeat_timeout: seconds of silence after which a process is left out
        start_timeout: seconds after which the first view may be formed without all slots
        on_change: called in the agent's thread, with the newest view, when an epoch ends at once: a
            member failed, the next view is there (unless it has a boundary), or this process is
            evicted. It must return quickly, because no sign of life is sent during the call
        on_status: also called in the agent's thread, several times in a heartbeat timeout, with
            what ``status`` returns, and with None when the agent ends
        tls_mode: ``auto`` (encrypt connections between machines), ``on`` or ``off``
        ended_file: file in which the supervisor reports which slots' processes have ended

    Raises:
        ElasticError: an argument is wrong, or the address is taken
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
        settings = AgentSettings(
            tuple(agents),
            slot,
            secret,
            min_members,
            restart,
            heartbeat_timeout,
            tls_mode,
            ended_file,
        )
        self._thread = AgentThread(settings, start_timeout, on_change, on_status)
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
        """Return the agent of a process that was started as by ``hipress launch --elastic``.

        Raises:
            ElasticError: a variable is missing or wrong, or the address is taken
        """
        return cls(**vars(from_environment(environ)), on_change=on_change, on_status=on_status)

    @property
    def id(self) -> str:
        """Id of this process as a member.

        It changes when the process joins again after an eviction.
        """
        return self._machine.me.id

    @property
    def address(self) -> str:
        """Address at which other processes reach this process's host."""
        host = self._machine.me.host
        return self._thread.other_address or addresses.resolve(host) or host

    @property
    def slot(self) -> int:
        """This process's slot."""
        return self._machine.me.slot

    def join(self, timeout: float) -> View:
        """Become a member and enter the view.

        Args:
            timeout: seconds

        Raises:
            ElasticError: it took longer; the message says what was waited for
            TrainingOver: there is nothing to take part in any more
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
        """Return the newest view if this process is in it, without entering it.

        Its boundary may be ahead.
        """
        with self._changed:
            return self._machine.newest if self._machine.is_member else None

    def completed(self, step: int, clean: bool = True, epoch: int | None = None) -> None:
        """Report that this process's state is the state after ``step``. Sends no message.

        Call this also after a member that was ``behind`` has copied the source's state. While a
        boundary is being decided, the call waits one round trip for it before it passes it.

        Args:
            step: number of the step
            clean: whether the state is exactly the one after ``step``. Otherwise this process may
                have to copy it in the next view.
            epoch: epoch of the view in which the step was done. By default, the one entered last.
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
        """Request a new view at once, because this epoch's communicator failed.

        Do nothing if a newer view exists. Call ``await_view`` next.
        """
        with self._changed:
            self._machine.request_change(time.monotonic(), _encodable(reason), epoch)
            self._thread.flush()

    def await_view(self, after: int, timeout: float) -> View:
        """Wait for a view of a later epoch than ``after``, and enter it.

        A view that is known to end already is not returned. One whose boundary is ahead is returned
        at once, and not entered yet.

        Args:
            after: epoch
            timeout: seconds

        Raises:
            ElasticError: it took longer; the message says what was waited for
            Evicted: the job continued without this process; it may ``join`` again
        """
        with self._changed:
            return self._await(after, timeout, f"there is no view after view {after}")

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
                raise TrainingOver(
                    "the other workers have reached the end of training without this one"
                )
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
            raise Evicted(f"view {view.epoch} continues without this process{why}")
        if self.expelled:
            raise Evicted(f"the other workers continue without this process: {self.expelled}")

    @property
    def expelled(self) -> str:
        """Reason why other processes asked this member to leave, or an empty string."""
        return self._machine.expelled.get(self._machine.me.id, "")

    def ended(self, epoch: int) -> str:
        """Return the reason why this epoch has ended or is about to end.

        Empty if its members work on.
        """
        with self._changed:
            machine = self._machine
            if self._thread.error is not None:
                return self._thread.error
            if not machine.is_member:
                return "the other workers continue without this process"
            if epoch < max(machine.base_epoch, machine.entered):
                return f"view {machine.newest.epoch} follows"
            return machine.trouble if epoch <= machine.newest.epoch else ""

    @property
    def is_over(self) -> bool:
        """Whether a member has reached the end of training."""
        with self._changed:
            return self._thread.notes.over

    def share(self, epoch: int, key: str, value: str) -> None:
        """Share a short text with the members of a view. The first value of a key counts.

        Raises:
            ValueError: it is too long
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
        """Wait for a text that a member of the view shares.

        Args:
            epoch: epoch of the view
            key: key of the text
            timeout: seconds
            rank: rank of the member that shares the text, if it is known
            required: whether that member must be at work. If it lives but does not reach this point
                in time, a member with the job's state asks it to leave. The job then continues
                without it.

        Raises:
            ViewChanged: the view has ended
            Evicted: the job continued without this process
            ElasticError: it took longer
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
                    raise ViewChanged(f"view {epoch} has ended: {why}")
                now = time.monotonic()
                if now >= last:
                    raise ElasticError(
                        f"no worker of view {epoch} has shared '{key}' after {timeout:g} s"
                    )
                if now >= next_request:
                    next_request = now + _ASK_SECONDS
                    self._thread.send_note([view, key], sorted(machine.other_slots()))
                    if now >= deadline:
                        why = f"the other workers have waited {timeout:g} s for it"
                        self._expel(epoch, rank, why)
                self._changed.wait(min(last, next_request) - now)

    def _expel(self, epoch: int, rank: int, why: str) -> None:
        machine = self._machine
        for view in (machine.newest, machine.previous):
            if view.epoch == epoch:
                machine.expel(time.monotonic(), view.ids[rank], epoch, why)
                self._thread.flush()

    def status(self) -> dict[str, Any]:
        """Return the agent's state for people, in JSON's types. See :mod:`.status`."""
        return self._thread.status()

    def leave(self, at_boundary: bool = False, timeout: float = 60.0) -> View | None:
        """Leave the job on purpose. Call ``close`` afterwards.

        Args:
            at_boundary: False: leave at once. The other members need no step of this process any
                more, or repeat their present step without it. True: wait for the view that
                continues without this process and return it. The caller completes its boundary step
                first.
            timeout: seconds to wait for that view

        Raises:
            ElasticError: it took longer
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
                        raise ElasticError(
                            f"the other workers did not agree within {timeout:g} s that it leaves"
                        )
                    break
                self._changed.wait(min(left, 0.05))
            return machine.newest if at_boundary and not machine.is_member else None

    def close(self) -> None:
        """End the agent. Other processes then consider this process dead."""
        self._thread.close()

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
