"""Dumps of elastic jobs' agents, with their knowledge of views."""

import sys
from collections.abc import Mapping
from typing import Annotated

import msgspec

_LARGEST = sys.float_info.max
Seconds = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]  # finite


class Seat(msgspec.Struct, frozen=True):
    """Member of a view. The seats are ordered by rank."""

    id: str
    slot: int
    address: str


class Suspect(msgspec.Struct, frozen=True):
    """Process that is suspected to have failed, because it is silent."""

    id: str
    slot: int
    """Slot of the process, or -1 if unknown."""
    silent: Seconds


class AgentCall(msgspec.Struct, frozen=True):
    """Call that waits for a text of a member, or for a view."""

    about: str
    epoch: int
    rank: int
    """Rank that the call waits for, or -1."""
    seconds: Seconds


class AgentDump(msgspec.Struct, frozen=True):
    """Description that an agent writes of itself; see :mod:`hipress.elastic.membership.status`."""

    path: str
    host: str
    pid: int
    time: Seconds
    process_nodes: int
    age: Seconds
    """Seconds since the agent wrote this. A large number shows that Python's lock was held."""
    id: str
    slot: int
    agents: tuple[str, ...]
    """Addresses of the job's agents, by slot, which identify the job."""
    min_members: int
    joining: bool
    epoch: int
    entered: int
    boundary: int
    """Step at which the newest view begins, or -1 if none is set."""
    completed: int
    members: tuple[Seat, ...]
    joined: frozenset[str]
    departed: dict[int, str]
    """Reasons why members of the previous view are not in the newest one, by slot."""
    dead: frozenset[str]
    """Ids of processes that have certainly ended."""
    joins: dict[str, int]
    """Slots of processes that request to join, by id."""
    suspects: tuple[Suspect, ...]
    calls: tuple[AgentCall, ...]
    waits_for: str

    @property
    def process(self) -> tuple[str, int]:
        """Host and process id."""
        return self.host, self.pid


def parse(path: str, values: Mapping) -> AgentDump:
    """Return a dump from the JSON object that an agent has written."""
    status = dict(values["status"])
    status["departed"] = {row["slot"]: row["why"] for row in status["departed"]}
    status["joins"] = {row["id"]: row["slot"] for row in status["joins"]}
    found = msgspec.convert({**status, **values, "path": path}, AgentDump)
    if not 0 <= found.slot < len(found.agents):
        raise ValueError(f"slot {found.slot} of {len(found.agents)}")
    return found
