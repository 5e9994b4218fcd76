"""The dump of an elastic job's agent: what a process knows of views, beside its nodes' dumps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hipress.checked import get, texts


@dataclass(frozen=True)
class Seat:
    """A member of a view, by its rank's order."""

    id: str
    slot: int
    address: str


@dataclass(frozen=True)
class Suspect:
    """A process that is not heard."""

    id: str
    slot: int
    """-1: not known."""
    silent: float
    """Seconds."""


@dataclass(frozen=True)
class AgentCall:
    """A call that waits for a text of a member, or for a view."""

    about: str
    epoch: int
    rank: int
    """Who is waited for; -1: nobody in particular."""
    seconds: float


@dataclass(frozen=True)
class AgentDump:
    """An agent's description of itself; see :mod:`hipress.elastic.status`."""

    path: str
    host: str
    pid: int
    time: float
    process_nodes: int
    age: float
    """Seconds since the agent said so; Python's interpreter was held meanwhile."""
    id: str
    slot: int
    agents: tuple[str, ...]
    """Addresses of the job's agents, by slot, which tell one job from another."""
    min_members: int
    joining: bool
    epoch: int
    entered: int
    boundary: int
    """-1: the newest view has none."""
    completed: int
    members: tuple[Seat, ...]
    joined: frozenset[str]
    departed: dict[int, str]
    """Why members of the view before are not in the newest one, by slot."""
    dead: frozenset[str]
    """Ids of processes that have certainly ended."""
    joins: dict[str, int]
    """Slots of processes that ask to join, by id."""
    suspects: tuple[Suspect, ...]
    calls: tuple[AgentCall, ...]
    waits_for: str

    @property
    def process(self) -> tuple[str, int]:
        """Host and process id."""
        return self.host, self.pid


def parse(path: str, values: Mapping) -> AgentDump:
    """:raises Exception: one of hipress.checked.DAMAGED"""
    status = get(values, "status", dict)
    found = AgentDump(
        path=path,
        host=get(values, "host", str),
        pid=get(values, "pid", int),
        time=get(values, "time", float),
        process_nodes=get(values, "process_nodes", int),
        age=get(values, "age", float),
        id=get(status, "id", str),
        slot=get(status, "slot", int),
        agents=tuple(texts(get(status, "agents", list), "agents")),
        min_members=get(status, "min_members", int),
        joining=get(status, "joining", bool),
        epoch=get(status, "epoch", int),
        entered=get(status, "entered", int),
        boundary=get(status, "boundary", int),
        completed=get(status, "completed", int),
        members=tuple(
            Seat(get(row, "id", str), get(row, "slot", int), get(row, "address", str))
            for row in get(status, "members", list)
        ),
        joined=frozenset(texts(get(status, "joined", list), "joined")),
        departed={
            get(row, "slot", int): get(row, "why", str) for row in get(status, "departed", list)
        },
        dead=frozenset(texts(get(status, "dead", list), "dead")),
        joins={get(row, "id", str): get(row, "slot", int) for row in get(status, "joins", list)},
        suspects=tuple(
            Suspect(get(row, "id", str), get(row, "slot", int), get(row, "silent", float))
            for row in get(status, "suspects", list)
        ),
        calls=tuple(
            AgentCall(
                get(row, "about", str),
                get(row, "epoch", int),
                get(row, "rank", int),
                get(row, "seconds", float),
            )
            for row in get(status, "calls", list)
        ),
        waits_for=get(status, "waits_for", str),
    )
    if not 0 <= found.slot < len(found.agents):
        raise ValueError(f"slot {found.slot} of {len(found.agents)}")
    return found
