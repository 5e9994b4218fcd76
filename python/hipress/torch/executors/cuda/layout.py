"""What a rank does to synchronise one bucket of gradients on its GPU, in rounds of messages.

A bucket is a flat tensor with several gradients in it. Each has its own graph and is encoded by
itself; what goes to the same peer at the same time goes in one message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from hipress.casync.graph import GRADIENT, Graph, Op, Task, worker
from hipress.casync.origins import origins, results
from hipress.dtypes import FLOAT32
from hipress.torch.dtypes import FLAGS, NAMES
from hipress.torch.executors.cuda.schedule import Round, Value, schedule
from hipress.torch.gradient import Gradient
from hipress.torch.state.error_feedback import OWN, Codecs, ErrorFeedback


class Slot(NamedTuple):
    """Where a payload lies: number ``index`` of a message, whose class is the executor's."""

    message: Any
    index: int


class PassedOn(NamedTuple):
    """A payload that a message has, and another gets, too."""

    value: Value
    source: Slot
    target: Slot


@dataclass
class Exchange:
    """The messages after one round of computing, by peer, and payloads to copy into them first."""

    send: dict[int, Any] = field(default_factory=dict)
    receive: dict[int, Any] = field(default_factory=dict)
    copies: list[PassedOn] = field(default_factory=list)


class Layout:
    """The compiled graphs of a bucket: its tasks in rounds, its messages and its memory.

    An executor is a subclass that says what a message is and how payloads are made and read.

    :param error_feedback: the states of this rank's tasks that encode
    :param digest: what both ends of a message must agree on
    :param codecs: default: those of ``error_feedback``
    """

    def __init__(
        self,
        gradients: Sequence[Gradient],
        graphs: Sequence[Graph],
        rank: int,
        world_size: int,
        dtype: torch.dtype,
        error_feedback: ErrorFeedback,
        digest: int,
        codecs: Codecs | None = None,
    ) -> None:
        self.gradients = list(gradients)
        self._graphs = list(graphs)
        self._node = worker(rank)
        self._tasks = [graph.tasks.get(self._node, []) for graph in graphs]
        self._scale = 1.0 / world_size
        self._dtype = dtype
        self._error_feedback, self._digest = error_feedback, digest
        self._codecs = codecs or error_feedback.codecs
        self._slots: dict[Value, Slot] = {}
        self._dense: dict[Value, torch.Tensor] = {}
        self._final: set[Value] = set()
        rounds = schedule(graphs, rank)
        self._kinds = self._find_kinds()
        self.exchanges = self._lay_out(rounds)
        self._share_scratch(rounds)
        self.stages = [
            self._compile_all(each.compute, exchange.copies)
            for each, exchange in zip(rounds, self.exchanges)
        ]

    # What executors differ in.

    def _message(self, values: Sequence[Value]) -> Any:
        """A message with room for these payloads."""
        raise NotImplementedError

    def _empty(self, count: int) -> torch.Tensor:
        """Memory for ``count`` float32, where the executor computes."""
        raise NotImplementedError

    def _compile_all(self, values: Sequence[Value], copies: Sequence[PassedOn]) -> Any:
        """The tasks of a round, and the payloads to be copied into messages after them."""
        raise NotImplementedError

    # Made once.

    def _task(self, value: Value) -> Task:
        return self._tasks[value.graph][value.task]

    def _span(self, value: Value) -> tuple[int, int]:
        """Where in the flat tensor a task's partition begins, and its element count."""
        partition = self._graphs[value.graph].partitions[self._task(value).partition]
        return self.gradients[value.graph].at(partition.offset), partition.count

    def _find_kinds(self) -> dict[Value, object]:
        """Which codec made each payload that this rank holds; notes the results among them."""
        kinds: dict[Value, object] = {}
        for g, graph in enumerate(self._graphs):
            final = results(graph)
            for (node, t), origin in origins(graph).items():
                if node == self._node:
                    task = graph.tasks[origin[0]][origin[1]]
                    kinds[Value(g, t)] = self._codecs.kind(task, origin in final)
                    if origin in final:
                        self._final.add(Value(g, t))
        return kinds

    def _wire(self, kind: object) -> int:
        """The type flag that a payload was encoded from; only uncompressed ones depend on it."""
        return FLAGS[self._dtype] if kind == OWN else FLOAT32

    def _capacity(self, value: Value) -> int:
        _, count = self._span(value)
        codec = self._codecs.decoder(self._kinds[value])
        return max(codec.max_bytes(count, "float32"), codec.max_bytes(count, NAMES[self._dtype]))

    def _lay_out(self, rounds: Sequence[Round]) -> list[Exchange]:
        """Makes the messages, and finds for every payload where it is to lie.

        Peers that get the same payloads share a message; one that passes on exactly what it
        received sends the received message itself.
        """
        made: dict[tuple[Value, ...], Any] = {}
        exchanges = []
        for each in rounds:
            exchange = Exchange()
            for peer, values in each.send.items():
                listed = tuple(values)
                if listed not in made:
                    message = made[listed] = self._message(listed)
                    for index, value in enumerate(listed):
                        slot = Slot(message, index)
                        if value in self._slots:
                            exchange.copies.append(PassedOn(value, self._slots[value], slot))
                        else:
                            self._slots[value] = slot
                exchange.send[peer] = made[listed]
            for peer, values in each.receive.items():
                listed = tuple(values)
                message = exchange.receive[peer] = made[listed] = self._message(listed)
                for index, value in enumerate(listed):
                    self._slots[value] = Slot(message, index)
            exchanges.append(exchange)
        own = [v for v in self._encodes(rounds) if v not in self._slots]
        kept = self._message(own)
        self._slots.update((value, Slot(kept, index)) for index, value in enumerate(own))
        return exchanges

    def _encodes(self, rounds: Sequence[Round]) -> Iterator[Value]:
        for each in rounds:
            yield from (v for v in each.compute if self._task(v).op == Op.ENCODE)

    def _share_scratch(self, rounds: Sequence[Round]) -> None:
        """Gives merged values memory, and the same again once they have been used."""
        uses = Counter(
            Value(g, i) for g, tasks in enumerate(self._tasks) for task in tasks
            for i in task.inputs
        )  # fmt: skip
        free: list[torch.Tensor] = []
        most = max((self._span(v)[1] for r in rounds for v in r.compute), default=0)
        for each in rounds:
            for value in each.compute:
                task = self._task(value)
                if task.op == Op.MERGE:
                    self._dense[value] = free.pop() if free else self._empty(most)
                elif task.op == Op.UPDATE and Value(value.graph, task.inputs[0]) in self._dense:
                    self._dense[value] = self._dense[Value(value.graph, task.inputs[0])]
                    continue
                for i in task.inputs:
                    used = Value(value.graph, i)
                    uses[used] -= 1
                    if used in self._dense and not uses[used]:
                        free.append(self._dense[used])
        self._partial = self._empty(most)

    def _config(self, value: Value) -> tuple | None:
        """What makes payloads alike: their codec and the type they were made from."""
        kind = self._kinds.get(value)
        return kind if kind is None else (self._codecs.decoder(kind).config, self._wire(kind))

    def _sources(self, value: Value, task: Task) -> tuple[list[Value], bool]:
        """What a MERGE adds, and whether all of it is payloads that are alike: their sum is one
        fused pass, which is its definition."""
        sources = [Value(value.graph, i) for i in task.inputs]
        codecs = {self._config(source) for source in sources}
        return sources, len(codecs) == 1 and None not in codecs

    def _mean(self, value: Value, task: Task) -> float:
        """What an ENCODE's input is to be multiplied by: a sum whose mean is the result."""
        final = value in self._final and self._codecs.average
        return self._scale if final and task.inputs != (GRADIENT,) else 1.0
