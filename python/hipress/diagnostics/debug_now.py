"""Requests for dumps to the HiPress processes of this user and machine.

A thread named ``hipress-debug`` identifies them. Only processes that handle the signal receive it,
because it would end other processes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hipress.diagnostics.agent_dump import AgentDump
from hipress.diagnostics.debug import DebugError, Dump, load

_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """Process with nodes of jobs, or an elastic job's agent."""

    pid: int
    signal: int
    """Signal that requests dumps, or 0 if the process handles none."""
    folder: Path
    """Folder in which it writes them."""
    stopped: bool
    """Whether it is stopped by SIGSTOP or a debugger, and therefore cannot answer."""


def processes() -> list[Process]:
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


def _process(entry: Path) -> Process:
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
    return Process(int(entry.name), number if caught else 0, path, stopped)


def _number(text: str) -> int:
    """Return the signal that HIPRESS_DEBUG_SIGNAL names."""
    if text.isdigit():
        return int(text)
    if text == "none":
        return 0
    name = "SIG" + (text.removeprefix("SIG") if text else "USR1")
    return int(getattr(signal, name, 0))


def ask(timeout: float = 10.0) -> tuple[list[Dump | AgentDump], list[str]]:
    """Request dumps from all processes; return them, and a message per process without a dump."""
    found = processes()
    if not found:
        raise DebugError("no process of yours on this machine is a node of a HiPress job")
    began = time.time()
    sentences = []
    waiting: dict[int, Process] = {}
    for process in found:
        if process.signal == 0:
            sentences.append(f"process {process.pid} handles no signal that asks it for a dump")
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, process.signal)
            waiting[process.pid] = process
    dumps: list[Dump | AgentDump] = []
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


def _answer(process: Process, began: float) -> list[Dump | AgentDump]:
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
