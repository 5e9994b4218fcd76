"""One rank's program that synchronizes one bucket on a GPU. A step only queues it.

Nothing here depends on the content of the device's memory. Payloads have memory for their maximum
length, and messages are always sent whole. A payload's size precedes it, where kernels write and
read it. A NaN or Inf, or a payload that a kernel refuses, sets a flag on the device, which travels
with the messages. Encoders then change nothing, and the results become NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from hipress.compression.compiler.cuda import Algorithm, DecodeCall
from hipress.topology.graph import GRADIENT, Graph, Op, Task, worker
from hipress.torch.executors.cuda.calls import Batch, Copy, Decoder, Encoder, Input
from hipress.torch.executors.cuda.device import Device, exchange
from hipress.torch.executors.cuda.layout import Layout, Message, Slot, aligned
from hipress.torch.executors.cuda.schedule import Value
from hipress.torch.gradient import Gradient, contiguous_slices
from hipress.torch.state.error_feedback import OWN, Codecs, ErrorFeedback

BATCHED_ELEMENTS = 64 * 1024
"""Maximum elements of a partition that one block of threads encodes or decodes.

Other blocks work on other partitions meanwhile. The number is a guess, not measured on a GPU.
"""

OVERFLOW = 1
"""Flag: a gradient of some rank has a NaN or an Inf, so the result is NaN everywhere."""

REFUSED = 2
"""Flag: a payload or a message was refused. It is greater than OVERFLOW, so it wins of both."""

Run = Callable[[torch.Tensor], None]
"""Function that runs a task on the flat tensor."""

Summand = Callable[[torch.Tensor, torch.Tensor], None]
"""Function that writes a summand, perhaps of the flat tensor, to its second argument."""


class CudaProgram:
    """A bucket's graphs, compiled to kernels.

    Args:
        group: process group of the messages
        codecs: those of ``error_feedback``, or ones that need less memory after a warm-up
    """

    def __init__(
        self,
        device: Device,
        group: dist.ProcessGroup,
        gradients: Sequence[Gradient],
        graphs: Sequence[Graph],
        rank: int,
        world_size: int,
        dtype: torch.dtype,
        error_feedback: ErrorFeedback,
        digest: int,
        codecs: Codecs,
    ) -> None:
        self._device, self._dtype = device, dtype
        self._error_feedback, self._codecs = error_feedback, codecs
        mine = [task for graph in graphs for task in graph.tasks.get(worker(rank), [])]
        readers = sum(len(t.inputs) for t in mine if t.op in (Op.MERGE, Op.DECODE))
        received = sum(t.op == Op.RECV for t in mine)
        # Rows: the flag; each decoder's status; the head of each message that comes.
        self._report = torch.zeros(
            (1 + readers + received, 2), dtype=torch.int64, device=device.device
        )
        self._flag_word = self._report[0, :1]
        self._rows = 1
        self._readers: dict[int, tuple[str, Algorithm]] = {}  # by row
        self._together: list[list[Encoder | Decoder]] = []  # what is launched at once
        self._statuses: list[slice] = []
        self._layout = layout = Layout(
            gradients, graphs, rank, world_size, dtype, codecs, digest, device.device
        )
        self.exchanges = layout.exchanges
        self.stages = [self._compile_all(each.compute) for each in layout.rounds]
        self._give_workspace()
        self._exchanges = [exchange(each, group) for each in self.exchanges]
        self._senders = [
            [dist.get_global_rank(group, peer) for peer in each.receive] for each in self.exchanges
        ]
        self._heads = [self._take_rows(len(each.receive)) for each in self.exchanges]
        self._spans = contiguous_slices(gradients)
        self._one = torch.ones((), dtype=dtype, device=device.device)
        self._nan = torch.full((), float("nan"), dtype=dtype, device=device.device)

    # Made once.

    def _compile_all(self, values: Sequence[Value]) -> list[Run]:
        """Compile the tasks of a round.

        Small encodes of gradients, which depend on nothing, are launched together. So are small
        decodes of results, on which nothing depends.
        """
        layout = self._layout
        first = self._rows
        encoders: dict[Algorithm, list[Encoder | Decoder]] = {}
        decoders: dict[Algorithm, list[Encoder | Decoder]] = {}
        others = []
        for value in values:
            task, kind = layout.task(value), layout.kinds.get(value)
            offset, count = layout.span(value)
            source = Value(value.graph, task.inputs[0]) if task.inputs else None
            small = count <= BATCHED_ELEMENTS
            if task.op == Op.ENCODE and task.of_gradient and small and not self._identity(kind):
                made = self._encoder(value, task)
                encoders.setdefault(self._algorithm(kind), []).append(made)
            elif task.op == Op.DECODE and small and not self._identity(layout.kinds.get(source)):
                made = self._reader(source, count, offset)
                decoders.setdefault(self._algorithm(self._layout.kinds[source]), []).append(made)
            else:
                others.append(self._compile(value))
        self._statuses.append(slice(first, self._rows))
        return [*self._batches(encoders), *others, *self._batches(decoders)]

    def _identity(self, kind: object | None) -> bool:
        return kind is None or self._codecs.identity(kind)

    def _batches(self, found: dict[Algorithm, list[Encoder | Decoder]]) -> list[Run]:
        self._together += found.values()
        return [
            Batch(self._device, algorithm, members).run if len(members) > 1 else members[0].run
            for algorithm, members in found.items()
        ]

    def _take_rows(self, count: int) -> slice:
        """Reserve the next rows of the report."""
        first, self._rows = self._rows, self._rows + count
        return slice(first, self._rows)

    def _give_workspace(self) -> None:
        """Assign the same memory to all launches, because the stream runs one after the other."""
        spans = [sum(aligned(each.space) for each in launch) for launch in self._together]
        device = self._device.device
        self._workspace = torch.empty(max(spans, default=0), dtype=torch.uint8, device=device)
        for launch in self._together:
            at = self._workspace.data_ptr()
            for each in launch:
                each.call.workspace = at
                at += aligned(each.space)

    def _compile(self, value: Value) -> Run:
        """Compile one task to a function of the flat tensor."""
        task = self._layout.task(value)
        if task.op == Op.ENCODE:
            return self._encode(value, task)
        if task.op == Op.MERGE:
            return self._merge(value, task)
        if task.op == Op.DECODE:
            source = Value(value.graph, task.inputs[0])
            made = self._copy if source in self._layout.dense else self._decode
            return made(value, source)
        return lambda flat: None  # UPDATE without an optimizer

    def _encode(self, value: Value, task: Task) -> Run:
        made = self._encoder(value, task)
        if isinstance(made, Encoder):
            self._together.append([made])
        return made.run

    def _encoder(self, value: Value, task: Task) -> Encoder | Copy:
        layout = self._layout
        offset, count = layout.span(value)
        graph, kind = layout.graphs[value.graph], layout.kinds[value]
        name, own = layout.gradients[value.graph].name, task.inputs == (GRADIENT,)
        state = self._error_feedback.state_of(name, graph, value.task, task, kind)
        dense = layout.partial if own else layout.dense[Value(value.graph, task.inputs[0])]
        given = Input(
            slice(offset, offset + count) if own else None,
            dense[:count],
            layout.factor(value, task),
            state,
            self._flag_word,
        )
        message, index = layout.slots[value]
        if self._codecs.identity(kind):
            payload = self._elements(value)
            message.sizes[index] = payload.numel() * payload.element_size()
            return Copy(given, payload)
        algorithm, payload = self._algorithm(kind), message.payload(index)
        call = algorithm.encode_call(
            0,
            count,
            [values.data_ptr() for values in state.states.values()],
            payload.data_ptr(),
            payload.numel(),
            message.size(index),
            0,
            0,
            state.stream,
            self._flag_word.data_ptr(),
        )
        return Encoder(self._device, algorithm, given, call, algorithm.encode_workspace(count))

    def _algorithm(self, kind: object) -> Algorithm:
        return self._device.algorithm(self._codecs.decoder(kind).config)

    def _elements(self, value: Value) -> torch.Tensor:
        """Return the memory of a payload that is unchanged elements."""
        message, index = self._layout.slots[value]
        _, count = self._layout.span(value)
        dtype = self._dtype if self._layout.kinds[value] == OWN else torch.float32
        return message.payload(index)[: count * dtype.itemsize].view(dtype)

    def _reader(self, source: Value, count: int, offset: int) -> Decoder:
        """Return the decoder of a payload, with a separate row for its status."""
        message, index = self._layout.slots[source]
        algorithm = self._algorithm(self._layout.kinds[source])
        payload, row = message.payload(index), self._take_rows(1).start
        self._readers[row] = (self._layout.gradients[source.graph].name, algorithm)
        call = DecodeCall(
            payload.data_ptr(),
            message.size(index),
            payload.numel(),
            count,
            0,
            self._report[row].data_ptr(),
            0,
        )
        space = algorithm.decode_workspace(count)
        return Decoder(self._device, algorithm, call, offset, space)

    def _sum(self, kind: object, sources: Sequence[Value], count: int) -> Summand:
        if self._codecs.identity(kind):
            summands = [self._elements(source) for source in sources]

            def add(flat: torch.Tensor, out: torch.Tensor) -> None:
                out.copy_(summands[0])
                for each in summands[1:]:
                    out.add_(each)

            return add
        made = [self._reader(source, count, 0) for source in sources]
        self._together.append(made)
        algorithm, calls, device = self._algorithm(kind), [each.call for each in made], self._device

        def run(flat: torch.Tensor, out: torch.Tensor) -> None:
            for each in made:
                each.prepare(out, 0)
            algorithm.decode_sum(calls, device.handle())

        return run

    def _decode(self, value: Value, source: Value) -> Run:
        offset, count = self._layout.span(value)
        if self._codecs.identity(self._layout.kinds[source]):
            elements = self._elements(source)
            return lambda flat: flat[offset : offset + count].copy_(elements)
        made = self._reader(source, count, offset)
        self._together.append([made])
        return made.run

    def _merge(self, value: Value, task: Task) -> Run:
        layout = self._layout
        offset, count = layout.span(value)
        total, partial = layout.dense[value][:count], layout.partial[:count]
        sources, fused = layout.summands(value, task)
        if fused:
            summands = [self._sum(layout.kinds[sources[0]], sources, count)]
        else:
            summands = [
                self._summand(i == GRADIENT, source, offset, count)
                for i, source in zip(task.inputs, sources)
            ]
        first, *others = summands

        def run(flat: torch.Tensor) -> None:
            first(flat, total)
            for other in others:
                other(flat, partial)
                total.add_(partial)

        return run

    def _summand(self, own: bool, source: Value, offset: int, count: int) -> Summand:
        if own:
            return lambda flat, out: out.copy_(flat[offset : offset + count])
        if source not in self._layout.kinds:
            dense = self._layout.dense[source][:count]
            return lambda flat, out: out.copy_(dense)
        return self._sum(self._layout.kinds[source], [source], count)

    def _copy(self, value: Value, source: Value) -> Run:
        """Return the end of a reduce-scatter, whose result is the sum or mean without encoding."""
        offset, count = self._layout.span(value)
        dense, factor = self._layout.dense[source][:count], self._layout.mean_factor

        def run(flat: torch.Tensor) -> None:
            torch.mul(dense, factor, out=dense)
            flat[offset : offset + count].copy_(dense)

        return run

    # Every step.

    def run(self, flat: torch.Tensor) -> None:
        """Queue the synchronization of a bucket on the current stream."""
        pieces, wide = [flat[span] for span in self._spans], flat
        if flat.dtype != torch.float32:
            wide = self._device.scratch(flat.numel())
            wide.copy_(flat)
        low, high = torch.aminmax(flat)
        finite = torch.isfinite(low) & torch.isfinite(high)
        self._flag_word.copy_(torch.where(finite, 0, OVERFLOW))
        for stage, each in enumerate(self.exchanges):
            for task in self.stages[stage]:
                task(wide)
            self._raise_refused(self._statuses[stage])
            for _, source, target in each.copies:
                self._copy_payload(source, target)
            if each.send:
                flags = [message.flags for message in each.send.values()]
                torch._foreach_copy_(flags, [self._flag_word] * len(flags))
            self._exchanges[stage]()
            if each.receive:
                self._take_over(self._heads[stage], list(each.receive.values()))
        if wide is not flat:
            torch._foreach_copy_(pieces, [wide[span] for span in self._spans])
        torch._foreach_mul_(pieces, torch.where(self._flag_word[0] == 0, self._one, self._nan))

    @staticmethod
    def _copy_payload(source: Slot, target: Slot) -> None:
        (message, i), (other, j) = source, target
        other.payload(j).copy_(message.payload(i))
        other.sizes[j : j + 1].copy_(message.sizes[i : i + 1])

    def _raise_refused(self, statuses: slice) -> None:
        if statuses.stop > statuses.start:
            # If a flag is set already, decoded payloads have no meaning.
            refused = self._report[statuses, 0].any() & (self._flag_word == 0)
            self._flag_word.add_(refused, alpha=REFUSED)

    def _take_over(self, rows: slice, messages: Sequence[Message]) -> None:
        """Merge the flags of received messages, and refuse a message about something else."""
        heads = self._report[rows]
        torch.cat([message.head for message in messages], out=heads.view(-1))
        flags = torch.where(heads[:, 0] == self._layout.digest, heads[:, 1], REFUSED)
        torch.maximum(self._flag_word, flags.amax(), out=self._flag_word)

    # After a step.

    @property
    def numbers(self) -> torch.Tensor:
        """Numbers on the device that :meth:`problem` checks."""
        return self._report

    def problem(self, numbers: torch.Tensor) -> str:
        """Check a copy of a step's numbers, and return a sentence about the error, or ""."""
        if int(numbers[0, 0]) < REFUSED:
            return ""
        for rows, senders in zip(self._heads, self._senders):
            for peer, (digest, flags) in zip(senders, numbers[rows].tolist()):
                if digest != self._layout.digest:
                    return (
                        f"rank {peer} sent a message about other gradients or settings; are model, "
                        "compression and versions the same on all ranks?"
                    )
                if flags >= REFUSED:
                    return f"rank {peer} refused a payload; see its own error"
        for row, (name, algorithm) in self._readers.items():
            status = numbers[row].numpy()
            if status[0] != 0:
                return f"a payload of {name} was refused: it {algorithm.sentence(status)}"
        return "a payload was refused"
