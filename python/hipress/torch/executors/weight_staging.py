"""Memory in which FSDP2's weights are gathered, and the way from and to FSDP2's tensors.

==========================  =========================  ============================
class                       tensors                    gathered in
==========================  =========================  ============================
:class:`HostWeights`        in host memory             the same memory
:class:`StagedWeights`      on a GPU                   host memory, with copies
:class:`DeviceWeights`      on a GPU                   the same memory
==========================  =========================  ============================

On a GPU, the work of a model's gathers is on separate streams. On ``down`` are the copies to host
memory, and the checks of weights that should not have changed. On ``up`` are the copies of gathered
weights. So a copy down does not wait for gathered weights, and a copy up does not wait for a module
that is being computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from hipress.torch.executors.staging import Cuda, HostStaging, Reports, Staged, wait_for


class HostWeights(HostStaging):
    """Gathers of weights in host memory, without copies."""

    is_host = True
    """Whether FSDP2's tensors are in host memory, so that one of them can be the replica itself."""
    waits = False
    """Whether weights are in host memory later than :meth:`fetch` returns."""

    def __init__(self) -> None:
        self._found = ""

    def empty(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return new memory on the weights' device."""
        return torch.empty(count, dtype=dtype)

    def buffer(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return new memory in which weights are gathered."""
        return torch.empty(count, dtype=dtype)

    def replica(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return zeros where weights are gathered. From host memory, :meth:`send` copies them."""
        return torch.zeros(count, dtype=dtype)

    def sums(self, row: torch.Tensor, spans: Sequence[tuple[int, int]]) -> torch.Tensor:
        """Return int64[len(spans)], a sum of the bits in each part of a row of bytes.

        Args:
            row: uint8[n] on the weights' device
            spans: first byte and end of each part
        """
        values = row.numpy()
        found = [_sum_of_bytes(values[begin:end]) for begin, end in spans]
        return torch.from_numpy(np.array(found, dtype=np.uint64).view(np.int64))

    def queue(self, work: Callable[[], object], tensors: Sequence[torch.Tensor]) -> None:
        """Queue ``work``, which uses ``tensors``, after the caller's work so far.

        The caller's stream waits for it, so the tensors may change or be read after that.
        """
        work()

    def report(self, numbers: torch.Tensor, problem: Callable[[torch.Tensor], str]) -> None:
        """Check numbers of queued work: ``problem`` finds an error or "", which poll() returns."""
        self._found = self._found or problem(numbers)

    def poll(self) -> str:
        """Return the first error that is known now, or ""."""
        return self._found

    def mark(self) -> Any:
        """Return an event of the caller's stream, after its work so far."""

    def send(self, target: torch.Tensor, source: torch.Tensor, after: Any) -> Any:
        """Queue a copy of a replica to FSDP2's tensor on the device, if it is not that tensor.

        Args:
            target: FSDP2's tensor
            source: the replica
            after: event after which ``target`` may be written

        Returns:
            the event until which the host must not change ``source``, or None
        """

    def join(self) -> None:
        """Make the caller's stream wait for all copies to the device."""

    def wait(self, event: Any, timeout: float) -> None:
        """Wait on the host for an event, if it is one.

        Raises:
            TimeoutError: after ``timeout`` seconds
        """


class DeviceWeights(HostWeights):
    """Gathers of weights in a GPU's memory. ``device`` has the GPU's functions."""

    is_host = False

    def __init__(self, device: Cuda) -> None:
        self.device, self.down = device, device.stream()
        self._reports = Reports(device, self.down)

    def empty(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """See :class:`HostWeights`."""
        return self.device.empty(count, dtype)

    buffer = empty

    def replica(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """See :class:`HostWeights`."""
        return self.device.empty(count, dtype).zero_()

    def sums(self, row: torch.Tensor, spans: Sequence[tuple[int, int]]) -> torch.Tensor:
        """See :class:`HostWeights`."""
        parts = []
        for begin, end in spans:
            alignment = math.gcd(row.numel(), begin, end)  # also of the row in a flat tensor
            narrow = torch.uint8 if alignment % 2 else torch.int16
            parts.append(row[begin:end].view(narrow if alignment % 4 else torch.int32))
        found = self.empty(len(parts), torch.int64)

        def add() -> None:
            for part, total in zip(parts, found):
                torch.sum(part, 0, dtype=torch.int64, out=total)

        self.queue(add, [row, found])
        return found

    def queue(self, work: Callable[[], object], tensors: Sequence[torch.Tensor]) -> None:
        """See :class:`HostWeights`."""
        self.down.wait_event(self.device.current_stream().record_event())
        self.device.run(self.down, work, tensors)
        self.device.current_stream().wait_event(self.down.record_event())

    def report(self, numbers: torch.Tensor, problem: Callable[[torch.Tensor], str]) -> None:
        """See :class:`HostWeights`."""
        self._reports.add(numbers, problem)

    def poll(self) -> str:
        """See :class:`HostWeights`."""
        return self._reports.poll()

    def send(self, target: torch.Tensor, source: torch.Tensor, after: Any) -> Any:
        """Queue a copy on the caller's stream, whose later work is what changes ``source``."""
        target.copy_(source)


class StagedWeights(Staged, DeviceWeights):
    """Gathers in host memory of weights on a GPU."""

    waits = True
    buffer = HostWeights.buffer

    def __init__(self, device: Cuda) -> None:
        super().__init__(device)
        self._reports = Reports(device, self.down)

    def replica(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return zeros in page-locked host memory."""
        return self.device.exact_host_memory(count, dtype)

    def mark(self) -> Any:
        """See :class:`HostWeights`."""
        return self.device.current_stream().record_event()

    def send(self, target: torch.Tensor, source: torch.Tensor, after: Any) -> Any:
        """See :class:`HostWeights`."""
        self.up.wait_event(after)
        self.device.copy(target, source, self.up)
        return self.up.record_event()

    def join(self) -> None:
        """See :class:`HostWeights`."""
        self.device.current_stream().wait_event(self.up.record_event())

    def wait(self, event: Any, timeout: float) -> None:
        """See :class:`HostWeights`."""
        if event is not None:
            wait_for(event, timeout)


def _sum_of_bytes(values: np.ndarray) -> int:
    """Return the sum of 8 bytes at a time, modulo 2^64, wherever they begin in memory."""
    whole = values.size // 8 * 8
    return (int(values[:whole].view(np.uint64).sum()) + int(values[whole:].sum())) % (1 << 64)


def weight_staging(device: torch.device) -> HostWeights:
    """Return the staging of gathers whose results are on ``device``."""
    return StagedWeights(Cuda(device)) if device.type == "cuda" else HostWeights()
