"""Butterfly: recursive halving, then doubling (Rabenseifner 2004; Thakur et al. 2005).

P, the greatest power of two up to N, workers take part. In each step, partners, whose numbers
differ in one bit, exchange the half of their sums for which the other one is responsible. Then the
results return on the paths of the sums. For one partition that is a binomial tree to its owner:
each worker decodes the payload it received, adds its own gradient, and encodes the sum with a
separate residual. The owner's payload returns unchanged. Each of the remaining N-P workers sends
its gradients to a neighbor before, and gets the results after.

Cost per gradient of m bytes: 2·log2 P steps, and 2 more if N > P. With P partitions or more, each
of the P workers sends and receives 2(P-1)/P·m, and m more if it has such a neighbor. A worker
encodes m and decodes at most 2m (3m with a neighbor).
"""

from __future__ import annotations

from hipress.topology.graph import GRADIENT, Graph, Op, worker
from hipress.topology.topology import GraphRequest, Topology

REDUCE, SHARE = 0, 1


def fill(graph: Graph, request: GraphRequest) -> None:
    """Add the tasks. Participant ``home + p`` owns partition p."""
    size = 1 << request.num_workers.bit_length() - 1
    spare = request.num_workers - size
    # Ranks 0, 2, ... of the first 2·spare send their gradients to the next rank.
    ranks = [2 * i + 1 if i < spare else i + spare for i in range(size)]
    for p in range(len(graph.partitions)):
        _binomial(graph, p, ranks, spare, (request.home + p) % size)


def _binomial(graph: Graph, p: int, ranks: list[int], spare: int, owner: int) -> None:
    """Add the tasks of partition ``p``.

    ``ranks`` are the participants' ranks. The first ``spare`` of them have the rank before theirs
    as a neighbor. ``owner`` is the number of a participant.
    """
    inputs: dict[int, list[tuple[int, int]]] = {rank: [(rank, GRADIENT)] for rank in ranks}
    summands = dict.fromkeys(ranks, 1)
    edges: list[tuple[int, int]] = []  # (from, to) of the sums, in order of the steps

    def encode(rank: int) -> int:
        values = [value for _, value in sorted(inputs[rank])]
        value = values[0]
        if len(values) > 1:
            value = graph.add(worker(rank), Op.MERGE, p, *values)
        return graph.add(worker(rank), Op.ENCODE, p, value, num_summands=summands[rank])

    def hand_over(rank: int, to: int) -> None:
        graph.add(worker(rank), Op.SEND, p, encode(rank), peer=worker(to), step=REDUCE)
        received = graph.add(worker(to), Op.RECV, p, peer=worker(rank), step=REDUCE)
        inputs[to].append((rank, received))
        summands[to] += summands[rank]
        edges.append((rank, to))

    for rank in ranks[:spare]:
        inputs[rank - 1], summands[rank - 1] = [(rank - 1, GRADIENT)], 1
        hand_over(rank - 1, rank)
    bit = len(ranks) // 2
    while bit:
        for i in range(len(ranks)):
            # i still sums p: it equals the owner in all higher bits, but not in this one.
            if (i ^ owner) & bit and (i ^ owner) < 2 * bit:
                hand_over(ranks[i], ranks[i ^ bit])
        bit //= 2
    payloads = {ranks[owner]: encode(ranks[owner])}
    graph.add(worker(ranks[owner]), Op.DECODE, p, payloads[ranks[owner]])
    for rank, source in reversed(edges):
        graph.add(worker(source), Op.SEND, p, payloads[source], peer=worker(rank), step=SHARE)
        payloads[rank] = graph.add(worker(rank), Op.RECV, p, peer=worker(source), step=SHARE)
        graph.add(worker(rank), Op.DECODE, p, payloads[rank])


TOPOLOGY = Topology("butterfly", "recursive halving and doubling: 2 log2 N steps", fill)
