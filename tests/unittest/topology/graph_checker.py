"""Proof that a graph is correct, without numbers.

Every value is the multiset of contributions in it. A graph is correct if, for every partition:
every worker's output holds every worker's contribution exactly once; all workers decode the *same*
encoded value (and so end bit-identical); every sent message is received; no two messages between
the same nodes can be confused; and every encode has the right number of contributions.
"""

from __future__ import annotations

from collections import Counter

from hipress.topology.graph import GRADIENT, PLAIN, Graph, NodeId, Op, Role


class GraphError(AssertionError):
    """Defect of a graph."""


class _Value:
    """Contributions in a value, and the encode (node, task) that made it, if any."""

    def __init__(self, parts: Counter, encoded_by: tuple[NodeId, int] | None = None) -> None:
        self.parts = parts
        self.encoded_by = encoded_by


def check(graph: Graph) -> None:
    """Check a synchronous graph.

    Raises:
        GraphError: If it has a defect. The message names the node and partition.
    """
    workers = sorted(node for node in graph.tasks if node.role == Role.WORKER)
    _check_partitions(graph)
    results: dict[NodeId, dict[int, _Value | None]] = {node: {} for node in graph.tasks}
    wire: dict[tuple, _Value] = {}
    outputs: dict[tuple[NodeId, int], _Value] = {}
    miscounted: list[str] = []
    progress = True
    while progress:
        progress = False
        for node, tasks in graph.tasks.items():
            done = results[node]
            for t, task in enumerate(tasks):
                if t in done or any(i != GRADIENT and i not in done for i in task.inputs):
                    continue
                inputs = [
                    _Value(Counter([node])) if i == GRADIENT else done[i] for i in task.inputs
                ]
                value: _Value | None = None
                if task.op == Op.RECV:
                    value = wire.pop((task.peer, node, task.partition, task.step), None)
                    if value is None:
                        continue
                elif task.op == Op.SEND:
                    message = (node, task.peer, task.partition, task.step)
                    if message in wire:
                        raise GraphError(f"{node} sends partition {task.partition} twice")
                    wire[message] = inputs[0]
                elif task.op == Op.ENCODE:
                    summands, said = sum(inputs[0].parts.values()), task.num_summands
                    if said not in (summands, PLAIN):
                        miscounted.append(f"{node} encodes a sum of {summands} as one of {said}")
                    value = _Value(inputs[0].parts, (node, t))
                elif task.op == Op.DECODE:
                    if (node, task.partition) in outputs:
                        raise GraphError(f"{node} writes partition {task.partition} twice")
                    outputs[node, task.partition] = inputs[0]
                else:
                    value = _Value(sum((i.parts for i in inputs), Counter()))
                done[t] = value
                progress = True
    for node, tasks in graph.tasks.items():
        if len(results[node]) != len(tasks):
            raise GraphError(f"deadlock: {node} cannot finish its tasks")
    if wire:
        raise GraphError(f"{len(wire)} messages are sent but never received")
    everyone = Counter(workers)
    for p in range(len(graph.partitions)):
        sources = set()
        for node in workers:
            value = outputs.get((node, p))
            if value is None:
                raise GraphError(f"{node} gets no result for partition {p}")
            if value.parts != everyone:
                raise GraphError(f"{node}'s partition {p} does not hold every worker exactly once")
            sources.add(value.encoded_by)
        if len(sources) != 1 or None in sources:
            raise GraphError(f"workers decode different values of partition {p}")
    if miscounted:
        raise GraphError(miscounted[0])


def _check_partitions(graph: Graph) -> None:
    """Check that partitions tile the gradient."""
    at = 0
    for partition in sorted(graph.partitions, key=lambda p: p.offset):
        if partition.offset != at or partition.count < 1:
            raise GraphError(f"partitions leave a gap or overlap at element {at}")
        at += partition.count
    if at != graph.n:
        raise GraphError(f"partitions end at element {at} of {graph.n}")
