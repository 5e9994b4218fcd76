"""State of an agent for people: the output of `hipress debug` for an elastic job."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from hipress.base import addresses
from hipress.elastic.membership.detector import Detector
from hipress.elastic.membership.protocol import Membership
from hipress.elastic.membership.view import slot_name


class Calls:
    """Calls of this process that wait for other processes, and since when.

    Use it under the agent's lock.
    """

    def __init__(self) -> None:
        self._running: dict[int, tuple[float, dict[str, Any]]] = {}
        self._last = 0

    @contextlib.contextmanager
    def waiting(self, about: str, epoch: int, rank: int = -1) -> Iterator[None]:
        """Record a call while it lasts.

        ``about`` is what it waits for, and ``rank`` the member, or -1 if any member will do.
        """
        self._last += 1
        number = self._last
        self._running[number] = time.monotonic(), {"about": about, "epoch": epoch, "rank": rank}
        try:
            yield
        finally:
            del self._running[number]

    def describe(self) -> list[dict[str, Any]]:
        """Return the calls, each with the seconds since its start."""
        now = time.monotonic()
        return [{**about, "seconds": now - since} for since, about in self._running.values()]


def describe(
    machine: Membership, detector: Detector, calls: Calls, error: str | None
) -> dict[str, Any]:
    """Return the state of an agent in JSON's types. Ids are those of members; seconds are ages.

    ``epoch`` is the newest view's, ``entered`` that in which the caller works: they differ until
    the view's ``boundary``, a step, is completed.
    """
    view, now = machine.newest, time.monotonic()
    slots = {each.id: each.slot for each in (*view.members, *machine.known.values())}
    return {
        "id": machine.me.id,
        "slot": machine.me.slot,
        "agents": [addresses.join(*each) for each in machine.addresses],
        "min_members": machine.min_members,
        "member": machine.is_member,
        "joining": machine.joining and not machine.is_member,
        "epoch": view.epoch,
        "entered": machine.entered,
        "boundary": -1 if view.boundary is None else view.boundary,
        "completed": machine.step,
        "members": [
            {"id": each.id, "slot": each.slot, "address": addresses.join(each.host, each.port)}
            for each in (view.members if view.epoch else ())
        ],
        "joined": list(view.joined),
        "departed": [{"slot": each.slot, "why": why} for each, why in view.departed],
        "dead": list(machine.dead),
        "joins": [{"id": each.id, "slot": each.slot} for each in machine.joins.values()],
        "suspects": [
            {"id": each, "slot": slots.get(each, -1), "silent": detector.silence(each, now)}
            for each in machine.suspects
        ],
        "calls": calls.describe(),
        "waits_for": error or waits_for(machine),
    }


def waits_for(machine: Membership) -> str:
    """Return a sentence about what a process waits for, or an empty string."""
    if machine.attempt is not None and machine.attempt.waits_for:
        return f"it waits for {machine.attempt.waits_for}"
    if machine.joining and machine.may_be_founded():
        known = {member.slot for member in machine.joins.values()} | {machine.me.slot}
        missing = sorted(set(range(len(machine.addresses))) - known)
        names = ", ".join(map(str, missing))
        return f"it waits for the processes of slot {names or '0'} to begin the job together"
    if machine.newest.epoch <= 0 and machine.joining:
        if machine.me.incarnation:
            if all(slot_name(slot) in machine.dead for slot in machine.other_slots()):
                return "the job is over: no process is left that has its state"
            return "it waits for the members to let it in"
        known = {member.slot for member in machine.joins.values()} | {machine.me.slot}
        missing = sorted(set(range(len(machine.addresses))) - known)
        if missing:
            return "it waits for the first processes of slot " + ", ".join(map(str, missing))
    if machine.joining:
        if all(member.id in machine.dead for member in machine.newest.members):
            return f"the job is over: no worker of view {machine.newest.epoch} is left"
        return f"it waits for the workers of view {machine.newest.epoch} to let it in"
    first = machine.candidates()[:1]
    if machine.trouble and first and machine.is_member:
        return f"it waits for {first[0]} to propose the next view, as {machine.trouble}"
    return f"the view has to end: {machine.trouble}" if machine.trouble else ""
