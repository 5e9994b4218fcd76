"""A worker whose training function hangs while its process lives: it says where it hangs, and ends,
so that its launcher can start it again."""

from __future__ import annotations

import os
import sys
import threading
import traceback

from hipress.elastic_training import news

EXIT_STATUS = 75
"""Of a process that ends because it hangs: EX_TEMPFAIL of sysexits.h, as it may work once more."""


class Watch:
    """Watches the thread that makes it, while the others go on without it.

    :param seconds: after which the process ends, unless the thread has come back
    :param may_end: False: it only says where the thread is
    """

    def __init__(self, seconds: float, may_end: bool) -> None:
        self._seconds, self._thread = seconds, threading.get_ident()
        self._may_end = may_end
        self._timer: threading.Timer | None = None

    def begin(self, why: str) -> None:
        """Begins, if it has not begun: says what the thread does; from any thread."""
        if self._timer is not None:
            return
        self._timer = threading.Timer(self._seconds, self._end_process)
        self._timer.daemon = True
        if self._may_end:
            self._timer.start()
        frame = sys._current_frames().get(self._thread)
        where = "".join(traceback.format_stack(frame)) if frame else ""
        news.tell(f"{why}: they go on without this worker, which is here:\n{where.rstrip()}")

    def end(self) -> None:
        """The thread has come back."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_process(self) -> None:
        news.tell(
            f"this worker has not come back in another {self._seconds:g} s: it ends, so that it "
            "can be started again"
        )
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_STATUS)
