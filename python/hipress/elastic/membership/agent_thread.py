"""Thread of the agent: sockets and a clock around the membership protocol."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from hipress.base import addresses
from hipress.base.files import read_private
from hipress.elastic.membership import evidence, messages
from hipress.elastic.membership.detector import Detector
from hipress.elastic.membership.links import Link, Listener
from hipress.elastic.membership.membership_errors import ElasticError
from hipress.elastic.membership.messages import (
    Installed,
    Left,
    MemberEvicted,
    Output,
    Send,
    Verify,
    ViewEnding,
)
from hipress.elastic.membership.notes import Notes, is_note
from hipress.elastic.membership.protocol import Membership, new_member
from hipress.elastic.membership.settings import AgentSettings, parse_ended
from hipress.elastic.membership.status import Calls, describe
from hipress.elastic.membership.tls import listener_context, wants_tls
from hipress.elastic.membership.view import Ended, Member, Process, View, slot_name

log = logging.getLogger("hipress.elastic")

START_SECONDS = 10.0  # for the address to become free
EXIT_SECONDS = 0.5  # longest time between the closing of a process's sockets and its end
_MESSAGE, _NOTE = "message", "note"
_threads: weakref.WeakSet[AgentThread] = weakref.WeakSet()


class AgentThread:
    """Thread that owns the protocol's state.

    Other threads use ``machine`` and ``notes`` under ``changed`` and then call ``flush``.

    Args:
        changed: notified when a view is installed, this process is evicted, or a note arrives
    """

    def __init__(
        self,
        settings: AgentSettings,
        start_timeout: float,
        on_change: Callable[[View], None] | None,
        on_status: Callable[[dict[str, Any] | None], None] | None,
    ) -> None:
        self.secret, self.tls_mode = settings.secret, settings.tls_mode
        agents, process = list(settings.agents), evidence.this_process()
        heartbeat_timeout = settings.heartbeat_timeout
        self.other_address: str | None = None
        """Address of this host, if its own name means loopback on it."""
        self.changed = threading.Condition(threading.RLock())
        self.machine = Membership(
            new_member(settings.slot, agents, uuid.uuid4().hex, settings.restart, process),
            agents,
            settings.min_members,
            time.monotonic(),
            heartbeat_timeout,
            start_timeout,
        )
        self.notes = Notes()
        self._refused: dict[int, float] = {}  # by slot: when refusals began
        self._seen_running: set[Process] = set()  # in this host's process table
        self._in_doubt: dict[int, frozenset[str]] = {}  # by slot: `in_doubt` at its last dial
        self.evicted: View | None = None
        self.error: str | None = None  # why the thread ended
        self.calls = Calls()
        self._on_change, self._on_status = on_change, on_status
        self._ended_file, self._ended_text = settings.ended_file, ""
        self._ended_level = logging.WARNING
        self._detector = Detector(heartbeat_timeout, time.monotonic())
        self._tick_seconds = min(max(heartbeat_timeout / 20, 0.01), 0.25)
        self._links: dict[int, Link] = {}
        self._listener = Listener(self, self._wake_link)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hipress-elastic", daemon=True)
        self._thread.start()
        self._started.wait()
        if self.error is not None:
            raise ElasticError(self.error)
        _threads.add(self)

    @property
    def me(self) -> Member:
        """This process."""
        return self.machine.me

    def close(self) -> None:
        """End the thread and close its sockets. Other processes then consider this process dead."""
        if self._loop is not None and self._end is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(5)

    def status(self) -> dict[str, Any]:
        """Return the state of the agent for people, as :func:`.status.describe` does."""
        with self.changed:
            return describe(self.machine, self._detector, self.calls, self.error)

    def flush(self) -> None:
        """Make the thread carry out the machine's outputs."""
        if self.machine.outputs and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pump)

    def identity(self, epoch: int) -> str:
        """Return the identity of this process's view of an epoch.

        For an epoch before the previous one, return an identity that no view has.
        """
        for view in (self.machine.newest, self.machine.previous):
            if view.epoch == epoch:
                return view.identity
        return f"{epoch}-"

    def send_note(self, note: list[Any], slots: Sequence[int]) -> None:
        """Send the note [view, key, value], or request the value with [view, key]."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._send_all, slots, self._payload(_NOTE, note))

    # Methods below run in the thread.

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except ElasticError as error:
            self.error = str(error)
        except Exception as error:  # threads that wait must receive the error
            log.exception("elastic: the agent's thread ended")
            self.error = f"the agent's thread ended: {error!r}"
        finally:
            with self.changed:
                self.error = self.error or "the agent is closed"
                self.changed.notify_all()
            self._started.set()
            if self._on_status is not None:
                self._on_status(None)

    async def _main(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        await self._listen()
        for slot in sorted(self.machine.other_slots()):
            self._links[slot] = Link(self, slot, *self.machine.addresses[slot])
        tasks = [asyncio.ensure_future(link.run()) for link in self._links.values()]
        tasks.append(asyncio.ensure_future(self._ticks()))
        self._started.set()
        ended = asyncio.ensure_future(self._end.wait())
        try:
            await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            self._listener.close()
            pending = {*tasks, ended}
            while pending:  # wait_for (Python < 3.12) may swallow a cancellation
                for task in pending:
                    task.cancel()
                _, pending = await asyncio.wait(pending, timeout=0.05)

    async def _listen(self) -> None:
        """Listen at this process's address. Retry while it is in use or its name is unknown.

        The process listens before it dials, so that every process that knows it can detect its
        death. The slot's former process may still hold the address, and a new container's name may
        not be known yet.
        """
        host, port = self.machine.addresses[self.me.slot]
        hosts = [each for each, _ in self.machine.addresses]
        deadline = time.monotonic() + START_SECONDS
        # Names and routes may be missing when a machine starts.
        while addresses.is_unclear(host, hosts) and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
        self.other_address = addresses.behind_loopback(host, hosts)
        if self._may_use_tls(self.other_address or host, hosts):
            listener_context()
        while True:
            try:
                await self._listener.start(self.other_address or host, port)
                return
            except (OSError, UnicodeError) as error:  # UnicodeError: such as two dots in a row
                number = error.errno if isinstance(error, OSError) else None
                passes = number == errno.EADDRINUSE or isinstance(error, socket.gaierror)
                if not passes or time.monotonic() > deadline:
                    raise ElasticError(
                        f"slot {self.me.slot}'s agent cannot listen on "
                        f"{addresses.join(host, port)}, its address in HIPRESS_ELASTIC_AGENTS: "
                        f"{getattr(error, 'strerror', None) or error}"
                    ) from error
            await asyncio.sleep(0.05)

    def _may_use_tls(self, host: str, hosts: Sequence[str]) -> bool:
        """Return whether connections from other agents may be encrypted."""
        if self.tls_mode != "auto":
            return self.tls_mode == "on"
        ours = addresses.resolve(host)
        others = [addresses.resolve(each) for each in hosts]
        return any(
            ours is None or each is None or wants_tls(self.tls_mode, ours, each) for each in others
        )

    async def _ticks(self) -> None:
        while True:
            now = time.monotonic()
            with self.changed:
                for slot, report in self._read_ended().items():
                    self.machine.ended(now, slot, report)
                for member_id in self.machine.dead:
                    self._detector.forget(member_id)
                for member_id, seconds in self._detector.tick(now):
                    why = f"it has been silent for {seconds:.1f} s"
                    self.machine.suspect(now, member_id, False, why)
                for member in list(self.machine.known.values()):
                    self._look_for(member.process)
                    if member.id in self.machine.suspects and self._has_ended(member):
                        self.machine.suspect(now, member.id, True, "its process has ended")
                self.machine.tick(now)
            self._pump()
            if self._on_status is not None:
                self._on_status(self.status())
            await asyncio.sleep(self._tick_seconds)

    def _read_ended(self) -> dict[int, Ended]:
        """Return the supervisor's report of ended processes, or an empty one if it is unchanged."""
        if not self._ended_file:
            return {}
        try:
            text = read_private(self._ended_file)
            if text == self._ended_text:
                return {}
            self._ended_text = text
            return parse_ended(text)
        except FileNotFoundError:
            return {}  # no process has ended, or the supervisor itself has ended
        except (OSError, ValueError, RecursionError) as error:  # the last one for deep JSON
            level, self._ended_level = self._ended_level, logging.DEBUG  # warn once
            log.log(
                level,
                "elastic: cannot read %s (HIPRESS_ELASTIC_ENDED): %s",
                self._ended_file,
                error,
            )
            return {}

    def known_at(self, slot: int) -> Member | None:
        """Return the process that was last known at a slot, before an attempt to connect to it."""
        with self.changed:
            self._in_doubt[slot] = self.machine.in_doubt(slot)
            return self.machine.known.get(slot)

    def has_other_slot(self, slot: int) -> bool:
        """Return whether a slot exists and is not that of this process."""
        return slot in self.machine.other_slots()

    def on_connected(self, member: Member) -> None:
        """Handle a new connection with a process."""
        with self.changed:
            now = time.monotonic()
            self._refused.pop(member.slot, None)
            self._heard(member, now)
            self.machine.met(now, member)
        self._pump()

    def on_answer(self, member: Member) -> None:
        """Handle a new connection from this process to another one."""
        with self.changed:
            earlier = self._in_doubt.get(member.slot, frozenset())
            self.machine.answers(time.monotonic(), member, earlier)
        self._pump()

    def on_refused(self, slot: int, before: Member | None, undelivered: list[Any]) -> None:
        """Handle a refused connection to a slot."""
        with self.changed:
            now = time.monotonic()
            since = self._refused.setdefault(slot, now)
            ballots = [
                messages.from_plain(body).ballot
                for kind, _, body in undelivered
                if kind == _MESSAGE and body[0] == messages.Collect.__name__
            ]
            ended = before is not None and self._has_ended(before)
            address = self._address_of(slot)
            if (
                before is not None
                and not ended
                and evidence.is_of_this_host(before.process, address)
            ):
                before = before if now > since + EXIT_SECONDS else None
            self.machine.refused(now, slot, before, ended, self._is_vacant(slot), ballots)
        self._pump()

    def _address_of(self, slot: int) -> str:
        """Return the IP address of a slot's last connection; empty if there was none yet."""
        link = self._links.get(slot)
        return link.tried[0] if link is not None and link.tried is not None else ""

    def _has_ended(self, member: Member) -> bool:
        """Return whether this host's kernel shows that a member's process has ended."""
        return member.process in self._seen_running and evidence.has_ended(
            member.process, self._address_of(member.slot)
        )

    def _look_for(self, process: Process) -> None:
        """Record a process that runs on this host."""
        if process not in self._seen_running and evidence.is_running(process):
            self._seen_running.add(process)

    def _is_vacant(self, slot: int) -> bool:
        """Return whether this host's kernel shows that a slot has no process.

        A slot whose process was not seen running on this host may have it on another one.
        """
        link = self._links[slot]
        if link.writer is not None or link.tried is None:
            return False
        members = {each for each in self.machine.newest.members if each.id != slot_name(each.slot)}
        members.update(self.machine.known.values())
        processes = {member.process for member in members if member.slot == slot}
        if not processes and link.substituted:
            return False  # the slot's host may have another address
        return processes <= self._seen_running and evidence.is_vacant(*link.tried)

    def alone(self) -> bool:
        """Return whether no other slot has had a process for the time that a start may take.

        Restarted processes that ask to join do not count. If restarts are not counted, return
        False, because such processes can start the job again together.
        """
        if self.me.uncounted:
            return False
        since = time.monotonic() - self.machine.start_timeout
        joining = {each.slot for each in self.machine.joins.values() if each.incarnation}
        refused = {slot for slot, at in self._refused.items() if at < since}
        return self.machine.other_slots() <= refused | joining

    def on_payload(self, sender: Member, payload: Any) -> None:
        """Handle a message or a note.

        Raises ``Malformed`` if it is neither.
        """
        if not isinstance(payload, list) or len(payload) != 3:
            raise messages.Malformed("no message")
        kind, plain, body = payload
        member = messages.member_from_plain(plain)
        if member.slot != sender.slot:
            raise messages.Malformed(f"slot {sender.slot} wrote as slot {member.slot}")
        if kind == _NOTE:
            self._on_note(member, body)
            return
        message = messages.from_plain(body)
        if not messages.slots_of(message) <= {self.me.slot, *self.machine.other_slots()}:
            raise messages.Malformed("a message about slots that this job does not have")
        with self.changed:
            now = time.monotonic()
            self._heard(member, now)
            vacant: frozenset[int] = frozenset()
            if isinstance(message, messages.Collect):
                vacant = frozenset(filter(self._is_vacant, self._links))
            self.machine.receive(now, member, message, vacant)
        self._pump()

    def _heard(self, member: Member, now: float) -> None:
        self._look_for(member.process)
        if member.id not in self.machine.dead and self._detector.heard(member.id, now):
            self.machine.trust(now, member.id)

    def _on_note(self, sender: Member, body: Any) -> None:
        if not is_note(body):
            raise messages.Malformed("no note")
        with self.changed:
            views = {view.identity: view for view in (self.machine.newest, self.machine.previous)}
            if body[0] in views and sender.id not in views[body[0]]:
                return
            if len(body) == 3:
                self.notes.put(*body, present=views)
                self.changed.notify_all()
                return
            value = self.notes.get(*body)
        if value is not None:
            self._send_all([sender.slot], self._payload(_NOTE, [*body, value]))

    def _payload(self, kind: str, body: list[Any]) -> list[Any]:
        return [kind, messages.member_to_plain(self.me), body]

    def _send_all(self, slots: Sequence[int], payload: list[Any]) -> None:
        for slot in slots:
            if slot in self._links:
                self._links[slot].send(payload)

    def _wake_link(self, slot: int) -> None:
        if slot in self._links:
            self._links[slot].wake()

    def _pump(self) -> None:
        with self.changed:
            todo, self.machine.outputs = self.machine.outputs, []
        for output in todo:
            if isinstance(output, Verify):
                if output.slot in self._links:
                    self._links[output.slot].redial()
            elif isinstance(output, Send):
                plain = messages.to_plain(output.message)
                self._send_all([output.slot], self._payload(_MESSAGE, plain))
            else:
                self._changed(output)

    def _changed(self, output: Output) -> None:
        with self.changed:
            if isinstance(output, MemberEvicted) and not self.machine.joining:
                self.evicted = output.view
            if isinstance(output, Installed):
                for member in output.view.members:
                    if member.id != self.me.id:
                        self._detector.watch(member.id, time.monotonic())
            self.changed.notify_all()
        view = output.view
        if isinstance(output, ViewEnding):
            log.info("elastic: view %d ends: %s", view.epoch, output.why)
        elif isinstance(output, Installed):
            log.info("elastic: view %d has %d workers", view.epoch, len(view.members))
        elif isinstance(output, (MemberEvicted, Left)):
            log.info("elastic: view %d continues without this process", view.epoch)
        at_once = isinstance(output, Installed) and view.boundary is None
        if self._on_change is not None and (
            at_once or isinstance(output, (ViewEnding, MemberEvicted))
        ):
            try:
                self._on_change(view)
            except Exception:
                log.exception("elastic: on_change failed")

    def drop_sockets(self) -> None:
        """Close this process's copies of the sockets after a fork.

        Otherwise the child's copies would hide the parent's death from other processes.
        """
        sockets = list(self._listener.sockets)
        writers = [*self._listener.writers, *(link.writer for link in self._links.values())]
        sockets += [writer.get_extra_info("socket") for writer in writers if writer is not None]
        null = os.open(os.devnull, os.O_RDWR)
        try:
            for each in sockets:
                if each is not None and each.fileno() >= 0:
                    os.dup2(null, each.fileno(), inheritable=False)
        finally:
            os.close(null)


def _after_fork_in_child() -> None:
    for thread in list(_threads):
        thread.drop_sockets()


os.register_at_fork(after_in_child=_after_fork_in_child)
