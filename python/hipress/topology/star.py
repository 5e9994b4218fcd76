"""Star: one worker merges everything.

It equals :mod:`.colocated` with worker 0 as the owner of every partition. It suits a hub with a
link that is N times as fast, or jobs so small that only the number of steps counts.

Cost per gradient of m bytes on N workers: 2 steps; the hub sends and receives (N-1)·m, and every
other worker m each way. The hub decodes N·m.
"""

from __future__ import annotations

from hipress.topology.colocated import exchange
from hipress.topology.graph import Graph
from hipress.topology.topology import GraphRequest, Topology

HUB = 0


def fill(graph: Graph, request: GraphRequest) -> None:
    """Add the tasks. ``home`` is ignored."""
    exchange(graph, request.num_workers, [HUB] * len(graph.partitions))


TOPOLOGY = Topology("star", "one worker merges everything: 2 steps", fill, encodes_each=True)
