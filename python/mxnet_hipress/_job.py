"""This worker's place in the job: joined when the first store is created, left at exit.

A script that ends normally says goodbye. One that ends with an exception leaves without, so that
all others fail at once with this worker's name instead of waiting for it.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import traceback
from types import TracebackType

import mxnet as mx
from mxnet.base import MXNetError

from hipress.node import Node
from mxnet_hipress import _engine
from mxnet_hipress._sparse import SparseStore

_job: Job | None = None


class WorkerNode(Node):
    """The node, with errors as MXNet's users expect them."""

    Error = MXNetError


class Job:
    """The node, what its stores share, and how the process ends."""

    def __init__(self, sync: bool) -> None:
        _engine.bind()
        self.sync = sync
        self.node = WorkerNode()
        self.node.set_sync(sync)
        self.sparse = SparseStore(self.node, sync)
        self.stores = 0
        """Stores that this process has created; all workers create the same, in the same order."""
        self.left = False
        self._status: int | None = None
        self._pid = os.getpid()
        self._excepthook = sys.excepthook
        sys.excepthook = self._on_exception
        atexit.register(self._on_exit)

    def abort(self, status: int = 1) -> None:
        """Leaves without goodbye; the others fail with this worker's name.

        :param status: what the process is to exit with
        """
        if self.left or os.getpid() != self._pid:
            return
        self.left = True
        self._status = status
        _engine.close(self.node.handle)
        self.node.abort()

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self._excepthook(kind, error, trace)
        if not hasattr(sys, "ps1"):  # at a prompt the script goes on
            self.abort()

    def _on_exit(self) -> None:
        if os.getpid() != self._pid:
            return
        if not self.left:
            try:
                mx.nd.waitall()
                self.node.wait_all()
                self.sparse.close()
                self.left = True
                _engine.close(self.node.handle)
                self.node.stop()
                return
            except Exception:  # noqa: BLE001 - whatever it is, the exit status must tell of it
                traceback.print_exc()
                self.left = False
                self.abort()
        # An exit handler's exception would leave the status at 0, and what MXNet still has to do,
        # in a job that failed, may never end.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self._status)


def join(sync: bool) -> Job:
    """The job of this process; joins it if this is the first call.

    :raises MXNetError: if it cannot be joined, or was joined in the other mode
    """
    global _job
    if _job is None:
        role = os.environ.get("DMLC_ROLE", "worker")
        if role != "worker":
            raise MXNetError(f"a {role} has no key-value store: DMLC_ROLE must be worker")
        _job = Job(sync)
    if _job.sync != sync:
        raise MXNetError(
            "a job is either synchronous or asynchronous, and this one is "
            + ("synchronous" if _job.sync else "asynchronous")
        )
    return _job


def current() -> Job | None:
    """The job, if this process has joined one."""
    return _job
