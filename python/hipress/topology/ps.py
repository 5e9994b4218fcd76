"""Parameter servers in separate processes.

Each partition is on one server. Every worker encodes a partition and sends it. The server merges
the N payloads in rank order, applies the optimizer if it has one, encodes the result with a
separate residual, and sends the same payload to all workers, which decode it. All workers thus end
with the same bits, and both directions are compressed.

Cost per gradient of m bytes on N workers and S servers: 2 steps; a worker sends m and receives m; a
server sends and receives N·m/S. Two encodes and two decodes are on the critical path. The server's
decode is one fused pass over N payloads.
"""

from __future__ import annotations

from hipress.topology import colocated
from hipress.topology.graph import (
    BLOCK,
    GRADIENT,
    Graph,
    Op,
    Partition,
    cut,
    cut_into,
    server,
    worker,
)
from hipress.topology.topology import GraphRequest, Symmetry, Topology


def place(request: GraphRequest) -> tuple[list[Partition], list[int]]:
    """Return the partitions of a gradient, and the server of each.

    A small gradient is on server ``home`` as a whole. A large one has one contiguous shard per
    server, so that an optimizer sees one array per key and server. Each shard is partitioned
    further. A gradient with a given number of partitions has exactly these, spread over the
    servers, whatever its size.
    """
    n, num_servers, home = request.n, request.num_servers, request.home
    if request.partitions is not None:
        cuts = cut_into(n, request.partitions)
        used = min(len(cuts), num_servers)  # neighbors share a server, whose shard is one array
        return cuts, [(home + p * used // len(cuts)) % num_servers for p in range(len(cuts))]
    if n < request.bigarray_bound or num_servers == 1:
        shards = {home % num_servers: Partition(0, n)}
    else:
        pieces = cut(0, n, -(-n // num_servers), BLOCK)
        shards = {(home + i) % num_servers: piece for i, piece in enumerate(pieces)}
    partitions: list[Partition] = []
    owners: list[int] = []
    for rank, shard in shards.items():
        pieces = cut(shard.offset, shard.offset + shard.count, request.partition_elements, BLOCK)
        partitions += pieces
        owners += [rank] * len(pieces)
    return partitions, owners


def fill(graph: Graph, request: GraphRequest) -> None:
    """Add the tasks.

    With ``sync=False`` a server applies each worker's push when it arrives and sends no replies.
    Workers fetch the weights when they pull.
    """
    num_workers, sync = request.num_workers, request.sync
    for p, owner in enumerate(place(request)[1]):
        at = server(owner)
        for rank in range(num_workers):
            node = worker(rank)
            payload = graph.add(node, Op.ENCODE, p, GRADIENT)
            graph.add(node, Op.SEND, p, payload, peer=at)
            if sync:
                reply = graph.add(node, Op.RECV, p, peer=at)
                graph.add(node, Op.DECODE, p, reply)
        senders = range(num_workers) if sync else range(1)
        received = [graph.add(at, Op.RECV, p, peer=worker(rank)) for rank in senders]
        merged = graph.add(at, Op.MERGE, p, *received)
        updated = graph.add(at, Op.UPDATE, p, merged)
        if sync:
            payload = graph.add(at, Op.ENCODE, p, updated, num_summands=num_workers)
            for rank in range(num_workers):
                graph.add(at, Op.SEND, p, payload, peer=worker(rank))


TOPOLOGY = Topology(
    "ps",
    "parameter servers in processes of their own",
    fill,
    cut=lambda request: place(request)[0],
    needs_servers=True,
    among_workers=colocated.TOPOLOGY.name,
    asynchronous=True,
    encodes_each=True,
    symmetry=Symmetry.EXCHANGE,
    # Plans and simulations assume a server on each worker's host.
    cost=colocated.cost,
    published=colocated.published,
)
