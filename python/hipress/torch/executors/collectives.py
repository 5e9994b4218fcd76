"""Graphs of the collective operations of gradients: all-reduce and reduce-scatter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch.distributed as dist

from hipress.topology import colocated
from hipress.topology.graph import GRADIENT, PARTITION_ELEMENTS, Graph, Op, cut_shares, worker
from hipress.topology.topology import MIN_PARTITION_ELEMENTS
from hipress.torch.executors.user_group import GroupAllReduce, GroupReduceScatter
from hipress.torch.gradient import Gradient
from hipress.torch.settings import Settings

MESSAGE_ELEMENTS = 1024
"""Minimum uncompressed elements for a separate message: 4 KiB of float32."""

RING_ELEMENTS = 64 * 1024
"""Minimum elements per rank for which uncompressed sums use a ring by default.

A ring takes more steps, but two ranks never send to the same one.
"""


class AllReduce:
    """All-reduce of every gradient to all ranks, as a sum or mean. All ranks order names alike."""

    fuses_small = True
    """Whether small gradients may travel packed in a fusion buffer."""

    def __init__(
        self,
        settings: Settings,
        group: dist.ProcessGroup,
        world_size: int,
        names: Iterable[str],
        average: bool = True,
    ) -> None:
        self.world_size, self.average = world_size, average
        self.topology = settings.topology
        """Name in checkpoints of how ranks divide the work."""
        self._settings, self.group = settings, group
        self._owners = {name: owner for owner, name in enumerate(names)}

    def owner(self, gradient: Gradient) -> int:
        """Return the number of a gradient's owner, modulo the ranks.

        The owner sums a gradient that is not partitioned, or its first part. It differs between
        gradients, so that not all of them are summed on the same rank.
        """
        return self._owners.setdefault(gradient.name, len(self._owners))

    def graph(self, gradient: Gradient) -> Graph:
        """Return the graph of a compressed gradient."""
        owner = self.owner(gradient)
        return self._settings.graph(gradient.count, self.world_size, owner, gradient.name)

    def uncompressed_graph(self, gradient: Gradient) -> Graph:
        """Return the graph of an uncompressed gradient in place: with "ps" a ring if it is long."""
        long = gradient.count >= self.world_size * RING_ELEMENTS
        topology = "ring" if long and self._settings.topology == "colocated" else None
        owner = self.owner(gradient)
        return self._settings.graph(gradient.count, self.world_size, owner, topology=topology)

    def fused_graph(self, count: int, owner: int) -> Graph:
        """Return the graph of a fusion buffer of ``count`` elements. Each rank sums a part."""
        # Topologies do so by themselves if there are many.
        long = count >= self.world_size * MIN_PARTITION_ELEMENTS
        partitions = None if long else max(1, min(self.world_size, count // MESSAGE_ELEMENTS))
        return self._settings.graph(count, self.world_size, owner, partitions=partitions)

    def on_user_group(self, gradients: Sequence[Gradient]) -> GroupAllReduce | GroupReduceScatter:
        """Return the same operation on the user's process group, uncompressed."""
        divisor = self.world_size if self.average else 1
        return GroupAllReduce(self.group, gradients, divisor)


class ReduceScatter(AllReduce):
    """Reduce-scatter of FSDP's gradients: every rank gets the means of its chunks.

    With a shared momentum every rank gets those of all ranks, and adds them to its next gradients.
    """

    fuses_small = False  # a rank needs only its own chunks of small gradients also

    def __init__(
        self, settings: Settings, group: dist.ProcessGroup, world_size: int, names: Iterable[str]
    ) -> None:
        super().__init__(settings, group, world_size, names)
        self._to_all = bool(settings.shared_momentum)
        self.topology = "reduce-scatter to all" if self._to_all else "reduce-scatter"

    def graph(self, gradient: Gradient) -> Graph:
        """Return the graph of a gradient, compressed or not."""
        decision = self._settings.decisions.get(gradient.name)
        partitions = decision.partitions if decision else None
        return reduce_scatter(
            gradient.count, gradient.chunk, self.world_size, partitions, self._to_all
        )

    uncompressed_graph = graph

    def on_user_group(self, gradients: Sequence[Gradient]) -> GroupAllReduce | GroupReduceScatter:
        """Return the same operation on the user's process group, uncompressed."""
        if self._to_all:
            return super().on_user_group(gradients)
        return GroupReduceScatter(self.group, gradients)


def reduce_scatter(
    count: int, part: int, num_workers: int, partitions: int | None = None, to_all: bool = False
) -> Graph:
    """Return the graph that leaves worker r with the sum of the r-th part of ``part`` elements.

    Every worker encodes all parts, each for its owner, which merges them in rank order. The last
    parts may be shorter or empty. If ``to_all``, the owner then encodes the sum for all workers,
    which sends twice as much.
    """
    size = PARTITION_ELEMENTS if partitions is None else -(-count // max(partitions, 1))
    cuts = cut_shares(count, part, num_workers, size)
    graph = Graph(count, [piece for _, piece in cuts])
    if to_all:
        colocated.exchange(graph, num_workers, [owner for owner, _ in cuts])
        return graph
    for p, (owner, _) in enumerate(cuts):
        at, payloads = worker(owner), []
        for rank in range(num_workers):
            payload = graph.add(worker(rank), Op.ENCODE, p, GRADIENT)
            if rank != owner:
                graph.add(worker(rank), Op.SEND, p, payload, peer=at)
                payload = graph.add(at, Op.RECV, p, peer=worker(rank))
            payloads.append(payload)
        graph.add(at, Op.DECODE, p, graph.add(at, Op.MERGE, p, *payloads))
    return graph
