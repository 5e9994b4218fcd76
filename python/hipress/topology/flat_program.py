"""A node's part of a graph as flat int64, the form the native executor reads.

Layout (``src/graph/program.cc`` reads it)::

    version = 2, per_worker, num_partitions, num_tasks, num_inputs
    num_partitions x (offset, count)
    num_tasks      x (op, partition, step, peer or -1, summands, first input, number of inputs)
    num_inputs     x (task index, or -1 for the gradient)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hipress.topology.graph import Graph, NodeId

VERSION = 2


def flatten(
    graph: Graph, node: NodeId, at: Callable[[int], int] = lambda element: element
) -> np.ndarray:
    """Return ``node``'s program as a one-dimensional int64 array.

    ``at`` returns the position of an element of the gradient in its memory. Elements of one
    partition are adjacent.
    """
    tasks = graph.tasks.get(node, [])
    head = [VERSION, int(graph.per_worker), len(graph.partitions), len(tasks)]
    partitions = [field for p in graph.partitions for field in (at(p.offset), p.count)]
    rows: list[int] = []
    inputs: list[int] = []
    for task in tasks:
        peer = task.peer.packed if task.peer is not None else -1
        summands = 0 if task.no_upstream else task.num_summands
        row = (task.op, task.partition, task.step, peer, summands)
        rows += [*row, len(inputs), len(task.inputs)]
        inputs += task.inputs
    return np.array([*head, len(inputs), *partitions, *rows, *inputs], dtype=np.int64)
