"""Runs a real job (scheduler, servers, workers) as processes of this machine, for tests.

Every process gets its own session and a file for its output, every wait has a deadline, and leaving
the `with` block kills what is left by process id, so that a failing test leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hipress.launcher.supervisor import PR_SET_PDEATHSIG, prctl

if TYPE_CHECKING:
    from netns import ShapedNetwork

ROOT = Path(__file__).resolve().parents[2]
BOOT = [sys.executable, "-m", "mxnet_hipress.boot"]


@dataclass
class Result:
    """How one process ended."""

    name: str
    """"scheduler", "server 1", "worker 0"."""
    returncode: int
    """Exit status; negative: killed by that signal."""
    output: str
    """Standard output and standard error in the order written."""
    seconds: float
    """From the start of the job to this process's end."""


class ClusterTimeout(AssertionError):
    """Processes were still running at the deadline; the message says which, and what they wrote."""


def free_port() -> int:
    """A TCP port that nobody listens on, and whose successor is free, too."""
    for _ in range(100):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                second.bind(("127.0.0.1", port + 1))
                return port
    raise RuntimeError("found no two free neighbouring ports")


def base_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without DMLC_*, able to import the packages of this checkout."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "PS_"))}
    env["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT / "python"), *filter(None, [env.get("PYTHONPATH")])]
    )
    env["PYTHONUNBUFFERED"] = "1"
    env["OMP_NUM_THREADS"] = "1"
    env.update(extra or {})
    return env


class Cluster:
    """A running job; use it in a `with` statement.

    :param worker: the workers' program: Python source, the path of a script, or a function without
        arguments whose body is the program
    :param worker_prefix: command that runs the script
    :param server_command: command of the scheduler and of the servers
    :param env: variables for all processes, `worker_env(rank)` more for one worker
    :param args: arguments of the script
    :param network: runs each process on a node of it (:meth:`node_of`) instead of on loopback
    """

    def __init__(
        self,
        worker: str | Path | Callable[[], None],
        workers: int = 2,
        servers: int = 2,
        env: Mapping[str, str] | None = None,
        worker_prefix: Sequence[str] = (sys.executable,),
        server_command: Sequence[str] = tuple(BOOT),
        args: Sequence[str] = (),
        worker_env: Callable[[int], Mapping[str, str]] | None = None,
        launched: bool = True,
        network: ShapedNetwork | None = None,
    ) -> None:
        self._network = network
        self._dir = tempfile.TemporaryDirectory(prefix="hipress-test-")
        self.path = Path(self._dir.name)
        self.processes: dict[str, subprocess.Popen] = {}
        self.port = 9091 if network else free_port()
        job = {
            "DMLC_PS_ROOT_URI": network.address(0) if network else "127.0.0.1",
            "DMLC_PS_ROOT_PORT": str(self.port),
            "DMLC_NUM_WORKER": str(workers),
            "DMLC_NUM_SERVER": str(servers),
            "HIPRESS_SECRET": secrets.token_hex(32),
            # A stopped process is noticed by its silence, and tests need not wait for long.
            "HIPRESS_HEARTBEAT_TIMEOUT_MS": "3500",
        }
        if launched:
            job["HIPRESS_LAUNCHED"] = "1"
        self._env = base_environment({**job, **(env or {})})
        script = [*worker_prefix, str(self._script(worker)), *args]
        self._started = time.monotonic()
        self._ended: dict[str, float] = {}
        try:
            self._spawn("scheduler", server_command, {"DMLC_ROLE": "scheduler"})
            for rank in range(servers):
                self._spawn(
                    f"server {rank}",
                    server_command,
                    {"DMLC_ROLE": "server", "DMLC_SERVER_ID": str(rank)},
                )
            for rank in range(workers):
                more = dict(worker_env(rank)) if worker_env else {}
                self._spawn(
                    f"worker {rank}",
                    script,
                    {"DMLC_ROLE": "worker", "DMLC_WORKER_ID": str(rank), **more},
                )
        except BaseException:
            self.close()
            raise

    def _script(self, worker: str | Path | Callable[[], None]) -> Path:
        if isinstance(worker, Path):
            return worker
        if callable(worker):
            lines = inspect.getsource(worker).splitlines()
            first = next(i for i, line in enumerate(lines) if line.rstrip().endswith(":")) + 1
            worker = "\n".join(lines[first:])
        script = self.path / "worker.py"
        script.write_text(textwrap.dedent(worker))
        return script

    def node_of(self, name: str) -> int:
        """Where a process runs: the scheduler and the servers on node 0, worker i on node 1 + i."""
        return 1 + int(name.split()[1]) if name.startswith("worker") else 0

    def _spawn(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
        host = "127.0.0.1"
        if self._network:
            host = self._network.address(self.node_of(name))
            command = self._network.command(self.node_of(name), command)
        env = {"DMLC_NODE_HOST": host, **env}
        with open(self._log(name), "wb") as log:
            self.processes[name] = subprocess.Popen(
                list(command),
                env={**self._env, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # if tests are killed
                cwd=self.path,
            )

    def _log(self, name: str) -> Path:
        return self.path / (name.replace(" ", "-") + ".log")

    def output(self, name: str) -> str:
        """What this process has written so far."""
        return self._log(name).read_text(errors="replace")

    def running(self) -> list[str]:
        """Names of the processes that have not ended."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                self._ended.setdefault(name, time.monotonic() - self._started)
        return [name for name, process in self.processes.items() if process.returncode is None]

    def signal(self, name: str, number: int = signal.SIGKILL) -> None:
        """Sends a signal to one process."""
        self.processes[name].send_signal(number)

    def wait_for(self, name: str, text: str, timeout: float = 90) -> None:
        """Waits until this process has written `text`.

        :raises AssertionError: if it has not, within `timeout` seconds or before its end
        """
        deadline = time.monotonic() + timeout
        while text not in self.output(name):
            ended = name not in self.running()
            if ended and text in self.output(name):
                return
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"{name} did not write {text!r}:\n{self.report()}")
            time.sleep(0.02)

    def wait(self, timeout: float = 120) -> list[Result]:
        """Waits for all processes to end.

        :return: one Result each: scheduler, servers by rank, workers by rank
        :raises ClusterTimeout: if some still run after `timeout` seconds
        """
        deadline = time.monotonic() + timeout
        while self.running():
            if time.monotonic() > deadline:
                late = ", ".join(self.running())
                raise ClusterTimeout(f"still running after {timeout} s: {late}\n{self.report()}")
            time.sleep(0.02)
        return [
            Result(name, process.returncode, self.output(name), self._ended[name])
            for name, process in self.processes.items()
        ]

    def report(self) -> str:
        """Every process's state and the end of its output, for a failure's message."""
        self.running()
        return "\n".join(
            f"--- {name}: returncode {process.returncode}\n{self.output(name)[-4000:]}"
            for name, process in self.processes.items()
        )

    def close(self) -> None:
        """Kills what still runs, waits for it, and removes the files."""
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
        for process in self.processes.values():
            process.wait()
            # A server may own a helper process; it is in the server's session, and only there.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self._dir.cleanup()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def run_cluster(
    worker: str | Path | Callable[[], None],
    workers: int = 2,
    servers: int = 2,
    timeout: float = 120,
    check: bool = True,
    **options: object,
) -> list[Result]:
    """Runs a job to its end; arguments as of Cluster.

    :param timeout: seconds until the job must have ended
    :param check: fail unless every process exits with 0
    :return: one Result a process: the scheduler, servers by rank, workers by rank
    :raises AssertionError: with everybody's output
    """
    with Cluster(worker, workers, servers, **options) as cluster:
        results = cluster.wait(timeout)
        if check and any(result.returncode for result in results):
            raise AssertionError(f"a process failed:\n{cluster.report()}")
    return results


def worker_outputs(results: Sequence[Result]) -> list[str]:
    """The outputs of the workers alone, by rank."""
    return [result.output for result in results if result.name.startswith("worker")]
