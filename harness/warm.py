"""Starts Python programs that have imported their framework already.

To import MXNet, PyTorch or TensorFlow takes a processor for seconds, and a test's job has many
processes. So one process imports each framework once (``warm_server.py``), and forks for every
program that wants it. The fork is a process like others: its own session, environment, output and
network namespace; what it runs is its ``__main__``. `hipress` and `mxnet_hipress` are imported by
the program itself, from the environment that it was given.

Programs whose environments differ in a variable that is read when a framework is loaded have
different such processes. A program starts cold, by exec, where it matters when MXNet is imported:
in a job without a launcher, and in a server that MXNet becomes at its import (not by
``kvstore_server``). So it does where others read its environment, which stays the server's in
/proc, as ``hipress debug --now`` does.
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
"""What a program that wants the framework has a line of."""
PRELOAD = {
    "mxnet": ["mxnet"],
    "tensorflow": ["tensorflow"],
    "torch": ["torch", "torch._dynamo", "torch.distributed.checkpoint"],
}
LOADED_WITH = re.compile(
    r"PYTHON(?!PATH)|(OMP|MKL|KMP|LD|MALLOC|GLIBC|TORCH|TF|KERAS|CUDA)_|MXNET_(ENGINE|CPU|GPU)"
)
"""Names of variables that are read when Python or a framework is loaded."""
START_SECONDS = 60
_status = struct.Struct("<i")


class WarmProcess:
    """A forked process; of subprocess.Popen's methods those that the harness uses."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status  # a pipe on which the server tells how the process ended

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return the exit status.

        :param timeout: seconds; None: for ever
        :raises subprocess.TimeoutExpired: if it still runs then
        """
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            found = os.read(self._status, _status.size)
            os.close(self._status)
            # Without a word the server was killed, and its processes with it.
            self.returncode = _status.unpack(found)[0] if found else -signal.SIGKILL
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit status, or None if it runs."""
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
    """A process that has imported one framework, and forks."""

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
        self._control.close()  # upon which the server ends
        self._process.wait()

    def start(self, request: Mapping[str, object], log: int) -> WarmProcess:
        ours, theirs = os.pipe()
        try:
            with self._lock:
                message = json.dumps(request).encode()
                # The file descriptors go with the length.
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
    """From now on start() starts warm what it can; until this process ends."""
    global _servers
    if _servers is None:
        _servers = {}
        atexit.register(_close)


def _close() -> None:
    for server in (_servers or {}).values():
        server.close()


def _program(command: Sequence[str], folder: Path) -> str:
    """Return the text of a Python program; empty: it is not one."""
    if len(command) < 2 or command[0] != sys.executable:
        return ""
    text = command[2] if command[1] == "-c" else ""
    scripts = [folder / part for part in command[1:] if part.endswith(".py")]
    if scripts and (command[1] == "-m" or not command[1].startswith("-")):
        with contextlib.suppress(OSError):
            text = scripts[0].read_text()
    return text


def _framework(program: str, env: Mapping[str, str]) -> str | None:
    """Return the framework that a program imports, unless it matters to it when that happens."""
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

    :param env: its environment
    :param folder: its working directory
    :param log: file descriptor for stdout and stderr
    :param namespace: a network namespace's name
    :param framework: what it imports, where that is not in the command's script
    :return: None: start it cold
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
