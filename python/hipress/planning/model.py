"""Cost model for measured profiles: latency, bandwidth, codec speed, pipelining.

A gradient of x elements has K partitions of c = x/K elements, each a payload of m bytes. One
partition takes ``path`` seconds through the topology. All K partitions start at once, and wait for
each other where they meet: at a node's codec threads, its outgoing link, or its incoming link. So

    T(K) = max(path, max over the three of (all that K partitions need of one node's
                     + path - its share of the path, on any node))

which is a pipeline's bottleneck, and the time to fill and to drain it. A message occupies a link
for ``message + m/B``, and arrives ``latency`` later. A topology's ``cost`` gives the number of
messages and the codec time on the path and on the busiest node
(:class:`hipress.topology.topology.Cost`).

Small payloads share messages and small tasks share jobs, if the profile contains the cost of a part
(see :mod:`hipress.planning.cluster`): gradients are pushed in groups. In a message with room for s
bytes, a payload of p takes p/s; in a job with room for e elements, a task of c takes c/e. Each
arriving payload takes ``part`` of its node's threads, as a whole message takes ``handling`` if
nodes share processors. If many gradients with different owners are sent at once, each owner has 1/N
of them.

Unlike the published model, this one multiplies start-up costs by K, has no table of N, and includes
that codecs and network work at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hipress.planning.cluster import (
    JOB_ELEMENTS,
    SHARED_BYTES,
    Cluster,
    Codec,
    Costs,
    is_small,
    part_bytes,
)
from hipress.topology.topology import Prices, Topology


@dataclass(frozen=True)
class Needs:
    """Seconds of a gradient's synchronization."""

    path: float
    """Time of one partition's path."""
    threads: float
    """Codec time on the busiest node divided by its threads, for all partitions."""
    link: float
    """Time of the busiest node's link in one direction, for all partitions."""
    threads_in_path: float
    """Codec time in ``path``, over all nodes on it."""
    link_in_path: float

    @property
    def seconds(self) -> float:
        """Seconds from a gradient's computation to its synchronization, on idle nodes."""
        waiting = max(self.threads - self.threads_in_path, self.link - self.link_in_path, 0.0)
        return self.path + waiting


Best = tuple[tuple[int, Needs], tuple[int, Needs]]
"""Best number of partitions and its needs, for a gradient uncompressed and compressed."""


def needs(
    topology: Topology, nodes: int, elements: int, partitions: int, codec: Codec, cluster: Cluster
) -> Needs:
    """Return the seconds by the formulas above, for a topology with a cost."""
    n, k = nodes, partitions
    c = -(-elements // k)
    size = codec.payload(c)
    share, task = 1.0, cluster.task
    arrival = cluster.handling if cluster.shared_hosts and cluster.part is not None else 0.0
    shared = cluster.part is not None and is_small(size)
    if shared:
        size = part_bytes(size)
        share = size / SHARED_BYTES
        task *= min(1.0, c / JOB_ELEMENTS)
        arrival = share * arrival + cluster.part

    def priced(seconds: float) -> float:
        return seconds + task if seconds > 0 else 0.0

    encode, decode = priced(codec.encode(c)), priced(codec.decode(c))
    if n == 1:
        path = encode + decode
        return Needs(path, k * path / cluster.threads, 0.0, path, 0.0)
    wire = share * cluster.message + size / cluster.bandwidth
    cost = topology.cost(
        n,
        k,
        Prices(
            encode,
            decode,
            merge=lambda payloads: priced(codec.merge_seconds(c, payloads)),
            add=lambda payloads: priced(codec.merge_seconds(c, payloads, own=True)),
            together=shared,
        ),
    )
    once = cost.wires * wire
    threads = (cost.busy + cost.messages * arrival) / cluster.threads
    path = cost.codec + cost.steps * cluster.latency + once
    return Needs(path, threads, cost.messages * wire, cost.codec, once)


def partition_counts(elements: int, nodes: int) -> list[int]:
    """Return candidates: 1, powers of two, and multiples of the nodes, down to parts of 16 Ki."""
    most = max(1, min(64 * nodes, elements // 16384))
    counts = {1, most}
    counts |= {1 << i for i in range(most.bit_length())}
    counts |= {nodes << i for i in range(7)}
    return sorted(k for k in counts if k <= most)


def best(
    topology: Topology, nodes: int, elements: int, codec: Codec, cluster: Cluster
) -> tuple[int, Needs]:
    """Return the least number of partitions within 1% of the fastest, and its needs."""
    rows = [
        (k, needs(topology, nodes, elements, k, codec, cluster))
        for k in partition_counts(elements, nodes)
    ]
    limit = 1.01 * min(row.seconds for _, row in rows)
    return next((k, row) for k, row in rows if row.seconds <= limit)


@dataclass(frozen=True)
class MeasuredModel:
    """The cost model of a measured profile, for plans."""

    topology: Topology
    nodes: int
    costs: Costs
    cluster: Cluster
    summed = False
    """Whether total() adds gradients up, one after the other."""

    def best(self, elements: int) -> Best:
        """Return the best partitioning of a gradient, uncompressed and compressed."""
        plain, compressed = (
            best(self.topology, self.nodes, elements, codec, self.cluster)
            for codec in (self.costs.plain, self.costs.compressed)
        )
        return plain, compressed

    def total(self, gradients: Sequence[Needs]) -> float:
        """Return the seconds of gradients that are synchronized together.

        They are the time of the busiest resource plus the shortest path before it is busy.
        """
        threads, link = sum(n.threads for n in gradients), sum(n.link for n in gradients)
        return max(threads, link) + min(n.path for n in gradients)

    def choose(self, rows: Sequence[Best]) -> list[bool]:
        """Choose gradients to compress, so that the busier of links and threads is least busy.

        A gradient that alone would be slower compressed stays uncompressed. All other gradients are
        compressed in the order of link time saved per thread time spent, as long as the busier of
        the two gets less busy.
        """
        chosen = [False] * len(rows)
        threads = sum(raw.threads for (_, raw), _ in rows)
        link = sum(raw.link for (_, raw), _ in rows)

        def worth(i: int) -> float:
            (_, raw), (_, packed) = rows[i]
            spent = packed.threads - raw.threads
            saved = raw.link - packed.link
            return saved / spent if spent > 0 else float("inf")

        for i in sorted(range(len(rows)), key=worth, reverse=True):
            (_, raw), (_, packed) = rows[i]
            if packed.seconds >= raw.seconds:
                continue
            next_threads = threads + packed.threads - raw.threads
            next_link = link + packed.link - raw.link
            if max(next_threads, next_link) < max(threads, link):
                chosen[i], threads, link = True, next_threads, next_link
        return chosen
