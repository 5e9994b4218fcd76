"""A topology's description, told once: for building its graphs, for plans and for simulations.

A file of a topology ends by defining one :class:`Topology`; :mod:`.topologies` knows them
all by name.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from hipress.topology.graph import PARTITION_ELEMENTS, Graph, Partition, cut_into

BIGARRAY_BOUND = 1_000_000
"""Keys of at least this many elements are split over all servers (MXNET_KVSTORE_BIGARRAY_BOUND)."""

MIN_PARTITION_ELEMENTS = 16 * 1024
"""Serverless topologies spread a gradient over the workers unless the pieces fall below this: 64
KiB of float32, where messages begin to cost more than their bytes."""


@dataclass(frozen=True)
class GraphRequest:
    """A job, and one gradient of ``n`` elements in it, for which a graph is built."""

    n: int
    num_workers: int
    num_servers: int = 0
    home: int = 0
    """Counts the job's keys; small gradients are spread over the nodes by it."""
    partition_elements: int = PARTITION_ELEMENTS
    """About the most elements of a partition."""
    partitions: int | None = None
    """Cut into exactly so many instead (fewer if blocks of 64 do not suffice)."""
    bigarray_bound: int = BIGARRAY_BOUND
    """With servers: keys of fewer elements live whole on one of them."""
    sync: bool = True
    """False: each push takes effect at once; for topologies with an asynchronous mode."""
    devices_per_host: int = 1
    """Workers on each host, consecutive ranks; for topologies that tell hosts apart."""
    compress: bool = True
    """False: nothing of the gradient is ever compressed."""


class Symmetry(enum.Enum):
    """Patterns in which all hosts do the same at the same time: one is simulated for all."""

    RING = enum.auto()
    """Each part goes around, from every host to the next."""
    EXCHANGE = enum.auto()
    """Each host owns a part, which all others send to it and get back."""


@dataclass(frozen=True)
class Prices:
    """Seconds that codecs take for one partition on one node."""

    encode: float
    decode: float
    merge: Callable[[int], float]
    """Seconds of a merge of so many payloads."""
    add: Callable[[int], float]
    """Seconds of adding so many payloads to the node's own gradient."""
    together: bool = False
    """Many small gradients are pushed at a time."""

    def owned(self, nodes: int, partitions: int) -> float:
        """Partition that the busiest node owns: of many gradients, whose owners differ, an equal
        share."""
        return partitions / nodes if self.together else -(-partitions // nodes)


@dataclass(frozen=True)
class Cost:
    """The cost of synchronizing a gradient, in codec time and messages of a partition each."""

    codec: float
    """Seconds of codecs on one partition's way, over all nodes that it leads through."""
    steps: int
    """Messages on that way, one after the other: each arrives a latency after it was sent."""
    wires: int
    """Times that a message is waited for to pass a link on that way: of one's own, or of others
    that come to the same place before it."""
    busy: float
    """Seconds of codecs on the busiest node, for all partitions."""
    messages: float
    """Messages of the busiest node, in each direction, for all partitions."""


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
    """Cut ``n`` elements as a serverless topology does: into ``partitions``, or, if that is None,
    into equal parts for all workers of at most about ``partition_elements``."""
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
    """A way for gradients to travel: its name, what it can and needs, how its graphs are built."""

    name: str
    """The name in ``compression_params={'topology': ...}`` and ``--topo``; small letters."""
    summary: str
    """One line: what it is, and its steps."""
    fill: Callable[[Graph, GraphRequest], None]
    """Adds the tasks of all nodes to a graph that has partitions and no tasks yet."""
    cut: Callable[[GraphRequest], list[Partition]] = _cut
    """Cuts the gradient into partitions."""
    needs_servers: bool = False
    """Whether it needs server processes; the others use workers only."""
    among_workers: str = ""
    """The topology that does the same with servers inside the workers, if this one needs some."""
    asynchronous: bool = False
    """Whether ``sync=False`` is possible."""
    needs_devices_per_host: bool = False
    """Whether it must be known how many workers share a host."""
    encodes_each: bool = False
    """Whether every worker's own gradient is encoded by itself, so that all of it gets a codec's
    momentum: what is encoded in a sum gets none. Said of one device on each host where it matters
    how many there are: several are summed before."""
    symmetry: Symmetry | None = None
    """The pattern by which one host stands for all in a simulation; None: it cannot."""
    cost: Callable[[int, int, Prices], Cost] | None = None
    """The cost of N >= 2 nodes and K partitions by measured profiles; None: no plan can be made."""
    published: Callable[[int, int], Terms] | None = None
    """The same by the published profile."""

    def build(self, request: GraphRequest) -> Graph:
        """Return the graph of one gradient; :func:`.topologies.build` checks the request."""
        graph = Graph(
            request.n, self.cut(request), per_worker=not request.sync, plain=not request.compress
        )
        self.fill(graph, request)
        return graph

    def encodes_each_of(self, devices_per_host: int) -> bool:
        """:attr:`encodes_each` with so many devices on a host."""
        alone = not self.needs_devices_per_host or devices_per_host == 1
        return self.encodes_each and alone
