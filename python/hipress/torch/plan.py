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
from hipress.torch.momentum import Part, SharedMomentum
from hipress.torch.schedule import Value


class Plan(Layout):
    """A bucket's graphs, compiled to calls of the library on host memory.

    :param shared: momentum of the gradients: each partition gets it just before it is used, decoded
        from the payload of the result before, which costs less than to have kept that in memory
    """

    WAVE = 4 << 20  # 16 MiB of float32; benchmarks/torchtraining.py found smaller ones no faster

    def __init__(
        self, *args: object, shared: SharedMomentum | None = None, **keywords: object
    ) -> None:
        self.flags = 0
        self._written = ctypes.c_int64()
        self._shared = shared
        self._kept: dict[int, dict[int, Part]] = {}
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

    def _momentum(self, value: Value) -> tuple[slice, int]:
        """Where in the flat tensor a task's partition is, and where in its gradient it begins."""
        offset, count = self._span(value)
        partition = self._graphs[value.graph].partitions[self._task(value).partition]
        return slice(offset, offset + count), partition.offset

    def _add(self, value: Value) -> Run:
        gradient, (piece, begin) = self.gradients[value.graph], self._momentum(value)
        scratch = self._partial[: piece.stop - piece.start]

        def run(flat: torch.Tensor) -> None:
            before = self._shared.part(gradient.name, flat, gradient.count, begin, scratch)
            self._shared.add(flat[piece], before)
            if not _all_finite(flat[piece]):  # a sum of two finite ones
                self.flags |= OVERFLOW

        return run

    def _keep(self, value: Value) -> Run:
        (piece, begin), task = self._momentum(value), self._task(value)
        source = Value(value.graph, task.inputs[0])
        count = piece.stop - piece.start
        decode, (message, index) = self._decoder(source, count), self._slots[source]

        def as_result(payload: bytes, out: torch.Tensor) -> None:
            if out.dtype == self._dtype:
                decode(payload, len(payload), out)
            else:  # with the rounding that the result has
                result = torch.empty(count, dtype=self._dtype)
                decode(payload, len(payload), result)
                out.copy_(result)

        def run(flat: torch.Tensor) -> None:
            if math.isfinite(flat[piece].sum(dtype=torch.float32).item()):
                payload = ctypes.string_at(*message.payload(index))
                parts = self._kept.setdefault(value.graph, {})
                parts[begin] = Part(count, payload, as_result)

        return run

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
        decode, (message, index) = self._decoder(source, count), self._slots[source]

        def run(flat: torch.Tensor) -> None:
            decode(*message.payload(index), flat[offset : offset + count])

        return run

    def _decoder(
        self, source: Value, count: int
    ) -> Callable[[int | bytes, int, torch.Tensor], None]:
        """A function of a payload's address and bytes that writes its values to a tensor of the
        gradients' type."""
        kind = self._kinds[source]
        handle, flag = self._codecs.decoder(kind)._handle, FLAGS[self._dtype]
        # What is not compressed comes in the type it was encoded from, and a sum is float32.
        plain = self._codecs.identity(kind) and self._wire(kind) != flag

        def run(address: int | bytes, size: int, out: torch.Tensor) -> None:
            # Memory of its own: a kept payload may be decoded when another plan's thread runs this.
            to, dtype = (torch.empty(count), FLOAT32) if plain else (out, flag)
            check_call(
                lib.HipressCodecDecode(handle, address, size, count, dtype, to.data_ptr()),
                RuntimeError,
            )
            if plain:
                out.copy_(to)

        return run

    # Every step.

    def begin(self, flat: torch.Tensor) -> None:
        """Starts a step: empties the messages, and looks for NaN and Inf."""
        self.flags = 0 if _all_finite(flat) else OVERFLOW
        self._kept = {}
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
            return
        for graph, parts in self._kept.items():
            gradient = self.gradients[graph]
            if sum(part.count for part in parts.values()) == gradient.count:  # all are finite
                self._shared.keep_parts(gradient.name, parts)


def _all_finite(flat: torch.Tensor) -> bool:
    # A NaN or Inf makes the sum one, and adding is faster than comparing; only a sum that is too
    # large for float32 needs the closer look.
    if flat.dtype == torch.float32 and math.isfinite(flat.sum().item()):
        return True
    return all(math.isfinite(limit.item()) for limit in torch.aminmax(flat))
