"""Members and views: the processes of each epoch, and the source of their state."""

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, NamedTuple, Optional

import msgspec

from hipress.base.addresses import join

NO_STATE = -1  # a member's completed step before it has any state
UNCOUNTED = 1 << 46  # the incarnations from here on count from the clock
NEVER_AGAIN = 1 << 62  # above every incarnation


class ArrayStruct(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Values that are written in JSON as an array of the fields, in their order.

    Annotations are evaluated, in Python 3.9 too: they say ``Optional[int]``, not ``int | None``.
    """


class Process(ArrayStruct, frozen=True):
    """A process as identified by its host's kernel.

    Args:
        boot: the kernel's boot id; empty if the process could not be identified
        namespace: the namespace of ``pid`` and, after a space, that of ``start`` if it is known
        start: when the process was started, in ticks since the host's boot
    """

    boot: str
    namespace: str
    pid: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
    start: int

    @property
    def timeline(self) -> tuple[str, str]:
        """Boot id and time namespace. Start times of different timelines are not comparable."""
        return self.boot, self.namespace.partition(" ")[2]


NO_PROCESS = Process("", "", 0, 0)


class Ended(NamedTuple):
    """A launcher's report that a slot's processes of one process table have ended.

    A slot's command may be the client of a process elsewhere, such as ``docker run`` or ``ssh``.
    The report covers only processes that run where the command ran.

    Args:
        below: processes with lower incarnations have ended. ``NEVER_AGAIN``: no other one will be
            started
        boot: boot id of the command's kernel
        namespace: the command's namespace, as ``Process.namespace``
    """

    below: int
    boot: str
    namespace: str

    def has_table_of(self, process: Process) -> bool:
        """Return whether the report is about the process table that contains a process."""
        known = bool(self.boot)
        return known and (process.boot, process.namespace) == (self.boot, self.namespace)


class Member(ArrayStruct, frozen=True):
    """One incarnation of a worker process.

    ``incarnation`` grows with each process at a slot, and when a process joins again: of two
    members of one slot, the earlier one has ended for good (``follows``).
    """

    id: str
    slot: int
    host: str
    port: int
    incarnation: int = 0
    process: Process = NO_PROCESS

    def follows(self, other: "Member") -> Optional[bool]:
        """Return whether this member is later at its slot than ``other``, or None if unknown.

        If restarts are not counted, start times order the processes of one kernel. For processes of
        two hosts, from before and after a reboot, or of an unknown kernel, only the time of day
        would give an order. A clock may be set back, so it is not used.
        """
        one, two = self.process, other.process
        if self.uncounted and other.uncounted and self.id != other.id:
            if not one.boot or one.timeline != two.timeline:
                return None
            if one.start != two.start:
                return one.start > two.start
            if one != two:
                return None
        return self.incarnation > other.incarnation

    def __str__(self) -> str:
        return f"slot {self.slot} ({join(self.host, self.port)})"

    @property
    def uncounted(self) -> bool:
        """Whether it is unknown how many earlier processes its slot has had."""
        return self.incarnation >= UNCOUNTED


class View(ArrayStruct, frozen=True):
    """Members of one epoch in rank order, and the state with which they begin.

    Args:
        epoch: 1 for the first view; 0 stands for the slots from which that is formed
        members: the rank is the index; survivors keep their order, joiners come behind
        step: the highest completed step of the members; with a boundary, the boundary
        source: id of the member whose state (after ``step``) all members must have
        behind: ids of the members that must copy the source's state first
        boundary: the members work on in the former epoch until they completed this step; None: not
            a step more
        departed: members of the former view that are not in this one, and why
        joined: ids of the members that were not in the former view
    """

    epoch: int
    members: Annotated[tuple[Member, ...], msgspec.Meta(min_length=1)]
    step: int = 0
    source: str = ""
    behind: tuple[str, ...] = ()
    boundary: Optional[int] = None
    departed: tuple[tuple[Member, str], ...] = ()
    joined: tuple[str, ...] = ()

    def __contains__(self, member_id: object) -> bool:
        return any(member.id == member_id for member in self.members)

    def rank(self, member_id: str) -> int:
        """Return the rank of a member.

        Raises:
            ValueError: it is not in this view
        """
        for rank, member in enumerate(self.members):
            if member.id == member_id:
                return rank
        raise ValueError(f"no worker of view {self.epoch} has the id {member_id}")

    @property
    def identity(self) -> str:
        """A unique text of this view: its number, and a hash of the number and the members' ids.

        Two views may have the same number if the processes of one of them are cut off or dead.
        """
        text = json.dumps([self.epoch, *self.ids])
        return f"{self.epoch}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the members, by rank."""
        return tuple(member.id for member in self.members)


def new_member(
    slot: int,
    addresses: Sequence[tuple[str, int]],
    member_id: str,
    restart: int,
    process: Process = NO_PROCESS,
) -> Member:
    """Return the first membership of a process whose slot's process was restarted so often."""
    host, port = addresses[slot]
    return Member(member_id, slot, host, port, first_incarnation(restart), process)


def first_incarnation(restart: int) -> int:
    """Return a process's first incarnation. Each time it joins again, it gets a higher one."""
    return restart << 16


def uncounted(seconds: float) -> int:
    """Return the number to use for ``restart`` if restarts are not counted.

    Args:
        seconds: the time of day. It makes the number unlikely to occur twice, and orders nothing
    """
    return (UNCOUNTED >> 16) + int(seconds * 10)


def slot_name(slot: int) -> str:
    """Return the name under which the first process of a slot votes for the first view."""
    return f"slot-{slot}"


def first_electorate(addresses: list[tuple[str, int]]) -> View:
    """Return epoch 0: the slots, whose first processes decide on the first view."""
    slots = (Member(slot_name(slot), slot, *address) for slot, address in enumerate(addresses))
    return View(0, tuple(slots), NO_STATE)
