"""Makes the engine's tasks of the graphs that real jobs run.

Every task of :class:`hipress.casync.Graph` becomes one task of the engine, on the host that its
node lives on, with the cost that its codec has for its partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hipress.casync import Graph, Node, Op
from hipress.casync.graph import GRADIENT, Role
from hipress.secopa.cluster import Codec
from hipress.simulator.engine import Tasks


@dataclass(frozen=True)
class Key:
    """One gradient of a step."""

    name: str
    graph: Graph
    codec: Codec
    ready: float
    """Seconds after the start at which every worker has computed the gradient."""
    priority: int = 0
    """The least goes first."""


class Label(NamedTuple):
    """What a timeline says of a task."""

    op: str
    key: str
    partition: int
    node: str
    peer: str
    bytes: float


@dataclass
class Lowered:
    """Tasks, and which of them say that a gradient is there."""

    tasks: Tasks
    outputs: list[list[int]]
    """Per key: tasks that write the result, on any worker."""
    hosts: int


def host_of(node: Node) -> int:
    """Server i lives beside worker i: the co-located arrangement."""
    return node.rank


def host_apart(num_workers: int) -> Callable[[Node], int]:
    """Servers live on hosts of their own, after the workers'."""
    return lambda node: node.rank + (num_workers if node.role == Role.SERVER else 0)


def lower(keys: Sequence[Key], place: Callable[[Node], int] = host_of) -> Lowered:
    """Tasks of all keys on all hosts."""
    tasks = Tasks()
    outputs: list[list[int]] = []
    hosts = 1
    for key in keys:
        graph, written = key.graph, []
        sends: dict[tuple, int] = {}
        recvs: dict[tuple, int] = {}
        for node, program in graph.tasks.items():
            host = place(node)
            hosts = max(hosts, host + 1)
            _lower_node(key, node, host, program, tasks, sends, recvs, written)
        _join(tasks, sends, recvs, place)
        outputs.append(written)
    return Lowered(tasks, outputs, hosts)


def _lower_node(
    key: Key,
    node: Node,
    host: int,
    program: Sequence,
    tasks: Tasks,
    sends: dict[tuple, int],
    recvs: dict[tuple, int],
    written: list[int],
) -> None:
    codec, priority = key.codec, key.priority
    index: list[int] = []
    # A value that came off the wire or out of an encode is a payload; a merge makes dense floats.
    dense: list[bool] = []
    for task in program:
        elements = key.graph.partitions[task.partition].count
        inputs = [index[i] for i in task.inputs if i != GRADIENT]
        size = codec.payload(elements)
        peer = str(task.peer) if task.peer is not None else ""

        def label(op: str, size=size, task=task, peer=peer) -> Label:
            return Label(op, key.name, task.partition, str(node), peer, size)

        if task.op == Op.ENCODE:
            new = tasks.compute(host, codec.encode(elements), priority, inputs, label("encode"))
        elif task.op == Op.DECODE:
            plain = task.inputs[0] != GRADIENT and dense[task.inputs[0]]
            seconds = 0.0 if plain else codec.decode(elements)
            new = tasks.compute(host, seconds, priority, inputs, label("decode"))
            written.append(new)
        elif task.op == Op.MERGE:
            seconds = codec.merge_seconds(elements, len(task.inputs))
            new = tasks.compute(host, seconds, priority, inputs, label("merge"))
        elif task.op == Op.SEND:
            # Whether it stays on the host is known when both ends are.
            new = tasks.send(host, size, priority, inputs, label("send"))
            sends[node, task.peer, task.partition, task.step] = new
        elif task.op == Op.RECV:
            new = tasks.recv(host, priority, label("receive"))
            recvs[task.peer, node, task.partition, task.step] = new
        else:  # UPDATE passes the sum on; optimizers are not simulated
            new = tasks.compute(host, 0.0, priority, inputs, label("update"))
        if GRADIENT in task.inputs:
            tasks.start(key.ready, new)
        index.append(new)
        dense.append(task.op in (Op.MERGE, Op.UPDATE))


def _join(
    tasks: Tasks,
    sends: Mapping[tuple, int],
    recvs: Mapping[tuple, int],
    place: Callable[[Node], int],
) -> None:
    for message, send in sends.items():
        tasks.join(send, recvs[message])
        if place(message[0]) == place(message[1]):
            tasks.make_local(send)
