"""GPU on which buckets are synchronized: kernels and messages on a stream, without threads.

The training thread queues all work of a bucket on one stream, in DDP's order of buckets. That order
is the same on all ranks, as NCCL requires. The stream waits for the stream that computes the
bucket. A stream that waits for the future waits for this stream. The host waits for neither.

The host must know whether a payload was refused. This result is copied to page-locked memory after
the bucket's work, and polled later: at the next bucket, or when a step waits.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from hipress.compression.compiler.cuda import BuildError, CudaError
from hipress.torch.executors.cuda.kernels import CudaKernels
from hipress.torch.executors.cuda.layout import Round
from hipress.torch.executors.staging import Cuda, Reports
from hipress.torch.private import backend
from hipress.torch.settings import Settings


class Device:
    """GPU on which buckets are synchronized: its streams and copies, and the codecs' kernels."""

    def __init__(self, device: torch.device, cuda: Cuda, kernels: CudaKernels) -> None:
        self.device, self.cuda, self.kernels = device, cuda, kernels
        self.side = cuda.stream()
        self._reports = Reports(cuda, self.side)
        self._scratch: torch.Tensor | None = None

    def handle(self) -> int:
        """Return the stream on which a kernel is launched now."""
        return self.kernels.handle(self.device)

    def scratch(self, count: int) -> torch.Tensor:
        """Return float32[count] for the work queued now. The next bucket's work overwrites it."""
        if self._scratch is None or self._scratch.numel() < count:
            with torch.inference_mode(False):  # later work may be in no such mode
                self._scratch = torch.empty(count, dtype=torch.float32, device=self.device)
        return self._scratch[:count]

    def enqueue(self, flat: torch.Tensor, work: Callable[[], None]) -> torch.futures.Future:
        """Queue ``work`` on ``flat`` after the caller's work so far, and return its future."""
        future = self.cuda.future()
        self.side.wait_event(self.cuda.current_stream().record_event())
        self.cuda.run(self.side, work, [flat])
        with self.cuda.use(self.side):
            future.set_result(flat)
        return future

    def join(self) -> None:
        """Make the caller's stream wait for all that is queued."""
        self.cuda.current_stream().wait_event(self.side.record_event())

    def report(self, numbers: torch.Tensor, problem: Callable[[torch.Tensor], str]) -> None:
        """Check a result of the work queued so far; see :class:`Reports`."""
        self._reports.add(numbers, problem)

    def poll(self) -> str:
        """Return the first error in the reports that have arrived, or ""."""
        return self._reports.poll()


def exchange(each: Round, group: dist.ProcessGroup) -> Callable[[], None]:
    """Return a function that sends and receives a round's messages. It only queues NCCL's work."""
    ops = [
        dist.P2POp(call, message.tensor, group=group, group_peer=peer)
        for call, messages in ((dist.isend, each.send), (dist.irecv, each.receive))
        for peer, message in messages.items()
    ]

    def run() -> None:
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    return run if ops else lambda: None


DEVICES: dict[str, Callable[[torch.device], Device]] = {
    "cuda": lambda device: Device(device, Cuda(device), CudaKernels())
}
"""Constructors by type of device. Tests add a CPU in place of the GPU."""


def check_type(device: torch.device) -> None:
    """Check that gradients can be encoded on a device."""
    if device.type not in DEVICES:
        raise ValueError(
            f"encode_on='device' is for gradients on a GPU, and these are on {device}: leave it "
            "'host'"
        )


def check(device: torch.device, group: dist.ProcessGroup, settings: Settings) -> None:
    """Refuse gradients that cannot be synchronized on their device, and compile the kernels."""
    check_type(device)
    name = backend(group, device).name()
    if device.type == "cuda" and name != "nccl":
        raise ValueError(
            f"encode_on='device' sends payloads from GPU to GPU, which needs a process group of "
            f"nccl, not of {name}: init_process_group('nccl'), or leave it 'host'"
        )
    if settings.type != "none":
        check_codec(device, settings.config)


def check_codec(device: torch.device, config: str) -> None:
    """Compile a codec's kernels, and refuse one that has none."""
    try:
        DEVICES[device.type](device).kernels.algorithm(config)
    except (BuildError, CudaError, NotImplementedError) as error:
        raise ValueError(f"encode_on='device' is not possible here: {error}") from None
