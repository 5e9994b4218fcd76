"""Thousands of nodes by symmetry: one host's tasks represent every host's.

In a ring, and among co-located servers whose clients begin with different servers, every host does
the same at the same time. Therefore host 0 receives what it sends itself. The graph of all N hosts
has about N^2 tasks per gradient; one host's share has N. For many hosts even these are coarsened:
``group`` consecutive steps (or messages) become one that has their processor time, their bytes,
and, in a ring, whose steps follow each other, their latencies.

The graphs are those of real jobs (:mod:`hipress.topology`). A test compares the times of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hipress.planning import sharing
from hipress.planning.cluster import Cluster, Codec
from hipress.simulator.lower import Label, Lowered
from hipress.simulator.tasks import Tasks

MAX_TASKS = 1_500_000
"""Approximate limit of a step's tasks, for about 10 seconds of simulation."""


@dataclass(frozen=True)
class SymmetricKey:
    """One gradient: its size, its codec, and the number of partitions of each node's part."""

    name: str
    elements: int
    codec: Codec
    ready: float
    partitions: int = 1
    priority: int = 0


def group_size(keys: Sequence[SymmetricKey], tasks_of_one: int, limit: int) -> int:
    """Return the number of steps to run as one, so that there are at most about ``limit`` tasks."""
    total = sum(key.partitions for key in keys) * tasks_of_one
    return max(1, -(-total // limit))


def ring(
    keys: Sequence[SymmetricKey], nodes: int, cluster: Cluster, limit: int = MAX_TASKS
) -> Lowered:
    """Return a reduce-scatter and all-gather around a ring of ``nodes`` hosts.

    It does N - 1 times: send the encoded partial sum of one chunk, merge the received one with the
    own gradient, encode the sum. Then N - 1 times: pass on the received payload, and decode it.
    """
    return _lowered(_around, keys, nodes, cluster, group_size(keys, 8 * (nodes - 1), limit))


def allgather(
    keys: Sequence[SymmetricKey], nodes: int, cluster: Cluster, limit: int = MAX_TASKS
) -> Lowered:
    """Return a ring that gathers all payloads on all hosts, for systems that cannot merge payloads.

    Every host encodes its whole gradient, receives N - 1 payloads, and decodes each. Real jobs have
    no such topology: it represents baselines.
    """
    group = group_size(keys, 3 * (nodes - 1), limit)
    return _lowered(_gather, keys, nodes, cluster, group, whole=True)


def exchange(
    keys: Sequence[SymmetricKey], nodes: int, cluster: Cluster, limit: int = MAX_TASKS
) -> Lowered:
    """Return a server on, or in, each of ``nodes`` workers. Every gradient has a part on each.

    A host encodes and sends the parts of the N - 1 other servers, and keeps its own. As a server it
    merges N payloads, encodes the sum, and sends it N - 1 times. Hosts begin with different
    servers, so that a server's inputs arrive one after the other, not all at once.
    """
    return _lowered(_exchange, keys, nodes, cluster, group_size(keys, 6 * nodes, limit))


class _Part:
    """Builder of the tasks of one partition of a key on host 0, with ``group`` steps run as one."""

    def __init__(
        self, tasks: Tasks, key: SymmetricKey, p: int, elements: int, cluster: Cluster, group: int
    ) -> None:
        self.tasks, self.key, self.cluster, self.group = tasks, key, cluster, group
        self.codec, self.elements, self.size = key.codec, elements, key.codec.payload(elements)
        self.labels = {
            op: Label(op, key.name, p, "node 0", "its neighbours", self.size)
            for op in ("encode", "decode", "merge", "send", "receive")
        }
        self.written: list[int] = []
        """Tasks that write the result."""

    def groups(self, steps: int) -> Iterator[tuple[int, int]]:
        """Yield sizes of groups that make up ``steps``, each with the number of remaining steps."""
        while steps:
            size = min(self.group, steps)
            steps -= size
            yield size, steps

    def compute(
        self, op: str, seconds: float, inputs: Sequence[int], g: int = 1, work: int | None = None
    ) -> int:
        """Add ``g`` computations as one, with the overhead of g tasks."""
        if g > 1:
            seconds = g * seconds + (g - 1) * self.cluster.task if seconds > 0 else 0.0
        elements = g * self.elements if work is None else work
        return self.tasks.compute(0, seconds, self.key.priority, inputs, self.labels[op], elements)

    def encode(self, *inputs: int, g: int = 1, work: int | None = None) -> int:
        """Encode the inputs' results, or the gradient itself when it is ready."""
        task = self.compute("encode", self.codec.encode(self.elements), inputs, g, work)
        if not inputs:
            self.tasks.start(self.key.ready, task)
        return task

    def decode(self, payload: int, g: int = 1, work: int | None = None) -> None:
        """Decode a payload into the result."""
        seconds = self.codec.decode(self.elements)
        self.written.append(self.compute("decode", seconds, (payload,), g, work))

    def message(self, payload: int, g: int, peer: object) -> int:
        """Return a receive of g messages, which may share one with others of the same ``peer``."""
        tasks, priority = self.tasks, self.key.priority
        sent = tasks.send(0, self.size, priority, (payload,), self.labels["send"], g, peer)
        arrived = tasks.recv(0, priority, self.labels["receive"])
        tasks.join(sent, arrived)
        return arrived

    def steps(self, payload: int, g: int, peer: object = None) -> int:
        """Add g steps of sending and receiving, and return the last receive."""
        arrived = self.message(payload, g, peer)
        if g == 1:
            return arrived
        # The latencies of all steps but one, during which other gradients can use the link.
        return self.tasks.wait(0, (g - 1) * self.cluster.latency, (arrived,))


def _lowered(
    add: Callable[[_Part, int], None],
    keys: Sequence[SymmetricKey],
    nodes: int,
    cluster: Cluster,
    group: int,
    whole: bool = False,
) -> Lowered:
    """Return the tasks of all keys' partitions, each added by ``add`` among so many nodes.

    ``whole`` is whether each node has all partitions of a gradient, not those of a part.
    """
    lowered = Lowered()
    for key in keys:
        elements = -(-key.elements // ((1 if whole else nodes) * key.partitions))
        written: list[int] = []
        for p in range(key.partitions):
            part = _Part(lowered.tasks, key, p, elements, cluster, group)
            add(part, nodes)
            written += part.written
        lowered.outputs.append(written)
    return lowered


def _around(part: _Part, nodes: int) -> None:
    payload = part.encode()
    seconds = part.codec.merge_seconds(part.elements, 1, own=True)
    for g, _ in part.groups(nodes - 1):
        arrived = part.steps(payload, g, "next")
        merged = part.compute("merge", seconds, (arrived,), g, 2 * g * part.elements)
        part.tasks.start(part.key.ready, merged)
        payload = part.encode(merged, g=g)
    part.decode(payload)
    for g, _ in part.groups(nodes - 1):
        payload = part.steps(payload, g, "next")
        part.decode(payload, g)


def _gather(part: _Part, nodes: int) -> None:
    payload = part.encode(work=sharing.JOB_ELEMENTS)
    part.decode(payload, work=sharing.JOB_ELEMENTS)
    for g, _ in part.groups(nodes - 1):
        payload = part.steps(payload, g)
        part.decode(payload, g, sharing.JOB_ELEMENTS)


def _exchange(part: _Part, nodes: int) -> None:
    arrivals = []
    for g, left in part.groups(nodes - 1):
        arrivals.append(part.message(part.encode(g=g), g, ("server", left)))
    inputs = (*arrivals, part.encode())
    seconds = part.codec.merge_seconds(part.elements, nodes)
    total = part.encode(part.compute("merge", seconds, inputs, work=nodes * part.elements))
    part.decode(total)
    for g, left in part.groups(nodes - 1):
        part.decode(part.message(total, g, ("worker", left)), g)


BASELINES = {"allgather": allgather}
"""Baselines of other systems, by name. Real jobs cannot run these."""
