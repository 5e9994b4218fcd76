"""A star: one worker merges everything.

As :mod:`.colocated` with worker 0 the owner of every partition: for a hub with a link
that is N times as fast, or for jobs so small that only the number of steps counts.

Cost per gradient of m bytes on N workers: 2 steps; the hub sends and receives (N-1)·m, the others m
each way. The hub decodes N·m.
"""

from __future__ import annotations

from hipress.topology.colocated import exchange
from hipress.topology.graph import Graph
from hipress.topology.topology import GraphRequest, Topology

HUB = 0


def fill(graph: Graph, request: GraphRequest) -> None:
    """Add the tasks; ``home`` plays no part."""
    exchange(graph, request.num_workers, [HUB] * len(graph.partitions))


TOPOLOGY = Topology("star", "one worker merges everything: 2 steps", fill, encodes_each=True)
