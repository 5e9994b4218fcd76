"""Conversion of real jobs' graphs to tasks of the engine.

:func:`lower` makes one task of the engine of each task of a :class:`hipress.topology.Graph`, on its
node's host, with its codec's cost for its partition.

:func:`one_for_all` simulates thousands of nodes by symmetry. In a ring, and among co-located
servers whose clients begin with different servers, every host does the same at the same time.
Therefore host 0 receives what it sends itself. The graph of all N hosts has about N^2 tasks per
gradient; one host's share has N. For many hosts even these are coarsened: ``group`` consecutive
steps (or messages) become one that has their processor time, their bytes, and, in a ring, whose
steps follow each other, their latencies. A test compares the times of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hipress.planning.cluster import JOB_ELEMENTS, Cluster, Codec
from hipress.simulator.event_simulation import Tasks
from hipress.topology import Graph, NodeId, Op
from hipress.topology.graph import GRADIENT, PLAIN, Role, Task
from hipress.topology.topology import Symmetry

MAX_TASKS = 1_500_000
"""Approximate limit of a step's tasks by symmetry, for about 10 seconds of simulation."""
_NAMES = {op: op.name.lower() for op in Op} | {Op.RECV: "receive"}


@dataclass(frozen=True)
class SimulatedKey:
    """One gradient of a step."""

    name: str
    codec: Codec
    ready: float
    """Seconds after the start at which every worker has computed the gradient."""
    priority: int = 0
    """Priority. The lowest number is first."""


class Label(NamedTuple):
    """Label of a task in a timeline."""

    op: str
    key: str
    partition: int
    node: str
    peer: str
    bytes: float


@dataclass
class Lowered:
    """Tasks, and those among them that complete a gradient."""

    tasks: Tasks = field(default_factory=Tasks)
    outputs: list[list[int]] = field(default_factory=list)
    """Tasks that write the result on any worker, per key."""
    hosts: int = 1


def lower(
    keys: Sequence[tuple[SimulatedKey, Graph]], plain: Codec, first_server: int = 0
) -> Lowered:
    """Return the tasks of all keys on all hosts.

    ``plain`` is the codec of values that the graphs never compress. Worker r is on host r, and
    server r on host ``first_server + r``.
    """
    lowered = Lowered()
    for key, graph in keys:
        _Lowering(key, graph, plain, first_server, lowered).run()
    return lowered


class _Lowering:
    """Graph of one key."""

    def __init__(
        self, key: SimulatedKey, graph: Graph, plain: Codec, first_server: int, lowered: Lowered
    ) -> None:
        self._key, self._graph, self._plain = key, graph, plain
        self._first_server, self._lowered, self._tasks = first_server, lowered, lowered.tasks
        self._sends: dict[tuple, int] = {}
        self._recvs: dict[tuple, int] = {}
        self._written: list[int] = []
        self._plain_messages = {
            (node, task.peer, task.partition, task.step)
            for node, program in graph.tasks.items()
            for task in program
            if task.op == Op.SEND and program[task.inputs[0]].num_summands == PLAIN
        }

    def run(self) -> None:
        for node, program in self._graph.tasks.items():
            self._lowered.hosts = max(self._lowered.hosts, self._host(node) + 1)
            self._add_node(node, program)
        for message, send in self._sends.items():
            self._tasks.join(send, self._recvs[message])
            if self._host(message[0]) == self._host(message[1]):
                self._tasks.make_local(send)
        self._lowered.outputs.append(self._written)

    def _host(self, node: NodeId) -> int:
        return node.rank + (self._first_server if node.role == Role.SERVER else 0)

    def _add_node(self, node: NodeId, program: Sequence[Task]) -> None:
        index: list[int] = []
        codecs: list[Codec | None] = []  # of each value; None: dense floats
        for task in program:
            inputs = [index[i] for i in task.inputs if i != GRADIENT]
            came = next((codecs[i] for i in task.inputs if i != GRADIENT), None)
            new, codec = self._add_task(node, task, inputs, came)
            if GRADIENT in task.inputs:
                self._tasks.start(self._key.ready, new)
            index.append(new)
            codecs.append(codec)

    def _add_task(
        self, node: NodeId, task: Task, inputs: list[int], came: Codec | None
    ) -> tuple[int, Codec | None]:
        """Return the engine's task, and the codec of its value."""
        key, tasks, host = self._key, self._tasks, self._host(node)
        elements = self._graph.partitions[task.partition].count
        sent, received = (
            (*nodes, task.partition, task.step) for nodes in ((node, task.peer), (task.peer, node))
        )
        codec = came
        if task.op == Op.ENCODE:
            codec = self._plain if task.num_summands == PLAIN else key.codec
        elif task.op == Op.RECV:
            codec = self._plain if received in self._plain_messages else key.codec
        size = (codec or self._plain).payload(elements)
        peer = "" if task.peer is None else str(task.peer)
        label = Label(_NAMES[task.op], key.name, task.partition, str(node), peer, size)
        if task.op == Op.SEND:
            new = tasks.send(host, size, key.priority, inputs, label, peer=(node, task.peer))
            self._sends[sent] = new
            return new, None
        if task.op == Op.RECV:
            new = self._recvs[received] = tasks.recv(host, key.priority, label)
            return new, codec
        seconds = 0.0  # an update passes the sum on, because optimizers are not simulated
        if task.op == Op.ENCODE:
            seconds = codec.encode(elements)
        elif task.op == Op.DECODE and codec is not None:
            seconds = codec.decode(elements)
        elif task.op == Op.MERGE:
            own = GRADIENT in task.inputs
            seconds = (codec or self._plain).merge_seconds(elements, len(inputs), own)
            codec = None
        work = elements * len(task.inputs)
        new = tasks.compute(host, seconds, key.priority, inputs, label, work)
        if task.op == Op.DECODE:
            self._written.append(new)
        return new, codec


class _Part:
    """Builder of the tasks of one partition of a key on host 0, with ``group`` steps run as one."""

    def __init__(
        self, tasks: Tasks, key: SimulatedKey, p: int, elements: int, cluster: Cluster, group: int
    ) -> None:
        self.tasks, self.key, self.cluster, self.group = tasks, key, cluster, group
        self.codec, self.elements, self.size = key.codec, elements, key.codec.payload(elements)
        self.labels = {
            op: Label(op, key.name, p, "node 0", "its neighbors", self.size)
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


def _ring(part: _Part, nodes: int) -> None:
    """Reduce-scatter and all-gather around a ring.

    It does N - 1 times: send the encoded partial sum of one chunk, merge the received one with the
    own gradient, encode the sum. Then N - 1 times: pass on the received payload, and decode it.
    """
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


def _exchange(part: _Part, nodes: int) -> None:
    """A server on, or in, each worker. Every gradient has a part on each.

    A host encodes and sends the parts of the N - 1 other servers, and keeps its own. As a server it
    merges N payloads, encodes the sum, and sends it N - 1 times. Hosts begin with different
    servers, so that a server's inputs arrive one after the other, not all at once.
    """
    arrivals = []
    for g, left in part.groups(nodes - 1):
        arrivals.append(part.message(part.encode(g=g), g, ("server", left)))
    inputs = (*arrivals, part.encode())
    seconds = part.codec.merge_seconds(part.elements, nodes)
    total = part.encode(part.compute("merge", seconds, inputs, work=nodes * part.elements))
    part.decode(total)
    for g, left in part.groups(nodes - 1):
        part.decode(part.message(total, g, ("worker", left)), g)


def _allgather(part: _Part, nodes: int) -> None:
    """A ring that gathers all payloads on all hosts, for systems that cannot merge payloads.

    Every host encodes its whole gradient, receives N - 1 payloads, and decodes each.
    """
    payload = part.encode(work=JOB_ELEMENTS)
    part.decode(payload, work=JOB_ELEMENTS)
    for g, _ in part.groups(nodes - 1):
        payload = part.steps(payload, g)
        part.decode(payload, g, JOB_ELEMENTS)


class Form(NamedTuple):
    """Pattern in which one host's tasks represent every host's."""

    add: Callable[[_Part, int], None]
    """Function that adds the tasks of a partition among so many nodes."""
    tasks: Callable[[int], int]
    """Number of tasks of a partition among so many nodes."""
    whole: bool = False
    """Whether each node has all partitions of a gradient, not those of a part."""


FORMS = {
    Symmetry.RING: Form(_ring, lambda nodes: 8 * (nodes - 1)),
    Symmetry.EXCHANGE: Form(_exchange, lambda nodes: 6 * nodes),
}
BASELINES = {"allgather": Form(_allgather, lambda nodes: 3 * (nodes - 1), whole=True)}
"""Baselines of other systems, by name. Real jobs cannot run these."""


def one_for_all(
    form: Form,
    keys: Sequence[tuple[SimulatedKey, int, int]],
    nodes: int,
    cluster: Cluster,
    limit: int = MAX_TASKS,
) -> Lowered:
    """Return the tasks of one host, of keys with elements and partitions of a node's part."""
    total = sum(partitions for *_, partitions in keys) * form.tasks(nodes)
    group = max(1, -(-total // limit))
    lowered = Lowered()
    for key, size, partitions in keys:
        elements = -(-size // ((1 if form.whole else nodes) * partitions))
        written: list[int] = []
        for p in range(partitions):
            part = _Part(lowered.tasks, key, p, elements, cluster, group)
            form.add(part, nodes)
            written += part.written
        lowered.outputs.append(written)
    return lowered
