"""Starts the processes of one measured job, bounds them in time and always cleans up after them.

A job is a scheduler, servers and workers that all run one Python script and find each other by the
DMLC_* variables, as MXNet's ``tools/launch.py`` would start them; or, for torch, workers only. The
processes run on this machine's loopback or on the nodes of a ``netns.ShapedNetwork``. Whatever the
peer, it is started, stopped and timed by this same code.
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import netns

ROOT = Path(__file__).resolve().parents[1]
RESULT = "@result "  # a process hands a JSON object over by printing a line that starts so
RESULTS = ROOT / "output" / "benchmarks"


class JobError(RuntimeError):
    """A process of the job failed or the job did not end in time."""


@dataclass
class Process:
    """One process of a job: its name in messages, how it was started, what it prints."""

    name: str
    popen: subprocess.Popen
    log: IO[str]

    def text(self) -> str:
        """Everything printed so far."""
        self.log.flush()
        return Path(self.log.name).read_text(errors="replace")


@dataclass
class Job:
    """Context manager of processes that end together.

    Args:
        network: the nodes to run on; None for this machine's loopback.
        timeout: seconds, of the network's dilated time, until the whole job is killed and
            JobError raised.
        priority: the processes go before all others of this machine (Linux, root): on a machine
            with other work, as near as one gets to a machine without.
    """

    network: netns.ShapedNetwork | None = None
    timeout: float = 120.0
    priority: bool = False
    processes: list[Process] = field(default_factory=list)

    def __enter__(self) -> Job:
        self._folder = tempfile.TemporaryDirectory(prefix="hipress-job-")
        slower = self.network.dilation if self.network else 1.0
        self._deadline = time.monotonic() + self.timeout * slower
        return self

    def __exit__(self, *unused: object) -> None:
        self.stop()
        for process in self.processes:
            process.log.close()
        self._folder.cleanup()

    def start(self, name: str, node: int, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Starts a process in a process group of its own; output goes to a file."""
        log = open(Path(self._folder.name) / name.replace(" ", "-"), "w+")
        keywords: dict[str, Any] = {
            "env": {**_base_environment(), **env},
            "stdout": log,
            "stderr": subprocess.STDOUT,
            "stdin": subprocess.DEVNULL,
            "start_new_session": True,
        }
        if self.network:
            popen = self.network.popen(node, command, **keywords)
        else:
            popen = subprocess.Popen(command, **keywords)
        if self.priority:
            # The kernel shares the processors between sessions (autogroups), then inside each.
            group = Path(f"/proc/{popen.pid}/autogroup")
            if group.exists():
                group.write_text("-20")
            else:
                os.setpriority(os.PRIO_PROCESS, popen.pid, -20)
        self.processes.append(Process(name, popen, log))

    def results(self) -> list[dict[str, Any]]:
        """Waits for all processes; returns what they reported, in the order they were started.

        Raises:
            JobError: a process failed (its last lines are in the message), or time ran out.
        """
        waiting = list(self.processes)
        while waiting:
            for process in list(waiting):
                code = process.popen.poll()
                if code is None:
                    continue
                waiting.remove(process)
                if code != 0:
                    raise JobError(f"{process.name} ended with status {code}:\n{_tail(process)}")
            if waiting and time.monotonic() > self._deadline:
                names = ", ".join(process.name for process in waiting)
                raise JobError(
                    f"no end after {self.timeout:.0f} s; still running: {names}; the first one "
                    f"printed last:\n{_tail(waiting[0])}"
                )
            time.sleep(0.02)
        found = []
        for process in self.processes:
            for line in process.text().splitlines():
                if line.startswith(RESULT):
                    found.append(json.loads(line[len(RESULT) :]))
        return found

    def stop(self) -> None:
        """Kills every process group that still has a member."""
        for process in self.processes:
            try:
                os.killpg(process.popen.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.popen.wait()


def _base_environment() -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "PS_", "HIPRESS_"))}
    paths = [str(ROOT / "python"), *filter(None, [env.get("PYTHONPATH")])]
    return {**env, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


def _tail(process: Process, lines: int = 15) -> str:
    return "\n".join(process.text().splitlines()[-lines:])


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


def free_port() -> int:
    """A TCP port that was free on loopback a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


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
    host = network.address(0) if network else "127.0.0.1"
    common = {
        "DMLC_PS_ROOT_URI": host,
        "DMLC_PS_ROOT_PORT": str(9091 if network else free_port()),
        "DMLC_NUM_WORKER": str(num_workers),
        "DMLC_NUM_SERVER": str(num_servers),
        "DMLC_INTERFACE": "eth0" if network else "lo",
        **({"HIPRESS_SECRET": secrets.token_hex(32), "HIPRESS_LAUNCHED": "1"} if ours else {}),
        **(env or {}),
    }
    boot = [command[0], "-m", "mxnet_hipress.boot"] if ours else command
    roles = [("scheduler", 0)]
    roles += [("server", rank) for rank in range(num_servers)]
    roles += [("worker", rank) for rank in range(num_workers)]
    with Job(network, timeout, priority) as job:
        for role, rank in roles:
            node = rank % network.nodes if network else 0
            own = {"DMLC_ROLE": role, "DMLC_NODE_HOST": network.address(node) if network else host}
            if role != "scheduler":
                own[f"DMLC_{role.upper()}_ID"] = str(rank)
            what = command if role == "worker" or all_roles else boot
            job.start(f"{role} {rank}", node, what, {**common, **own})
        return job.results()


def run_torch_job(
    command: Sequence[str],
    num_workers: int,
    network: netns.ShapedNetwork | None = None,
    timeout: float = 120.0,
    priority: bool = False,
) -> list[dict[str, Any]]:
    """Runs `command` as the ranks of a torch.distributed job on Gloo; returns their reports."""
    with Job(network, timeout, priority) as job:
        start_torch(job, command, num_workers, network)
        return job.results()


def torch_output(
    command: Sequence[str],
    num_workers: int,
    network: netns.ShapedNetwork | None = None,
    timeout: float = 120.0,
    priority: bool = False,
) -> str:
    """The same, but returns what rank 0 printed."""
    with Job(network, timeout, priority) as job:
        start_torch(job, command, num_workers, network)
        job.results()
        return job.processes[0].text()


def start_torch(
    job: Job, command: Sequence[str], num_workers: int, network: netns.ShapedNetwork | None
) -> None:
    """Starts the ranks of a torch.distributed job, one after the other on the network's nodes."""
    common = {
        "MASTER_ADDR": network.address(0) if network else "127.0.0.1",
        "MASTER_PORT": str(29500 if network else free_port()),
        "WORLD_SIZE": str(num_workers),
        "GLOO_SOCKET_IFNAME": "eth0" if network else "lo",
        "TP_SOCKET_IFNAME": "eth0" if network else "lo",
        # Else glibc gives large tensors back to the kernel and gets them again, empty, every step.
        "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    }
    for rank in range(num_workers):
        node = rank % network.nodes if network else 0
        job.start(f"torch rank {rank}", node, command, {**common, "RANK": str(rank)})
