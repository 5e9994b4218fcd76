"""All-gather: each worker sends its part of an array to all workers.

Worker r owns the elements from ``r * part`` on. It encodes them and sends the payload to every
other worker, at first to the worker to its right, so that no worker receives from all at once::

    worker r:      encode --> send to r + 1, r + 2, ...
                     `------> decode
    other workers: receive --> decode

The owner also decodes its payload, so all workers end with the same bits. Each link carries one
payload of each other worker in either direction, as in a ring, but in one step. It is not one of
:data:`~hipress.topology.topologies.TOPOLOGIES`, because it does not sum.
"""

from __future__ import annotations

from hipress.topology.graph import GRADIENT, Graph, Op, cut_shares, worker


def all_gather(part: int, num_workers: int, plain: bool = False) -> Graph:
    """Return the graph that leaves all workers with the parts of all workers.

    Args:
        part: Elements of each worker's part.
        num_workers: Number of workers.
        plain: Whether no encode compresses.
    """
    count = part * num_workers
    cuts = cut_shares(count, part, num_workers)
    graph = Graph(count, [piece for _, piece in cuts], plain=plain)
    for p, (owner, _) in enumerate(cuts):
        home = worker(owner)
        payload = graph.add(home, Op.ENCODE, p, GRADIENT)
        for distance in range(1, num_workers):
            peer = worker((owner + distance) % num_workers)
            graph.add(home, Op.SEND, p, payload, peer=peer)
            graph.add(peer, Op.DECODE, p, graph.add(peer, Op.RECV, p, peer=home))
        graph.add(home, Op.DECODE, p, payload)
    return graph
