"""One rank's part in synchronising one bucket of gradients in host memory, made once and run every
step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from hipress._lib import FLOAT32
from hipress.casync.graph import GRADIENT, Op, Task
from hipress.compression import Compressor
from hipress.torch.layout import Gradient, Layout, PassedOn
from hipress.torch.message import OVERFLOW, Message
from hipress.torch.momentum import Part, SharedMomentum
from hipress.torch.schedule import Value
from hipress.torch.tasks import FLAGS, InFlat, Place, TaskOp, Tasks, floats

if TYPE_CHECKING:
    from hipress.torch.engine import Engine


class Add(NamedTuple):
    """Momentum of a part of a gradient, which begins at its element ``begin``: task ``row`` decodes
    it, the next one adds it."""

    row: int
    gradient: Gradient
    begin: int
    count: int


class Keep(NamedTuple):
    """A part of a result, which task ``row`` keeps as one of ``parts``, in turns: the other is the
    result before."""

    row: int
    graph: int
    begin: int
    parts: list[Part]


@dataclass
class Stage:
    """What is computed in a round."""

    tasks: Tasks
    encodes: list[tuple[int, Compressor]] = field(default_factory=list)
    """Which of the tasks encode, and what is to be told if they are left out."""
    adds: list[Add] = field(default_factory=list)
    keeps: list[Keep] = field(default_factory=list)
    used: list[Part] = field(default_factory=list)
    """Whose memory the tasks read in this step."""
    add_rows: np.ndarray = field(init=False)
    keep_rows: np.ndarray = field(init=False)

    def complete(self) -> None:
        """Once all tasks are there."""
        self.tasks.complete()
        self.add_rows = np.array([add.row for add in self.adds], np.int64)
        self.keep_rows = np.array([keep.row for keep in self.keeps], np.int64)


class Plan(Layout):
    """A bucket's graphs, compiled to calls of the library on host memory.

    :param shared: momentum of the gradients: each partition gets it just before it is used, decoded
        from the payload of the result before, which costs less than to have kept that in memory
    """

    WAVE = 4 << 20  # 16 MiB of float32; benchmarks/torchtraining.py found smaller ones no faster

    stages: list[Stage]

    def __init__(
        self, gradients: Sequence[Gradient], *args: object, shared: SharedMomentum | None = None,
        **keywords: object,
    ) -> None:  # fmt: skip
        self.flags = 0
        self._shared = shared
        self._kept: dict[int, dict[int, Part]] = {}
        self._turns = [0] * len(gradients)
        self._messages: list[Message] = []
        super().__init__(gradients, *args, **keywords)
        received = {id(m) for each in self.exchanges for m in each.receive.values()}
        self._written_here = [m for m in self._messages if id(m) not in received]

    # Made once.

    def _message(self, values: Sequence[Value]) -> Message:
        message = Message([self._capacity(value) for value in values], self._digest)
        self._messages.append(message)
        return message

    def _empty(self, count: int) -> torch.Tensor:
        return floats(count)

    def _compile_all(self, values: Sequence[Value], copies: Sequence[PassedOn]) -> Stage:
        stage = Stage(Tasks(self._dtype))
        for value in values:
            task = self._task(value)
            if self._shared is not None and GRADIENT in task.inputs:
                self._add_momentum(stage, value)
            if task.op == Op.ENCODE:
                self._encode(stage, value, task)
            elif task.op == Op.MERGE:
                self._merge(stage.tasks, value, task)
            elif task.op == Op.DECODE:
                self._decode(stage, value, Value(value.graph, task.inputs[0]))
            # An UPDATE has no optimizer here, and does nothing.
        for value, *slots in copies:
            reader = self._reader(self._kinds[value])
            stage.tasks.add(TaskOp.PASS_ON, self._span(value)[1], **reader, slots=slots)
        stage.complete()
        return stage

    def _add_momentum(self, stage: Stage, value: Value) -> None:
        offset, count = self._span(value)
        decoded = self._partial.view(self._dtype)  # with the rounding that the result has
        row = stage.tasks.add(TaskOp.DECODE_BYTES, count, target=decoded)
        stage.adds.append(Add(row, self.gradients[value.graph], self._first_element(value), count))
        stage.tasks.add(
            TaskOp.ADD_FINITE, count, source=self._partial, target=InFlat(offset),
            factor=self._shared.weight,
        )  # fmt: skip

    def _first_element(self, value: Value) -> int:
        """Where in its gradient a task's partition begins."""
        return self._graphs[value.graph].partitions[self._task(value).partition].offset

    def _encode(self, stage: Stage, value: Value, task: Task) -> None:
        offset, count = self._span(value)
        name, graph = self.gradients[value.graph].name, self._graphs[value.graph]
        kind = self._kinds[value]
        compressor = self._places.get(name, graph, value.task, task, kind)
        own = task.inputs == (GRADIENT,)
        row = stage.tasks.add(
            TaskOp.ENCODE, count, codec=compressor, wire=self._wire(kind),
            source=InFlat(offset) if own else self._dense[Value(value.graph, task.inputs[0])],
            factor=self._mean(value, task), slots=[self._slots[value]],
        )  # fmt: skip
        stage.encodes.append((row, compressor))

    def _merge(self, tasks: Tasks, value: Value, task: Task) -> None:
        offset, count = self._span(value)
        total = self._dense[value]
        sources, fused = self._sources(value, task)
        if fused:
            self._sum(tasks, self._kinds[sources[0]], sources, count, total)
            return
        for number, source in enumerate(sources):
            to: torch.Tensor = self._partial if number else total
            if source in self._kinds:
                self._sum(tasks, self._kinds[source], [source], count, to)
            else:
                own = source.task == GRADIENT
                place: Place = InFlat(offset) if own else self._dense[source]
                tasks.add(TaskOp.COPY, count, source=place, target=to)
            if number:
                tasks.add(TaskOp.ADD, count, source=to, target=total)

    def _sum(
        self, tasks: Tasks, kind: object, sources: Sequence[Value], count: int, to: torch.Tensor
    ) -> None:
        """Of payloads of one kind, in their order."""
        tasks.add(
            TaskOp.DECODE_SUM, count, **self._reader(kind), target=to,
            slots=[self._slots[source] for source in sources],
        )  # fmt: skip

    def _decode(self, stage: Stage, value: Value, source: Value) -> None:
        offset, count = self._span(value)
        target = InFlat(offset)
        if source in self._dense:
            # The end of a reduce-scatter: the sum, or the mean, is the result as it is.
            factor = self._scale if self._codecs.average else 1.0
            stage.tasks.add(
                TaskOp.COPY, count, source=self._dense[source], target=target, factor=factor
            )
            return
        reader, slot = self._reader(self._kinds[source]), self._slots[source]
        stage.tasks.add(TaskOp.DECODE, count, **reader, target=target, slots=[slot])
        if self._shared is not None:
            size = self._capacity(source)
            rooms = [torch.empty(size, dtype=torch.uint8) for _ in range(2)]
            parts = [Part(count, room, **reader, dtype=self._dtype) for room in rooms]
            row = stage.tasks.add(
                TaskOp.KEEP, count, source=rooms[0], target=target, slots=[slot]
            )
            stage.keeps.append(Keep(row, value.graph, self._first_element(value), parts))

    def _reader(self, kind: object) -> dict[str, Any]:
        """What decodes payloads of a kind."""
        return {"codec": self._codecs.decoder(kind), "wire": self._wire(kind)}

    # Every step.

    def run(self, engine: Engine, flat: torch.Tensor, tag: int, what: str) -> None:
        """As Engine.run()."""
        engine.run(self, flat, tag, what)

    def begin(self, flat: torch.Tensor) -> None:
        """Starts a step: empties the messages, and looks for NaN and Inf."""
        self.flags = 0 if all_finite(flat) else OVERFLOW
        self._kept = {}
        for message in self._written_here:
            message.begin(self.flags)

    def compute(self, number: int, flat: torch.Tensor) -> None:
        """Runs a round's tasks, and completes the messages that follow it."""
        stage, done = self.stages[number], 0
        if not self.flags:
            if self._shared is not None:
                self._take_momentum(stage, flat)
            done = stage.tasks.run(flat)
            if done < len(stage.tasks.table):  # with its momentum a gradient is too large
                self.flags |= OVERFLOW
        if self.flags:
            for row, compressor in stage.encodes:
                if row >= done:
                    compressor.skip()
        elif self._shared is not None:
            self._keep(stage)
        for message in self.exchanges[number].send.values():
            message.raise_flags(self.flags)

    def _take_momentum(self, stage: Stage, flat: torch.Tensor) -> None:
        """Says where the result before lies, in a payload or decoded, and where to keep the next.
        """
        decodes: list[tuple[int, ...]] = []
        adds: list[tuple[int, int]] = []
        stage.used.clear()
        for _, gradient, begin, count in stage.adds:
            part = self._shared.part(gradient.name, begin, count, self._dtype)
            if part is None:
                before = self._shared.of(gradient.name, flat, gradient.count)
                decodes.append((0, 0, FLOAT32, 0, 0))
                adds.append((before[begin:].data_ptr(), FLOAT32))
            else:
                stage.used.append(part)
                handle = part.codec._handle.value
                decodes.append((count, handle, part.wire, part.address, part.size))
                adds.append((self._partial.data_ptr(), FLAGS[self._dtype]))
        if adds:
            rows = stage.add_rows
            stage.tasks.set(rows, ("count", "codec", "wire", "from", "bytes"), decodes)
            stage.tasks.set(rows + 1, ("from", "from_type"), adds)
        if stage.keeps:
            keeps = [(keep.parts[self._turns[keep.graph]].address,) for keep in stage.keeps]
            stage.tasks.set(stage.keep_rows, ("from",), keeps)

    def _keep(self, stage: Stage) -> None:
        """Remembers the payloads of results that can be added to the next gradients."""
        if not stage.keeps:
            return
        sizes = stage.tasks.table["bytes"][stage.keep_rows].tolist()
        for keep, size in zip(stage.keeps, sizes):
            if size >= 0:
                part = keep.parts[self._turns[keep.graph]]
                part.size = size
                self._kept.setdefault(keep.graph, {})[keep.begin] = part

    def arrived(self, stage: int) -> None:
        """After a round's messages have come: takes over their flags."""
        for message in self.exchanges[stage].receive.values():
            self.flags |= message.flags

    def end(self, flat: torch.Tensor) -> None:
        """Ends a step: an overflow anywhere makes every result NaN, everywhere."""
        if self.flags:
            for gradient in self.gradients:
                for piece in gradient.slices():
                    flat[piece].fill_(float("nan"))
            return
        for graph, parts in self._kept.items():
            gradient = self.gradients[graph]
            if sum(part.count for part in parts.values()) == gradient.count:  # all are finite
                self._shared.keep_parts(gradient.name, parts)
                self._turns[graph] ^= 1


def all_finite(flat: torch.Tensor) -> bool:
    """Whether there is no NaN or Inf."""
    # A NaN or Inf makes the sum one, and adding is faster than comparing; only a sum that is too
    # large for float32 needs the closer look.
    if flat.dtype == torch.float32 and math.isfinite(flat.sum().item()):
        return True
    return all(math.isfinite(limit.item()) for limit in torch.aminmax(flat))
