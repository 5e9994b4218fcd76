"""Start of Python programs in processes that have already imported their framework.

The import of MXNet, PyTorch or TensorFlow takes a processor for seconds, and a test's job has many
processes. So one process imports each framework once (``warm_server.py``), and forks for every
program that needs it. The fork is an ordinary process: it has its own session, environment, output
and network namespace, and the program is its ``__main__``. The program itself imports `hipress` and
`mxnet_hipress`, from its own environment.

Programs whose environments differ in a variable that is read when a framework is loaded have
different such processes. A program starts cold, by exec, if the time of MXNet's import matters: in
a job without a launcher, and in a server that MXNet becomes at its import (not by
``kvstore_server``). It also starts cold if other processes read its environment, which remains the
server's in /proc, as ``hipress debug --now`` does.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import ROOT

FRAMEWORKS = {
    "mxnet": re.compile(r"^\s*(?:import|from) (?:mxnet|mxnet_hipress)\b", re.MULTILINE),
    "tensorflow": re.compile(
        r"^\s*(?:import|from) (?:tensorflow|keras|hipress\.tensorflow)\b", re.MULTILINE
    ),
    "torch": re.compile(r"^\s*(?:import|from) (?:torch|hipress\.torch)\b", re.MULTILINE),
}
"""Pattern of a line in programs that need the framework."""
PRELOAD = {
    "mxnet": ["mxnet"],
    "tensorflow": ["tensorflow"],
    "torch": ["torch", "torch._dynamo", "torch.distributed.checkpoint"],
}
LOADED_WITH = re.compile(
    r"PYTHON(?!PATH)|(OMP|MKL|KMP|LD|MALLOC|GLIBC|TORCH|TF|KERAS|CUDA)_|MXNET_(ENGINE|CPU|GPU)"
)
"""Pattern of variables that are read when Python or a framework is loaded."""
START_SECONDS = 60
_status = struct.Struct("<i")


class WarmProcess:
    """Forked process with the methods of subprocess.Popen that the harness uses."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status  # a pipe on which the server reports the process's end

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the process's end and return the exit status.

        Args:
            timeout: Seconds; None: no limit.

        Raises:
            subprocess.TimeoutExpired: If it still runs then.
        """
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            found = os.read(self._status, _status.size)
            os.close(self._status)
            # Without a report the server was killed, and its processes with it.
            self.returncode = _status.unpack(found)[0] if found else -signal.SIGKILL
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)


class _Server:
    """Process that has imported one framework, and forks."""

    def __init__(self, framework: str, env: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        script = str(ROOT / "harness" / "warm_server.py")
        self._process = subprocess.Popen(
            [sys.executable, script, str(theirs.fileno()), *PRELOAD[framework]],
            env=env,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        ours.settimeout(START_SECONDS)
        self._control = ours
        if not ours.recv(1):
            raise RuntimeError(f"the server that imports {framework} has died")

    def close(self) -> None:
        self._control.close()  # this ends the server
        self._process.wait()

    def start(self, request: Mapping[str, object], log: int) -> WarmProcess:
        ours, theirs = os.pipe()
        try:
            with self._lock:
                message = json.dumps(request).encode()
                # The file descriptors are sent with the length.
                socket.send_fds(self._control, [struct.pack("<I", len(message))], [log, theirs])
                self._control.sendall(message)
        finally:
            os.close(theirs)
        pid = os.read(ours, _status.size)
        if not pid:
            os.close(ours)
            raise RuntimeError("the server that forks tests' processes has died")
        return WarmProcess(_status.unpack(pid)[0], ours)


_servers: dict[tuple[str, frozenset], _Server] | None = None
_starting = threading.Lock()


def enable() -> None:
    """Make start() use warm processes until this process ends."""
    global _servers
    if _servers is None:
        _servers = {}
        atexit.register(_close)


def _close() -> None:
    for server in (_servers or {}).values():
        server.close()


def _program(command: Sequence[str], folder: Path) -> str:
    """Return the text of a Python program, or "" if it is none."""
    if len(command) < 2 or command[0] != sys.executable:
        return ""
    text = command[2] if command[1] == "-c" else ""
    scripts = [folder / part for part in command[1:] if part.endswith(".py")]
    if scripts and (command[1] == "-m" or not command[1].startswith("-")):
        with contextlib.suppress(OSError):
            text = scripts[0].read_text()
    return text


def _framework(program: str, env: Mapping[str, str]) -> str | None:
    """Return the framework that a program imports, or None if the time of the import matters."""
    if any(name.startswith("HIPRESS_DEBUG") for name in env):
        return None
    if "DMLC_ROLE" in env:
        served = env["DMLC_ROLE"] != "worker" and "kvstore_server" not in program
        if served or "HIPRESS_LAUNCHED" not in env:
            return None
    return next((name for name, of in FRAMEWORKS.items() if of.search(program)), None)


def framework_of(command: Sequence[str], env: Mapping[str, str], folder: Path) -> str | None:
    """Return the framework that a command imports, or None if it must start cold."""
    return None if _servers is None else _framework(_program(command, folder), env)


def start(
    command: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    log: int,
    namespace: str | None = None,
    framework: str | None = None,
) -> WarmProcess | None:
    """Fork a process for a command, if it is a Python program with a framework.

    Args:
        env: Environment of the process.
        folder: Working directory of the process.
        log: File descriptor for stdout and stderr.
        namespace: Name of a network namespace.
        framework: The framework that it imports, if the command's script does not show it.

    Returns:
        The process, or None if it must start cold.
    """
    framework = framework or framework_of(command, env, folder)
    if framework is None or _servers is None:
        return None
    loaded = {name: value for name, value in env.items() if LOADED_WITH.match(name)}
    key = framework, frozenset(loaded.items())
    with _starting:
        if key not in _servers:
            own = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
            _servers[key] = _Server(framework, {**own, **loaded})
    request = {
        "arguments": list(command[1:]),
        "env": dict(env),
        "folder": str(folder),
        "namespace": namespace,
    }
    return _servers[key].start(request, log)
