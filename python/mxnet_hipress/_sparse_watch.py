"""Ends a worker that waits in MXNet's own store for somebody who is gone.

MXNet's store waits without a deadline, in native code, for what a dead process would have sent: no
exception reaches a script that is stuck there. So such a process says what happened and ends.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import mxnet as mx

from hipress.node import Node

PATIENCE = 10.0
"""Seconds, after a death, in which the script must have got on from where it was."""
_MXNET = str(Path(mx.__file__).parent) + os.sep
_OURS = str(Path(__file__).with_name("_sparse.py"))


class SparseWatch:
    """Watches this worker from a thread of its own.

    :param node: who knows of deaths; it must have joined the job
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._end = threading.Event()
        self._late = float("inf")
        self._what = ""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @contextmanager
    def within(self, seconds: float, what: str) -> Iterator[None]:
        """Ends the process, naming `what`, if the block takes longer."""
        self._what, self._late = what, time.monotonic() + seconds
        try:
            yield
        finally:
            self._late = float("inf")

    def close(self) -> None:
        """Watches no longer."""
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        stuck_since, before = time.monotonic(), None  # since when the script is at a place, and it
        while not self._end.wait(0.5):
            if time.monotonic() > self._late:
                self._leave(self._what)
            now = _place_in_mxnet() if self._node.num_dead_node() else None
            if now is None or now != before:
                stuck_since, before = time.monotonic(), now
            elif time.monotonic() - stuck_since > PATIENCE:
                self._leave(
                    f"{self._sentence()}; this worker was probably waiting in MXNet's own store"
                )

    def _sentence(self) -> str:
        try:
            self._node.barrier()
        except self._node.Error as error:
            return str(error)
        return "another process died"

    def _leave(self, what: str) -> None:
        print(f"hipress worker {self._node.rank}: {what}", file=sys.stderr, flush=True)
        self._node.abort()
        os._exit(1)


def _place_in_mxnet() -> tuple[FrameType, int] | None:
    """Where the script is, if that is a call of MXNet; a checkpoint, say, may take its time."""
    frame = sys._current_frames().get(threading.main_thread().ident)  # None at a prompt
    if frame is None:
        return None
    file = frame.f_code.co_filename
    return (frame, frame.f_lasti) if file.startswith(_MXNET) or file == _OURS else None
