"""Parameter servers inside the workers: a bipartite exchange, without processes of its own.

Each partition has an owner among the workers. Every worker encodes it and sends it to the owner,
who merges the N payloads (its own among them) in rank order, encodes the sum with a residual of its
own and sends that one payload to all. With a server per worker in :mod:`hipress.casync.ps` the
arithmetic is the same, bit for bit.

Cost per gradient of m bytes on N workers: 2 steps; each worker sends and receives 2(N-1)/N·m, which
is the least that an all-reduce can do. A worker encodes m(1 + 1/N), and decodes 2m: its part of all
payloads in one fused merge, and the result.
"""

from __future__ import annotations

from hipress.casync.graph import GRADIENT, Graph, Op, worker


def build(graph: Graph, num_workers: int, home: int) -> None:
    """Fills in the tasks; partition p's owner is worker ``home + p``."""
    for p in range(len(graph.partitions)):
        exchange(graph, p, list(range(num_workers)), (home + p) % num_workers)


def exchange(graph: Graph, p: int, ranks: list[int], owner: int) -> None:
    """Adds partition ``p``'s tasks: all ``ranks`` to ``owner``, who is one of them, and back."""
    at = worker(owner)
    payloads = []
    for rank in ranks:
        payload = graph.add(worker(rank), Op.ENCODE, p, GRADIENT)
        if rank == owner:
            payloads.append(payload)
        else:
            graph.add(worker(rank), Op.SEND, p, payload, peer=at)
            payloads.append(graph.add(at, Op.RECV, p, peer=worker(rank)))
    total = graph.add(at, Op.MERGE, p, *payloads)
    result = graph.add(at, Op.ENCODE, p, total, terms=len(ranks))
    for rank in ranks:
        if rank != owner:
            graph.add(at, Op.SEND, p, result, peer=worker(rank), step=1)
            reply = graph.add(worker(rank), Op.RECV, p, peer=at, step=1)
            graph.add(worker(rank), Op.DECODE, p, reply)
    graph.add(at, Op.DECODE, p, result)
