"""The parameter-server topology, with servers in processes of their own.

Each partition lives on one server. Per partition: every worker encodes and sends it; the server
merges the N payloads in rank order, applies the optimizer if it has one, encodes the result with a
residual of its own, and sends the same payload to all workers, who decode it. All workers thus end
with the same bits, and both directions are compressed.

Cost per gradient of m bytes on N workers and S servers: 2 steps; a worker sends m and receives m; a
server sends and receives N·m/S. Two encodes and two decodes lie on the critical path, the server's
decode being one fused pass over N payloads.
"""

from __future__ import annotations

from hipress.casync.graph import (
    BLOCK,
    GRADIENT,
    PARTITION_ELEMENTS,
    Graph,
    Op,
    Partition,
    cut,
    cut_into,
    server,
    worker,
)

BIGARRAY_BOUND = 1_000_000
"""Keys of at least this many elements are split over all servers (MXNET_KVSTORE_BIGARRAY_BOUND)."""


def place(
    n: int, num_servers: int, home: int, partition_elements: int, bigarray_bound: int
) -> tuple[list[Partition], list[int]]:
    """Partitions of a gradient of ``n`` elements, and the server of each.

    A small gradient goes whole to server ``home``; a big one is cut into one contiguous shard per
    server (an optimizer then sees one array per key and server), and each shard into partitions.
    """
    if n < bigarray_bound or num_servers == 1:
        shards = {home % num_servers: Partition(0, n)}
    else:
        pieces = cut(0, n, -(-n // num_servers), BLOCK)
        shards = {(home + i) % num_servers: piece for i, piece in enumerate(pieces)}
    partitions: list[Partition] = []
    owners: list[int] = []
    for rank, shard in shards.items():
        pieces = cut(shard.offset, shard.offset + shard.count, partition_elements, BLOCK)
        partitions += pieces
        owners += [rank] * len(pieces)
    return partitions, owners


def build(
    n: int,
    num_workers: int,
    num_servers: int,
    *,
    home: int = 0,
    partition_elements: int = PARTITION_ELEMENTS,
    partitions: int | None = None,
    bigarray_bound: int = BIGARRAY_BOUND,
    sync: bool = True,
    compress: bool = True,
) -> Graph:
    """The graph of one gradient of ``n`` elements.

    ``home`` is the server that a small gradient goes to (spread keys by counting up).
    ``partitions`` cuts it into that many, spread over the servers, whatever its size. With
    ``sync=False`` a server applies each worker's push as it comes and sends no replies; workers
    fetch the weights when they pull.
    """
    if n < 1 or num_workers < 1 or num_servers < 1:
        raise ValueError(
            f"a gradient needs at least one element, worker and server, "
            f"got n={n}, num_workers={num_workers}, num_servers={num_servers}"
        )
    if partitions is None:
        cuts, owners = place(n, num_servers, home, partition_elements, bigarray_bound)
    else:
        cuts = cut_into(n, partitions)
        used = min(len(cuts), num_servers)  # neighbours share a server: its shard is one array
        owners = [(home + p * used // len(cuts)) % num_servers for p in range(len(cuts))]
    graph = Graph(n, cuts, per_worker=not sync, plain=not compress)
    for p, owner in enumerate(owners):
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
            payload = graph.add(at, Op.ENCODE, p, updated, terms=num_workers)
            for rank in range(num_workers):
                graph.add(at, Op.SEND, p, payload, peer=worker(rank))
    return graph
