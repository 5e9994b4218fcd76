"""A worker whose training function hangs while its process lives: it says where it hangs, and ends,
so that its launcher can start it again. So does one in which a thread holds Python's global lock.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable

from hipress.elastic.training import news
from hipress.native.library import lib

EXIT_STATUS = 75
"""Of a process that ends because it hangs: EX_TEMPFAIL of sysexits.h, as it may work once more."""
_LOOK_SECONDS = 0.25
_WRITE_SECONDS = 2.0
"""For the last words: what they are written to may be what hangs."""
_LOCK_SECONDS = 10.0
"""A call into C or an import may hold the interpreter's lock for seconds, and all is well."""

_DEBUGGERS = ("pydevd", "debugpy")


class LockWatch:
    """Ends the process if a thread holds Python's global lock, so that not even the agent's runs.
    Native, for nothing in Python can do that then (``common/life_watch.h``).

    :param seconds: after which it does, or 10 if these are fewer; those in which the process is
        stopped do not count. Never under debuggers that stop all threads
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = max(seconds, _LOCK_SECONDS)
        self._signal = signal.SIGRTMAX - 2
        try:
            faulthandler.register(self._signal)  # which writes where all threads are
        except (OSError, RuntimeError, ValueError, AttributeError):
            self._signal = 0  # stderr is no file, say
        self._words = (
            f"hipress: no thread of Python has run in this worker for {self._seconds:g} s, as one "
            "holds the interpreter's lock: it ends, so that it can be started again\n"
        ).encode()

    def renew(self) -> None:
        """Is to be called again and again, by a thread of Python."""
        if not sys.modules.keys().isdisjoint(_DEBUGGERS):
            return self.end()  # they stop all threads of Python
        # If there is no thread for it just now, there may be the next time.
        lib.HipressKeepAlive(self._seconds, self._signal, EXIT_STATUS, self._words)

    def end(self) -> None:
        """Ends the watch."""
        lib.HipressKeepAlive(0.0, 0, 0, b"")


class Watch:
    """Watches the thread that makes it, while the others go on without it.

    :param seconds: after which the process ends, unless the thread has come back
    :param waits_for: says when it may do so with status 0, where the end of one process is the end
        of all; None: at once
    """

    def __init__(self, seconds: float, waits_for: Callable[[], bool] | None = None) -> None:
        self._seconds, self._waits_for = seconds, waits_for
        self._thread = threading.get_ident()
        self._back: threading.Event | None = None
        self._lock = threading.Lock()

    def begin(self, why: str) -> None:
        """Begins, if it has not begun. May be called from any thread, and waits for nothing."""
        with self._lock:
            if self._back is None:
                self._back = threading.Event()
                threading.Thread(
                    target=self._run, args=[why, self._back], name="hipress-stuck", daemon=True
                ).start()

    def end(self) -> None:
        """The thread has come back."""
        with self._lock:
            if self._back is not None:
                self._back.set()
                self._back = None

    def _run(self, why: str, back: threading.Event) -> None:
        until = time.monotonic() + self._seconds
        frame = sys._current_frames().get(self._thread)
        where = "".join(traceback.format_stack(frame)).rstrip() if frame else "?"
        _try_to_tell(f"{why}, and go on without this worker, which is here:\n{where}")
        while not back.wait(_LOOK_SECONDS):
            may_end = self._waits_for is None or self._waits_for()
            if may_end and time.monotonic() >= until:
                with self._lock:
                    if not back.is_set():
                        self._end_process()

    def _end_process(self) -> None:
        _try_to_tell(
            f"this worker has not come back in {self._seconds:g} s: it ends, "
            + ("so that it can be started again" if self._waits_for is None else "as the others do")
        )
        os._exit(EXIT_STATUS if self._waits_for is None else 0)


def _try_to_tell(line: str) -> None:
    def write() -> None:
        news.tell(line, logging.WARNING)
        sys.stdout.flush()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    writer.join(_WRITE_SECONDS)
