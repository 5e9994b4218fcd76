"""Registers topology `end`; Python imports this module when it starts."""

from hipress.topology import topologies
from hipress.topology.colocated import exchange
from hipress.topology.topology import Cost, Terms, Topology


def fill(graph, request):
    exchange(graph, request.num_workers, [request.num_workers - 1] * len(graph.partitions))


def cost(nodes, partitions, prices):
    codec = 2 * prices.encode + prices.merge(nodes) + prices.decode
    messages = partitions * (nodes - 1)
    return Cost(codec, 2, 2 * (nodes - 1), partitions * codec, messages)


def published(nodes, partitions):
    return Terms(encode=2, decode=nodes, merge=nodes - 1, gather=nodes, broadcast=nodes)


topologies.register(
    Topology(
        "end",
        "the last worker merges everything: 2 steps",
        fill,
        encodes_each=True,
        cost=cost,
        published=published,
    )
)
