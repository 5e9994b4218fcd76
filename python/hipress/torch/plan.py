"""One rank's part in synchronising one bucket of gradients in host memory, made once and run every
step.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence

import torch

from hipress._lib import FLOAT32, check_call, lib
from hipress.casync.graph import GRADIENT, Op, Task
from hipress.compression import Compressor
from hipress.torch.layout import FLAGS, Layout, Run, Term
from hipress.torch.message import OVERFLOW, Message
from hipress.torch.momentum import SharedMomentum
from hipress.torch.schedule import Value


class Plan(Layout):
    """A bucket's graphs, compiled to calls of the library on host memory.

    :param shared: momentum of the gradients, which each partition gets just before it is used, and
        each result keeps just after it was decoded, while it is in the processor's cache
    """

    WAVE = 4 << 20  # 16 MiB of float32; benchmarks/torchtraining.py found smaller ones no faster

    def __init__(
        self, *args: object, shared: SharedMomentum | None = None, **keywords: object
    ) -> None:
        self.flags = 0
        self._written = ctypes.c_int64()
        self._shared = shared
        self._compressors: dict[Value, Compressor] = {}
        self._messages: list[Message] = []
        super().__init__(*args, **keywords)
        received = {id(m) for each in self.exchanges for m in each.receive.values()}
        self._written_here = [m for m in self._messages if id(m) not in received]

    # Made once.

    def _message(self, values: Sequence[Value]) -> Message:
        message = Message([self._capacity(value) for value in values], self._digest)
        self._messages.append(message)
        return message

    def _empty(self, count: int) -> torch.Tensor:
        return torch.empty(count)

    def _compile_all(self, values: Sequence[Value]) -> list[tuple[Run, Compressor | None]]:
        """The tasks of a round, each with the compressor that is to be told if it is left out."""
        runs: list[tuple[Run, Compressor | None]] = []
        for value in values:
            task = self._task(value)
            if self._shared is not None and GRADIENT in task.inputs:
                runs.append((self._add(value), None))
            runs.append((self._compile(value), self._compressors.get(value)))
            if self._shared is not None and task.op == Op.DECODE:
                runs.append((self._keep(value), None))
        return runs

    def _momentum(self, value: Value) -> tuple[slice, Callable[[torch.Tensor], torch.Tensor]]:
        """Where in the flat tensor a task's partition is, and a function of the flat tensor that
        finds its momentum."""
        gradient, (offset, count) = self.gradients[value.graph], self._span(value)
        begin = offset - gradient.offset  # it lies in one piece: chunks have no such momentum

        def find(flat: torch.Tensor) -> torch.Tensor:
            return self._shared.of(gradient.name, flat, gradient.count)[begin : begin + count]

        return slice(offset, offset + count), find

    def _add(self, value: Value) -> Run:
        piece, find = self._momentum(value)

        def run(flat: torch.Tensor) -> None:
            self._shared.add(flat[piece], find(flat))
            if not _all_finite(flat[piece]):
                self.flags |= OVERFLOW

        return run

    def _keep(self, value: Value) -> Run:
        piece, find = self._momentum(value)
        return lambda flat: self._shared.keep(flat[piece], find(flat))

    def _encode(self, value: Value, task: Task) -> Run:
        offset, count = self._span(value)
        name = self.gradients[value.graph].name
        graph, kind = self._graphs[value.graph], self._kinds[value]
        compressor = self._places.get(name, graph, value.task, task, kind)
        self._compressors[value] = compressor
        handle, encode = compressor._handle, lib.HipressCodecEncode
        message, index = self._slots[value]
        own, flag = task.inputs == (GRADIENT,), self._wire(kind)
        direct = own and flag == FLAGS[self._dtype]
        scale = self._mean(value, task)
        begin, written = offset * self._dtype.itemsize, self._written
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

    def _sum(self, kind: object, sources: Sequence[Value], count: int) -> Term:
        handle, wire = self._codecs.decoder(kind)._handle, self._wire(kind)
        slots = [self._slots[source] for source in sources]
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

    def _decode(self, value: Value, source: Value) -> Run:
        offset, count = self._span(value)
        message, index = self._slots[source]
        kind = self._kinds[source]
        handle, flag = self._codecs.decoder(kind)._handle, FLAGS[self._dtype]
        begin = offset * self._dtype.itemsize
        # What is not compressed comes in the type it was encoded from, and a sum is float32.
        plain = self._codecs.identity(kind) and self._wire(kind) != FLAGS[self._dtype]
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

    # Every step.

    def begin(self, flat: torch.Tensor) -> None:
        """Starts a step: empties the messages, and looks for NaN and Inf."""
        self.flags = 0 if _all_finite(flat) else OVERFLOW
        for message in self._written_here:
            message.begin(self.flags)

    def compute(self, stage: int, flat: torch.Tensor) -> None:
        """Runs a round's tasks, and completes the messages that follow it."""
        for task, compressor in self.stages[stage]:
            if not self.flags:
                task(flat)
            elif compressor is not None:
                compressor.skip()
        if not self.flags:
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
    if flat.dtype == torch.float32 and math.isfinite(flat.sum().item()):
        return True
    return all(math.isfinite(limit.item()) for limit in torch.aminmax(flat))
