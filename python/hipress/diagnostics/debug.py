"""Dumps in which the nodes of a hanging job, and the agents of elastic jobs, describe themselves.

The native library writes one JSON file per node, on SIGUSR1 or when a wait for other nodes takes
too long. :mod:`hipress.diagnostics.wait_graph` finds the waiting nodes and their causes in them.

:func:`ask` requests dumps from the HiPress processes of this user and machine. A thread named
``hipress-debug`` identifies them. Only processes that handle the signal receive it, because it
would end other processes.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Union

import msgspec

from hipress.base import files
from hipress.base.checked import DAMAGED

Seconds = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]  # finite


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


def _agent_dump(path: str, values: Mapping) -> AgentDump:
    """Return a dump from the JSON object that an agent has written."""
    status = dict(values["status"])
    status["departed"] = {row["slot"]: row["why"] for row in status["departed"]}
    status["joins"] = {row["id"]: row["slot"] for row in status["joins"]}
    found = msgspec.convert({**status, **values, "path": path}, AgentDump)
    if not 0 <= found.slot < len(found.agents):
        raise ValueError(f"slot {found.slot} of {len(found.agents)}")
    return found


FORMAT, VERSION = "hipress debug", 1
MAX_AGE_SECONDS = 180.0
"""Maximum age of a dump relative to the newest one. Older ones are of another run."""
MAX_SECONDS_BETWEEN_JOBS = 60.0
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


class KeyDump(msgspec.Struct, frozen=True, kw_only=True, rename={"number": "key"}):
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


class WaitingCall(msgspec.Struct, frozen=True, kw_only=True):
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
    calls: list[WaitingCall] = []
    barriers: dict[str, list[str]]
    """Nodes missing at a barrier at which other nodes wait, by barrier, in a scheduler's dump."""
    keys: list[KeyDump] = []
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
            return _agent_dump(str(path), values)
        return _dump(str(path), values)
    except (*DAMAGED, msgspec.MsgspecError) as error:
        raise DebugError(f"{path} is a damaged dump: {type(error).__name__}: {error}") from error


def _iteration(values: Mapping) -> dict:
    running = [f"{row['op']} of partition {row['partition']}" for row in values.get("running", [])]
    names = ("waits_for", "arriving_from", "sending_to")
    counts = {n: {row["node"]: row["messages"] for row in values.get(n, [])} for n in names}
    return {**values, "running": running, **counts}


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
        "keys": [
            {**row, "iterations": list(map(_iteration, row.get("iterations", [])))}
            for row in values.get("keys", [])
        ],
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
    """Return the newest dumps by job and node, of jobs with a dump at about ``newest``."""
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
        if last[job] > newest - MAX_SECONDS_BETWEEN_JOBS
    ]


_PROC = Path("/proc")


@dataclass(frozen=True)
class DumpingProcess:
    """Process with nodes of jobs, or an elastic job's agent."""

    pid: int
    signal: int
    """Signal that requests dumps, or 0 if the process handles none."""
    folder: Path
    """Folder in which it writes them."""
    stopped: bool
    """Whether it is stopped by SIGSTOP or a debugger, and therefore cannot answer."""


def processes() -> list[DumpingProcess]:
    """Return the HiPress processes of this user."""
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError):  # ended, or not this user's
            if entry.stat().st_uid == os.geteuid() and "hipress-debug" in _threads(entry):
                found.append(_process(entry))
    return sorted(found, key=lambda process: process.pid)


def _threads(entry: Path) -> Iterator[str]:
    return ((thread / "comm").read_text().strip() for thread in (entry / "task").iterdir())


def _process(entry: Path) -> DumpingProcess:
    variables = dict(
        row.decode(errors="replace").split("=", 1)
        for row in (entry / "environ").read_bytes().split(b"\0")
        if b"=" in row
    )
    folder = variables.get("HIPRESS_DEBUG_DIR") or (
        f"{variables.get('TMPDIR') or '/tmp'}/hipress-debug-{os.geteuid()}"
    )
    status = dict(
        row.split(":", 1) for row in (entry / "status").read_text().splitlines() if ":" in row
    )
    number = _number(variables.get("HIPRESS_DEBUG_SIGNAL", ""))
    caught = int(status["SigCgt"], 16) >> (number - 1) & 1 if number else 0
    path = Path(folder) if os.path.isabs(folder) else Path(os.readlink(entry / "cwd"), folder)
    stopped = status["State"].split()[0] in ("T", "t")
    return DumpingProcess(int(entry.name), number if caught else 0, path, stopped)


def _number(text: str) -> int:
    """Return the signal that HIPRESS_DEBUG_SIGNAL names."""
    if text.isdigit():
        return int(text)
    if text == "none":
        return 0
    name = "SIG" + (text.removeprefix("SIG") if text else "USR1")
    return int(getattr(signal, name, 0))


def ask(timeout: float = 10.0) -> tuple[list[Union[Dump, AgentDump]], list[str]]:
    """Request dumps from all processes; return them, and a message per process without a dump."""
    found = processes()
    if not found:
        raise DebugError("no process of yours on this machine is a node of a HiPress job")
    began = time.time()
    sentences = []
    waiting: dict[int, DumpingProcess] = {}
    for process in found:
        if process.signal == 0:
            sentences.append(f"process {process.pid} handles no signal that asks it for a dump")
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, process.signal)
            waiting[process.pid] = process
    dumps: list[Union[Dump, AgentDump]] = []
    deadline = time.monotonic() + timeout
    while waiting and time.monotonic() < deadline:
        for pid, process in list(waiting.items()):
            answer = _answer(process, began)
            if answer:
                dumps += answer
                del waiting[pid]
            elif process.stopped or not (_PROC / str(pid)).exists():
                sentences.append(
                    f"process {pid} is stopped, and answers nothing"
                    if process.stopped
                    else f"process {pid} has ended meanwhile"
                )
                del waiting[pid]
        time.sleep(0.05)
    sentences += [f"process {pid} has not answered in {timeout:g} s" for pid in waiting]
    return dumps, sentences


def _answer(process: DumpingProcess, began: float) -> list[Union[Dump, AgentDump]]:
    """Return the dumps of a process when all of them exist."""
    dumps = []
    with contextlib.suppress(OSError):
        for path in process.folder.glob(f"*.{process.pid}.*.json"):
            if path.stat().st_mtime < began - 1:
                continue
            with contextlib.suppress(DebugError):  # of an older process with the same number
                dump = load(path)
                if dump.time >= began and dump.pid == process.pid:
                    dumps.append(dump)
    return dumps if dumps and len(dumps) >= dumps[0].process_nodes else []
