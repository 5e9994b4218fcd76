"""Workers of an elastic job that only start and end, and functions to find them."""

from __future__ import annotations

import re
from pathlib import Path

from harness import SCRIPTS
from harness.launch import Launch
from hipress.launch.output import Printer
from hipress.launch.restarts import RestartWorkers, Rules
from hipress.launch.runner import Runner

WORKER = SCRIPTS / "elastic_worker.py"

FINISHES_FIRST = SCRIPTS / "elastic_finish.py"


def arguments(n: int, *options: str) -> list[str]:
    """Return the launcher's arguments for a job of n workers."""
    return ["--elastic", "-n", str(n), "--grace", "1", *options]


def restart_policy(rules: Rules) -> RestartWorkers:
    """Return the policy of an elastic job whose runner has not started."""
    policy = RestartWorkers(rules)
    Runner(Printer(), policy)
    return policy


def ups(launch: Launch, count: int) -> list[tuple[int, int, int, str]]:
    """Return (slot, restart, process id, agent) of the next processes that report their start."""
    found = []
    while len(found) < count:
        line = launch.process.stdout.readline().decode()
        assert line, "the launcher ended early"
        match = re.fullmatch(r"\[worker (\d+)\] up (\d+) (\d+) (\d+) (\S+)\n", line)
        if match:
            assert match[1] == match[2]
            found.append((int(match[1]), int(match[3]), int(match[4]), match[5]))
    return sorted(found)


def alive(pid: int) -> bool:
    """Return whether a process runs and is no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def supervisor_of(pid: int) -> int:
    """Return the process's parent, which must be a supervisor."""
    parent = int(re.search(r"\nPPid:\t(\d+)", Path(f"/proc/{pid}/status").read_text())[1])
    text = Path(f"/proc/{parent}/cmdline").read_bytes()
    assert b"import os;r=lambda" in text
    return parent
