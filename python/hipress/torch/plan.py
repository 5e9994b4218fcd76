"""One rank's part in synchronising one bucket of gradients, made once and run every step.

A bucket is a flat tensor with several gradients in it. Each has its own graph and is encoded by
itself; what goes to the same peer at the same time goes in one message.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from hipress._lib import BFLOAT16, FLOAT16, FLOAT32, check_call, lib
from hipress.casync.graph import GRADIENT, Graph, Op, Task, worker
from hipress.torch.message import OVERFLOW, Message
from hipress.torch.places import OWN, Places
from hipress.torch.schedule import Round, Value, origins, results, schedule

FLAGS = {torch.float32: FLOAT32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}
_NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


class Gradient(NamedTuple):
    """One gradient in a bucket: ``offset`` and ``count`` are elements of the flat tensor.

    It lies there in one piece, or in chunks that begin ``stride`` elements apart. No partition has
    elements of two chunks.
    """

    name: str
    offset: int
    count: int
    chunk: int = 0
    stride: int = 0

    def at(self, element: int) -> int:
        """Where in the flat tensor an element of the gradient is."""
        if not self.chunk:
            return self.offset + element
        chunk, within = divmod(element, self.chunk)
        return self.offset + chunk * self.stride + within

    def slices(self) -> Iterator[slice]:
        """Where in the flat tensor the gradient is."""
        size = self.chunk or max(self.count, 1)
        for begin in range(0, self.count, size):
            at = self.at(begin)
            yield slice(at, at + min(size, self.count - begin))


class Slot(NamedTuple):
    """Where a payload lies."""

    message: Message
    index: int


@dataclass
class Exchange:
    """The messages after one round of computing, by peer, and payloads to copy into them first."""

    send: dict[int, Message] = field(default_factory=dict)
    receive: dict[int, Message] = field(default_factory=dict)
    copies: list[tuple[Slot, Slot]] = field(default_factory=list)


class Plan:
    """Compiled graphs of a bucket.

    :param places: of this rank; says of every task that encodes how it does
    :param digest: what both ends of a message must agree on
    """

    def __init__(
        self,
        gradients: Sequence[Gradient],
        graphs: Sequence[Graph],
        rank: int,
        world_size: int,
        dtype: torch.dtype,
        places: Places,
        digest: int,
    ) -> None:
        self.gradients = list(gradients)
        self._graphs = list(graphs)
        self._node = worker(rank)
        self._tasks = [graph.tasks.get(self._node, []) for graph in graphs]
        self._scale = 1.0 / world_size
        self._dtype, self._itemsize, self._flag = dtype, dtype.itemsize, FLAGS[dtype]
        self._places, self._codecs, self._digest = places, places.codecs, digest
        self.flags = 0
        self._written = ctypes.c_int64()
        self._slots: dict[Value, Slot] = {}
        self._dense: dict[Value, torch.Tensor] = {}
        self._final: set[Value] = set()
        rounds = schedule(graphs, rank)
        self._kinds = self._find_kinds()
        self.exchanges = self._lay_out(rounds)
        self._share_scratch(rounds)
        self.stages = [[self._compile(value) for value in each.compute] for each in rounds]

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
        return self._flag if kind == OWN else FLOAT32

    def _capacity(self, value: Value) -> int:
        _, count = self._span(value)
        codec = self._codecs.decoder(self._kinds[value])
        return max(codec.max_bytes(count, "float32"), codec.max_bytes(count, _NAMES[self._dtype]))

    def _lay_out(self, rounds: Sequence[Round]) -> list[Exchange]:
        """Makes the messages, and finds for every payload where it is to lie.

        Peers that get the same payloads share a message; one that passes on exactly what it
        received sends the received message itself.
        """
        made: dict[tuple[Value, ...], Message] = {}
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
                            exchange.copies.append((self._slots[value], slot))
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
        self._written_here = [kept]
        received = {id(m) for e in exchanges for m in e.receive.values()}
        for exchange in exchanges:
            for message in exchange.send.values():
                if id(message) not in received and message not in self._written_here:
                    self._written_here.append(message)
        return exchanges

    def _message(self, values: Sequence[Value]) -> Message:
        return Message([self._capacity(value) for value in values], self._digest)

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
                    self._dense[value] = free.pop() if free else torch.empty(most)
                elif task.op == Op.UPDATE and Value(value.graph, task.inputs[0]) in self._dense:
                    self._dense[value] = self._dense[Value(value.graph, task.inputs[0])]
                    continue
                for i in task.inputs:
                    used = Value(value.graph, i)
                    uses[used] -= 1
                    if used in self._dense and not uses[used]:
                        free.append(self._dense[used])
        self._partial = torch.empty(most)

    def _compile(self, value: Value) -> Callable[[torch.Tensor], None]:
        """A function of the flat tensor that does one task."""
        task = self._task(value)
        if task.op == Op.ENCODE:
            return self._encode(value, task)
        if task.op == Op.MERGE:
            return self._merge(value, task)
        if task.op == Op.DECODE:
            return self._decode(value, task)
        return lambda flat: None  # UPDATE without an optimizer

    def _config(self, value: Value) -> tuple | None:
        """What makes payloads alike: their codec and the type they were made from."""
        kind = self._kinds.get(value)
        return kind if kind is None else (self._codecs.decoder(kind).config, self._wire(kind))

    def _encode(self, value: Value, task: Task) -> Callable[[torch.Tensor], None]:
        offset, count = self._span(value)
        name = self.gradients[value.graph].name
        graph, kind = self._graphs[value.graph], self._kinds[value]
        compressor = self._places.get(name, graph, value.task, task, kind)
        handle, encode = compressor._handle, lib.HipressCodecEncode
        message, index = self._slots[value]
        own, flag = task.inputs == (GRADIENT,), self._wire(kind)
        direct = own and flag == self._flag
        scale = self._scale if value in self._final and self._codecs.average and not own else 1.0
        begin, written = offset * self._itemsize, self._written
        dense = self._partial if own else self._dense[Value(value.graph, task.inputs[0])]
        dense = dense[:count]

        def run(flat: torch.Tensor) -> None:
            source = flat.data_ptr() + begin if direct else dense.data_ptr()
            if own and not direct:
                dense.copy_(flat[offset : offset + count])
            if scale != 1.0:
                dense.mul_(scale)
            check_call(
                encode(handle, source, count, flag, message.room(), ctypes.byref(written)),
                RuntimeError,
            )
            message.put(index, written.value)

        return run

    def _merge(self, value: Value, task: Task) -> Callable[[torch.Tensor], None]:
        offset, count = self._span(value)
        total, partial = self._dense[value][:count], self._partial[:count]
        sources = [Value(value.graph, i) for i in task.inputs]
        codecs = {self._config(source) for source in sources}
        if len(codecs) == 1 and None not in codecs:  # one fused pass, the definition of such a sum
            terms = [(self._kinds[sources[0]], sources)]
        else:
            terms = [
                (GRADIENT if i == GRADIENT else self._kinds.get(source), [source])
                for i, source in zip(task.inputs, sources, strict=True)
            ]

        def term(kind: object, sources: list) -> Callable[[torch.Tensor, torch.Tensor], None]:
            if kind == GRADIENT:
                return lambda flat, out: out.copy_(flat[offset : offset + count])
            if kind is None:
                dense = self._dense[sources[0]][:count]
                return lambda flat, out: out.copy_(dense)
            handle = self._codecs.decoder(kind)._handle
            slots = [self._slots[source] for source in sources]
            wire = self._wire(kind)
            addresses = (ctypes.c_void_p * len(slots))()
            sizes = (ctypes.c_int64 * len(slots))()

            def run(flat: torch.Tensor, out: torch.Tensor) -> None:
                for at, (message, index) in enumerate(slots):
                    addresses[at], sizes[at] = message.payload(index)
                check_call(
                    lib.HipressCodecDecodeSum(
                        handle, len(slots), addresses, sizes, count, wire, out.data_ptr()
                    ),
                    RuntimeError,
                )

            return run

        first, *others = [term(kind, sources) for kind, sources in terms]

        def run(flat: torch.Tensor) -> None:
            first(flat, total)
            for other in others:
                other(flat, partial)
                total.add_(partial)

        return run

    def _decode(self, value: Value, task: Task) -> Callable[[torch.Tensor], None]:
        offset, count = self._span(value)
        source = Value(value.graph, task.inputs[0])
        if source in self._dense:
            return self._copy(source, offset, count)
        message, index = self._slots[source]
        kind = self._kinds[source]
        handle, flag = self._codecs.decoder(kind)._handle, self._flag
        begin = offset * self._itemsize
        # What is not compressed comes in the type it was encoded from, and a sum is float32.
        plain = self._codecs.identity(kind) and self._wire(kind) != self._flag
        partial = self._partial[:count]

        def run(flat: torch.Tensor) -> None:
            address, size = message.payload(index)
            to = partial.data_ptr() if plain else flat.data_ptr() + begin
            dtype = FLOAT32 if plain else flag
            check_call(
                lib.HipressCodecDecode(handle, address, size, count, dtype, to), RuntimeError
            )
            if plain:
                flat[offset : offset + count].copy_(partial)

        return run

    def _copy(self, source: Value, offset: int, count: int) -> Callable[[torch.Tensor], None]:
        """The end of a reduce-scatter: the sum, or the mean, is the result as it is."""
        dense = self._dense[source][:count]
        scale = self._scale if self._codecs.average else 1.0

        def run(flat: torch.Tensor) -> None:
            torch.mul(dense, scale, out=dense)
            flat[offset : offset + count].copy_(dense)

        return run

    # Every step.

    def begin(self, flat: torch.Tensor) -> None:
        """Starts a step: empties the messages, and looks for NaN and Inf."""
        self.flags = 0 if _all_finite(flat) else OVERFLOW
        for message in self._written_here:
            message.begin(self.flags)

    def compute(self, stage: int, flat: torch.Tensor) -> None:
        """Runs a round's tasks, and completes the messages that follow it."""
        if not self.flags:
            for task in self.stages[stage]:
                task(flat)
            for (source, i), (target, j) in self.exchanges[stage].copies:
                address, size = source.payload(i)
                ctypes.memmove(target.room(), address, size)
                target.put(j, size)
        for message in self.exchanges[stage].send.values():
            message.raise_flags(self.flags)

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


def _all_finite(flat: torch.Tensor) -> bool:
    # A NaN or Inf makes the sum one, and adding is faster than comparing; only a sum that is too
    # large for float32 needs the closer look.
    if flat.dtype == torch.float32 and bool(torch.isfinite(flat.sum())):
        return True
    least, most = torch.aminmax(flat)
    return bool(torch.isfinite(least) & torch.isfinite(most))
