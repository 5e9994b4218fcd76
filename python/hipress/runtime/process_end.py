"""End of a process that is a node of a job.

A script that ends normally leaves with a goodbye. After an exception it leaves without one. All
other nodes then fail at once with this node's name instead of waiting for it. Forked children do
nothing.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import traceback
from types import TracebackType
from typing import Any


class ProcessEnd:
    """Exit handler of a process, active until its node has left the job.

    With ``at_once`` a process whose node has failed skips the rest of its exit, which might never
    end in a framework that waits for other processes.
    """

    def __init__(self, node: Any, at_once: bool) -> None:
        self._node = node
        self._at_once = at_once
        self._pid = os.getpid()
        self._status: int | None = None
        self.left = False
        """Whether the node has left, normally or as a failure."""
        self._excepthook, sys.excepthook = sys.excepthook, self._on_exception
        # A native thread that returns to an ending interpreter would end the process.
        atexit.register(self._on_exit)

    def precede(self) -> None:
        """Make this node leave before nodes that have joined since."""
        atexit.unregister(self._on_exit)
        atexit.register(self._on_exit)

    @property
    def forked(self) -> bool:
        """Whether this is a forked child of the process that joined, and therefore no node."""
        return os.getpid() != self._pid

    def leave(self, status: int | None = None) -> bool:
        """Note that the node leaves now. Return whether it was still in the job."""
        if self.left or self.forked:
            return False
        self.left, self._status = True, status
        if not self._at_once:  # a process may join several jobs in turn
            atexit.unregister(self._on_exit)
            if sys.excepthook == self._on_exception:
                sys.excepthook = self._excepthook
        return True

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self._excepthook(kind, error, trace)
        if not hasattr(sys, "ps1"):  # the script continues at a prompt
            self._node.abort()

    def _on_exit(self) -> None:
        if self.forked:
            return
        if not self.left:
            try:
                self._node.leave()
                return
            except BaseException:  # also KeyboardInterrupt: the exit status must report it
                self._fail()
        elif self._status is None or not self._at_once:
            return
        # An exit handler's exception would leave the status at 0.
        try:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(self._status or 1)

    def _fail(self) -> None:
        """Print the exception being handled, and leave the job as a failure."""
        try:
            traceback.print_exc()
            self._node.abort()
        except BaseException:  # another Ctrl-C
            traceback.print_exc()
