"""MXNet's own server beside ours, for row_sparse keys; started only if a job has some.

It runs in a thread of our server's process, so that both share one optimizer, and meets the workers
through a scheduler of MXNet's that server 0 runs as a child process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from types import ModuleType

from hipress.node import Node


class SparseServer:
    """MXNet's server in a thread and, on server 0, its scheduler in a child process.

    :param mx: the mxnet module
    :param update: (key, gradient, weight) applies the optimizer to row_sparse NDArrays
    """

    def __init__(self, mx: ModuleType, update: Callable[[int, object, object], None]) -> None:
        self._mx = mx
        self._update = update
        self._scheduler: subprocess.Popen | None = None
        self._closing = False
        self._address: tuple[str, int] | None = None
        self._thread: threading.Thread | None = None

    def start(self, node: Node, body: bytes) -> bytes:
        """Starts what is not running yet.

        :param body: empty, to server 0: start the scheduler; otherwise the pickled answer to that
        :return: the scheduler's pickled (host, port)
        """
        if not body:
            if self._scheduler is None:
                self._start_scheduler(node)
            return pickle.dumps(self._address)
        if self._thread is None:
            environment = _environment("server", node, pickle.loads(body))
            self._thread = threading.Thread(target=self._serve, args=(environment,), daemon=True)
            self._thread.start()
        return b""

    def close(self) -> None:
        """Ends the scheduler. The thread ends with the process."""
        self._closing = True
        if self._scheduler is not None:
            self._scheduler.kill()
            self._scheduler.wait()

    def _start_scheduler(self, node: Node) -> None:
        host = _own_host()
        with socket.socket(_family(host)) as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
        self._address = (host, port)
        env = {k: v for k, v in os.environ.items() if k != "HIPRESS_SECRET"}
        self._scheduler = subprocess.Popen(
            [sys.executable, "-c", _SCHEDULER],
            env={**env, **_environment("scheduler", node, self._address)},
            stdin=subprocess.DEVNULL,
            preexec_fn=_die_with_parent,
        )
        threading.Thread(target=self._watch_scheduler, args=(node,), daemon=True).start()

    def _watch_scheduler(self, node: Node) -> None:
        """Without its scheduler MXNet's store would wait for ever: the job ends."""
        status = self._scheduler.wait()
        if status == 0 or self._closing:
            return
        end = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
        print(
            f"hipress server {node.rank}: MXNet's scheduler, which this server runs for row_sparse "
            f"keys, {end}",
            file=sys.stderr,
            flush=True,
        )
        os._exit(1)

    def _serve(self, environment: dict[str, str]) -> None:
        # Our own node has read its environment long ago.
        os.environ.update(environment)
        _run(self._mx, self._update)


# Its import runs MXNet's scheduler and exits: DMLC_ROLE is set. The package's own import would
# run ours, so the aliases are restored without it.
_SCHEDULER = """
import numpy, builtins
for name in ("bool", "int", "float", "complex", "object", "str"):
    if name not in numpy.__dict__:
        setattr(numpy, name, getattr(builtins, name))
import mxnet
"""


def _run(mx: ModuleType, update: Callable[[int, object, object], None]) -> None:
    """Runs MXNet's server, with our optimizer, until all workers have left it."""
    kv = mx.kv.create("dist")

    def control(_head, _body, _context):  # noqa: ANN001, ANN202
        kv._set_updater(update)

    prototype = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    controller = prototype(control)
    mx.base.check_call(mx.base._LIB.MXKVStoreRunServer(kv.handle, controller, None))


def _environment(role: str, node: Node, address: tuple[str, int]) -> dict[str, str]:
    return {
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": address[0],
        "DMLC_PS_ROOT_PORT": str(address[1]),
        "DMLC_NUM_WORKER": str(node.num_workers),
        "DMLC_NUM_SERVER": str(node.num_servers),
    }


def _own_host() -> str:
    """This machine's address as the others reach it."""
    host = os.environ.get("DMLC_NODE_HOST")
    if host:
        return host
    root = os.environ["DMLC_PS_ROOT_URI"]
    family, _, _, _, target = socket.getaddrinfo(root, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)
        return probe.getsockname()[0]


def _family(host: str) -> socket.AddressFamily:
    return socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]


def _die_with_parent() -> None:
    """In a child process: end when the parent does, however it ends (Linux only)."""
    set_parent_death_signal = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
