"""A store's place in its job."""

from __future__ import annotations

import ctypes

from mxnet.base import _LIB, KVStoreHandle, check_call
from mxnet.kvstore import KVStore as MXNetKVStore
from mxnet.profiler import set_kvstore_handle

from mxnet_hipress import _engine, _job
from mxnet_hipress._commands import pack


class JobStore(MXNetKVStore):
    """What a store has of its job, before it has a key: type, rank, sizes, commands, counters.

    :param name: the type that scripts see, e.g. "dist_sync"
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # MXNet's C functions (the profiler, say) want a store of its own; a local one does no harm.
        handle = KVStoreHandle()
        check_call(_LIB.MXKVStoreCreate(b"local", ctypes.byref(handle)))
        super().__init__(handle)
        set_kvstore_handle(self.handle)
        self._job = _job.join(sync="async" not in name)
        self._node = self._job.node
        self._number = self._job.stores
        self._job.stores += 1

    @property
    def type(self) -> str:
        """The type this store was created as."""
        return self._name

    @property
    def rank(self) -> int:
        """The rank of this worker, from 0."""
        return self._node.rank

    @property
    def num_workers(self) -> int:
        """Workers in the job."""
        return self._node.num_workers

    @property
    def num_servers(self) -> int:
        """Servers in the job."""
        return self._node.num_servers

    def is_capable(self, capability: str) -> bool:
        """Whether the store can run an optimizer ("optimizer"): always."""
        if capability.lower() == self.OPTIMIZER:
            return True
        raise ValueError(f"unknown capability {capability!r}: the only one is {self.OPTIMIZER!r}")

    def num_dead_node(self, node_id: int = 7) -> int:
        """Dead nodes among the groups in `node_id`: bits 1 scheduler, 2 servers, 4 workers."""
        return self._node.num_dead_node(node_id)

    def get_num_dead_node(self, node_id: int = 7, timeout: int = 60) -> int:
        """num_dead_node under its older name; `timeout` plays no part."""
        return self.num_dead_node(node_id)

    def stats(self) -> dict:
        """Counters of this worker, such as bytes pushed, pulled and saved by compression."""
        return self._node.stats()

    def _send_command_to_servers(self, head: int, body: str | bytes) -> list[bytes]:
        """Sends a command to all servers; returns their answers. Blocks."""
        body = body.encode() if isinstance(body, str) else body
        return [self._command(server, head, body) for server in range(self.num_servers)]

    def _command(self, server: int, head: int, body: bytes) -> bytes:
        _engine.flush(self._node.handle)
        return self._node.command(server, int(head), pack(self._number, body))
