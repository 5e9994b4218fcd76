"""Buckets that are synchronised on their GPU: kernels and messages on a stream, no thread.

The training thread queues everything that a bucket needs on one stream, in DDP's order of buckets,
which is the same on all ranks, as NCCL requires. That stream waits for the one that computes the
bucket, and whoever waits for the future for that stream; the host waits for neither. What the host
has to know, whether a payload was refused, is copied to page-locked memory behind the bucket's work
and polled later: at the next bucket, or when a step waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from hipress.compression.compiler.cuda import Algorithm, BuildError, CudaError
from hipress.torch.executors.cuda.kernels import CudaKernels
from hipress.torch.executors.cuda.layout import Exchange
from hipress.torch.executors.staging import Cuda
from hipress.torch.private import backend
from hipress.torch.settings import Settings


class Device:
    """A GPU on which buckets are synchronised.

    :param cuda: streams, events and copies
    :param kernels: of the codecs
    """

    def __init__(self, device: torch.device, cuda: Cuda, kernels: CudaKernels) -> None:
        self.device, self.cuda, self.kernels = device, cuda, kernels
        self.side = cuda.stream()
        self._reports: deque[tuple[Any, torch.Tensor, Callable[[torch.Tensor], str]]] = deque()
        self._free: list[torch.Tensor] = []
        self._scratch: torch.Tensor | None = None

    def algorithm(self, config: str) -> Algorithm:
        """The kernels of a codec's configuration."""
        return self.kernels.algorithm(config)

    def handle(self) -> int:
        """The stream that a kernel goes to which is launched now."""
        return self.kernels.handle(self.device)

    def scratch(self, count: int) -> torch.Tensor:
        """float32[count] for what is queued now, and overwritten by the next bucket's work."""
        if self._scratch is None or self._scratch.numel() < count:
            self._scratch = torch.empty(count, dtype=torch.float32, device=self.device)
        return self._scratch[:count]

    def enqueue(self, flat: torch.Tensor, work: Callable[[], None]) -> torch.futures.Future:
        """Queues ``work`` behind what the caller has queued so far.

        :param work: queues kernels that read and write ``flat``
        :returns: of ``flat``; whose waiter's stream waits for the work
        """
        future = self.cuda.future()
        self.side.wait_event(self.cuda.current_stream().record_event())
        self.cuda.run(self.side, work, [flat])
        with self.cuda.use(self.side):
            future.set_result(flat)
        return future

    def join(self) -> None:
        """Makes the caller's stream wait for all that is queued."""
        self.cuda.current_stream().wait_event(self.side.record_event())

    def report(self, numbers: torch.Tensor, problem: Callable[[torch.Tensor], str]) -> None:
        """Queues a report behind the work queued so far: a copy of ``numbers`` to host memory.

        :param problem: says of the copy what is wrong, or nothing
        """
        size = numbers.numel() * numbers.element_size()
        fitting = [memory for memory in self._free if memory.numel() == size]
        if fitting:
            self._free = [memory for memory in self._free if memory is not fitting[0]]
        memory = fitting[0] if fitting else self.cuda.host_memory(size)
        copy = memory.view(numbers.dtype).view(numbers.shape)
        self.cuda.copy(copy, numbers, self.side)
        self._reports.append((self.side.record_event(), memory, lambda: problem(copy)))

    def poll(self) -> str:
        """Judges the reports that have come meanwhile: what is wrong with the first bad one."""
        found = ""
        while self._reports and self._reports[0][0].query():
            _, memory, problem = self._reports.popleft()
            found = found or problem()
            self._free.append(memory)
        return found


def exchange(each: Exchange, group: dist.ProcessGroup) -> Callable[[], None]:
    """Makes the function that sends and receives a round's messages; NCCL only queues that."""
    ops = [
        dist.P2POp(call, message.tensor, group=group, group_peer=peer)
        for call, messages in ((dist.isend, each.send), (dist.irecv, each.receive))
        for peer, message in messages.items()
    ]

    def run() -> None:
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    return run if ops else lambda: None


def _cuda(device: torch.device) -> Device:
    return Device(device, Cuda(device), CudaKernels())


DEVICES: dict[str, Callable[[torch.device], Device]] = {"cuda": _cuda}
"""Constructors by type of device. Tests add a CPU that plays the GPU."""


def check_type(device: torch.device) -> None:
    """:raises ValueError: for a device that gradients cannot be encoded on"""
    if device.type not in DEVICES:
        raise ValueError(
            f"encode_on='device' is for gradients on a GPU, and these are on {device}: leave it "
            "'host'"
        )


def check(device: torch.device, group: dist.ProcessGroup, settings: Settings) -> None:
    """Refuses what cannot be synchronised on its device, and compiles the kernels of what can.

    :raises ValueError: saying what to do instead
    """
    check_type(device)
    name = backend(group, device).name()
    if device.type == "cuda" and name != "nccl":
        raise ValueError(
            f"encode_on='device' sends payloads from GPU to GPU, which needs a process group of "
            f"nccl, not of {name}: init_process_group('nccl'), or leave it 'host'"
        )
    try:
        if settings.type != "none":
            DEVICES[device.type](device).algorithm(settings.config)
    except (BuildError, CudaError, NotImplementedError) as error:
        raise ValueError(f"encode_on='device' is not possible here: {error}") from None
