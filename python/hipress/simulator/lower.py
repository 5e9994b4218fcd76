"""Conversion of real jobs' graphs to tasks of the engine.

Every task of :class:`hipress.topology.Graph` becomes one task of the engine, on its node's host,
with its codec's cost for its partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hipress.planning.cluster import Codec
from hipress.simulator.tasks import Tasks
from hipress.topology import Graph, Node, Op
from hipress.topology.graph import GRADIENT, PLAIN, Role, Task


@dataclass(frozen=True)
class Key:
    """One gradient of a step."""

    name: str
    graph: Graph
    codec: Codec
    plain: Codec
    """Codec of values that the graph never compresses."""
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


Place = Callable[[Node], int]
"""Function that returns the host of a node."""


def beside(node: Node) -> int:
    """Return the host of a node, where server i shares worker i's host."""
    return node.rank


def apart(num_workers: int) -> Place:
    """Return a function that places servers on separate hosts, after the workers'."""
    return lambda node: node.rank + (num_workers if node.role == Role.SERVER else 0)


def lower(keys: Sequence[Key], place: Place = beside) -> Lowered:
    """Return the tasks of all keys on all hosts."""
    lowered = Lowered()
    for key in keys:
        _Lowering(key, lowered.tasks, place).run(lowered)
    return lowered


class _Lowering:
    """Graph of one key."""

    def __init__(self, key: Key, tasks: Tasks, place: Place) -> None:
        self._key, self._tasks, self._place = key, tasks, place
        self._sends: dict[tuple, int] = {}
        self._recvs: dict[tuple, int] = {}
        self._written: list[int] = []
        self._plain = {
            (node, task.peer, task.partition, task.step)
            for node, program in key.graph.tasks.items()
            for task in program
            if task.op == Op.SEND and _is_plain(program, task.inputs[0])
        }

    def run(self, lowered: Lowered) -> None:
        for node, program in self._key.graph.tasks.items():
            lowered.hosts = max(lowered.hosts, self._place(node) + 1)
            self._node(node, program)
        for message, send in self._sends.items():
            self._tasks.join(send, self._recvs[message])
            if self._place(message[0]) == self._place(message[1]):
                self._tasks.make_local(send)
        lowered.outputs.append(self._written)

    def _node(self, node: Node, program: Sequence[Task]) -> None:
        index: list[int] = []
        codecs: list[Codec | None] = []  # of each value; None: dense floats
        for task in program:
            inputs = [index[i] for i in task.inputs if i != GRADIENT]
            came = next((codecs[i] for i in task.inputs if i != GRADIENT), None)
            new, codec = self._task(node, task, inputs, came)
            if GRADIENT in task.inputs:
                self._tasks.start(self._key.ready, new)
            index.append(new)
            codecs.append(codec)

    def _task(
        self, node: Node, task: Task, inputs: list[int], came: Codec | None
    ) -> tuple[int, Codec | None]:
        """Return the engine's task, and the codec of its value."""
        key, tasks, host = self._key, self._tasks, self._place(node)
        elements = key.graph.partitions[task.partition].count
        if task.op == Op.ENCODE:
            codec = key.plain if task.num_summands == PLAIN else key.codec
        elif task.op == Op.RECV:
            message = (task.peer, node, task.partition, task.step)
            codec = key.plain if message in self._plain else key.codec
        else:
            codec = came
        size = (codec or key.plain).payload(elements)
        peer = str(task.peer) if task.peer is not None else ""
        label = Label(_NAMES[task.op], key.name, task.partition, str(node), peer, size)
        if task.op == Op.SEND:
            new = tasks.send(host, size, key.priority, inputs, label, peer=(node, task.peer))
            self._sends[node, task.peer, task.partition, task.step] = new
            return new, None
        if task.op == Op.RECV:
            new = tasks.recv(host, key.priority, label)
            self._recvs[task.peer, node, task.partition, task.step] = new
            return new, codec
        seconds = 0.0  # an update passes the sum on, because optimizers are not simulated
        if task.op == Op.ENCODE:
            seconds = codec.encode(elements)
        elif task.op == Op.DECODE and codec is not None:
            seconds = codec.decode(elements)
        elif task.op == Op.MERGE:
            own = GRADIENT in task.inputs
            seconds = (codec or key.plain).merge_seconds(elements, len(inputs), own)
            codec = None
        work = elements * len(task.inputs)
        new = tasks.compute(host, seconds, key.priority, inputs, label, work)
        if task.op == Op.DECODE:
            self._written.append(new)
        return new, codec


_NAMES = {op: op.name.lower() for op in Op} | {Op.RECV: "receive"}


def _is_plain(program: Sequence[Task], source: int) -> bool:
    task = program[source]
    return task.op == Op.ENCODE and task.num_summands == PLAIN
