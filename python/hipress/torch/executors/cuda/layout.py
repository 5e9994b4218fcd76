"""Rounds, messages and memory of one rank that synchronizes a bucket on its GPU.

A bucket is a flat tensor of several gradients. Each has its own graph and is encoded separately.
All tasks of all graphs get a *level*: the number of messages on the longest path to them. In the
round of each level, every rank computes, and then exchanges one message with each peer that needs
something. Both ends derive the same messages from the same graphs, so nothing is negotiated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import torch

from hipress.dtypes import FLOAT32
from hipress.topology.graph import GRADIENT, Graph, NodeId, Op, Role, Task, worker
from hipress.topology.origins import origins, results
from hipress.torch.dtypes import FLAGS, NAMES
from hipress.torch.gradient import Gradient
from hipress.torch.state.error_feedback import OWN, Codecs

_ALIGNMENT_BYTES = 64
_HEAD_WORDS = 2  # int64: digest, flags


class Value(NamedTuple):
    """Result of task ``task`` of graph number ``graph`` on this rank."""

    graph: int
    task: int


def aligned(size: int) -> int:
    """Return the next multiple of 64 bytes."""
    return -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


class Message:
    """Payloads of at most ``capacities`` bytes, in device memory.

    Layout: int64 digest and flags; int64 size of each payload; the payloads. Each payload is at a
    multiple of 64 bytes that follows from the capacities, so both ends know it.
    """

    def __init__(self, capacities: Sequence[int], digest: int, device: torch.device) -> None:
        words = _HEAD_WORDS + len(capacities)
        self._spans, end = [], aligned(8 * words)
        for capacity in capacities:
            self._spans.append(slice(end, end + capacity))
            end += aligned(capacity)
        self.tensor = torch.zeros(end, dtype=torch.uint8, device=device)
        numbers = self.tensor[: 8 * words].view(torch.int64)
        self.head, self.sizes = numbers[:_HEAD_WORDS], numbers[_HEAD_WORDS:]
        self.head[0] = digest
        self.flags = self.head[1:]

    def payload(self, index: int) -> torch.Tensor:
        """Return the memory of a payload."""
        return self.tensor[self._spans[index]]

    def size(self, index: int) -> int:
        """Return the address of a payload's size."""
        return self.sizes.data_ptr() + 8 * index


class PayloadSlot(NamedTuple):
    """Place of a payload: number ``index`` of a message."""

    message: Message
    index: int


@dataclass
class Round:
    """Values that a rank computes, and then the messages to and from each peer.

    Both ends list a message's payloads in the same order. ``copies`` are copied from a message to
    one that is sent, before that.
    """

    compute: list[Value] = field(default_factory=list)
    send: dict[int, Message] = field(default_factory=dict)
    receive: dict[int, Message] = field(default_factory=dict)
    copies: list[tuple[PayloadSlot, PayloadSlot]] = field(default_factory=list)


class Layout:
    """A bucket's tasks in rounds, its messages, whose ends need the same digest, and its memory."""

    def __init__(
        self,
        gradients: Sequence[Gradient],
        graphs: Sequence[Graph],
        rank: int,
        world_size: int,
        dtype: torch.dtype,
        codecs: Codecs,
        digest: int,
        device: torch.device,
    ) -> None:
        self.gradients, self.graphs = list(gradients), list(graphs)
        self._node = worker(rank)
        self._tasks = [graph.tasks.get(self._node, []) for graph in graphs]
        self._dtype, self._codecs, self._device = dtype, codecs, device
        self.mean_factor = 1.0 / world_size if codecs.average else 1.0
        self.digest = digest
        self.slots: dict[Value, PayloadSlot] = {}
        """Payloads."""
        self.dense: dict[Value, torch.Tensor] = {}
        """float32 memory of merged sums."""
        self.kinds: dict[Value, object] = {}
        """Codec of each payload, see :meth:`Codecs.kind`."""
        self._final: set[Value] = set()
        self._find_kinds()
        self.rounds = self._rounds()
        self._share_scratch()

    def task(self, value: Value) -> Task:
        """Return the task that makes a value."""
        return self._tasks[value.graph][value.task]

    def span(self, value: Value) -> tuple[int, int]:
        """Return the first element of a task's partition in the flat tensor, and its size."""
        partition = self.graphs[value.graph].partitions[self.task(value).partition]
        return self.gradients[value.graph].at(partition.offset), partition.count

    def _find_kinds(self) -> None:
        """Find the kind of each payload of this rank, and the final results."""
        for g, graph in enumerate(self.graphs):
            final = results(graph)
            for (node, t), origin in origins(graph).items():
                if node == self._node:
                    task = graph.tasks[origin[0]][origin[1]]
                    self.kinds[Value(g, t)] = self._codecs.kind(task, origin in final)
                    if origin in final:
                        self._final.add(Value(g, t))

    def _message(self, values: Sequence[Value]) -> Message:
        """Return a message with memory for these payloads."""
        capacities = []
        for value in values:
            _, count = self.span(value)
            codec = self._codecs.decoder(self.kinds[value])
            dtypes = ("float32", NAMES[self._dtype])
            capacities.append(max(codec.max_bytes(count, dtype) for dtype in dtypes))
        return Message(capacities, self.digest, self._device)

    def _rounds(self) -> list[Round]:
        """Return the rounds, as many as on other ranks, and assign a slot to every payload.

        Peers that get the same payloads share a message. A rank that forwards exactly what it
        received sends the received message itself.
        """
        compute: dict[int, list[Value]] = defaultdict(list)
        sent: dict[int, dict[int, list]] = defaultdict(lambda: defaultdict(list))
        received: dict[int, dict[int, list]] = defaultdict(lambda: defaultdict(list))
        last = -1
        for g, graph in enumerate(self.graphs):
            level = _levels(graph)
            last = max(last, *level.values())
            for t, task in enumerate(self._tasks[g]):
                number, order = level[self._node, t], (g, task.partition, task.step)
                if task.op == Op.SEND:
                    sent[number][task.peer.rank].append((order, Value(g, task.inputs[0])))
                elif task.op == Op.RECV:
                    received[number - 1][task.peer.rank].append((order, Value(g, t)))
                else:
                    compute[number].append(Value(g, t))
        made: dict[tuple[Value, ...], Message] = {}
        rounds = []
        for number in range(last + 1):
            each = Round(compute[number])
            for peer, ordered in sent[number].items():
                values = tuple(value for _, value in sorted(ordered))
                if values not in made:
                    message = made[values] = self._message(values)
                    for index, value in enumerate(values):
                        slot = PayloadSlot(message, index)
                        if self.slots.setdefault(value, slot) is not slot:
                            each.copies.append((self.slots[value], slot))
                each.send[peer] = made[values]
            for peer, ordered in received[number].items():
                values = tuple(value for _, value in sorted(ordered))
                message = each.receive[peer] = made[values] = self._message(values)
                self.slots.update(
                    (value, PayloadSlot(message, i)) for i, value in enumerate(values)
                )
            rounds.append(each)
        own = [
            value
            for each in rounds
            for value in each.compute
            if self.task(value).op == Op.ENCODE and value not in self.slots
        ]
        kept = self._message(own)
        self.slots.update((value, PayloadSlot(kept, i)) for i, value in enumerate(own))
        return rounds

    def _floats(self, count: int) -> torch.Tensor:
        return torch.empty(count, dtype=torch.float32, device=self._device)

    def _share_scratch(self) -> None:
        """Assign memory to merged values, and reuse it after their last use."""
        uses = Counter(
            Value(g, i)
            for g, tasks in enumerate(self._tasks)
            for task in tasks
            for i in task.inputs
        )
        free: list[torch.Tensor] = []
        values = [value for each in self.rounds for value in each.compute]
        size = max((self.span(value)[1] for value in values), default=0)
        for value in values:
            task = self.task(value)
            if task.op == Op.MERGE:
                self.dense[value] = free.pop() if free else self._floats(size)
            elif task.op == Op.UPDATE and Value(value.graph, task.inputs[0]) in self.dense:
                self.dense[value] = self.dense[Value(value.graph, task.inputs[0])]
                continue
            for i in task.inputs:
                used = Value(value.graph, i)
                uses[used] -= 1
                if used in self.dense and not uses[used]:
                    free.append(self.dense[used])
        self.partial = self._floats(size)
        """float32 memory for one summand."""

    def _config(self, value: Value) -> tuple | None:
        """Return a key that is equal for payloads of the same codec and source type, or None."""
        kind = self.kinds.get(value)
        if kind is None:
            return None
        # Only uncompressed payloads depend on the type from which they were encoded.
        return self._codecs.decoder(kind).config, FLAGS[self._dtype] if kind == OWN else FLOAT32

    def summands(self, value: Value, task: Task) -> tuple[list[Value], bool]:
        """Return the summands of a MERGE, and whether all are payloads of the same form.

        The sum of such payloads is one fused pass, which is its definition.
        """
        sources = [Value(value.graph, i) for i in task.inputs]
        codecs = {self._config(source) for source in sources}
        return sources, len(codecs) == 1 and None not in codecs

    def factor(self, value: Value, task: Task) -> float:
        """Return the factor of an ENCODE's input: that of a sum whose mean is the result, or 1."""
        return self.mean_factor if value in self._final and not task.of_gradient else 1.0


def _levels(graph: Graph) -> dict[tuple[NodeId, int], int]:
    """Return the level of every task, by node and index."""
    sends, needs = {}, {}
    for node, tasks in graph.tasks.items():
        if node.role != Role.WORKER:
            raise ValueError(f"a process group has no {node}: choose a topology without servers")
        for t, task in enumerate(tasks):
            needs[node, t] = [(node, i) for i in task.inputs if i != GRADIENT]
            if task.op == Op.SEND:
                sends[node, task.peer, task.partition, task.step] = (node, t)
    for node, tasks in graph.tasks.items():
        for t, task in enumerate(tasks):
            if task.op == Op.RECV:
                needs[node, t] = [sends[task.peer, node, task.partition, task.step]]
    level: dict[tuple[NodeId, int], int] = {}
    try:
        for node, t in TopologicalSorter(needs).static_order():
            longest = max((level[i] for i in needs[node, t]), default=0)
            level[node, t] = longest + (graph.tasks[node][t].op == Op.RECV)
    except CycleError as error:
        raise ValueError(f"the graph waits for itself at {error.args[1][0][0]}") from None
    return level
