"""The cost model for measured profiles: latency, bandwidth, codec speed, pipelining.

A gradient of x elements is cut into K partitions of c = x/K, each a payload of m bytes. One
partition's way through the topology takes ``path`` seconds. All K go the same way at once, and wait
for each other where they meet: at a node's codec threads, at its link out, at its link in. So

    T(K) = max(path, max over the three of (all that K partitions need of one node's
               + path - what of the path is spent there, on whichever node))

a pipeline's bottleneck, and the time to fill and to drain it. Per message a link is taken for
``message + m/B``; a message arrives ``latency`` later. With E, D, M, A for encode, decode, merge
(of N payloads), add (payload and own gradient), L = latency + message + m/B and W = message + m/B:

    PS    a server beside each of N workers, partition p on server p mod N, o = ceil(K/N) on one
          path     E + L + (N-2) W + M + E + L + (N-2) W + D
          threads  K (E + D) + o (M + E)        links  (K - o + o (N-1)) W each way
    ring  path     E + (N-1) (L + A + E) + (N-1) L + D
          threads  K (E + A + D)                links  2 K (N-1)/N W each way
    tree  double binary, H = floor(log2 N)
          path     E + H (L + M_3 + E) + H (L + W) + D
          threads  K (E + A + D)                links  2 K (N-1)/N W each way

Small payloads share messages and small tasks jobs, if the profile knows what a part takes (see
:mod:`hipress.secopa.sharing`): gradients are pushed in groups. Of a message with room for s bytes
one of p takes p/s, of a job with room for e elements one of c takes c/e, and each that arrives
takes ``part`` of its node's threads, as a whole message takes ``handling`` where nodes share their
processors. Of many that one server has at a time each has 1/N: o = K/N.

Unlike the published model this one multiplies start-up costs by K, has no table of N, and knows
that codecs and network work at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

from hipress.secopa import sharing
from hipress.secopa.cluster import Cluster, Codec


@dataclass(frozen=True)
class Needs:
    """What a gradient's synchronisation takes; seconds."""

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
        """From the gradient's being there to its being synchronised, with nothing else going on."""
        waiting = max(self.threads - self.threads_in_path, self.link - self.link_in_path, 0.0)
        return self.path + waiting


def needs(
    topology: str, nodes: int, elements: int, partitions: int, codec: Codec, cluster: Cluster
) -> Needs:
    """The formulas above; ``topology`` is PS, RING or TREE."""
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

    def cost(seconds: float) -> float:
        return seconds + task if seconds > 0 else 0.0

    encode, decode = cost(codec.encode(c)), cost(codec.decode(c))
    if n == 1:
        path = encode + decode
        return Needs(path, k * path / cluster.threads, 0.0, path, 0.0)
    wire = share * cluster.message + size / cluster.bandwidth
    hop = cluster.latency + wire
    if topology == "PS":
        owned = k / n if shared else -(-k // n)
        merge = cost(codec.merge_seconds(c, n))
        path = 2 * (hop + (n - 2) * wire) + 2 * encode + merge + decode
        threads = k * (encode + decode) + owned * (merge + encode)
        messages, once = k - owned + owned * (n - 1), 2 * (n - 1) * wire
        inside = 2 * encode + merge + decode
    elif topology == "RING":
        add = cost(codec.merge_seconds(c, 1, own=True))
        path = encode + (n - 1) * (hop + add + encode) + (n - 1) * hop + decode
        threads = k * (encode + add + decode)
        messages, once = 2 * k * (n - 1) / n, 2 * (n - 1) * wire
        inside = encode + (n - 1) * (add + encode) + decode
    else:
        height = n.bit_length() - 1
        three = cost(codec.merge_seconds(c, 2, own=True))
        two = cost(codec.merge_seconds(c, 1, own=True))
        second = wire if n > 2 else 0.0  # an inner node's other child
        path = encode + height * (hop + three + encode) + height * (hop + second) + decode
        threads = k * (encode + two + decode)
        messages, once = 2 * k * (n - 1) / n, height * (2 * wire + second)
        inside = encode + height * (three + encode) + decode
    threads += messages * arrival
    return Needs(path, threads / cluster.threads, messages * wire, inside, once)


def partition_counts(elements: int, nodes: int) -> list[int]:
    """Counts worth trying: 1, powers of two, and multiples of the nodes, to parts of 16 Ki."""
    most = max(1, min(64 * nodes, elements // 16384))
    counts = {1, most}
    counts |= {1 << i for i in range(most.bit_length())}
    counts |= {nodes << i for i in range(7)}
    return sorted(k for k in counts if k <= most)


def best(
    topology: str, nodes: int, elements: int, codec: Codec, cluster: Cluster
) -> tuple[int, Needs]:
    """The least number of partitions that is at most 1% slower than the best, and its needs."""
    rows = [
        (k, needs(topology, nodes, elements, k, codec, cluster))
        for k in partition_counts(elements, nodes)
    ]
    limit = 1.01 * min(row.seconds for _, row in rows)
    return next((k, row) for k, row in rows if row.seconds <= limit)
