"""One rank's part in synchronising one bucket on a GPU, which a step only queues.

Nothing here depends on what is in the device's memory. Payloads have room for their greatest
length, and messages always go whole; a payload's size lies in front of it, where kernels write and
read it. A NaN or Inf, or a payload that a kernel refuses, raises a flag on the device, which
travels with the messages: encoders then change nothing, and the results become NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from hipress.casync.graph import GRADIENT, Graph, Op, Task, worker
from hipress.compll.cuda import Algorithm, DecodeCall, EncodeCall
from hipress.torch.device import Device, exchange
from hipress.torch.layout import Gradient, Layout, Run, Slot, Term
from hipress.torch.message import OVERFLOW
from hipress.torch.places import OWN, DevicePlace, Places
from hipress.torch.schedule import Value

REFUSED = 2
"""Flag: a payload or a message was refused. Greater than OVERFLOW, so that of two the worse holds.
"""

_ALIGN = 64
_HEAD = 2  # int64: digest, flags


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


class DeviceMessage:
    """Payloads of at most ``capacities`` bytes, in device memory.

    Layout: int64 digest and flags; int64 size of each payload; the payloads, each at a multiple of
    64 bytes that follows from the capacities, so that both ends know it.

    :param digest: what both ends must agree on
    """

    def __init__(self, capacities: Sequence[int], digest: int, device: torch.device) -> None:
        words = _HEAD + len(capacities)
        self.offsets, end = [], _aligned(8 * words)
        for capacity in capacities:
            self.offsets.append(end)
            end += _aligned(capacity)
        self.tensor = torch.zeros(end, dtype=torch.uint8, device=device)
        numbers = self.tensor[: 8 * words].view(torch.int64)
        self.head, self.flags, self.sizes = numbers[:_HEAD], numbers[1:_HEAD], numbers[_HEAD:]
        self.head[0] = digest
        self.capacities = list(capacities)

    def payload(self, index: int) -> torch.Tensor:
        """All the room of a payload."""
        return self.tensor[self.offsets[index] :][: self.capacities[index]]

    def size(self, index: int) -> int:
        """The address of a payload's size."""
        return self.sizes.data_ptr() + 8 * index


class DevicePlan(Layout):
    """A bucket's graphs, compiled to kernels.

    :param group: over which the messages go
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
        places: Places,
        digest: int,
    ) -> None:
        self._device = device
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
        self._together: list[list[tuple[EncodeCall | DecodeCall, int]]] = []
        self._statuses: list[slice] = []
        super().__init__(gradients, graphs, rank, world_size, dtype, places, digest)
        self._give_workspace()
        self._exchanges = [exchange(each, group) for each in self.exchanges]
        self._senders = [list(each.receive) for each in self.exchanges]
        self._heads = [self._take_rows(len(each.receive)) for each in self.exchanges]
        self._one = torch.ones((), dtype=dtype, device=device.device)
        self._nan = torch.full((), float("nan"), dtype=dtype, device=device.device)

    # Made once.

    def _message(self, values: Sequence[Value]) -> DeviceMessage:
        capacities = [self._capacity(value) for value in values]
        return DeviceMessage(capacities, self._digest, self._device.device)

    def _empty(self, count: int) -> torch.Tensor:
        return torch.empty(count, device=self._device.device)

    def _compile_all(self, values: Sequence[Value]) -> list[Run]:
        first = self._rows
        made = [self._compile(value) for value in values]
        self._statuses.append(slice(first, self._rows))
        return made

    def _take_rows(self, count: int) -> slice:
        """The next rows of the report."""
        first, self._rows = self._rows, self._rows + count
        return slice(first, self._rows)

    def _give_workspace(self) -> None:
        """Kernels' memory, the same for all: the stream does one thing after the other."""
        spans = [sum(_aligned(size) for _, size in calls) for calls in self._together]
        device = self._device.device
        self._workspace = torch.empty(max(spans, default=0), dtype=torch.uint8, device=device)
        for calls in self._together:
            at = self._workspace.data_ptr()
            for call, size in calls:
                call.workspace = at
                at += _aligned(size)

    def _encode(self, value: Value, task: Task) -> Run:
        offset, count = self._span(value)
        graph, kind = self._graphs[value.graph], self._kinds[value]
        name, own = self.gradients[value.graph].name, task.inputs == (GRADIENT,)
        place = self._places.get(name, graph, value.task, task, kind)
        scale = self._mean(value, task)
        dense = self._partial if own else self._dense[Value(value.graph, task.inputs[0])]
        dense = dense[:count]
        begin, end = offset, offset + count
        write, direct = self._writer(value, place, count, dense)
        direct = own and direct

        def run(flat: torch.Tensor) -> None:
            source = flat[begin:end] if direct and place.carried is None else dense
            if own and source is dense:
                dense.copy_(flat[begin:end])
            if scale != 1.0:
                dense.mul_(scale)
            if place.carried is not None:
                dense.add_(place.carried)
                place.carried.mul_(self._flag_word)  # said now, unless it is not encoded
            write(source)
            place.step += 1

        return run

    def _writer(
        self, value: Value, place: DevicePlace, count: int, dense: torch.Tensor
    ) -> tuple[Callable[[torch.Tensor], None], bool]:
        """What makes a payload, and whether it takes this bucket's type of gradients as it is."""
        (message, index), kind = self._slots[value], self._kinds[value]
        if self._codecs.identity(kind):
            payload = self._elements(value)
            message.sizes[index] = payload.numel() * payload.element_size()
            return payload.copy_, True
        algorithm, device = self._device.algorithm(place.codec.config), self._device
        payload = message.payload(index)
        call = algorithm.encode_call(
            dense.data_ptr(), count, [s.data_ptr() for s in place.states.values()],
            payload.data_ptr(), payload.numel(), message.size(index), 0, 0, place.stream,
            self._flag_word.data_ptr(),
        )  # fmt: skip
        self._together.append([(call, algorithm.encode_workspace(count))])

        def run(source: torch.Tensor) -> None:
            call.gradient, call.step = source.data_ptr(), place.step
            algorithm.encode(call, device.handle())

        return run, self._dtype == torch.float32

    def _elements(self, value: Value) -> torch.Tensor:
        """A payload that is elements as they are."""
        message, index = self._slots[value]
        _, count = self._span(value)
        dtype = self._dtype if self._kinds[value] == OWN else torch.float32
        return message.payload(index)[: count * dtype.itemsize].view(dtype)

    def _call(self, source: Value, out: torch.Tensor, count: int) -> tuple[Algorithm, DecodeCall]:
        """A decoder's call, whose status has a row of its own."""
        (message, index), kind = self._slots[source], self._kinds[source]
        algorithm = self._device.algorithm(self._codecs.decoder(kind).config)
        payload, row = message.payload(index), self._take_rows(1).start
        self._readers[row] = (self.gradients[source.graph].name, algorithm)
        call = DecodeCall(
            payload.data_ptr(), message.size(index), payload.numel(), count, out.data_ptr(),
            self._report[row].data_ptr(), 0,
        )  # fmt: skip
        return algorithm, call

    def _sum(self, kind: object, sources: Sequence[Value], count: int) -> Term:
        if self._codecs.identity(kind):
            terms = [self._elements(source) for source in sources]

            def add(flat: torch.Tensor, out: torch.Tensor) -> None:
                out.copy_(terms[0])
                for term in terms[1:]:
                    out.add_(term)

            return add
        made = [self._call(source, self._partial, count) for source in sources]
        algorithm, calls = made[0][0], [call for _, call in made]
        space, device = algorithm.decode_workspace(count), self._device
        self._together.append([(call, space) for call in calls])

        def run(flat: torch.Tensor, out: torch.Tensor) -> None:
            for call in calls:
                call.out = out.data_ptr()
            algorithm.decode_sum(calls, device.handle())

        return run

    def _decode(self, value: Value, source: Value) -> Run:
        offset, count = self._span(value)
        begin, end = offset, offset + count
        if self._codecs.identity(self._kinds[source]):
            elements = self._elements(source)
            return lambda flat: flat[begin:end].copy_(elements)
        wide, device = self._partial[:count], self._device
        algorithm, call = self._call(source, wide, count)
        self._together.append([(call, algorithm.decode_workspace(count))])
        direct = self._dtype == torch.float32

        def run(flat: torch.Tensor) -> None:
            out = flat[begin:end]
            call.out = out.data_ptr() if direct else wide.data_ptr()
            algorithm.decode(call, False, device.handle())
            if not direct:
                out.copy_(wide)

        return run

    # Every step.

    def run(self, flat: torch.Tensor) -> None:
        """Queues the synchronisation of a bucket on the current stream."""
        low, high = torch.aminmax(flat)
        finite = torch.isfinite(low) & torch.isfinite(high)
        self._flag_word.copy_(torch.where(finite, 0, OVERFLOW))
        for stage, each in enumerate(self.exchanges):
            for task in self.stages[stage]:
                task(flat)
            self._raise_refused(self._statuses[stage])
            for source, target in each.copies:
                self._copy_payload(source, target)
            if each.send:
                flags = [message.flags for message in each.send.values()]
                torch._foreach_copy_(flags, [self._flag_word] * len(flags))
            self._exchanges[stage]()
            if each.receive:
                self._take_over(self._heads[stage], list(each.receive.values()))
        self._poison(flat)

    @staticmethod
    def _copy_payload(source: Slot, target: Slot) -> None:
        (message, i), (other, j) = source, target
        other.payload(j).copy_(message.payload(i))
        other.sizes[j : j + 1].copy_(message.sizes[i : i + 1])

    def _raise_refused(self, statuses: slice) -> None:
        if statuses.stop > statuses.start:
            # With a flag already, what was decoded was never meant to be.
            refused = self._report[statuses, 0].any() & (self._flag_word == 0)
            self._flag_word.add_(refused, alpha=REFUSED)

    def _take_over(self, rows: slice, messages: Sequence[DeviceMessage]) -> None:
        """The flags of messages that have come; one about something else is refused."""
        heads = self._report[rows]
        torch.cat([message.head for message in messages], out=heads.view(-1))
        flags = torch.where(heads[:, 0] == self._digest, heads[:, 1], REFUSED)
        torch.maximum(self._flag_word, flags.amax(), out=self._flag_word)

    def _poison(self, flat: torch.Tensor) -> None:
        spans: list[list[int]] = []
        for gradient in self.gradients:
            end = gradient.offset + gradient.count
            if spans and spans[-1][1] == gradient.offset:
                spans[-1][1] = end
            else:
                spans.append([gradient.offset, end])
        pieces = [flat[begin:end] for begin, end in spans]
        factor = torch.where(self._flag_word[0] == 0, self._one, self._nan)
        torch._foreach_mul_(pieces, factor)

    # After a step.

    @property
    def numbers(self) -> torch.Tensor:
        """On the device: what :meth:`problem` judges."""
        return self._report

    def problem(self, numbers: torch.Tensor) -> str:
        """What was wrong in a step, of a copy of its numbers; empty if nothing was."""
        if int(numbers[0, 0]) < REFUSED:
            return ""
        for rows, senders in zip(self._heads, self._senders):
            for peer, (digest, flags) in zip(senders, numbers[rows].tolist()):
                if digest != self._digest:
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
