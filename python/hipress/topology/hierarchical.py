"""Two levels: first the devices of each host, then the hosts.

Workers ``h·D`` to ``h·D + D - 1`` are the devices of host h (the last host may have fewer). On each
host, one worker collects a partition: the devices send it there uncompressed, because links inside
a host are faster than codecs. The collectors then do among themselves what :mod:`.colocated` does:
each encodes its host's sum, and the partition's owner among them merges these in rank order. The
encoded result goes to the collectors and on to their devices.

Cost per gradient of m bytes on H hosts of D devices: 4 steps. Between hosts, a host sends and
receives 2(H-1)/H·m compressed bytes, over all its devices' links together, where colocated would
send D times as much. Inside a host each device sends and receives (D-1)/D·m uncompressed, then
(D-1)/D·m compressed. A device encodes m/D + m/(D·H) and decodes at most 2m/D + m.
"""

from __future__ import annotations

from hipress.topology.graph import GRADIENT, PLAIN, Graph, Op, worker
from hipress.topology.topology import GraphRequest, Topology

INSIDE, BETWEEN, RESULT, SHARE = 0, 1, 2, 3


def fill(graph: Graph, request: GraphRequest) -> None:
    """Add the tasks, with ``devices_per_host`` workers on each host."""
    num_workers, devices_per_host = request.num_workers, request.devices_per_host
    hosts = [
        list(range(first, min(first + devices_per_host, num_workers)))
        for first in range(0, num_workers, devices_per_host)
    ]
    for p in range(len(graph.partitions)):
        turn = request.home + p
        collectors = [host[turn % len(host)] for host in hosts]
        sums = [_collect(graph, p, *pair) for pair in zip(hosts, collectors)]
        owner = turn // devices_per_host % len(hosts)
        results = _between(graph, p, collectors, sums, owner, num_workers)
        for host, collector, result in zip(hosts, collectors, results):
            _share(graph, p, host, collector, result)


def _collect(graph: Graph, p: int, host: list[int], collector: int) -> int:
    """Add a host's collection of a partition and return the collector's encode of the sum."""
    here = worker(collector)
    if len(host) == 1:
        return graph.add(here, Op.ENCODE, p, GRADIENT)
    values = []
    for rank in host:
        value = graph.add(worker(rank), Op.ENCODE, p, GRADIENT, num_summands=PLAIN)
        if rank != collector:
            graph.add(worker(rank), Op.SEND, p, value, peer=here, step=INSIDE)
            value = graph.add(here, Op.RECV, p, peer=worker(rank), step=INSIDE)
        values.append(value)
    total = graph.add(here, Op.MERGE, p, *values)
    return graph.add(here, Op.ENCODE, p, total, num_summands=len(host))


def _between(
    graph: Graph, p: int, collectors: list[int], sums: list[int], owner: int, summands: int
) -> list[int]:
    """Merge the hosts' sums at host ``owner``, and return each collector's task with the result."""
    at = worker(collectors[owner])
    values = list(sums)
    for host, rank in enumerate(collectors):
        if host != owner:
            graph.add(worker(rank), Op.SEND, p, sums[host], peer=at, step=BETWEEN)
            values[host] = graph.add(at, Op.RECV, p, peer=worker(rank), step=BETWEEN)
    total = graph.add(at, Op.MERGE, p, *values)
    result = graph.add(at, Op.ENCODE, p, total, num_summands=summands)
    results = [result] * len(collectors)
    for host, rank in enumerate(collectors):
        if host != owner:
            graph.add(at, Op.SEND, p, result, peer=worker(rank), step=RESULT)
            results[host] = graph.add(worker(rank), Op.RECV, p, peer=at, step=RESULT)
    return results


def _share(graph: Graph, p: int, host: list[int], collector: int, result: int) -> None:
    here = worker(collector)
    for rank in host:
        if rank != collector:
            graph.add(here, Op.SEND, p, result, peer=worker(rank), step=SHARE)
            received = graph.add(worker(rank), Op.RECV, p, peer=here, step=SHARE)
            graph.add(worker(rank), Op.DECODE, p, received)
    graph.add(here, Op.DECODE, p, result)


TOPOLOGY = Topology(
    "hierarchical",
    "devices of a host first, then hosts: 4 steps",
    fill,
    needs_devices_per_host=True,
    encodes_each=True,
)
