"""Pushes and pulls under way: what keeps their memory alive, and how their ends come back.

Native threads say what has ended, many operations in one call: entering Python takes longer than
all else that is done for a small gradient.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

from hipress._lib import Done, DoneTogether


class Pending:
    """The end of one push or pull.

    :param error_class: what :meth:`wait` raises for a failed operation
    """

    def __init__(self, error_class: type[Exception]) -> None:
        self._over = threading.Lock()  # held until then; an Event costs ten times as much
        self._over.acquire()
        self._error: str | None = None
        self._error_class = error_class

    def done(self, error: str | None) -> None:
        """The operation is over, with this sentence if it failed. To be called once."""
        self._error = error
        self._over.release()

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the operation is over, at most ``timeout`` seconds.

        :raises HipressError: if it failed; the message names the node that died, if one did
        :raises TimeoutError: after ``timeout``
        """
        if not self._over.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError(f"the operation was not over after {timeout} s")
        self._over.release()
        if self._error is not None:
            raise self._error_class(self._error)


class Operations:
    """Those of one node."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[int, tuple[Callable[[str | None], None], object]] = {}
        self._next = 1
        self.on_done = Done(self._ended)
        """A HipressDone: for failures, once :attr:`on_done_together` is set beside it."""
        self.on_done_together = DoneTogether(self._ended_well)
        """A HipressDoneTogether."""

    def add(self, done: Callable[[str | None], None], keeps: object) -> int:
        """The context of a new operation; ``keeps`` lives until ``done`` is called."""
        with self._lock:
            operation, self._next = self._next, self._next + 1
            self._under_way[operation] = (done, keeps)
        return operation

    def forget(self, operation: int) -> None:
        """Takes back one that could not be started."""
        with self._lock:
            del self._under_way[operation]

    def _ended(self, operation: int, error: bytes | None) -> None:
        _keep_thread_state()
        with self._lock:
            done, _ = self._under_way.pop(operation)
        done(None if error is None else error.decode())

    def _ended_well(self, operations, count: int) -> None:
        _keep_thread_state()
        with self._lock:
            ended = [self._under_way.pop(operation) for operation in operations[:count]]
        for done, _ in ended:
            done(None)


_thread = threading.local()


def _keep_thread_state() -> None:
    """Lets this native thread keep its Python state after the callback.

    Otherwise each callback makes one and frees it, which takes longer than all else that it does.
    """
    if not hasattr(_thread, "kept"):
        _thread.kept = ctypes.pythonapi.PyGILState_Ensure()
