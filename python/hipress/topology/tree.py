"""Double binary tree: sums go up, the result comes down.

Two trees take turns over the partitions, built so that no worker is an inner node of both (Sanders,
Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009; also
NCCL's). Leaves encode their gradient. An inner node decodes the payloads of its children, adds its
own gradient between them, in order, and encodes the sum with a separate residual. The root's
payload goes down unchanged.

Cost per gradient of m bytes on N workers: 2·floor(log2 N) steps. With two partitions or more a
worker sends and receives at most 2m: an inner node of one tree has 3 neighbors for half of the
bytes, and as a leaf of the other it has 1 for the other half. One tree alone would take 3m. A
worker encodes m and decodes at most 2m.
"""

from __future__ import annotations

from hipress.topology.graph import GRADIENT, Graph, Op, worker
from hipress.topology.topology import Cost, GraphRequest, Prices, Terms, Topology

REDUCE, SHARE = 0, 1


def fill(graph: Graph, request: GraphRequest) -> None:
    """Add the tasks. ``home`` chooses the first partition's tree."""
    workers = request.num_workers
    for p in range(len(graph.partitions)):
        shift = (request.home + p) % 2
        ranks = [(position - shift) % workers for position in range(workers)]
        _down(graph, p, ranks, *_up(graph, p, ranks))


def _middle(size: int) -> int:
    """Return the root's position, left of which is a perfect tree with leaves at even ones."""
    return (1 << size.bit_length() - 1) - 1


def _up(graph: Graph, p: int, ranks: list[int]) -> tuple[int, int]:
    """Add the sums of a subtree; return its root and the root's payload."""
    middle = _middle(len(ranks))
    root = ranks[middle]
    here = worker(root)
    inputs: list[int] = []
    for side, part in enumerate((ranks[:middle], ranks[middle + 1 :])):
        if part:
            child, payload = _up(graph, p, part)
            graph.add(worker(child), Op.SEND, p, payload, peer=here, step=REDUCE)
            inputs.append(graph.add(here, Op.RECV, p, peer=worker(child), step=REDUCE))
        if side == 0:
            inputs.append(GRADIENT)
    value = GRADIENT if inputs == [GRADIENT] else graph.add(here, Op.MERGE, p, *inputs)
    return root, graph.add(here, Op.ENCODE, p, value, num_summands=len(ranks))


def _down(graph: Graph, p: int, ranks: list[int], root: int, payload: int) -> None:
    """Add the transfer of ``payload`` from ``root`` to all nodes of a subtree."""
    here = worker(root)
    middle = _middle(len(ranks))
    for part in (ranks[:middle], ranks[middle + 1 :]):
        if part:
            child = part[_middle(len(part))]
            graph.add(here, Op.SEND, p, payload, peer=worker(child), step=SHARE)
            received = graph.add(worker(child), Op.RECV, p, peer=here, step=SHARE)
            _down(graph, p, part, child, received)
    graph.add(here, Op.DECODE, p, payload)


def cost(nodes: int, partitions: int, prices: Prices) -> Cost:
    """Return the cost of floor(log2 N) levels each way. An inner node may wait for a child."""
    height = nodes.bit_length() - 1
    other = 1 if nodes > 2 else 0
    return Cost(
        codec=prices.encode + height * (prices.add(2) + prices.encode) + prices.decode,
        steps=2 * height,
        wires=height * (2 + other),
        busy=partitions * (prices.encode + prices.add(1) + prices.decode),
        messages=2 * partitions * (nodes - 1) / nodes,
    )


def published(nodes: int, partitions: int) -> Terms:
    """Return estimated, not published terms of a pipelined reduction and broadcast."""
    levels = (nodes - 1).bit_length()
    return Terms(
        encode=levels + partitions,
        decode=levels + partitions,
        merge=levels + partitions - 1,
        step=2 * levels + partitions - 1,
    )


TOPOLOGY = Topology(
    "tree", "a double binary tree: 2 log2 N steps", fill, cost=cost, published=published
)
