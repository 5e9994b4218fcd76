"""Ends a worker that waits in MXNet's own store for somebody who is gone.

MXNet's store waits without a deadline, in native code, for what a process would have sent that has
died, or left in peace: no exception reaches a script that is stuck there. So such a worker says
what happened and ends. A script may well be in MXNet's code for long when the others have left, in
its last validation, say: only one whose pushes can never be counted is ended.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import mxnet as mx

from hipress.node import Node

PATIENCE = 10.0
"""Seconds for which the script must have been at one place, since the job failed if it has."""
_MXNET = str(Path(mx.__file__).parent) + os.sep
_OURS = str(Path(__file__).with_name("_sparse.py"))


class SparseWatch:
    """Watches this worker from a thread of its own.

    :param node: knows whether the job has failed; it must have joined
    :param deserted: asks for a sentence about who has left in peace without what this worker waits
        for; empty if nobody has
    :param tell: makes all workers fail with that sentence
    """

    def __init__(
        self, node: Node, deserted: Callable[[], str], tell: Callable[[str], None]
    ) -> None:
        self._node = node
        self._deserted, self._tell = deserted, tell
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
        since, before = time.monotonic(), None  # since when the script is at a place, and it
        while not self._end.wait(0.5):
            if time.monotonic() > self._late:
                self._leave(self._what)
            failure = self._node.failure()
            now = (_place_in_mxnet(), failure)
            if now[0] is None or now != before:
                since, before = time.monotonic(), now
            elif time.monotonic() - since > PATIENCE:
                if failure:
                    self._leave(f"{failure}; this worker was probably waiting in MXNet's own store")
                self._leave_if_deserted()
                since = time.monotonic()

    def _leave_if_deserted(self) -> None:
        """Ends the process, telling the others, if it waits for one who has left in peace."""
        try:
            sentence = self._deserted()
            if sentence:
                self._tell(sentence)
        except self._node.Error:  # the job has failed; or it will
            return
        if sentence:
            self._leave(sentence)

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
