"""Thousands of nodes by symmetry: one host's tasks stand for every host's.

In a ring, and among co-located servers whose clients begin with different servers, every host does
the same at the same time, so what host 0 receives is what it sends itself. The graph of all N hosts
has some N^2 tasks per gradient; one host's share has N. For many hosts even these are coarsened:
``group`` consecutive steps (or messages) become one that has their processor time, their bytes,
and, in a ring, whose steps follow each other, their latencies.

The graphs are the ones that jobs run (:mod:`hipress.casync`); a test holds both to the same times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hipress.secopa.cluster import Cluster, Codec
from hipress.simulator.lower import Label, Lowered
from hipress.simulator.tasks import Tasks

MAX_TASKS = 1_500_000
"""Coarsen until a step has about this many tasks: some 10 seconds of simulation."""


@dataclass(frozen=True)
class SymmetricKey:
    """One gradient: its size, its codec, into how many partitions each node's part is cut."""

    name: str
    elements: int
    codec: Codec
    ready: float
    partitions: int = 1
    priority: int = 0


def group_size(keys: Sequence[SymmetricKey], tasks_of_one: int, limit: int = MAX_TASKS) -> int:
    """The number of steps to run as one, so that all of them are at most about ``limit`` tasks."""
    total = sum(key.partitions for key in keys) * tasks_of_one
    return max(1, -(-total // limit))


def ring(
    keys: Sequence[SymmetricKey], nodes: int, cluster: Cluster, limit: int = MAX_TASKS
) -> Lowered:
    """Reduce-scatter and all-gather around a ring of ``nodes`` hosts.

    N - 1 times: send the encoded partial sum of one chunk, merge the one that comes with the own
    gradient, encode the sum. Then N - 1 times: pass on what came, and decode it.
    """
    tasks = Tasks()
    outputs: list[list[int]] = []
    steps = nodes - 1
    group = group_size(keys, 8 * steps, limit)
    for key in keys:
        written: list[int] = []
        chunk = -(-key.elements // (nodes * key.partitions))
        for p in range(key.partitions):
            written += _ring_chunk(tasks, key, p, chunk, steps, group, cluster)
        outputs.append(written)
    return Lowered(tasks, outputs, 1)


def _ring_chunk(
    tasks: Tasks, key: SymmetricKey, p: int, chunk: int, steps: int, group: int, cluster: Cluster
) -> list[int]:
    codec, priority, host = key.codec, key.priority, 0
    size = codec.payload(chunk)
    label = _labels(key, p, size)
    # A group of g steps must take g times as long as one, and its task overhead g times, too.
    task = cluster.task

    def times(seconds: float, g: int) -> float:
        return g * seconds + (g - 1) * task if seconds > 0 else 0.0

    encoded = tasks.compute(host, codec.encode(chunk), priority, (), label("encode"), chunk)
    tasks.start(key.ready, encoded)
    payload = encoded
    written = []
    left = steps
    while left:
        g = min(group, left)
        left -= g
        arrived = _exchange(tasks, payload, size, g, priority, label, cluster, "next")
        merged = tasks.compute(
            host,
            times(codec.merge_seconds(chunk, 1, own=True), g),
            priority,
            (arrived,),
            label("merge"),
            2 * g * chunk,
        )
        tasks.start(key.ready, merged)
        payload = tasks.compute(
            host, times(codec.encode(chunk), g), priority, (merged,), label("encode"), g * chunk
        )
    written.append(
        tasks.compute(host, codec.decode(chunk), priority, (payload,), label("decode"), chunk)
    )
    left = steps
    while left:
        g = min(group, left)
        left -= g
        payload = _exchange(tasks, payload, size, g, priority, label, cluster, "next")
        seconds = times(codec.decode(chunk), g)
        written.append(
            tasks.compute(host, seconds, priority, (payload,), label("decode"), g * chunk)
        )
    return written


def _exchange(tasks, payload, size, g, priority, label, cluster, peer=None) -> int:
    """g steps of sending on and receiving; the receive that ends them."""
    arrived = _message(tasks, payload, size, g, priority, label, peer)
    if g == 1:
        return arrived
    # The latencies of the steps but one, during which the link is free for other gradients.
    return tasks.wait(0, (g - 1) * cluster.latency, (arrived,))


def allgather(
    keys: Sequence[SymmetricKey], nodes: int, cluster: Cluster, limit: int = MAX_TASKS
) -> Lowered:
    """A ring that gathers all payloads on all hosts, as systems do that cannot merge payloads.

    Every host encodes its whole gradient, N - 1 payloads come by, each is decoded. There is no such
    topology among those that jobs run: it stands for baselines.
    """
    lowered = Lowered()
    group = group_size(keys, 3 * (nodes - 1), limit)
    for key in keys:
        written: list[int] = []
        part = -(-key.elements // key.partitions)
        for p in range(key.partitions):
            written += _gather_part(lowered.tasks, key, p, part, nodes - 1, group, cluster)
        lowered.outputs.append(written)
    return lowered


def _gather_part(
    tasks: Tasks, key: SymmetricKey, p: int, part: int, steps: int, group: int, cluster: Cluster
) -> list[int]:
    codec, priority = key.codec, key.priority
    size = codec.payload(part)
    label = _labels(key, p, size)
    payload = tasks.compute(0, codec.encode(part), priority, (), label("encode"))
    tasks.start(key.ready, payload)
    seconds = codec.decode(part)
    written = [tasks.compute(0, seconds, priority, (payload,), label("decode"))]
    left = steps
    while left:
        g = min(group, left)
        left -= g
        payload = _exchange(tasks, payload, size, g, priority, label, cluster)
        total = g * seconds + (g - 1) * cluster.task if seconds > 0 else 0.0
        written.append(tasks.compute(0, total, priority, (payload,), label("decode")))
    return written


def exchange(
    keys: Sequence[SymmetricKey], nodes: int, cluster: Cluster, limit: int = MAX_TASKS
) -> Lowered:
    """A server beside, or in, each of ``nodes`` workers; every gradient has a part on each.

    A host encodes and sends the parts of the N - 1 other servers, keeps its own; as a server it
    merges N payloads, encodes the sum, sends it N - 1 times. Hosts begin with different servers, so
    that a server's inputs come one after the other, not all at once.
    """
    tasks = Tasks()
    outputs: list[list[int]] = []
    group = group_size(keys, 6 * nodes, limit)
    for key in keys:
        written: list[int] = []
        part = -(-key.elements // (nodes * key.partitions))
        for p in range(key.partitions):
            written += _exchange_part(tasks, key, p, part, nodes, group, cluster)
        outputs.append(written)
    return Lowered(tasks, outputs, 1)


def _exchange_part(
    tasks: Tasks, key: SymmetricKey, p: int, part: int, nodes: int, group: int, cluster: Cluster
) -> list[int]:
    codec, priority, host = key.codec, key.priority, 0
    size = codec.payload(part)
    label = _labels(key, p, size)
    arrivals = []
    left = nodes - 1
    while left:
        g = min(group, left)
        left -= g
        extra = (g - 1) * cluster.task if codec.encode(part) > 0 else 0.0
        seconds = g * codec.encode(part) + extra
        encoded = tasks.compute(host, seconds, priority, (), label("encode"), g * part)
        tasks.start(key.ready, encoded)
        arrivals.append(_message(tasks, encoded, size, g, priority, label, ("server", left)))
    own = tasks.compute(host, codec.encode(part), priority, (), label("encode"), part)
    tasks.start(key.ready, own)
    inputs = (*arrivals, own)
    merged = tasks.compute(
        host, codec.merge_seconds(part, nodes), priority, inputs, label("merge"), nodes * part
    )
    total = tasks.compute(host, codec.encode(part), priority, (merged,), label("encode"), part)
    written = [tasks.compute(host, codec.decode(part), priority, (total,), label("decode"), part)]
    left = nodes - 1
    while left:
        g = min(group, left)
        left -= g
        arrived = _message(tasks, total, size, g, priority, label, ("worker", left))
        extra = (g - 1) * cluster.task if codec.decode(part) > 0 else 0.0
        seconds = g * codec.decode(part) + extra
        written.append(
            tasks.compute(host, seconds, priority, (arrived,), label("decode"), g * part)
        )
    return written


def _message(tasks, payload, size, g, priority, label, peer) -> int:
    """A receive of g messages, which may share them with others' of the same ``peer``."""
    sent = tasks.send(0, size, priority, (payload,), label("send"), g, peer)
    arrived = tasks.recv(0, priority, label("receive"))
    tasks.join(sent, arrived)
    return arrived


def _labels(key: SymmetricKey, p: int, size: float):
    labels = {
        op: Label(op, key.name, p, "node 0", "its neighbours", size)
        for op in ("encode", "decode", "merge", "send", "receive")
    }
    return labels.__getitem__


BASELINES = {"allgather": allgather}
"""Baselines of other systems, by name; jobs cannot run these."""
