"""Origins of a graph's payloads: the encode of each, and which of them are results."""

from __future__ import annotations

from collections.abc import Iterable

from hipress.topology.graph import GRADIENT, PLAIN, Graph, NodeId, Op, Task


def origins(graph: Graph) -> dict[tuple[NodeId, int], tuple[NodeId, int]]:
    """Return the ENCODE, by node and index, that made each payload of each node."""
    sent = {
        (node, task.peer, task.partition, task.step): (node, task.inputs[0])
        for node, tasks in graph.tasks.items()
        for task in tasks
        if task.op == Op.SEND
    }
    found = {}
    for node, tasks in graph.tasks.items():
        for t, task in enumerate(tasks):
            if task.op not in (Op.ENCODE, Op.RECV):
                continue
            origin, source = (node, t), task
            while source.op == Op.RECV:  # several nodes may pass it on
                origin = sent[source.peer, origin[0], source.partition, source.step]
                source = graph.tasks[origin[0]][origin[1]]
            found[node, t] = origin
    return found


def results(graph: Graph) -> set[tuple[NodeId, int]]:
    """Return the ENCODEs whose payloads are decoded as results. A reduce-scatter has none."""
    origin = origins(graph)
    return {
        origin[node, task.inputs[0]]
        for node, tasks in graph.tasks.items()
        for task in tasks
        if task.op == Op.DECODE and (node, task.inputs[0]) in origin
    }


def first_encoders(tasks: Iterable[Task]) -> dict[int, int]:
    """Return each partition's first task that encodes a value with the node's own gradient."""
    found: dict[int, int] = {}
    has_own: set[int] = {GRADIENT}
    for index, task in enumerate(tasks):
        if has_own.intersection(task.inputs):
            has_own.add(index)
            if task.op == Op.ENCODE:
                found.setdefault(task.partition, index)
    return found


def own_encoders(graph: Graph, partition: int) -> list[Task]:
    """Return the ENCODEs of a partition that compress one node's own gradient alone."""
    return [
        task
        for tasks in graph.tasks.values()
        for task in tasks
        if task.op == Op.ENCODE
        and task.partition == partition
        and task.inputs == (GRADIENT,)
        and task.num_summands != PLAIN
    ]


def residual_takers(graph: Graph, partition: int) -> list[Task]:
    """Return the ENCODEs of a partition to which a residual of all nodes is distributed.

    They are those of :func:`own_encoders`. If only sums are compressed, they are each node's first
    ENCODE with its own gradient.
    """
    own = own_encoders(graph, partition)
    if own:
        return own
    firsts = [(tasks, first_encoders(tasks)) for tasks in graph.tasks.values()]
    return [tasks[first[partition]] for tasks, first in firsts if partition in first]
