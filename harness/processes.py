"""Processes with time limits, whose outputs are read and which are ended by process id.

Every process has its own session and a file for its output. Every wait has a deadline. At the end
of the `with` block all remaining processes are killed, so that a failing test or benchmark leaves
nothing behind.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import ROOT, warm

if TYPE_CHECKING:
    from harness.netns import ShapedNetwork

END_WITH_THIS = ("setpriv", "--pdeathsig", "KILL")
"""Prefix of a command that is killed with this process. (A preexec_fn would run Python in a fork of
a process with threads and frameworks, which can hang.)"""


@dataclass
class Result:
    """End of one process."""

    name: str
    """Name of the process: "scheduler", "server 1", "worker 0"."""
    returncode: int
    """Exit status. Negative: killed by that signal."""
    output: str
    """Standard output and standard error in the order written."""
    seconds: float
    """Seconds from the start of the job to this process's end."""


class JobError(AssertionError):
    """Failed process. The message has its name, and all outputs."""


class JobTimeout(JobError):
    """Processes that still run at the deadline. The message has their names and outputs."""


def free_port() -> int:
    """Return a free TCP port whose successor is also free.

    They are below those that jobs choose for themselves. Each worker of pytest-xdist has its own
    ports, and takes them in turn, because a port is used only some time after it was found free.
    """
    from hipress.launch import job

    for _ in range(100):
        port = next(_ports)
        if not any(job.port_error("127.0.0.1", p) for p in (port, port + 1)):
            return port
    raise RuntimeError("found no two free neighboring ports")


def _own_ports() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 8
    ports = range(2000 + 1000 * worker, 3000 + 1000 * worker, 2)
    at = random.randrange(len(ports))  # other runs of the tests may use these ports
    return itertools.cycle([*ports[at:], *ports[:at]])


_ports = _own_ports()


def clean_environment(without: Sequence[str] = (), paths: Sequence[Path] = ()) -> dict[str, str]:
    """Return this process's environment without DMLC_*, with the packages of this checkout.

    Args:
        without: Prefixes of further variables to leave out.
        paths: Further folders to import from.
    """
    left_out = ("DMLC_", "PS_", *without)
    env = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    found = [str(ROOT / "python"), *map(str, paths), *filter(None, [env.get("PYTHONPATH")])]
    return {**env, "PYTHONPATH": os.pathsep.join(found), "PYTHONUNBUFFERED": "1"}


def base_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a clean environment with one OpenMP thread and ``extra`` for a test's processes.

    The folders of ``extra``'s PYTHONPATH come before those of this process. These are kept, because
    they may be the only ones with PyTorch or this checkout's packages.
    """
    env = {**clean_environment(), "OMP_NUM_THREADS": "1", **(extra or {})}
    first = (extra or {}).get("PYTHONPATH")
    if first:
        env["PYTHONPATH"] = os.pathsep.join([first, clean_environment()["PYTHONPATH"]])
    return env


def clean_up_when_terminated() -> None:
    """Make SIGTERM, and SIGINT even in a background job, end this process as Ctrl-C would."""

    def end(*unused: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)


def wait_until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Poll until the condition's value is true, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds:g} s for {what}")


class Processes:
    """Processes that end together, for a `with` statement.

    Args:
        network: Network on whose nodes the processes run instead of on loopback. Time limits are in
            its dilated time.
        priority: Whether the processes precede all others of this machine (Linux, root). On a
            machine with other load, this is the closest to an idle machine.
        loopback: Address of all processes without a network, for example ``::1``.
    """

    def __init__(
        self,
        network: ShapedNetwork | None = None,
        priority: bool = False,
        loopback: str = "127.0.0.1",
    ) -> None:
        self._network, self._priority, self._loopback = network, priority, loopback
        self._dir = tempfile.TemporaryDirectory(prefix="hipress-job-")
        self.path = Path(self._dir.name)
        self.processes: dict[str, subprocess.Popen | warm.WarmProcess] = {}
        self._started = time.monotonic()
        self._ended: dict[str, float] = {}

    def address(self, node: int) -> str:
        """Return the address of a node of the network, or loopback without one."""
        return self._network.address(node) if self._network else self._loopback

    @property
    def interface(self) -> str:
        """Network interface of each node."""
        return "eth0" if self._network else "lo"

    def start(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        node: int = 0,
        framework: str | None = None,
    ) -> None:
        """Start a process in :attr:`path`.

        Args:
            framework: The framework that the command imports, if its script does not show it.
        """
        namespace, there = None, command
        if self._network:
            namespace, there = self._network.namespace(node), self._network.command(node, command)
        with open(self._log(name), "wb") as log:
            process = warm.start(
                command, env, self.path, log.fileno(), namespace, framework
            ) or subprocess.Popen(
                [*END_WITH_THIS, *there],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self.path,
            )
        self.processes[name] = process
        if self._priority:
            # The kernel shares the processors between sessions (autogroups), then inside each.
            group = Path(f"/proc/{process.pid}/autogroup")
            if group.exists():
                group.write_text("-20")
            else:
                os.setpriority(os.PRIO_PROCESS, process.pid, -20)

    def _log(self, name: str) -> Path:
        return self.path / (name.replace(" ", "-") + ".log")

    def output(self, name: str) -> str:
        """Return the process's output so far."""
        return self._log(name).read_text(errors="replace")

    def running(self) -> list[str]:
        """Return the names of the running processes."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                self._ended.setdefault(name, time.monotonic() - self._started)
        return [name for name, process in self.processes.items() if process.returncode is None]

    def signal(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to one process."""
        self.processes[name].send_signal(number)

    def wait_for(self, name: str, text: str, timeout: float = 90) -> None:
        """Wait until this process has written `text`.

        Raises:
            AssertionError: If it has not within `timeout` seconds or before its end.
        """
        deadline = time.monotonic() + timeout
        while text not in self.output(name):
            ended = name not in self.running()
            if ended and text in self.output(name):
                return
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"{name} did not write {text!r}:\n{self.report()}")
            time.sleep(0.02)

    def wait(self, timeout: float = 120, succeed: bool = False) -> list[Result]:
        """Wait for all processes to end.

        Args:
            succeed: Raise as soon as a process fails.

        Returns:
            One Result each, in the order of their starts.

        Raises:
            JobTimeout: If some still run after `timeout` seconds.
            JobError: If one fails, with ``succeed``.
        """
        slower = self._network.dilation if self._network else 1.0
        deadline = time.monotonic() + timeout * slower
        while True:
            running = self.running()
            failed = [name for name, process in self.processes.items() if process.returncode]
            if succeed and failed:
                raise JobError(f"failed: {', '.join(failed)}\n{self.report()}")
            if not running:
                break
            if time.monotonic() > deadline:
                late = ", ".join(running)
                raise JobTimeout(f"still running after {timeout} s: {late}\n{self.report()}")
            time.sleep(0.02)
        return [
            Result(name, process.returncode, self.output(name), self._ended[name])
            for name, process in self.processes.items()
        ]

    def report(self) -> str:
        """Return every process's state and the end of its output, for a failure's message."""
        self.running()
        return "\n".join(
            f"--- {name}: returncode {process.returncode}\n{self.output(name)[-4000:]}"
            for name, process in self.processes.items()
        )

    def close(self) -> None:
        """Kill all running processes, wait for them, and remove the files."""
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
        for process in self.processes.values():
            process.wait()
            # A server may own a helper process, which is in the server's session only.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self._dir.cleanup()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
