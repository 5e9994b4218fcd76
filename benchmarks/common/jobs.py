"""Jobs that benchmarks measure. The same code starts and times them for all peers."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.common.results import console
from benchmarks.common.timing import RESULT
from harness import ROOT, netns
from harness.cluster import BOOT, Cluster
from harness.processes import JobError, Processes, Result, clean_environment
from harness.torch_job import TorchJob

Reports = list[dict[str, Any]]

MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}
"""Settings of glibc to keep large tensors. Otherwise it returns them to the kernel in every
step."""


def node(module: str, **options: Any) -> list[str]:
    """Return the command of a measured process: a module of this package and its options."""
    return [sys.executable, "-m", f"benchmarks.{module}", json.dumps(options)]


def reports(results: Sequence[Result]) -> Reports:
    """Return the values that processes passed to `timing.report`, in the order of their start."""
    lines = [line for result in results for line in result.output.splitlines()]
    return [json.loads(line[len(RESULT) :]) for line in lines if line.startswith(RESULT)]


def built(target: str) -> Path:
    """Build a native program of the benchmarks; return its path."""
    command = [str(ROOT / "tools" / "setup.sh"), "native", target]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return ROOT / "build" / target


def environment() -> dict[str, str]:
    """Return the environment of measured processes, without the caller's HiPress variables."""
    return clean_environment(["HIPRESS_"], [ROOT])


def kvstore_job(
    command: Sequence[str],
    workers: int,
    servers: int,
    network: netns.ShapedNetwork | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 120.0,
    boot: bool = True,
    priority: bool = False,
) -> Reports:
    """Run a command as the workers of a job, with the servers it needs, and return the reports.

    Worker i and server i share node i of the network. The scheduler is on node 0.

    Args:
        boot: Whether scheduler and servers start through our boot module. Otherwise they start
            through the command, as stock MXNet's do when they import mxnet.
        timeout: Seconds of the network's dilated time.
    """
    nodes = network.nodes if network else 1
    with Cluster(
        list(command),
        workers,
        servers,
        {"DMLC_INTERFACE": "eth0" if network else "lo", **(env or {})},
        server_command=BOOT if boot else command,
        network=network,
        priority=priority,
        base=environment(),
        node_of=lambda role, rank: rank % nodes,
    ) as job:
        return reports(job.wait(timeout, succeed=True))


def separate_job(
    command: Sequence[str], count: int, env: Mapping[str, str], timeout: float, priority: bool
) -> Reports:
    """Run processes that do not know of each other, and return their reports."""
    with Processes(priority=priority) as job:
        for rank in range(count):
            job.start(f"worker {rank}", command, {**environment(), **env})
        return reports(job.wait(timeout, succeed=True))


def torch_job(
    command: Sequence[str],
    ranks: int,
    network: netns.ShapedNetwork | None = None,
    timeout: float = 120.0,
    priority: bool = False,
    env: Mapping[str, str] = MALLOC,
) -> list[Result]:
    """Run a command as the ranks of a torch.distributed job on Gloo, and return their results."""
    with TorchJob(
        command, ranks, {**environment(), **env}, network=network, priority=priority
    ) as job:
        return job.wait(timeout, succeed=True)


def slowest(
    found: Reports, name: str = "seconds", network: netns.ShapedNetwork | None = None
) -> list[float]:
    """Return the seconds of each iteration, or block, of a job: those of its slowest worker.

    They are in the dilated time of `network`, if the job ran on one.
    """
    seconds = [max(times) for times in zip(*(report[name] for report in found))]
    return [network.seconds(time) for time in seconds] if network else seconds


@dataclass
class Variant:
    """Row of a comparison with its measurements."""

    name: str
    seconds: list[float] = field(default_factory=list)
    """Seconds of each step, or block."""
    error: str = ""

    @property
    def median(self) -> float:
        """Median seconds, or NaN without measurements."""
        return statistics.median(self.seconds or [float("nan")])


def matches(only: str, row: Variant) -> bool:
    """Return whether the option `--only` selects a row."""
    return re.search(only, row.name) is not None


def take_turns(rounds: int, rows: Sequence[Any], run: Callable[[Any], None]) -> bool:
    """Run variants in turns, so that noise affects all alike; return whether all succeeded.

    A variant whose job fails keeps the error, and is left out from then on.
    """
    for round_ in range(rounds):
        for row in rows:
            if row.error:
                continue
            console.print(f"[dim]round {round_ + 1}/{rounds}: {row.name}[/]")
            try:
                run(row)
            except JobError as error:
                row.error = str(error)
            if row.error:
                console.print(f"[red]{row.name}:[/] {row.error}", highlight=False)
    return not any(row.error for row in rows)
