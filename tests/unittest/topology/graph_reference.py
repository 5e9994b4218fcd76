"""Execution of a graph in NumPy, which every executor must equal bit for bit.

Codecs are :class:`hipress.Compressor` objects, one per encode task, so residuals are where the
graph has them. A MERGE of payloads of one codec is that codec's fused sum, in the order of the
inputs. Any other mixture (a payload and a gradient, payloads of several scales) is decoded and
added one by one, in float32, in that order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hipress.compression.compressor import Compressor
from hipress.topology.graph import GRADIENT, PLAIN, Graph, NodeId, Op, Role, Task


def compression(type: str, **params: object) -> Callable[[NodeId, Task], Compressor | None]:
    """Return a function that makes compressors from a store's parameters, one for each ENCODE.

    >>> run = Reference(graph, compression("2bit", threshold=0.5))
    """
    base = Compressor(type, **params)

    def make(_node: NodeId, task: Task) -> Compressor | None:
        if task.num_summands == PLAIN:
            return None
        if task.of_gradient:
            return Compressor(type, **params)
        return base.for_sum_of(task.num_summands)

    return make


class Reference:
    """State of a graph across iterations.

    Args:
        graph: Graph of a gradient of ``n`` elements.
        codec: Function that returns the compressor of an encode task, or None if it is
            uncompressed; see :func:`compression`.
    """

    def __init__(self, graph: Graph, codec: Callable[[NodeId, Task], Compressor | None]) -> None:
        self.graph = graph
        self._codecs = {
            (node, t): codec(node, task)
            for node, tasks in graph.tasks.items()
            for t, task in enumerate(tasks)
            if task.op == Op.ENCODE
        }

    def step(self, gradients: dict[NodeId, np.ndarray]) -> dict[NodeId, np.ndarray]:
        """Run one iteration and return the synchronized gradient of every worker.

        Args:
            gradients: float32 of shape (n,) per worker.

        Raises:
            RuntimeError: If the graph waits for itself (a deadlock).
        """
        graph = self.graph
        results: dict[NodeId, dict[int, object]] = {node: {} for node in graph.tasks}
        outputs = {
            node: np.zeros(graph.n, np.float32) for node in graph.tasks if node.role == Role.WORKER
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
            data = codec.encode(np.ascontiguousarray(inputs[0], np.float32))
            return _Payload(data, codec, partition.count)
        if task.op == Op.SEND:
            wire.setdefault((node, task.peer, task.partition, task.step), deque()).append(inputs[0])
            return None
        if task.op == Op.MERGE:
            return _merge(inputs)
        if task.op == Op.DECODE:
            outputs[node][here] = _dense(inputs[0])
            return None
        return _dense(inputs[0])  # an UPDATE without an optimizer


class _Payload(NamedTuple):
    """Encoded partition and its encoder."""

    data: bytes
    codec: Compressor
    count: int


def _dense(value: _Payload | np.ndarray) -> np.ndarray:
    return value.codec.decode(value.data, value.count) if isinstance(value, _Payload) else value


def _merge(inputs: list[_Payload | np.ndarray]) -> np.ndarray:
    first = inputs[0]
    if isinstance(first, _Payload) and all(
        isinstance(i, _Payload) and i.codec.config == first.codec.config for i in inputs
    ):
        return first.codec.decode_sum([i.data for i in inputs], first.count)
    total = np.array(_dense(first), np.float32)
    for value in inputs[1:]:
        total = total + _dense(value)
    return total
