"""One rank's program that synchronizes one bucket on a GPU. A step only queues it.

Nothing here depends on the content of the device's memory. Payloads have memory for their maximum
length, and messages are always sent whole. A payload's size precedes it, where kernels write and
read it. A NaN or Inf, or a payload that a kernel refuses, sets a flag on the device, which travels
with the messages. Encoders then change nothing, and the results become NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from hipress.compression.compiler.cuda import Algorithm, DecodeCall, EncodeCall
from hipress.topology.graph import GRADIENT, Graph, Op, Task, worker
from hipress.torch.executors.cuda.device import Device, exchange
from hipress.torch.executors.cuda.layout import Layout, Message, Value, aligned
from hipress.torch.gradient import Gradient, contiguous_slices
from hipress.torch.state.error_feedback import OWN, Codecs, DeviceState, ErrorFeedback

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


@dataclass
class Input:
    """Input of an ENCODE task."""

    span: slice | None
    """Elements of the flat tensor, for a rank's own gradient. None: the content of ``dense``."""
    dense: torch.Tensor
    """float32 memory of the partition's size, to compute in."""
    factor: float
    state: DeviceState
    flag: torch.Tensor
    """int64[1] on the device, not 0 if nothing is encoded in the end."""

    @property
    def direct(self) -> bool:
        """Whether the input is a part of the flat tensor, unchanged."""
        return self.span is not None and self.state.carried is None

    def tensor(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the input, and queue what computes it."""
        if self.direct:
            return flat[self.span]
        if self.span is not None:
            self.dense.copy_(flat[self.span])
        if self.factor != 1.0:
            self.dense.mul_(self.factor)
        carried = self.state.carried
        if carried is not None:
            self.dense.add_(carried)
            carried.mul_(self.flag != 0)  # it has been encoded unless the flag is set
        return self.dense


@dataclass
class Encode:
    """Kernel call of an ENCODE, which lacks the input's address and the step."""

    call: EncodeCall
    space: int
    """Bytes of the call's workspace."""
    given: Input

    @property
    def direct(self) -> bool:
        """Whether the call is the same in each step, except for the step's number."""
        return self.given.direct

    @property
    def step(self) -> int:
        """Number of encodes so far."""
        return self.given.state.step

    def prepare(self, flat: torch.Tensor, step: int) -> None:
        """Complete the call."""
        self.call.gradient, self.call.step = self.given.tensor(flat).data_ptr(), step

    def done(self) -> None:
        """Count the encode."""
        self.given.state.step += 1


@dataclass
class Decode:
    """Kernel call of a DECODE into a tensor, from element ``offset`` on."""

    call: DecodeCall
    space: int
    offset: int
    direct = True
    step = 0

    def prepare(self, out: torch.Tensor, step: int = 0) -> None:
        """Complete the call."""
        self.call.out = out.data_ptr() + 4 * self.offset

    def done(self) -> None:
        """Do nothing, because decodes are not counted."""


class Launch:
    """Encodes or decodes of one algorithm, in one launch with a block of threads for each.

    The list of calls is copied to the device when addresses change, because DDP makes other
    buckets. A single call, or one whose input must be computed, is launched alone.
    """

    def __init__(
        self, device: Device, algorithm: Algorithm, members: Sequence[Encode | Decode]
    ) -> None:
        self._device, self._algorithm, self._members = device, algorithm, members
        self._encodes = isinstance(members[0], Encode)
        self._key: tuple | None = None
        self._calls: torch.Tensor | None = None

    def run(self, flat: torch.Tensor) -> None:
        """Queue the kernels."""
        members, algorithm, handle = self._members, self._algorithm, self._device.handle()
        if len(members) == 1 or not all(member.direct for member in members):
            for member in members:
                member.prepare(flat, member.step)
                if self._encodes:
                    algorithm.encode(member.call, handle)
                else:
                    algorithm.decode(member.call, False, handle)
                member.done()
            return
        first = members[0].step
        key = (flat.data_ptr(), *(member.step - first for member in members))
        if key != self._key:
            for member in members:
                member.prepare(flat, member.step - first)
            calls = [member.call for member in members]
            self._calls = self._device.cuda.upload(bytes((type(calls[0]) * len(calls))(*calls)))
            self._key = key
        calls = self._calls.data_ptr()
        if self._encodes:
            algorithm.encode_batch(calls, len(members), first, handle)
        else:
            algorithm.decode_batch(calls, len(members), False, handle)
        for member in members:
            member.done()


class CudaProgram:
    """A bucket's graphs, compiled to kernels, whose messages travel in ``group``.

    ``codecs`` are those of ``error_feedback``, or ones that need less memory after a warm-up. If
    ``checked``, a NaN or Inf anywhere makes all results NaN. Otherwise it is treated as a number.
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
        checked: bool = True,
    ) -> None:
        self._device, self._dtype, self._checked = device, dtype, checked
        self._error_feedback, self._codecs = error_feedback, codecs
        mine = [task for graph in graphs for task in graph.tasks.get(worker(rank), [])]
        readers = sum(len(t.inputs) for t in mine if t.op in (Op.MERGE, Op.DECODE))
        received = sum(t.op == Op.RECV for t in mine)
        self.numbers = torch.zeros(
            (1 + readers + received, 2), dtype=torch.int64, device=device.device
        )
        """Numbers that :meth:`problem` checks: the flag; each decoder's status; received heads."""
        self._flag_word = self.numbers[0, :1]
        self._rows = 1
        self._readers: dict[int, tuple[str, Algorithm]] = {}  # by row
        self._calls: list[Sequence[Encode | Decode]] = []  # what is launched at once
        self._layout = layout = Layout(
            gradients, graphs, rank, world_size, dtype, codecs, digest, device.device
        )
        self.exchanges = layout.rounds
        self._statuses: list[slice] = []
        self.stages = [self._compile_all(each.compute) for each in layout.rounds]
        self._give_workspace()
        self._exchanges = [exchange(each, group) for each in layout.rounds]
        self._senders = [
            [dist.get_global_rank(group, peer) for peer in each.receive] for each in layout.rounds
        ]
        self._heads = [self._take_rows(len(each.receive)) for each in layout.rounds]
        self._spans = contiguous_slices(gradients)
        self._one = torch.ones((), dtype=dtype, device=device.device)
        self._nan = torch.full((), float("nan"), dtype=dtype, device=device.device)

    # Made once.

    def _compile_all(self, values: Sequence[Value]) -> list[Run]:
        """Compile the tasks of a round.

        Small encodes of gradients, which depend on nothing, are launched together. So are small
        decodes of results, on which nothing depends.
        """
        first = self._rows
        encodes: dict[Algorithm, list[Encode]] = {}
        decodes: dict[Algorithm, list[Decode]] = {}
        others = []
        for value in values:
            task = self._layout.task(value)
            offset, count = self._layout.span(value)
            source = Value(value.graph, task.inputs[0]) if task.inputs else None
            small = count <= BATCHED_ELEMENTS
            if task.op == Op.ENCODE:
                if small and task.of_gradient and not self._identity(value):
                    encodes.setdefault(self._algorithm(value), []).append(self._encode(value, task))
                else:
                    others.append(self._compile_encode(value, task))
            elif task.op == Op.MERGE:
                others.append(self._merge(value, task))
            elif task.op == Op.DECODE:
                if source in self._layout.dense:
                    others.append(self._copy(value, source))
                elif self._identity(source):
                    span, elements = slice(offset, offset + count), self._elements(source)
                    others.append(lambda flat, s=span, e=elements: flat[s].copy_(e))
                elif small:
                    made = self._reader(source, count, offset)
                    decodes.setdefault(self._algorithm(source), []).append(made)
                else:
                    made = self._reader(source, count, offset)
                    others.append(self._launch(self._algorithm(source), [made]))
        self._statuses.append(slice(first, self._rows))
        return [
            *(self._launch(algorithm, calls) for algorithm, calls in encodes.items()),
            *others,
            *(self._launch(algorithm, calls) for algorithm, calls in decodes.items()),
        ]

    def _launch(self, algorithm: Algorithm, calls: Sequence[Encode | Decode]) -> Run:
        self._calls.append(calls)
        return Launch(self._device, algorithm, calls).run

    def _identity(self, value: Value) -> bool:
        return self._codecs.identity(self._layout.kinds[value])

    def _algorithm(self, value: Value) -> Algorithm:
        codec = self._codecs.decoder(self._layout.kinds[value])
        return self._device.kernels.algorithm(codec.config)

    def _take_rows(self, count: int) -> slice:
        """Reserve the next rows of ``numbers``."""
        first, self._rows = self._rows, self._rows + count
        return slice(first, self._rows)

    def _give_workspace(self) -> None:
        """Assign the same memory to all launches, because the stream runs one after the other."""
        spans = [sum(aligned(each.space) for each in launch) for launch in self._calls]
        device = self._device.device
        self._workspace = torch.empty(max(spans, default=0), dtype=torch.uint8, device=device)
        for launch in self._calls:
            address = self._workspace.data_ptr()
            for each in launch:
                each.call.workspace = address
                address += aligned(each.space)

    def _input(self, value: Value, task: Task) -> Input:
        layout = self._layout
        offset, count = layout.span(value)
        graph, kind = layout.graphs[value.graph], layout.kinds[value]
        name, own = layout.gradients[value.graph].name, task.of_gradient
        state = self._error_feedback.state_of(name, graph, value.task, task, kind)
        dense = layout.partial if own else layout.dense[Value(value.graph, task.inputs[0])]
        span = slice(offset, offset + count) if own else None
        return Input(span, dense[:count], layout.factor(value, task), state, self._flag_word)

    def _encode(self, value: Value, task: Task) -> Encode:
        given, algorithm = self._input(value, task), self._algorithm(value)
        message, index = self._layout.slots[value]
        payload, count = message.payload(index), len(given.dense)
        call = algorithm.encode_call(
            0,
            count,
            [values.data_ptr() for values in given.state.states.values()],
            payload.data_ptr(),
            payload.numel(),
            message.size(index),
            0,
            0,
            given.state.stream,
            self._flag_word.data_ptr(),
        )
        return Encode(call, algorithm.encode_workspace(count), given)

    def _compile_encode(self, value: Value, task: Task) -> Run:
        if not self._identity(value):
            return self._launch(self._algorithm(value), [self._encode(value, task)])
        given, payload = self._input(value, task), self._elements(value)
        message, index = self._layout.slots[value]
        message.sizes[index] = payload.numel() * payload.element_size()

        def run(flat: torch.Tensor) -> None:
            payload.copy_(given.tensor(flat))
            given.state.step += 1

        return run

    def _elements(self, value: Value) -> torch.Tensor:
        """Return the memory of a payload that is unchanged elements."""
        message, index = self._layout.slots[value]
        _, count = self._layout.span(value)
        dtype = self._dtype if self._layout.kinds[value] == OWN else torch.float32
        return message.payload(index)[: count * dtype.itemsize].view(dtype)

    def _reader(self, source: Value, count: int, offset: int) -> Decode:
        """Return the decode of a payload, with a separate row for its status."""
        message, index = self._layout.slots[source]
        algorithm, payload = self._algorithm(source), message.payload(index)
        row = self._take_rows(1).start
        self._readers[row] = (self._layout.gradients[source.graph].name, algorithm)
        call = DecodeCall(
            payload.data_ptr(),
            message.size(index),
            payload.numel(),
            count,
            0,
            self.numbers[row].data_ptr(),
            0,
        )
        return Decode(call, algorithm.decode_workspace(count), offset)

    def _sum(self, sources: Sequence[Value], count: int) -> Summand:
        """Return the sum of payloads of one form."""
        if self._identity(sources[0]):
            summands = [self._elements(source) for source in sources]

            def add(flat: torch.Tensor, out: torch.Tensor) -> None:
                out.copy_(summands[0])
                for each in summands[1:]:
                    out.add_(each)

            return add
        made = [self._reader(source, count, 0) for source in sources]
        self._calls.append(made)
        algorithm, calls = self._algorithm(sources[0]), [each.call for each in made]

        def run(flat: torch.Tensor, out: torch.Tensor) -> None:
            for each in made:
                each.prepare(out)
            algorithm.decode_sum(calls, self._device.handle())

        return run

    def _merge(self, value: Value, task: Task) -> Run:
        layout = self._layout
        offset, count = layout.span(value)
        total, partial = layout.dense[value][:count], layout.partial[:count]
        sources, fused = layout.summands(value, task)
        if fused:
            first, *others = [self._sum(sources, count)]
        else:
            first, *others = (self._summand(source, offset, count) for source in sources)

        def run(flat: torch.Tensor) -> None:
            first(flat, total)
            for other in others:
                other(flat, partial)
                total.add_(partial)

        return run

    def _summand(self, source: Value, offset: int, count: int) -> Summand:
        if source.task == GRADIENT:
            return lambda flat, out: out.copy_(flat[offset : offset + count])
        if source not in self._layout.kinds:
            dense = self._layout.dense[source][:count]
            return lambda flat, out: out.copy_(dense)
        return self._sum([source], count)

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
        pieces, values = [flat[span] for span in self._spans], flat
        if flat.dtype != torch.float32:
            values = self._device.scratch(flat.numel())
            values.copy_(flat)
        if self._checked:
            low, high = torch.aminmax(flat)
            finite = torch.isfinite(low) & torch.isfinite(high)
            self._flag_word.copy_(torch.where(finite, 0, OVERFLOW))
        else:
            self._flag_word.zero_()
        for stage, each in enumerate(self.exchanges):
            for task in self.stages[stage]:
                task(values)
            self._raise_refused(self._statuses[stage])
            for (message, i), (other, j) in each.copies:
                other.payload(j).copy_(message.payload(i))
                other.sizes[j : j + 1].copy_(message.sizes[i : i + 1])
            if each.send:
                flags = [message.flags for message in each.send.values()]
                torch._foreach_copy_(flags, [self._flag_word] * len(flags))
            self._exchanges[stage]()
            if each.receive:
                self._take_over(self._heads[stage], list(each.receive.values()))
        if values is not flat:
            torch._foreach_copy_(pieces, [values[span] for span in self._spans])
        torch._foreach_mul_(pieces, torch.where(self._flag_word[0] == 0, self._one, self._nan))

    def _raise_refused(self, statuses: slice) -> None:
        if statuses.stop > statuses.start:
            # If a flag is set already, decoded payloads have no meaning.
            refused = self.numbers[statuses, 0].any() & (self._flag_word == 0)
            self._flag_word.add_(refused, alpha=REFUSED)

    def _take_over(self, rows: slice, messages: Sequence[Message]) -> None:
        """Merge the flags of received messages, and refuse a message about something else."""
        heads = self.numbers[rows]
        torch.cat([message.head for message in messages], out=heads.view(-1))
        flags = torch.where(heads[:, 0] == self._layout.digest, heads[:, 1], REFUSED)
        torch.maximum(self._flag_word, flags.amax(), out=self._flag_word)

    # After a step.

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
