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
from mxnet_hipress._sparse import SparseStore
from mxnet_hipress._states import allows_feedback

_node: WorkerNode | None = None


class WorkerNode(Node):
    """Node of a worker, which its stores share, with MXNet's errors and exit behavior."""

    Error = MXNetError
    exits_at_once = True  # pending operations of MXNet in a failed job may never end

    def __init__(self, sync: bool) -> None:
        _engine.bind()
        super().__init__()
        self.set_sync(sync)
        self.sync = sync
        self.sparse = SparseStore(self, sync)
        self.optimizers: dict[int, opt.Optimizer] = {}
        """Optimizers by store, if known: the servers', or the workers' in a job without servers."""
        self.compresses = False
        """Whether gradients are compressed, by the last setting of any store."""
        self.stores = 0
        """Number of stores of this process. All workers create the same ones in the same order."""

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


def join(sync: bool) -> WorkerNode:
    """Return the node of this process, which the first call joins to the job."""
    global _node
    if _node is None:
        role = os.environ.get("DMLC_ROLE", "worker")
        if role != "worker":
            raise MXNetError(f"a {role} has no key-value store: DMLC_ROLE must be worker")
        _node = WorkerNode(sync)
    if _node.sync != sync:
        raise MXNetError(
            "a job is either synchronous or asynchronous, and this one is "
            + ("synchronous" if _node.sync else "asynchronous")
        )
    return _node


def current() -> WorkerNode | None:
    """Return the node, if this process has joined a job."""
    return _node
