"""Watchdogs for a worker that lives but hangs.

A worker whose training function hangs, or in which a thread holds Python's global lock, reports
where it hangs. Then it exits, so that its launcher can restart it.
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

from hipress.elastic.training import journal
from hipress.native.library import lib

EXIT_STATUS = 75
"""Exit status of a worker that hangs: EX_TEMPFAIL of sysexits.h, because a restart may help."""
_LOOK_SECONDS = 0.25
_WRITE_SECONDS = 2.0
"""Maximum seconds for the last message. Its destination may be the cause of the hang."""
_LOCK_SECONDS = 10.0
"""Minimum seconds before the lock counts as held: an import or a call into C may take long."""

_DEBUGGERS = ("pydevd", "debugpy")


class LockWatch:
    """Watchdog that ends the process if a thread holds Python's global lock for too long.

    Then not even the agent's thread runs. The watchdog is native code, because no Python code can
    run (``base/life_watch.h``).

    Args:
        seconds: time after which the process ends, at least 10. Time in which the process is
            stopped does not count. The watchdog is off under debuggers that stop all threads.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = max(seconds, _LOCK_SECONDS)
        self._signal = signal.SIGRTMAX - 2
        try:
            faulthandler.register(self._signal)  # the signal writes the stacks of all threads
        except (OSError, RuntimeError, ValueError, AttributeError):
            self._signal = 0  # for example, stderr is no file
        self._words = (
            f"hipress: no thread of Python has run in this worker for {self._seconds:g} s, as one "
            "holds the interpreter's lock: it ends, so that it can be started again\n"
        ).encode()

    def renew(self) -> None:
        """Show that Python runs. A Python thread calls this repeatedly."""
        if not sys.modules.keys().isdisjoint(_DEBUGGERS):
            return self.end()  # they stop all threads of Python
        # If the library cannot start its thread now, it tries again at the next call.
        lib.HipressKeepAlive(self._seconds, self._signal, EXIT_STATUS, self._words)

    def end(self) -> None:
        """Stop the watchdog."""
        lib.HipressKeepAlive(0.0, 0, 0, b"")


class Watch:
    """Watchdog for the thread that creates it, while the job continues without this worker.

    Args:
        seconds: time after which the process ends if :meth:`end` was not called
        waits_for: function that returns whether the process may end. Its exit status is 0 then,
            because the end of one process is the end of all there. None: it may end at once.
    """

    def __init__(self, seconds: float, waits_for: Callable[[], bool] | None = None) -> None:
        self._seconds, self._waits_for = seconds, waits_for
        self._thread = threading.get_ident()
        self._back: threading.Event | None = None
        self._lock = threading.Lock()

    def begin(self, why: str) -> None:
        """Start the watchdog if it does not run. Any thread may call this. It does not wait."""
        with self._lock:
            if self._back is None:
                self._back = threading.Event()
                threading.Thread(
                    target=self._run, args=[why, self._back], name="hipress-hang", daemon=True
                ).start()

    def end(self) -> None:
        """Stop the watchdog, because the thread runs again."""
        with self._lock:
            if self._back is not None:
                self._back.set()
                self._back = None

    def _run(self, why: str, back: threading.Event) -> None:
        until = time.monotonic() + self._seconds
        frame = sys._current_frames().get(self._thread)
        where = "".join(traceback.format_stack(frame)).rstrip() if frame else "?"
        _try_to_tell(f"{why}, and continue without this worker, which is here:\n{where}")
        while not back.wait(_LOOK_SECONDS):
            may_end = self._waits_for is None or self._waits_for()
            if may_end and time.monotonic() >= until:
                with self._lock:
                    if not back.is_set():
                        self._end_process()

    def _end_process(self) -> None:
        why = "so that it can be started again" if self._waits_for is None else "with the job"
        _try_to_tell(f"this worker still hangs after {self._seconds:g} s: its process ends, {why}")
        os._exit(EXIT_STATUS if self._waits_for is None else 0)


def _try_to_tell(line: str) -> None:
    def write() -> None:
        journal.tell(line, logging.WARNING)
        sys.stdout.flush()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    writer.join(_WRITE_SECONDS)
