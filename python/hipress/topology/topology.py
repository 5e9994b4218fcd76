"""Description of a topology, for building its graphs, for plans and for simulations.

A file of a topology ends by defining one :class:`Topology`. :mod:`.topologies` finds all of them by
name.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from hipress.topology.graph import PARTITION_ELEMENTS, Graph, Partition, cut_into

BIGARRAY_BOUND = 1_000_000
"""Keys of at least this many elements are split over all servers (MXNET_KVSTORE_BIGARRAY_BOUND)."""

MIN_PARTITION_ELEMENTS = 16 * 1024
"""Smallest pieces over which serverless topologies spread a gradient: 64 KiB of float32. In smaller
messages the fixed costs exceed those of their bytes."""


@dataclass(frozen=True)
class GraphRequest:
    """Job, and one gradient of ``n`` elements in it, for which a graph is built."""

    n: int
    num_workers: int
    num_servers: int = 0
    home: int = 0
    """Number of the key in the job, by which small gradients are spread over the nodes."""
    partition_elements: int = PARTITION_ELEMENTS
    """Approximate largest number of elements of a partition."""
    partitions: int | None = None
    """Exact number of partitions instead, or fewer if blocks of 64 do not suffice."""
    bigarray_bound: int = BIGARRAY_BOUND
    """Elements below which a key is on one server as a whole."""
    sync: bool = True
    """If False, each push takes effect at once; for topologies with an asynchronous mode."""
    devices_per_host: int = 1
    """Workers on each host, with consecutive ranks; for topologies that distinguish hosts."""
    compress: bool = True
    """If False, the gradient is never compressed."""


class Symmetry(enum.Enum):
    """Patterns in which all hosts do the same at once, so that one is simulated for all."""

    RING = enum.auto()
    """Each part goes around, from every host to the next."""
    EXCHANGE = enum.auto()
    """Each host owns a part, which all other hosts send to it and receive back."""


@dataclass(frozen=True)
class Prices:
    """Seconds of codecs for one partition on one node."""

    encode: float
    decode: float
    merge: Callable[[int], float]
    """Seconds of a merge of so many payloads."""
    add: Callable[[int], float]
    """Seconds of adding so many payloads to the node's own gradient."""
    together: bool = False
    """Whether many small gradients are pushed together."""

    def owned(self, nodes: int, partitions: int) -> float:
        """Return the number of partitions that the busiest node owns.

        If many gradients have different owners, it is an equal share.
        """
        return partitions / nodes if self.together else -(-partitions // nodes)


@dataclass(frozen=True)
class Cost:
    """Cost of synchronizing a gradient, in codec time and messages of a partition each."""

    codec: float
    """Seconds of codecs on one partition's path, over all nodes on it."""
    steps: int
    """Number of consecutive messages on that path. Each arrives a latency after it was sent."""
    wires: int
    """Number of waits on that path for a message to pass a link: the partition's own, or an earlier
    one of other nodes."""
    busy: float
    """Seconds of codecs on the busiest node, for all partitions."""
    messages: float
    """Number of messages of the busiest node, in each direction, for all partitions."""


@dataclass(frozen=True)
class Terms:
    """Counts of each curve of the published model (:mod:`hipress.planning.sosp21`)."""

    encode: int
    decode: int
    merge: int
    step: int = 0
    gather: int = 0
    broadcast: int = 0


def cuts_for(
    n: int,
    num_workers: int,
    partition_elements: int = PARTITION_ELEMENTS,
    partitions: int | None = None,
) -> list[Partition]:
    """Partition ``n`` elements as a serverless topology does.

    The number of parts is ``partitions``. If that is None, there are equal parts for all workers,
    of at most about ``partition_elements``.
    """
    if partitions is None:
        partitions = -(-n // max(partition_elements, 1))
        if partitions < num_workers:
            partitions = max(partitions, min(num_workers, n // MIN_PARTITION_ELEMENTS))
        else:
            partitions = -(-partitions // num_workers) * num_workers
    return cut_into(n, partitions)


def _cut(request: GraphRequest) -> list[Partition]:
    return cuts_for(request.n, request.num_workers, request.partition_elements, request.partitions)


@dataclass(frozen=True)
class Topology:
    """Topology: its name, its abilities and needs, and the builder of its graphs."""

    name: str
    """Name in ``compression_params={'topology': ...}`` and ``--topo``, in small letters."""
    summary: str
    """Description in one line, with its steps."""
    fill: Callable[[Graph, GraphRequest], None]
    """Function that adds the tasks of all nodes to a graph with partitions and without tasks."""
    cut: Callable[[GraphRequest], list[Partition]] = _cut
    """Function that partitions the gradient."""
    needs_servers: bool = False
    """Whether it needs server processes. Other topologies use workers only."""
    among_workers: str = ""
    """Topology that does the same with servers inside the workers, if this one needs servers."""
    asynchronous: bool = False
    """Whether ``sync=False`` is possible."""
    needs_devices_per_host: bool = False
    """Whether it needs the number of workers per host."""
    encodes_each: bool = False
    """Whether every worker's own gradient is encoded by itself, so that all of it gets a codec's
    momentum. Sums get none. If it depends on the devices per host, this is for one device: several
    are summed before."""
    symmetry: Symmetry | None = None
    """Pattern by which one host represents all in a simulation; None: not possible."""
    cost: Callable[[int, int, Prices], Cost] | None = None
    """Function for the cost of N >= 2 nodes and K partitions; None: no plan can be made."""
    published: Callable[[int, int], Terms] | None = None
    """Function for the published profile's terms."""

    def build(self, request: GraphRequest) -> Graph:
        """Return the graph of one gradient. :func:`.topologies.build` checks the request."""
        graph = Graph(
            request.n, self.cut(request), per_worker=not request.sync, plain=not request.compress
        )
        self.fill(graph, request)
        return graph

    def encodes_each_of(self, devices_per_host: int) -> bool:
        """Return :attr:`encodes_each` for a number of devices per host."""
        alone = not self.needs_devices_per_host or devices_per_host == 1
        return self.encodes_each and alone
