"""Graphs of the collective operations of gradients: all-reduce and reduce-scatter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch.distributed as dist

from hipress.topology import colocated
from hipress.topology.graph import GRADIENT, Graph, Op, Partition, cut, worker
from hipress.topology.topology import MIN_PARTITION_ELEMENTS
from hipress.torch.executors.user_group import GroupAllReduce, GroupReduceScatter
from hipress.torch.gradient import Gradient
from hipress.torch.settings import Settings

MESSAGE_ELEMENTS = 1024
"""Uncompressed elements that are worth a message of their own: 4 KiB of float32."""

RING_ELEMENTS = 64 * 1024
"""Elements a rank from which on uncompressed sums go round a ring by default: it takes more steps,
and never has two ranks send to the same one."""

PARTITION_ELEMENTS = 256 * 1024
"""Elements of a reduce-scatter's partition, unless a plan says how many there are."""


class AllReduce:
    """Gives all ranks the sum, or the mean, of every gradient, by the topology of the settings.

    :param names: of the parameters, in an order that is the same on all ranks
    :param average: whether results are means
    """

    fuses_small = True
    """True if small gradients may travel packed in a fusion buffer."""

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
        """The name in checkpoints of how ranks divide the work."""
        self._settings, self.group = settings, group
        self._owners = {name: owner for owner, name in enumerate(names)}

    def owner(self, gradient: Gradient) -> int:
        """A number that says, modulo the ranks, which rank sums what is not cut, or the first part.

        It differs between gradients, so that not all of them are summed on the same rank.
        """
        return self._owners.setdefault(gradient.name, len(self._owners))

    def graph(self, gradient: Gradient) -> Graph:
        """The graph of a gradient that is compressed."""
        owner = self.owner(gradient)
        return self._settings.graph(gradient.count, self.world_size, owner, gradient.name)

    def uncompressed_graph(self, gradient: Gradient) -> Graph:
        """The graph of what goes uncompressed as it lies: a ring if that is long and the topology
        is "ps", else by the topology."""
        long = gradient.count >= self.world_size * RING_ELEMENTS
        topology = "ring" if long and self._settings.topology == "colocated" else None
        owner = self.owner(gradient)
        return self._settings.graph(gradient.count, self.world_size, owner, topology=topology)

    def fused_graph(self, count: int, owner: int) -> Graph:
        """The graph of a fusion buffer of ``count`` elements, cut for all ranks to sum a part."""
        # Topologies do so by themselves if there are many.
        long = count >= self.world_size * MIN_PARTITION_ELEMENTS
        partitions = None if long else max(1, min(self.world_size, count // MESSAGE_ELEMENTS))
        return self._settings.graph(count, self.world_size, owner, partitions=partitions)

    def on_user_group(self, gradients: Sequence[Gradient]) -> GroupAllReduce | GroupReduceScatter:
        """The same operation by the user's process group, uncompressed."""
        divisor = self.world_size if self.average else 1
        return GroupAllReduce(self.group, gradients, divisor)


class ReduceScatter(AllReduce):
    """Gives every rank the means of its own chunks of FSDP's gradients; with a shared momentum
    those of all ranks, which it adds to its next gradients."""

    fuses_small = False  # of small gradients, too, a rank needs its own chunks only

    def __init__(
        self, settings: Settings, group: dist.ProcessGroup, world_size: int, names: Iterable[str]
    ) -> None:
        super().__init__(settings, group, world_size, names)
        self._to_all = bool(settings.shared_momentum)
        self.topology = "reduce-scatter to all" if self._to_all else "reduce-scatter"

    def graph(self, gradient: Gradient) -> Graph:
        """The graph of a gradient, compressed or not."""
        decision = self._settings.decisions.get(gradient.name)
        partitions = decision.partitions if decision else None
        return reduce_scatter(
            gradient.count, gradient.chunk, self.world_size, partitions, self._to_all
        )

    uncompressed_graph = graph

    def on_user_group(self, gradients: Sequence[Gradient]) -> GroupAllReduce | GroupReduceScatter:
        """The same operation by the user's process group, uncompressed."""
        if self._to_all:
            return super().on_user_group(gradients)
        return GroupReduceScatter(self.group, gradients)


def reduce_scatter(
    count: int, part: int, num_workers: int, partitions: int | None = None, to_all: bool = False
) -> Graph:
    """The graph that leaves worker r with the sum of its part, the r-th of ``part`` elements: every
    worker encodes all parts, each for its owner, who merges them in rank order.

    :param count: elements in all; the last parts may have fewer than the others, or none
    :param partitions: about how many to cut all parts into; default: by size
    :param to_all: whether the owner then encodes the sum, and all workers get that: twice as much
        to send
    """
    size = PARTITION_ELEMENTS if partitions is None else -(-count // max(partitions, 1))
    cuts: list[tuple[int, Partition]] = [
        (owner, piece)
        for owner in range(num_workers)
        for piece in cut(owner * part, min((owner + 1) * part, count), size, 64)
    ]
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
