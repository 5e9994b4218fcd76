"""Runs a graph in NumPy: what every executor must equal, bit for bit.

Codecs are :class:`hipress.Compressor` objects, one per task that encodes, so residuals lie where
the graph says they do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from hipress.casync.graph import GRADIENT, Graph, Node, Op, Role


class Reference:
    """A graph's state across iterations.

    :param graph: of a gradient of ``n`` elements
    :param codec: makes the compressor of one task that encodes: ``codec(node, partition)``, an
        object with ``encode(float32 array) -> bytes`` and ``decode(bytes, n) -> float32 array``, or
        None where it is not compressed
    """

    def __init__(self, graph: Graph, codec: Callable[[Node, int], object | None]) -> None:
        self.graph = graph
        self._codecs = {
            (node, t): codec(node, task.partition)
            for node, tasks in graph.tasks.items()
            for t, task in enumerate(tasks)
            if task.op == Op.ENCODE
        }

    def step(self, gradients: dict[Node, np.ndarray]) -> dict[Node, np.ndarray]:
        """One iteration: the synchronised gradient of every worker.

        :param gradients: float32 of shape (n,) per worker
        :raises RuntimeError: if the graph waits for itself (a deadlock)
        """
        graph = self.graph
        results: dict[Node, dict[int, object]] = {node: {} for node in graph.tasks}
        outputs = {
            node: np.zeros(graph.n, np.float32)
            for node in graph.tasks
            if node.role == Role.WORKER
        }
        wire: dict[tuple, deque] = {}
        ready = True
        while ready:
            ready = False
            for node, tasks in graph.tasks.items():
                done = results[node]
                for t, task in enumerate(tasks):
                    if t in done or any(i != GRADIENT and i not in done for i in task.inputs):
                        continue
                    if task.op == Op.RECV:
                        queue = wire.get((task.peer, node, task.partition, task.step))
                        if not queue:
                            continue
                        done[t] = queue.popleft()
                    else:
                        done[t] = self._run(node, t, done, gradients, outputs, wire)
                    ready = True
        for node, tasks in graph.tasks.items():
            if len(results[node]) != len(tasks):
                raise RuntimeError(f"deadlock: {node} could not finish its tasks")
        return outputs

    def _run(self, node, t, done, gradients, outputs, wire):
        task = self.graph.tasks[node][t]
        partition = self.graph.partitions[task.partition]
        here = slice(partition.offset, partition.offset + partition.count)
        inputs = [gradients[node][here] if i == GRADIENT else done[i] for i in task.inputs]
        if task.op == Op.ENCODE:
            codec = self._codecs[node, t]
            if codec is None:
                return np.array(inputs[0], np.float32)
            return _Payload(codec.encode(np.ascontiguousarray(inputs[0])), codec, partition.count)
        if task.op == Op.SEND:
            wire.setdefault((node, task.peer, task.partition, task.step), deque()).append(inputs[0])
            return None
        dense = [value.decode() if isinstance(value, _Payload) else value for value in inputs]
        if task.op == Op.MERGE:
            total = np.array(dense[0], np.float32)
            for value in dense[1:]:
                total = total + value
            return total
        if task.op == Op.DECODE:
            outputs[node][here] = dense[0]
            return None
        return dense[0]  # UPDATE without an optimizer


class _Payload:
    """An encoded partition and how to decode it."""

    def __init__(self, data: bytes, codec, count: int) -> None:
        self._data, self._codec, self._count = data, codec, count

    def decode(self) -> np.ndarray:
        return self._codec.decode(self._data, self._count)
