"""All topologies by name."""

from __future__ import annotations

from dataclasses import dataclass

from hipress.casync import butterfly, colocated, hierarchical, ps, ring, star, tree
from hipress.casync.graph import PARTITION_ELEMENTS, Graph, Partition, cut_into

MIN_PARTITION_ELEMENTS = 16 * 1024
"""Serverless topologies spread a gradient over the workers unless the pieces fall below this: 64
KiB of float32, where messages begin to cost more than their bytes."""


@dataclass(frozen=True)
class Topology:
    """What there is to know of a topology before a graph is built."""

    summary: str
    servers: bool = False
    """Whether it needs server processes; the others use workers only."""


TOPOLOGIES: dict[str, Topology] = {
    "ps": Topology("parameter servers in processes of their own", servers=True),
    "colocated": Topology("parameter servers in the workers: 2 steps"),
    "ring": Topology("a ring: 2(N-1) steps, one neighbour to send to"),
    "tree": Topology("a double binary tree: 2 log2 N steps"),
    "butterfly": Topology("recursive halving and doubling: 2 log2 N steps"),
    "star": Topology("one worker merges everything: 2 steps"),
    "hierarchical": Topology("devices of a host first, then hosts: 4 steps"),
}
"""Every topology by its name in ``compression_params={'topology': ...}`` and ``--topo``."""

_SERVERLESS = {
    "colocated": colocated.build,
    "ring": ring.build,
    "tree": tree.build,
    "butterfly": butterfly.build,
    "star": star.build,
    "hierarchical": hierarchical.build,
}


def named(topology: str) -> str:
    """The registered name for ``topology``, however it is capitalised (``PS``, ``Ring``).

    :raises ValueError: listing the names there are
    """
    name = str(topology).lower()
    if name not in TOPOLOGIES:
        raise ValueError(f"there is no topology {topology!r}; there are {', '.join(TOPOLOGIES)}")
    return name


def cuts_for(
    n: int,
    num_workers: int,
    partition_elements: int = PARTITION_ELEMENTS,
    partitions: int | None = None,
) -> list[Partition]:
    """How a serverless topology cuts ``n`` elements: into ``partitions``, or, if that is None, into
    equal parts for all workers of at most about ``partition_elements``."""
    if partitions is None:
        partitions = -(-n // max(partition_elements, 1))
        if partitions < num_workers:
            partitions = max(partitions, min(num_workers, n // MIN_PARTITION_ELEMENTS))
        else:
            partitions = -(-partitions // num_workers) * num_workers
    return cut_into(n, partitions)


def build(
    topology: str,
    n: int,
    num_workers: int,
    num_servers: int = 0,
    *,
    home: int = 0,
    partition_elements: int = PARTITION_ELEMENTS,
    partitions: int | None = None,
    bigarray_bound: int = ps.BIGARRAY_BOUND,
    sync: bool = True,
    devices_per_host: int = 1,
    compress: bool = True,
) -> Graph:
    """The graph of one gradient of ``n`` elements.

    :param home: counts the job's keys; small gradients are spread over the nodes by it
    :param partition_elements: about the most elements of a partition
    :param partitions: cut into exactly so many instead (fewer if blocks of 64 do not suffice)
    :param bigarray_bound: ps only: keys of fewer elements live whole on one server
    :param sync: False: each push takes effect at once; ps only
    :param devices_per_host: hierarchical only: workers on each host, consecutive ranks
    :param compress: False: nothing of it is ever compressed
    :raises ValueError: in one sentence, for what cannot be
    """
    topology = named(topology)
    if n < 1 or num_workers < 1:
        raise ValueError(
            f"a gradient needs at least one element and worker, got n={n}, "
            f"num_workers={num_workers}"
        )
    if partitions is not None and partitions < 1:
        raise ValueError(f"a gradient needs at least one partition, got partitions={partitions}")
    if devices_per_host < 1:
        raise ValueError(f"a host has at least one device, got devices_per_host={devices_per_host}")
    if TOPOLOGIES[topology].servers:
        if num_servers < 1:
            raise ValueError(
                f"topology {topology} needs servers and the job has none: start some (-s), or "
                f"choose a topology without: {', '.join(_SERVERLESS)}"
            )
        return ps.build(
            n,
            num_workers,
            num_servers,
            home=home,
            partition_elements=partition_elements,
            partitions=partitions,
            bigarray_bound=bigarray_bound,
            sync=sync,
            compress=compress,
        )
    if not sync:
        raise ValueError(
            f"asynchronous training needs servers, which topology {topology} does not use: "
            "choose topology ps"
        )
    cuts = cuts_for(n, num_workers, partition_elements, partitions)
    graph = Graph(n, cuts, plain=not compress)
    more = {"devices_per_host": devices_per_host} if topology == "hierarchical" else {}
    _SERVERLESS[topology](graph, num_workers, home, **more)
    return graph
