"""Ring: each partition goes around once to be summed, and once more as the result.

Partition p starts at worker ``home + p``, which encodes its gradient and sends it to its right
neighbor. Each further worker decodes the payload it receives, adds its own gradient, and encodes
the sum with a separate residual. The last worker has the result, and its payload goes around
unchanged.

Cost per gradient of m bytes on N workers: 2(N-1) steps. With N partitions or more, each worker
sends and receives 2(N-1)/N·m, to one neighbor and from one neighbor. A worker encodes m, which
happens N times in a row between a partition's start and its end, and decodes m(N-1)/N + m.
"""

from __future__ import annotations

from hipress.topology.graph import GRADIENT, Graph, Op, worker
from hipress.topology.topology import Cost, GraphRequest, Prices, Symmetry, Terms, Topology

REDUCE, SHARE = 0, 1


def fill(graph: Graph, request: GraphRequest) -> None:
    """Add the tasks. Partition p starts at worker ``home + p``."""
    workers = request.num_workers
    for p in range(len(graph.partitions)):
        ranks = [(request.home + p + hop) % workers for hop in range(workers)]
        around(graph, p, ranks)


def around(graph: Graph, p: int, ranks: list[int]) -> None:
    """Add partition ``p``'s tasks around the ring ``ranks``, from its first rank."""
    payload = graph.add(worker(ranks[0]), Op.ENCODE, p, GRADIENT)
    for summands, (left, rank) in enumerate(zip(ranks, ranks[1:]), 2):
        graph.add(worker(left), Op.SEND, p, payload, peer=worker(rank), step=REDUCE)
        here = worker(rank)
        received = graph.add(here, Op.RECV, p, peer=worker(left), step=REDUCE)
        total = graph.add(here, Op.MERGE, p, received, GRADIENT)
        payload = graph.add(here, Op.ENCODE, p, total, num_summands=summands)
    last = ranks[-1]
    graph.add(worker(last), Op.DECODE, p, payload)
    for left, rank in zip([last, *ranks], ranks[:-1]):
        graph.add(worker(left), Op.SEND, p, payload, peer=worker(rank), step=SHARE)
        payload = graph.add(worker(rank), Op.RECV, p, peer=worker(left), step=SHARE)
        graph.add(worker(rank), Op.DECODE, p, payload)


def cost(nodes: int, partitions: int, prices: Prices) -> Cost:
    """Return the cost: every hop of a sum adds and encodes, but no hop of a result."""
    hop = prices.add(1) + prices.encode
    return Cost(
        codec=prices.encode + (nodes - 1) * hop + prices.decode,
        steps=2 * (nodes - 1),
        wires=2 * (nodes - 1),
        busy=partitions * (hop + prices.decode),
        messages=2 * partitions * (nodes - 1) / nodes,
    )


def published(nodes: int, partitions: int) -> Terms:
    """Return the published terms, which do not depend on the number of partitions."""
    del partitions
    return Terms(encode=nodes, decode=nodes, merge=nodes - 1, step=2 * (nodes - 1))


TOPOLOGY = Topology(
    "ring",
    "a ring: 2(N-1) steps, one neighbor to send to",
    fill,
    symmetry=Symmetry.RING,
    cost=cost,
    published=published,
)
