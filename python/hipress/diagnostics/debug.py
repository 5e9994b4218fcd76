"""Reading of the dumps in which nodes of a hanging job describe themselves.

The native library writes a dump per node, a JSON file: on SIGUSR1, or when a wait for other nodes
takes too long. :mod:`hipress.diagnostics.wait_graph` finds in them who waits for whom.
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
"""Seconds by which a dump may be older than the newest of its job: what is older is of another run
on the same port."""
MAX_APART_SECONDS = 60.0
"""Seconds between dumps of several jobs that are looked at together: a process may be in some."""


class DebugError(ValueError):
    """A file is no dump, or there is none."""


class Iteration(msgspec.Struct, frozen=True, kw_only=True, rename={"number": "iteration"}):
    """An iteration of a key that is not over on its node."""

    number: int
    seconds: Seconds
    """Since it began here."""
    pushed: bool = True
    """Whether this worker's gradient is there; servers push nothing."""
    queued: bool = False
    """Whether it waits for older iterations of its key."""
    waits_for: dict[str, int]
    """Messages that are still to come, by node."""
    arriving_from: dict[str, int]
    """Messages whose payload is being received, by node."""
    sending_to: dict[str, int]
    """Messages that the transport has, by node."""
    running: list[str]
    """Tasks that compute threads have, or are to have: "encode of partition 3"."""


class Key(msgspec.Struct, frozen=True, kw_only=True, rename={"number": "key"}):
    """A key as one node has it."""

    number: int
    name: str
    channel: int
    pushes: bool
    """False on servers."""
    pushed: int = 0
    """Iterations that this worker has pushed."""
    locked: bool
    """Whether a thread held its lock all the time."""
    iterations: list[Iteration] = []


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for other nodes; all calls of one kind about the same belong together."""

    kind: str
    about: str
    seconds: Seconds


class Fetch(msgspec.Struct, frozen=True, kw_only=True, rename={"servers": "from"}):
    """A pull that is no iteration's: its value comes from servers."""

    key: int
    iteration: int
    """Pushes of this worker that the value must contain."""
    seconds: Seconds
    servers: list[str]


class Event(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Something that happened to a task, or to a whole gradient."""

    time: Seconds
    key: int
    iteration: int
    partition: int
    op: str
    state: str
    peer: str


class Dump(msgspec.Struct, frozen=True, kw_only=True):
    """A node's description of itself."""

    path: str
    job: str = "?"
    """The scheduler's address."""
    node: str
    """ "worker 0"."""
    host: str
    pid: int
    time: Seconds
    reason: str
    process_nodes: int
    workers: int
    servers: int
    ranks: list[str]
    """Users' names of workers 0, 1, ...; empty if they are just that."""
    view: int = 0
    """The elastic job's view for which this node is; 0: none."""
    started: bool = False
    failure: str = ""
    missing: str = ""
    """Nodes that have not come to the job's start, of a scheduler."""
    dead: dict[str, str]
    """Reasons of nodes' deaths."""
    left: list[str] = []
    silent: dict[str, Seconds]
    """Seconds since the last sign of life, by connected node."""
    calls: list[Call] = []
    barriers: dict[str, list[str]]
    """Nodes that have not come to a barrier that others are in, by barrier; of a scheduler."""
    keys: list[Key] = []
    fetches: list[Fetch] = []
    events: list[Event] = []

    def label(self, node: str) -> str:
        """Return the name that users know of a node: "rank 3" for a worker of PyTorch's."""
        role, _, number = node.partition(" ")
        if role == "worker" and number.isdigit() and int(number) < len(self.ranks):
            return f"rank {self.ranks[int(number)]}"
        return node

    @property
    def name_of(self) -> dict[int, str]:
        """Names of keys by their numbers."""
        return {key.number: key.name for key in self.keys}


def default_folder() -> Path:
    """Return the folder of this user's dumps: HIPRESS_DEBUG_DIR, or a folder of its own."""
    chosen = os.environ.get("HIPRESS_DEBUG_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"hipress-debug-{os.geteuid()}"


def load(path: Union[str, os.PathLike[str]]) -> Union[Dump, AgentDump]:
    """Read a dump, of a node or of an elastic job's agent.

    :raises DebugError: if it is none
    """
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
    """Return a dump from the JSON object that the native library has written.

    Raises:
        Exception: The object is damaged: one of hipress.base.checked.DAMAGED, or a MsgspecError.
    """
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
    """Read files, and all dumps that folders have.

    :raises DebugError: if there is none, or a file is damaged
    """
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
    """Return the newest dumps, by job and node; of jobs that were not dumped about when the last
    one was, nothing.

    :param newest: when the last one was, in seconds since 1970
    """
    jobs: dict[str, dict[str, Dump]] = {}
    for dump in sorted(dumps, key=lambda dump: dump.time):
        # Until the job has started, its nodes have no ranks.
        unnamed = dump.node.startswith("a ")
        node = f"{dump.node} (process {dump.pid} on {dump.host})" if unnamed else dump.node
        jobs.setdefault(dump.job, {})[node] = dump
    last = {job: max(dump.time for dump in nodes.values()) for job, nodes in jobs.items()}
    return [
        {node: dump for node, dump in nodes.items() if dump.time > last[job] - MAX_AGE_SECONDS}
        for job, nodes in jobs.items()
        if last[job] > newest - MAX_APART_SECONDS
    ]
