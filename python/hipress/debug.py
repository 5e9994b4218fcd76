"""Reading of the dumps in which nodes of a hanging job describe themselves.

The native library writes a dump per node, a JSON file: on SIGUSR1, or when a wait for other nodes
takes too long. :mod:`hipress.wait_graph` finds in them who waits for whom.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hipress import files

FORMAT, VERSION = "hipress debug", 1
MAX_AGE_SECONDS = 600.0
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
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"hipress-debug-{os.geteuid()}"  # noqa: S108


def load(path: str | os.PathLike[str]) -> Dump:
    """Reads a dump.

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
        return _dump(str(path), values)
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise DebugError(f"{path} is a damaged dump: {type(error).__name__}: {error}") from error


def _typed(value: object, kind: type, what: str) -> object:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    wrong = not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    if wrong or (kind is float and not math.isfinite(value)):
        raise TypeError(f"{what} is {value!r}")
    return value


def _get(values: Mapping, name: str, kind: type, default: object = None) -> object:
    """A value of the right type; of one that is left out the default."""
    if name not in values and default is not None:
        return default
    return _typed(values[name], kind, name)


def _texts(values: Iterable, what: str) -> list[str]:
    return [_typed(value, str, what) for value in values]


def _counts(values: Mapping, name: str) -> dict[str, int]:
    rows = _get(values, name, list, [])
    return {_get(row, "node", str): _get(row, "messages", int) for row in rows}


def _iteration(values: Mapping) -> Iteration:
    running = [
        f"{_get(row, 'op', str)} of partition {_get(row, 'partition', int)}"
        for row in _get(values, "running", list, [])
    ]
    return Iteration(
        number=_get(values, "iteration", int),
        seconds=_get(values, "seconds", float),
        pushed=_get(values, "pushed", bool, True),
        queued=_get(values, "queued", bool, False),
        waits_for=_counts(values, "waits_for"),
        arriving_from=_counts(values, "arriving_from"),
        sending_to=_counts(values, "sending_to"),
        running=running,
    )


def _key(values: Mapping) -> Key:
    return Key(
        number=_get(values, "key", int),
        name=_get(values, "name", str),
        channel=_get(values, "channel", int),
        pushes=_get(values, "pushes", bool),
        pushed=_get(values, "pushed", int, 0),
        locked=_get(values, "locked", bool),
        iterations=[_iteration(row) for row in _get(values, "iterations", list, [])],
    )


def _event(row: list) -> Event:
    kinds = (float, int, int, int, str, str, str)
    if len(row) != len(kinds):
        raise ValueError(f"an event of {len(row)} fields")
    return Event(*(_typed(value, kind, "event") for value, kind in zip(row, kinds)))


def _dump(path: str, values: Mapping) -> Dump:
    scheduler = _get(values, "scheduler", dict, {})
    ranks = _get(values, "ranks", str)
    return Dump(
        path=path,
        job=_get(values, "job", str, "?"),
        node=_get(values, "node", str),
        host=_get(values, "host", str),
        pid=_get(values, "pid", int),
        time=_get(values, "time", float),
        reason=_get(values, "reason", str),
        process_nodes=_get(values, "process_nodes", int),
        workers=_get(values, "workers", int),
        servers=_get(values, "servers", int),
        ranks=ranks.split(",") if ranks else [],
        started=_get(values, "started", bool, False),
        failure=_get(values, "failure", str, ""),
        missing=_get(scheduler, "missing", str, ""),
        dead={
            _get(row, "node", str): _get(row, "what", str)
            for row in _get(values, "dead", list, [])
        },
        left=_texts(_get(values, "left", list, []), "left"),
        silent={
            _get(row, "node", str): _get(row, "silent", float, 0.0)
            for row in _get(values, "links", list)
        },
        calls=[
            Call(_get(row, "kind", str), _get(row, "about", str), _get(row, "seconds", float))
            for row in _get(values, "calls", list)
        ],
        barriers={
            _get(row, "about", str): _texts(_get(row, "missing", list), "missing")
            for row in _get(scheduler, "barriers", list, [])
        },
        keys=[_key(row) for row in _get(values, "keys", list, [])],
        fetches=[
            Fetch(
                _get(row, "key", int),
                _get(row, "iteration", int),
                _get(row, "seconds", float),
                _texts(_get(row, "from", list), "from"),
            )
            for row in _get(values, "fetches", list, [])
        ],
        events=[_event(row) for row in _get(values, "events", list, [])],
    )  # fmt: skip


def load_all(places: Iterable[str | os.PathLike[str]]) -> list[Dump]:
    """Reads files, and all dumps that folders have.

    :raises DebugError: if there is none, or a file is damaged
    """
    found: list[Dump] = []
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


def latest_jobs(dumps: Iterable[Dump]) -> list[dict[str, Dump]]:
    """The newest dumps, by job and node; of jobs that were not dumped about when the last one was,
    nothing."""
    jobs: dict[str, dict[str, Dump]] = {}
    for dump in sorted(dumps, key=lambda dump: dump.time):
        # Until the job has started, its nodes have no ranks.
        unnamed = dump.node.startswith("a ")
        node = f"{dump.node} (process {dump.pid} on {dump.host})" if unnamed else dump.node
        jobs.setdefault(dump.job, {})[node] = dump
    last = {job: max(dump.time for dump in nodes.values()) for job, nodes in jobs.items()}
    newest = max(last.values())
    return [
        {node: dump for node, dump in nodes.items() if dump.time > last[job] - MAX_AGE_SECONDS}
        for job, nodes in jobs.items()
        if last[job] > newest - MAX_APART_SECONDS
    ]
