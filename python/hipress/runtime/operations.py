"""Running pushes and pulls: references to their memory, and their completion callbacks.

Native threads report the end of many operations in one call, because entering Python takes longer
than the other work for a small gradient. Only the wait for a running operation takes a lock: single
steps of a dict or a counter are atomic.
"""

from __future__ import annotations

import ctypes
import itertools
import threading

import numpy as np

from hipress.dtypes import FLAGS, NUMPY
from hipress.errors import HipressError
from hipress.native.library import abi, error_of

_FLAGS = {np.dtype(name): FLAGS[name] for name in NUMPY}
_waiting = threading.Lock()  # held by a thread that is about to wait


class Pending:
    """End of one push or pull. ``keeps`` is kept alive until then."""

    __slots__ = ("_error", "_error_class", "_keeps", "_over", "_waiter")

    def __init__(self, error_class: type[Exception], keeps: object = None) -> None:
        self._over = False
        self._waiter: threading.Lock | None = None  # made by the first thread that has to wait
        self._error: HipressError | None = None
        self._error_class = error_class
        self._keeps = keeps

    def done(self, error: HipressError | None) -> None:
        """End the operation, with an error if it failed. Called once."""
        self._error = error
        self._keeps = None
        self._over = True  # before the look at the waiter, who looks here once it has made itself
        if self._waiter is not None:
            self._waiter.release()

    def wait(self, timeout: float | None = None) -> None:
        """Block until the operation has ended, at most ``timeout`` seconds.

        Raises:
            HipressError: If it failed. The message names the node that died, if any.
            TimeoutError: After ``timeout``.
        """
        if not self._over:
            self._block(timeout)
        if self._error is not None:
            raise self._error.as_kind(self._error_class)

    def _block(self, timeout: float | None) -> None:
        with _waiting:
            if self._waiter is None:
                waiter = threading.Lock()
                waiter.acquire()
                self._waiter = waiter
        if self._over:
            return
        if not self._waiter.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError(f"the operation was not over after {timeout} s")
        self._waiter.release()  # for the next waiting thread


class Operations:
    """Operations of one node."""

    def __init__(self) -> None:
        self._running: dict[int, Pending] = {}
        self._numbers = itertools.count(1)
        self.on_done = abi.HipressDone(self._ended)
        """HipressDone, which reports only failures if :attr:`on_done_together` is also set."""
        self.on_done_together = abi.HipressDoneTogether(self._ended_well)
        """A HipressDoneTogether."""

    def add(self, pending: Pending) -> int:
        """Return the context of a new operation, which ends with ``pending``."""
        operation = next(self._numbers)
        self._running[operation] = pending
        return operation

    def forget(self, operation: int) -> None:
        """Remove an operation that could not be started."""
        del self._running[operation]

    def _ended(self, operation: int, error: ctypes._Pointer) -> None:
        _keep_thread_state()
        self._running.pop(operation).done(error_of(error))

    def _ended_well(self, operations, count: int) -> None:
        _keep_thread_state()
        take = self._running.pop
        for operation in operations[:count]:
            take(operation).done(None)


_thread = threading.local()


def _keep_thread_state() -> None:
    """Keep this native thread's Python state: making it takes longer than the callback."""
    if not hasattr(_thread, "kept"):
        _thread.kept = ctypes.pythonapi.PyGILState_Ensure()


def memory_of(array: np.ndarray) -> tuple[int, int, int]:
    """Return address, elements and type flag of an array that native code can use in place."""
    flag = _FLAGS.get(array.dtype)
    if flag is None:
        raise HipressError(f"a gradient must be {' or '.join(NUMPY)}, not {array.dtype}")
    if not array.flags.c_contiguous:
        raise HipressError("a gradient must be C-contiguous; pass np.ascontiguousarray(...)")
    try:
        address = ctypes.addressof(_byte_of(array))  # takes a quarter of the time of .ctypes.data
    except (TypeError, ValueError):  # a read-only or empty array
        address = array.__array_interface__["data"][0]
    return address, array.size, flag


_byte_of = ctypes.c_char.from_buffer
