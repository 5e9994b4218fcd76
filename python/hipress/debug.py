"""Reading of the dumps in which nodes of a hanging job describe themselves.

The native library writes a dump per node, a JSON file: on SIGUSR1, or when a wait for other nodes
takes too long. :mod:`hipress.wait_graph` finds in them who waits for whom.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hipress import agent_dump, files
from hipress.agent_dump import AgentDump
from hipress.checked import DAMAGED, get, texts, typed

FORMAT, VERSION = "hipress debug", 1
MAX_AGE_SECONDS = 180.0
"""Seconds by which a dump may be older than the newest of its job: what is older is of another run
on the same port."""
MAX_APART_SECONDS = 60.0
"""Seconds between dumps of several jobs that are looked at together: a process may be in some."""


class DebugError(ValueError):
    """A file is no dump, or there is none."""


@dataclass(frozen=True)
class Iteration:
    """An iteration of a key that is not over on its node."""

    number: int
    seconds: float
    """Since it began here."""
    pushed: bool
    """Whether this worker's gradient is there; servers push nothing."""
    queued: bool
    """Whether it waits for older iterations of its key."""
    waits_for: dict[str, int]
    """Messages that are still to come, by node."""
    arriving_from: dict[str, int]
    """Messages whose payload is being received, by node."""
    sending_to: dict[str, int]
    """Messages that the transport has, by node."""
    running: list[str]
    """Tasks that compute threads have, or are to have: "encode of partition 3"."""


@dataclass(frozen=True)
class Key:
    """A key as one node has it."""

    number: int
    name: str
    channel: int
    pushes: bool
    """False on servers."""
    pushed: int
    """Iterations that this worker has pushed."""
    locked: bool
    """Whether a thread held its lock all the time."""
    iterations: list[Iteration] = field(default_factory=list)


@dataclass(frozen=True)
class Call:
    """A call that waits for other nodes; all calls of one kind about the same belong together."""

    kind: str
    about: str
    seconds: float


@dataclass(frozen=True)
class Fetch:
    """A pull that is no iteration's: its value comes from servers."""

    key: int
    iteration: int
    """Pushes of this worker that the value must contain."""
    seconds: float
    servers: list[str]


@dataclass(frozen=True)
class Event:
    """Something that happened to a task, or to a whole gradient."""

    time: float
    key: int
    iteration: int
    partition: int
    op: str
    state: str
    peer: str


@dataclass(frozen=True)
class Dump:
    """A node's description of itself."""

    path: str
    job: str
    """The scheduler's address."""
    node: str
    """ "worker 0"."""
    host: str
    pid: int
    time: float
    reason: str
    process_nodes: int
    workers: int
    servers: int
    ranks: list[str]
    """Users' names of workers 0, 1, ...; empty if they are just that."""
    view: int
    """The elastic job's view for which this node is; 0: none."""
    started: bool
    failure: str
    missing: str
    """Nodes that have not come to the job's start, of a scheduler."""
    dead: dict[str, str]
    """Reasons of nodes' deaths."""
    left: list[str]
    silent: dict[str, float]
    """Seconds since the last sign of life, by connected node."""
    calls: list[Call]
    barriers: dict[str, list[str]]
    """Nodes that have not come to a barrier that others are in, by barrier; of a scheduler."""
    keys: list[Key]
    fetches: list[Fetch]
    events: list[Event]

    def label(self, node: str) -> str:
        """The name that users know of a node: "rank 3" for a worker of PyTorch's."""
        role, _, number = node.partition(" ")
        if role == "worker" and number.isdigit() and int(number) < len(self.ranks):
            return f"rank {self.ranks[int(number)]}"
        return node

    @property
    def name_of(self) -> dict[int, str]:
        """Names of keys by their numbers."""
        return {key.number: key.name for key in self.keys}


def default_folder() -> Path:
    """The folder of this user's dumps: HIPRESS_DEBUG_DIR, or a folder of its own."""
    chosen = os.environ.get("HIPRESS_DEBUG_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"hipress-debug-{os.geteuid()}"


def load(path: str | os.PathLike[str]) -> Dump | AgentDump:
    """Reads a dump, of a node or of an elastic job's agent.

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
    except DAMAGED as error:
        raise DebugError(f"{path} is a damaged dump: {type(error).__name__}: {error}") from error


def _counts(values: Mapping, name: str) -> dict[str, int]:
    rows = get(values, name, list, [])
    return {get(row, "node", str): get(row, "messages", int) for row in rows}


def _iteration(values: Mapping) -> Iteration:
    running = [
        f"{get(row, 'op', str)} of partition {get(row, 'partition', int)}"
        for row in get(values, "running", list, [])
    ]
    return Iteration(
        number=get(values, "iteration", int),
        seconds=get(values, "seconds", float),
        pushed=get(values, "pushed", bool, True),
        queued=get(values, "queued", bool, False),
        waits_for=_counts(values, "waits_for"),
        arriving_from=_counts(values, "arriving_from"),
        sending_to=_counts(values, "sending_to"),
        running=running,
    )


def _key(values: Mapping) -> Key:
    return Key(
        number=get(values, "key", int),
        name=get(values, "name", str),
        channel=get(values, "channel", int),
        pushes=get(values, "pushes", bool),
        pushed=get(values, "pushed", int, 0),
        locked=get(values, "locked", bool),
        iterations=[_iteration(row) for row in get(values, "iterations", list, [])],
    )


def _event(row: list) -> Event:
    kinds = (float, int, int, int, str, str, str)
    if len(row) != len(kinds):
        raise ValueError(f"an event of {len(row)} fields")
    return Event(*(typed(value, kind, "event") for value, kind in zip(row, kinds)))


def _dump(path: str, values: Mapping) -> Dump:
    scheduler = get(values, "scheduler", dict, {})
    ranks = get(values, "ranks", str)
    return Dump(
        path=path,
        job=get(values, "job", str, "?"),
        node=get(values, "node", str),
        host=get(values, "host", str),
        pid=get(values, "pid", int),
        time=get(values, "time", float),
        reason=get(values, "reason", str),
        process_nodes=get(values, "process_nodes", int),
        workers=get(values, "workers", int),
        servers=get(values, "servers", int),
        ranks=ranks.split(",") if ranks else [],
        view=get(values, "view", int, 0),
        started=get(values, "started", bool, False),
        failure=get(values, "failure", str, ""),
        missing=get(scheduler, "missing", str, ""),
        dead={
            get(row, "node", str): get(row, "what", str)
            for row in get(values, "dead", list, [])
        },
        left=texts(get(values, "left", list, []), "left"),
        silent={
            get(row, "node", str): get(row, "silent", float, 0.0)
            for row in get(values, "links", list)
        },
        calls=[
            Call(get(row, "kind", str), get(row, "about", str), get(row, "seconds", float))
            for row in get(values, "calls", list)
        ],
        barriers={
            get(row, "about", str): texts(get(row, "missing", list), "missing")
            for row in get(scheduler, "barriers", list, [])
        },
        keys=[_key(row) for row in get(values, "keys", list, [])],
        fetches=[
            Fetch(
                get(row, "key", int),
                get(row, "iteration", int),
                get(row, "seconds", float),
                texts(get(row, "from", list), "from"),
            )
            for row in get(values, "fetches", list, [])
        ],
        events=[_event(row) for row in get(values, "events", list, [])],
    )  # fmt: skip


def load_all(places: Iterable[str | os.PathLike[str]]) -> list[Dump | AgentDump]:
    """Reads files, and all dumps that folders have.

    :raises DebugError: if there is none, or a file is damaged
    """
    found: list[Dump | AgentDump] = []
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
    """The newest dumps, by job and node; of jobs that were not dumped about when the last one was,
    nothing.

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
