"""The cost model for measured profiles: latency, bandwidth, codec speed, pipelining.

A gradient of x elements is cut into K partitions of c = x/K, each a payload of m bytes. One
partition's way through the topology takes ``path`` seconds. All K go the same way at once, and wait
for each other where they meet: at a node's codec threads, at its link out, at its link in. So

    T(K) = max(path, max over the three of (all that K partitions need of one node's
               + path - what of the path is spent there, on whichever node))

a pipeline's bottleneck, and the time to fill and to drain it. Per message a link is taken for
``message + m/B``; a message arrives ``latency`` later. How many messages and how much codec time
lie on the way and on the busiest node is what a topology's own ``cost`` says
(:class:`hipress.casync.topology.Cost`).

Small payloads share messages and small tasks jobs, if the profile knows what a part takes (see
:mod:`hipress.secopa.sharing`): gradients are pushed in groups. Of a message with room for s bytes
one of p takes p/s, of a job with room for e elements one of c takes c/e, and each that arrives
takes ``part`` of its node's threads, as a whole message takes ``handling`` where nodes share their
processors. Of many that have owners at a time each owner has 1/N.

Unlike the published model this one multiplies start-up costs by K, has no table of N, and knows
that codecs and network work at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

from hipress.casync.topology import Prices, Topology
from hipress.secopa import sharing
from hipress.secopa.cluster import Cluster, Codec


@dataclass(frozen=True)
class Needs:
    """Seconds of a gradient's synchronisation."""

    path: float
    """One partition's way."""
    threads: float
    """Codec time on the busiest node over its threads, all partitions."""
    link: float
    """Time of the busiest node's link in one direction, all partitions."""
    threads_in_path: float
    """Codec time in ``path``, over all nodes that it leads through."""
    link_in_path: float

    @property
    def seconds(self) -> float:
        """Seconds from a gradient's being there to its being synchronised, on idle nodes."""
        waiting = max(self.threads - self.threads_in_path, self.link - self.link_in_path, 0.0)
        return self.path + waiting


def needs(
    topology: Topology, nodes: int, elements: int, partitions: int, codec: Codec, cluster: Cluster
) -> Needs:
    """The formulas above, for a topology that says its cost."""
    n, k = nodes, partitions
    c = -(-elements // k)
    size = codec.payload(c)
    share, task = 1.0, cluster.task
    arrival = cluster.handling if cluster.shared_hosts and cluster.part is not None else 0.0
    shared = cluster.part is not None and sharing.is_small(size)
    if shared:
        size = sharing.part_bytes(size)
        share = size / sharing.SHARED_BYTES
        task *= min(1.0, c / sharing.JOB_ELEMENTS)
        arrival = share * arrival + cluster.part

    def priced(seconds: float) -> float:
        return seconds + task if seconds > 0 else 0.0

    encode, decode = priced(codec.encode(c)), priced(codec.decode(c))
    if n == 1:
        path = encode + decode
        return Needs(path, k * path / cluster.threads, 0.0, path, 0.0)
    wire = share * cluster.message + size / cluster.bandwidth
    cost = topology.cost(n, k, Prices(
        encode,
        decode,
        merge=lambda payloads: priced(codec.merge_seconds(c, payloads)),
        add=lambda payloads: priced(codec.merge_seconds(c, payloads, own=True)),
        together=shared,
    ))  # fmt: skip
    once = cost.wires * wire
    threads = (cost.busy + cost.messages * arrival) / cluster.threads
    path = cost.codec + cost.steps * cluster.latency + once
    return Needs(path, threads, cost.messages * wire, cost.codec, once)


def partition_counts(elements: int, nodes: int) -> list[int]:
    """Counts worth trying: 1, powers of two, and multiples of the nodes, to parts of 16 Ki."""
    most = max(1, min(64 * nodes, elements // 16384))
    counts = {1, most}
    counts |= {1 << i for i in range(most.bit_length())}
    counts |= {nodes << i for i in range(7)}
    return sorted(k for k in counts if k <= most)


def best(
    topology: Topology, nodes: int, elements: int, codec: Codec, cluster: Cluster
) -> tuple[int, Needs]:
    """The least number of partitions that is at most 1% slower than the best, and its needs."""
    rows = [
        (k, needs(topology, nodes, elements, k, codec, cluster))
        for k in partition_counts(elements, nodes)
    ]
    limit = 1.01 * min(row.seconds for _, row in rows)
    return next((k, row) for k, row in rows if row.seconds <= limit)
