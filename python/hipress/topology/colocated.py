"""Parameter servers inside the workers: a bipartite exchange without separate processes.

Each partition has an owner among the workers. Every worker encodes it and sends it to the owner.
The owner merges the N payloads (with its own) in rank order, encodes the sum with a separate
residual, and sends that one payload to all workers. The arithmetic equals, bit for bit, that of
:mod:`hipress.topology.ps` with a server per worker.

Cost per gradient of m bytes on N workers: 2 steps; each worker sends and receives 2(N-1)/N·m, which
is the minimum of an all-reduce. A worker encodes m(1 + 1/N), and decodes 2m: its part of all
payloads in one fused merge, and the result.
"""

from __future__ import annotations

from hipress.topology.graph import GRADIENT, Graph, Op, worker
from hipress.topology.topology import Cost, GraphRequest, Prices, Symmetry, Terms, Topology


def fill(graph: Graph, request: GraphRequest) -> None:
    """Add the tasks. Partition p's owner is worker ``home + p``."""
    owners = [(request.home + p) % request.num_workers for p in range(len(graph.partitions))]
    exchange(graph, request.num_workers, owners)


def exchange(graph: Graph, num_workers: int, owners: list[int], spread: bool = True) -> None:
    """Add the tasks: workers send each partition to its owner, a worker, and receive the sum.

    With ``spread`` each worker begins with the owner to its right, and each owner answers the
    worker to its right first, so that not all send to the same one at the same time. ``python -m
    benchmarks collisions`` prints the gain, and that a coordinator could not gain more.
    """
    sent: dict[tuple[int, int], int] = {}
    for rank in range(num_workers):

        def turn(p: int, rank: int = rank) -> tuple[int, int]:
            return (p // num_workers, (owners[p] - rank - 1) % num_workers) if spread else (p, 0)

        for p in sorted(range(len(owners)), key=turn):
            sent[rank, p] = graph.add(worker(rank), Op.ENCODE, p, GRADIENT)
            if rank != owners[p]:
                graph.add(worker(rank), Op.SEND, p, sent[rank, p], peer=worker(owners[p]))
    for p, owner in enumerate(owners):
        at = worker(owner)
        others = [(owner + i) % num_workers for i in range(1, num_workers)]
        others = others if spread else sorted(others)
        payloads = {rank: graph.add(at, Op.RECV, p, peer=worker(rank)) for rank in others}
        payloads[owner] = sent[owner, p]
        total = graph.add(at, Op.MERGE, p, *(payloads[rank] for rank in sorted(payloads)))
        result = graph.add(at, Op.ENCODE, p, total, num_summands=num_workers)
        for rank in others:
            graph.add(at, Op.SEND, p, result, peer=worker(rank), step=1)
            reply = graph.add(worker(rank), Op.RECV, p, peer=at, step=1)
            graph.add(worker(rank), Op.DECODE, p, reply)
        graph.add(at, Op.DECODE, p, result)


def cost(nodes: int, partitions: int, prices: Prices) -> Cost:
    """Return the cost of the path to the owner and back.

    On its link, N - 2 messages of other workers precede it each time. A node that owns o of the
    partitions sends the remaining K - o, and N - 1 answers for each owned one.
    """
    owned = prices.owned(nodes, partitions)
    merge = prices.merge(nodes)
    return Cost(
        codec=2 * prices.encode + merge + prices.decode,
        steps=2,
        wires=2 * (nodes - 1),
        busy=partitions * (prices.encode + prices.decode) + owned * (merge + prices.encode),
        messages=partitions - owned + owned * (nodes - 1),
    )


def published(nodes: int, partitions: int) -> Terms:
    """Return the published terms, which are those of parameter servers."""
    return Terms(
        encode=min(partitions + 1, nodes),
        decode=min(nodes - 1 + partitions, 2 * (nodes - 1)),
        merge=nodes - 1,
        gather=1,
        broadcast=1,
    )


TOPOLOGY = Topology(
    "colocated",
    "parameter servers in the workers: 2 steps",
    fill,
    encodes_each=True,
    symmetry=Symmetry.EXCHANGE,
    cost=cost,
    published=published,
)
