"""Process that imports a framework, and forks for each program that needs it; see warm.py.

``python warm_server.py CONTROL MODULE...``, where CONTROL is the file descriptor of a socket. The
socket's end ends this process, and this process's end ends its forks. It imports nothing of
HiPress: programs do that themselves.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import types

CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
_status = struct.Struct("<i")
_length = struct.Struct("<I")


def _receive(control: socket.socket) -> tuple[dict, list[int]] | None:
    """Return a request with its two file descriptors, or None if there are no more."""
    head, fds, *_ = socket.recv_fds(control, _length.size, 2)
    if not head:
        return None
    message = b""
    while len(message) < _length.unpack(head)[0]:
        message += control.recv(_length.unpack(head)[0] - len(message))
    return json.loads(message), fds


def _serve(control: socket.socket) -> tuple[dict, int] | None:
    """Fork for every request.

    Returns:
        In a fork, the request and the file descriptor of its output. In this process None, when the
        other end has closed.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *unused: None)
    pipes: dict[int, int] = {}  # of the running processes
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    control.sendall(b"+")
    while True:
        for key, _ in selector.select():
            if key.fd == woken:
                os.read(woken, 4096)
                _reap(pipes)
                continue
            received = _receive(control)
            if received is None:
                return None
            request, (log, status) = received
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                selector.close()
                for fd in (control.detach(), woken, wake, status, *pipes.values()):
                    os.close(fd)
                return request, log
            os.write(status, _status.pack(pid))
            os.close(log)
            pipes[pid] = status


def _reap(pipes: dict[int, int]) -> None:
    """Report how each finished process has ended."""
    while pipes:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        pipe = pipes.pop(pid)
        try:
            os.write(pipe, _status.pack(os.waitstatus_to_exitcode(status)))
        except BrokenPipeError:
            pass  # no process waits for the result
        os.close(pipe)


def _become(request: dict, log: int) -> None:
    """Give this process the state that exec would have given it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.setsid()
    if request["namespace"]:
        with open(f"/var/run/netns/{request['namespace']}") as namespace:
            if libc.setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
    os.chdir(request["folder"])
    for fd in (1, 2):
        os.dup2(log, fd)
    os.close(log)
    paths = filter(None, request["env"].get("PYTHONPATH", "").split(os.pathsep))
    sys.path[1:] = [*paths, *sys.path[1:]]
    for name in set(os.environ) - set(request["env"]):
        del os.environ[name]
    os.environ.update(request["env"])
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # otherwise all forks had one state


def _run(arguments: list[str]) -> None:
    """Run a script, code after -c or a module after -m, as this process's __main__."""
    first, *others = arguments
    if first == "-m":
        sys.path[0] = os.getcwd()
        sys.argv = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    if first == "-c":
        sys.path[0] = ""
        sys.argv = [first, *others[1:]]
        code = compile(others[0], "<string>", "exec")
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        sys.argv = arguments
        main.__file__ = first
        with open(first, encoding="utf-8") as script:
            code = compile(script.read(), first, "exec")
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        importlib.import_module(name)
    found = _serve(control)
    if found is not None:
        _become(*found)
        _run(found[0]["arguments"])


if __name__ == "__main__":
    main()
