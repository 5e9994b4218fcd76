"""Base of stores that belong to a job."""

from __future__ import annotations

from mxnet_hipress import _engine, _job
from mxnet_hipress._commands import pack
from mxnet_hipress._store import Store


class JobStore(Store):
    """Store with the parts that need no key: rank, sizes, commands, counters.

    Args:
        name: The store's type as scripts see it, for example "dist_sync".
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._job = _job.join(sync="async" not in name)
        self._node = self._job.node
        self._number = self._job.stores
        self._job.stores += 1

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

    def num_dead_node(self, node_id: int = 7) -> int:
        """Return the number of dead nodes in groups `node_id`: bits 1 scheduler, 2 servers, 4
        workers."""
        return self._node.num_dead_node(node_id)

    def stats(self) -> dict:
        """Return counters of this worker, such as bytes pushed, pulled and saved by compression."""
        return self._node.stats()

    def _send_command_to_servers(self, head: int, body: str | bytes) -> list[bytes]:
        """Send a command to all servers and return their answers. Blocks."""
        body = body.encode() if isinstance(body, str) else body
        return [self._command(server, head, body) for server in range(self.num_servers)]

    def _command(self, server: int, head: int, body: bytes) -> bytes:
        _engine.flush(self._node.handle)
        return self._node.command(server, int(head), pack(self._number, body))
