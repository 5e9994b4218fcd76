"""The jobs that benchmarks measure: what starts and times them is the same, whatever the peer."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import ROOT, netns  # noqa: E402
from harness.cluster import BOOT, Cluster  # noqa: E402
from harness.processes import JobError, Processes, Result, clean_environment  # noqa: E402
from harness.torch_job import TorchJob  # noqa: E402

__all__ = ["JobError"]
RESULT = "@result "  # a process hands a JSON object over by printing a line that starts so
RESULTS = ROOT / "output" / "benchmarks"


def reports(results: Sequence[Result]) -> list[dict[str, Any]]:
    """What processes handed over by :func:`report`, in the order they were started."""
    lines = [line for result in results for line in result.output.splitlines()]
    return [json.loads(line[len(RESULT) :]) for line in lines if line.startswith(RESULT)]


def machine() -> dict[str, Any]:
    """What the numbers were measured on: processor, cores, kernel, versions, time, load."""

    def text(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        return done.stdout.strip()

    cpuinfo = Path("/proc/cpuinfo").read_text()
    names = re.findall(r"^model name\s*: (.*)$", cpuinfo, re.MULTILINE)
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "cpu": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": text("git", "describe", "--always", "--dirty"),
        "load_before": round(os.getloadavg()[0], 2),
        "command": " ".join(sys.argv),
    }


def save(name: str, result: Mapping[str, Any]) -> Path:
    """Writes a benchmark's results to RESULTS/name.json; returns the file."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=1))
    return path


def time_blocks(
    step: Callable[[], None],
    barrier: Callable[[], None],
    blocks: int,
    steps: int = 1,
    reset: Callable[[], None] | None = None,
) -> list[float]:
    """Called inside a job's process: seconds of a step in each of some blocks of `steps` steps.

    A barrier comes before each block, and no other inside it: as in training, a worker begins the
    next step when it has all results of the last. With one step a block, the time includes what
    the others leave the barrier later.

    Args:
        step: makes one step, to its last result.
        reset: what to do before each block, not timed.
    """
    seconds = []
    for _ in range(blocks):
        if reset:
            reset()
        barrier()
        began = time.perf_counter()
        for _ in range(steps):
            step()
        seconds.append((time.perf_counter() - began) / steps)
    return seconds


def iteration_seconds(
    reports: Sequence[Mapping[str, Any]],
    name: str = "seconds",
    network: netns.ShapedNetwork | None = None,
) -> list[float]:
    """Seconds of each iteration (or block of them) of a job: those of its slowest worker.

    In the dilated time of `network`, if the job ran on one.
    """
    slowest = [max(times) for times in zip(*(found[name] for found in reports))]
    return [network.seconds(time) for time in slowest] if network else slowest


def report(**values: Any) -> None:
    """Called inside a job's process: hands `values` to whoever waits in Job.results."""
    print(RESULT + json.dumps(values), flush=True)


def clean_up_when_terminated() -> None:
    """Makes SIGTERM, and SIGINT even in a background job, end this process as Ctrl-C would."""

    def end(*unused: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)


def environment() -> dict[str, str]:
    """That of measured processes: no variable of the caller's changes what is measured."""
    return clean_environment(["HIPRESS_"], [ROOT])


def run_kvstore_job(
    command: Sequence[str],
    num_workers: int,
    num_servers: int,
    ours: bool,
    network: netns.ShapedNetwork | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 120.0,
    all_roles: bool = False,
    priority: bool = False,
) -> list[dict[str, Any]]:
    """Runs a Python script as the workers of a job, and the servers it needs; returns the reports.

    Ours and stock MXNet's processes get the same command and environment, except that our scheduler
    and servers start through their boot module, and stock ones by importing mxnet in the script.
    Worker i and server i share node i of the network, the scheduler sits on node 0.

    Args:
        command: interpreter, script, arguments.
        ours: the servers are to be HiPress's, not MXNet's.
        all_roles: the script serves by itself; it needs no boot module.
    """
    nodes = network.nodes if network else 1
    with Cluster(
        list(command),
        num_workers,
        num_servers,
        {"DMLC_INTERFACE": "eth0" if network else "lo", **(env or {})},
        server_command=BOOT if ours and not all_roles else command,
        network=network,
        priority=priority,
        base=environment(),
        node_of=lambda role, rank: rank % nodes,
    ) as job:
        return reports(job.wait(timeout, succeed=True))


def run_alone(
    command: Sequence[str], count: int, env: Mapping[str, str], timeout: float, priority: bool
) -> list[dict[str, Any]]:
    """Runs processes that do not know of each other; returns their reports."""
    with Processes(priority=priority) as job:
        for rank in range(count):
            job.start(f"worker {rank}", command, {**environment(), **env})
        return reports(job.wait(timeout, succeed=True))


def run_torch_job(
    command: Sequence[str],
    num_workers: int,
    network: netns.ShapedNetwork | None = None,
    timeout: float = 120.0,
    priority: bool = False,
) -> list[Result]:
    """Runs `command` as the ranks of a torch.distributed job on Gloo; returns how they ended."""
    env = {
        **environment(),
        # Else glibc gives large tensors back to the kernel and gets them again, empty, every step.
        "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    }
    with TorchJob(command, num_workers, env, network=network, priority=priority) as job:
        return job.wait(timeout, succeed=True)
