"""Messages and memory of one rank that synchronizes a bucket on its GPU.

A bucket is a flat tensor of several gradients. Each has its own graph and is encoded separately.
Payloads that go to the same peer at the same time share one message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from hipress.dtypes import FLOAT32
from hipress.topology.graph import GRADIENT, Graph, Op, Task, worker
from hipress.topology.origins import origins, results
from hipress.torch.dtypes import FLAGS, NAMES
from hipress.torch.executors.cuda.schedule import Value, schedule
from hipress.torch.gradient import Gradient
from hipress.torch.state.error_feedback import OWN, Codecs

_ALIGNMENT_BYTES = 64
_HEAD_WORDS = 2  # int64: digest, flags


def aligned(size: int) -> int:
    """Return the next multiple of 64 bytes."""
    return -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


class Message:
    """Payloads of at most ``capacities`` bytes, in device memory.

    Layout: int64 digest and flags; int64 size of each payload; the payloads. Each payload is at a
    multiple of 64 bytes that follows from the capacities, so both ends know it.

    Args:
        digest: digest on which both ends must agree
    """

    def __init__(self, capacities: Sequence[int], digest: int, device: torch.device) -> None:
        words = _HEAD_WORDS + len(capacities)
        self.offsets, end = [], aligned(8 * words)
        for capacity in capacities:
            self.offsets.append(end)
            end += aligned(capacity)
        self.tensor = torch.zeros(end, dtype=torch.uint8, device=device)
        numbers = self.tensor[: 8 * words].view(torch.int64)
        self.head, self.sizes = numbers[:_HEAD_WORDS], numbers[_HEAD_WORDS:]
        self.flags = self.head[1:]
        self.head[0] = digest
        self.capacities = list(capacities)

    def payload(self, index: int) -> torch.Tensor:
        """Return the memory of a payload."""
        return self.tensor[self.offsets[index] :][: self.capacities[index]]

    def size(self, index: int) -> int:
        """Return the address of a payload's size."""
        return self.sizes.data_ptr() + 8 * index


class Slot(NamedTuple):
    """Place of a payload: number ``index`` of a message."""

    message: Message
    index: int


class PassedOn(NamedTuple):
    """Payload of one message that is also sent in another one."""

    value: Value
    source: Slot
    target: Slot


@dataclass
class Exchange:
    """Messages after one round of computing, by peer, and payloads to copy into them first."""

    send: dict[int, Message] = field(default_factory=dict)
    receive: dict[int, Message] = field(default_factory=dict)
    copies: list[PassedOn] = field(default_factory=list)


class Layout:
    """A bucket's tasks in rounds, its messages and its memory.

    Args:
        digest: digest on which both ends of a message must agree
    """

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
        self.slots: dict[Value, Slot] = {}
        """Payloads."""
        self.dense: dict[Value, torch.Tensor] = {}
        """float32 memory of merged sums."""
        self._final: set[Value] = set()
        self.rounds = schedule(graphs, rank)
        self.kinds = self._find_kinds()
        """Codec of each payload, see :meth:`Codecs.kind`."""
        self.exchanges = self._lay_out()
        self._share_scratch()

    def _message(self, values: Sequence[Value]) -> Message:
        """Make a message with room for these payloads."""
        return Message([self._capacity(value) for value in values], self.digest, self._device)

    def task(self, value: Value) -> Task:
        """Return the task that makes a value."""
        return self._tasks[value.graph][value.task]

    def span(self, value: Value) -> tuple[int, int]:
        """Return the first element of a task's partition in the flat tensor, and its size."""
        partition = self.graphs[value.graph].partitions[self.task(value).partition]
        return self.gradients[value.graph].at(partition.offset), partition.count

    def _find_kinds(self) -> dict[Value, object]:
        """Return the kind of each payload of this rank, and record the final results."""
        kinds: dict[Value, object] = {}
        for g, graph in enumerate(self.graphs):
            final = results(graph)
            for (node, t), origin in origins(graph).items():
                if node == self._node:
                    task = graph.tasks[origin[0]][origin[1]]
                    kinds[Value(g, t)] = self._codecs.kind(task, origin in final)
                    if origin in final:
                        self._final.add(Value(g, t))
        return kinds

    def _wire(self, kind: object) -> int:
        """Return the type flag that a payload was encoded from.

        Only uncompressed ones depend on it.
        """
        return FLAGS[self._dtype] if kind == OWN else FLOAT32

    def _capacity(self, value: Value) -> int:
        _, count = self.span(value)
        codec = self._codecs.decoder(self.kinds[value])
        return max(codec.max_bytes(count, "float32"), codec.max_bytes(count, NAMES[self._dtype]))

    def _lay_out(self) -> list[Exchange]:
        """Create the messages, and assign a slot to every payload.

        Peers that get the same payloads share a message. A rank that forwards exactly what it
        received sends the received message itself.
        """
        made: dict[tuple[Value, ...], Message] = {}
        exchanges = []
        for each in self.rounds:
            exchange = Exchange()
            for peer, values in each.send.items():
                listed = tuple(values)
                if listed not in made:
                    message = made[listed] = self._message(listed)
                    for index, value in enumerate(listed):
                        slot = Slot(message, index)
                        if value in self.slots:
                            exchange.copies.append(PassedOn(value, self.slots[value], slot))
                        else:
                            self.slots[value] = slot
                exchange.send[peer] = made[listed]
            for peer, values in each.receive.items():
                listed = tuple(values)
                message = exchange.receive[peer] = made[listed] = self._message(listed)
                for index, value in enumerate(listed):
                    self.slots[value] = Slot(message, index)
            exchanges.append(exchange)
        own = [v for v in self._encodes() if v not in self.slots]
        kept = self._message(own)
        self.slots.update((value, Slot(kept, index)) for index, value in enumerate(own))
        return exchanges

    def _encodes(self) -> Iterator[Value]:
        for each in self.rounds:
            yield from (v for v in each.compute if self.task(v).op == Op.ENCODE)

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
        most = max((self.span(v)[1] for r in self.rounds for v in r.compute), default=0)
        for each in self.rounds:
            for value in each.compute:
                task = self.task(value)
                if task.op == Op.MERGE:
                    memory = free.pop() if free else self._floats(most)
                    self.dense[value] = memory
                elif task.op == Op.UPDATE and Value(value.graph, task.inputs[0]) in self.dense:
                    self.dense[value] = self.dense[Value(value.graph, task.inputs[0])]
                    continue
                for i in task.inputs:
                    used = Value(value.graph, i)
                    uses[used] -= 1
                    if used in self.dense and not uses[used]:
                        free.append(self.dense[used])
        self.partial = self._floats(most)
        """float32 memory for one summand."""

    def _config(self, value: Value) -> tuple | None:
        """Return a key that is equal for payloads of the same codec and source type, or None."""
        kind = self.kinds.get(value)
        return kind if kind is None else (self._codecs.decoder(kind).config, self._wire(kind))

    def summands(self, value: Value, task: Task) -> tuple[list[Value], bool]:
        """Return the summands of a MERGE, and whether all are payloads of the same form.

        The sum of such payloads is one fused pass, which is its definition.
        """
        sources = [Value(value.graph, i) for i in task.inputs]
        codecs = {self._config(source) for source in sources}
        return sources, len(codecs) == 1 and None not in codecs

    def factor(self, value: Value, task: Task) -> float:
        """Return the factor of an ENCODE's input: that of a sum whose mean is the result, or 1."""
        ends = value in self._final and task.inputs != (GRADIENT,)
        return self.mean_factor if ends else 1.0
