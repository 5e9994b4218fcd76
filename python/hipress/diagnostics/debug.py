"""Reading of dumps in which the nodes of a hanging job describe themselves.

The native library writes one JSON file per node, on SIGUSR1 or when a wait for other nodes takes
too long. :mod:`hipress.diagnostics.wait_graph` finds the waiting nodes and their causes in them.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Union

import msgspec

from hipress.base import files
from hipress.base.checked import DAMAGED
from hipress.diagnostics import agent_dump
from hipress.diagnostics.agent_dump import AgentDump, Seconds

FORMAT, VERSION = "hipress debug", 1
MAX_AGE_SECONDS = 180.0
"""Maximum age of a dump relative to the newest one. Older ones are of another run."""
MAX_APART_SECONDS = 60.0
"""Seconds between dumps of several jobs that are analyzed together. A process may be in several."""


class DebugError(ValueError):
    """File that is no dump, or a missing dump."""


class Iteration(msgspec.Struct, frozen=True, kw_only=True, rename={"number": "iteration"}):
    """Iteration of a key that has not ended on its node."""

    number: int
    seconds: Seconds
    """Seconds since it began on this node."""
    pushed: bool = True
    """Whether this worker's gradient is present. Servers push nothing."""
    queued: bool = False
    """Whether it waits for older iterations of its key."""
    waits_for: dict[str, int]
    """Number of expected messages, by node."""
    arriving_from: dict[str, int]
    """Number of messages whose payload is being received, by node."""
    sending_to: dict[str, int]
    """Number of messages in the transport, by node."""
    running: list[str]
    """Running and queued tasks of compute threads: "encode of partition 3"."""


class Key(msgspec.Struct, frozen=True, kw_only=True, rename={"number": "key"}):
    """Key on one node."""

    number: int
    name: str
    channel: int
    pushes: bool
    """False on servers."""
    pushed: int = 0
    """Iterations that this worker has pushed."""
    locked: bool
    """Whether a thread held its lock during the whole dump."""
    iterations: list[Iteration] = []


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """Call that waits for other nodes. Calls of one kind about the same thing belong together."""

    kind: str
    about: str
    seconds: Seconds


class Fetch(msgspec.Struct, frozen=True, kw_only=True, rename={"servers": "from"}):
    """Pull of a value from servers that belongs to no iteration."""

    key: int
    iteration: int
    """Number of this worker's pushes that the value must contain."""
    seconds: Seconds
    servers: list[str]


class Event(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Event of a task or of a whole gradient."""

    time: Seconds
    key: int
    iteration: int
    partition: int
    op: str
    state: str
    peer: str


class Dump(msgspec.Struct, frozen=True, kw_only=True):
    """Description that a node writes of itself."""

    path: str
    job: str = "?"
    """Address of the scheduler."""
    node: str
    """Name of the node: "worker 0"."""
    host: str
    pid: int
    time: Seconds
    reason: str
    process_nodes: int
    workers: int
    servers: int
    ranks: list[str]
    """Users' names of workers 0, 1, ...; empty if they are the same."""
    view: int = 0
    """Number of the elastic job's view of this node, or 0."""
    started: bool = False
    failure: str = ""
    missing: str = ""
    """Nodes that have not arrived at the job's start, in a scheduler's dump."""
    dead: dict[str, str]
    """Reasons of nodes' deaths."""
    left: list[str] = []
    silent: dict[str, Seconds]
    """Seconds since the last sign of life, by connected node."""
    calls: list[Call] = []
    barriers: dict[str, list[str]]
    """Nodes missing at a barrier at which other nodes wait, by barrier, in a scheduler's dump."""
    keys: list[Key] = []
    fetches: list[Fetch] = []
    events: list[Event] = []

    def label(self, node: str) -> str:
        """Return the users' name of a node: "rank 3" for a worker of PyTorch."""
        role, _, number = node.partition(" ")
        if role == "worker" and number.isdigit() and int(number) < len(self.ranks):
            return f"rank {self.ranks[int(number)]}"
        return node

    @property
    def name_of(self) -> dict[int, str]:
        """Names of keys by number."""
        return {key.number: key.name for key in self.keys}


def default_folder() -> Path:
    """Return the folder of this user's dumps: HIPRESS_DEBUG_DIR, or a private one."""
    chosen = os.environ.get("HIPRESS_DEBUG_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"hipress-debug-{os.geteuid()}"


def load(path: Union[str, os.PathLike[str]]) -> Union[Dump, AgentDump]:
    """Read a dump, of a node or of an elastic job's agent."""
    try:
        values = files.read_json(path, "dump")
    except files.FileError as error:
        raise DebugError(str(error)) from error
    if values.get("format") != FORMAT:
        raise DebugError(f"{path} is no dump of a HiPress node")
    if values.get("version") != VERSION:
        raise DebugError(f"{path} is a dump of another version of HiPress: {values.get('version')}")
    try:
        if "status" in values:
            return agent_dump.parse(str(path), values)
        return _dump(str(path), values)
    except (*DAMAGED, msgspec.MsgspecError) as error:
        raise DebugError(f"{path} is a damaged dump: {type(error).__name__}: {error}") from error


def _counts(rows: Iterable[Mapping]) -> dict:
    return {row["node"]: row["messages"] for row in rows}


def _iteration(values: Mapping) -> dict:
    running = [f"{row['op']} of partition {row['partition']}" for row in values.get("running", [])]
    names = ("waits_for", "arriving_from", "sending_to")
    return {**values, "running": running, **{n: _counts(values.get(n, [])) for n in names}}


def _key(values: Mapping) -> dict:
    return {**values, "iterations": [_iteration(row) for row in values.get("iterations", [])]}


def _dump(path: str, values: Mapping) -> Dump:
    """Return a dump from the JSON object that the native library has written."""
    scheduler = values.get("scheduler", {})
    ranks = values["ranks"]
    changed = {
        "path": path,
        "ranks": ranks.split(",") if ranks else [],
        "missing": scheduler.get("missing", ""),
        "dead": {row["node"]: row["what"] for row in values.get("dead", [])},
        "silent": {row["node"]: row.get("silent", 0.0) for row in values["links"]},
        "barriers": {row["about"]: row["missing"] for row in scheduler.get("barriers", [])},
        "keys": [_key(row) for row in values.get("keys", [])],
    }
    return msgspec.convert({**values, **changed}, Dump)


def load_all(places: Iterable[Union[str, os.PathLike[str]]]) -> list[Union[Dump, AgentDump]]:
    """Read dumps from files, and from all files in folders."""
    found: list[Union[Dump, AgentDump]] = []
    places = [Path(place) for place in places]
    for place in places:
        if not place.is_dir():
            found.append(load(place))
            continue
        try:
            found += [load(path) for path in sorted(place.glob("*.json"))]
        except OSError as error:
            raise DebugError(f"cannot read the folder {place}: {error.strerror}") from error
    if not found:
        listed = " and ".join(map(str, places))
        raise DebugError(
            f"there is no dump in {listed}: `kill -USR1` to each process of the job (or "
            "`hipress debug --now`) makes them, and so does a wait that takes too long"
        )
    return found


def latest_jobs(dumps: Iterable[Dump], newest: float) -> list[dict[str, Dump]]:
    """Return the newest dumps, by job and node.

    Jobs without a dump at about the time of the newest one are left out.
    """
    jobs: dict[str, dict[str, Dump]] = {}
    for dump in sorted(dumps, key=lambda dump: dump.time):
        # Nodes have no ranks until the job has started.
        unnamed = dump.node.startswith("a ")
        node = f"{dump.node} (process {dump.pid} on {dump.host})" if unnamed else dump.node
        jobs.setdefault(dump.job, {})[node] = dump
    last = {job: max(dump.time for dump in nodes.values()) for job, nodes in jobs.items()}
    return [
        {node: dump for node, dump in nodes.items() if dump.time > last[job] - MAX_AGE_SECONDS}
        for job, nodes in jobs.items()
        if last[job] > newest - MAX_APART_SECONDS
    ]
