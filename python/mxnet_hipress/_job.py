"""Membership of this worker in its job: it joins with the first store and leaves at exit."""

from __future__ import annotations

import os

import mxnet as mx
from mxnet import optimizer as opt
from mxnet.base import MXNetError

from hipress.autotune.steps import FIRST_KEY
from hipress.runtime.node import Node
from mxnet_hipress import _engine
from mxnet_hipress._commands import STORE_SHIFT
from mxnet_hipress._optimizers import allows_feedback
from mxnet_hipress._sparse import SparseStore

_job: Job | None = None


class WorkerNode(Node):
    """Node of a worker, with the errors and the exit behavior that MXNet's users expect."""

    Error = MXNetError
    exits_at_once = True  # pending operations of MXNet in a failed job may never end

    def __init__(self, sync: bool) -> None:
        super().__init__()
        self.set_sync(sync)
        self.sparse = SparseStore(self, sync)
        self.optimizers: dict[int, opt.Optimizer] = {}
        """Optimizers by store, if known: the servers', or the workers' in a job without servers."""

    def allows_feedback(self) -> bool | None:
        """Return whether the optimizers of all stores support error feedback, None if unknown."""
        if not all(map(allows_feedback, self.optimizers.values())):
            return False
        stores = {key >> STORE_SHIFT for key in self.known_keys if key < FIRST_KEY}
        return True if stores and stores <= set(self.optimizers) else None

    def settle(self) -> None:
        """Block until MXNet has computed everything and the stores have sent it."""
        mx.nd.waitall()
        super().settle()
        self.sparse.close()

    def disconnect(self) -> None:
        """Disconnect MXNet's engine from the node."""
        _engine.close(self.handle)


class Job:
    """The node and the state that its stores share."""

    def __init__(self, sync: bool) -> None:
        _engine.bind()
        self.sync = sync
        self.node = WorkerNode(sync)
        self.sparse = self.node.sparse
        self.compresses = False
        """Whether gradients are compressed, by the last setting of any store."""
        self.stores = 0
        """Number of stores created by this process. All workers create the same ones in the same
        order."""


def join(sync: bool) -> Job:
    """Return the job of this process, and join it in the first call."""
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
    """Return the job, if this process has joined one."""
    return _job
