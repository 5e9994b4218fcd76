"""Staging of gradients in a GPU's memory: a bucket is copied to host memory and back.

It is synchronized in host memory. The training thread only queues work. The copy to page-locked
memory, on a separate stream, waits on the device for the computation of the bucket. One thread
waits for such copies. It then starts the bucket's step, as for any tensor in host memory. The
library's thread that ends the step queues the copy back on a second stream. So this copy does not
wait for a bucket that is still being computed. A stream that waits for the future waits for that
copy only, so no stream waits for the whole device.

At 1 to 10 Gbit/s, PCIe is at least ten times faster than the network.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch

_POLL_SECONDS = 0.0005
"""Seconds between polls of whether a copy is complete."""
_PORTABLE = 1
"""cudaHostRegisterPortable: all contexts see the pages as locked."""


def wait_for(event: Any, timeout: float) -> None:
    """Wait on the host until an event of a GPU has happened.

    Raises:
        TimeoutError: after ``timeout`` seconds
    """
    deadline = time.monotonic() + timeout
    while not event.query():  # synchronize() has no timeout, and keeps a core busy
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"waited {timeout:g} s for the GPU to compute this data; it hangs, or waits "
                "itself, for another rank perhaps"
            )
        time.sleep(_POLL_SECONDS)


class Fetched:
    """A bucket's copy in host memory. For tensors in host memory, it is the bucket itself."""

    def __init__(self, flat: torch.Tensor) -> None:
        self._flat = self.memory = flat
        """Host memory of the copy, which may not be complete."""

    def host(self, timeout: float) -> torch.Tensor:
        """Return the copy when it is complete."""
        return self._flat

    def copy_back(self) -> None:
        """Queue a copy back to the bucket. This copy is not valid after that."""

    def release(self) -> None:
        """Keep the memory for another bucket, without a copy back."""


class HostStaging:
    """Staging of tensors in host memory, without a copy."""

    def future(self) -> torch.futures.Future:
        """Return a new future for a bucket."""
        return torch.futures.Future()

    def fetch(self, flat: torch.Tensor, part: slice | None = None) -> Fetched:
        """Start to copy ``flat``. Call this on its stream, when all its computation is queued.

        Args:
            flat: tensor with one dimension
            part: elements to copy now; default: all. A copy back is of all elements.
        """
        return Fetched(flat)

    def returning(self) -> contextlib.AbstractContextManager:
        """Return the context in which the thread that ends a step copies and sets the future."""
        return contextlib.nullcontext()


class Cuda:
    """Parts of torch.cuda that staging needs. Tests replace them by those of a test device.

    Streams have ``record_event()`` and ``wait_event(event)``, events ``query()``, as torch.cuda's.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def stream(self) -> Any:
        """Return a new stream."""
        return torch.cuda.Stream(self._device)

    def current_stream(self) -> Any:
        """Return the caller's stream."""
        return torch.cuda.current_stream(self._device)

    def use(self, stream: Any) -> contextlib.AbstractContextManager:
        """Return a context in which work is queued on ``stream``."""
        return torch.cuda.stream(stream)

    def host_memory(self, size: int) -> torch.Tensor:
        """Return uint8[size] in page-locked memory, which is kept for later tensors."""
        with torch.inference_mode(False):
            return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)

    def exact_host_memory(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return zeros in page-locked memory that has no more bytes than they need.

        PyTorch's allocator of such memory rounds sizes up to powers of two. Keep the tensor itself
        as long as its views.
        """
        zeros = torch.zeros(count, dtype=dtype, device="cpu")
        if count:
            address, cudart = zeros.data_ptr(), torch.cuda.cudart()
            with torch.cuda.device(self._device):
                torch.cuda.check_error(cudart.cudaHostRegister(address, zeros.nbytes, _PORTABLE))
            unlock = weakref.finalize(zeros, _unlock, self._device, address)
            unlock.atexit = False  # the driver may have ended
        return zeros

    def empty(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return memory of the device, to be used on the current stream."""
        return torch.empty(count, dtype=dtype, device=self._device)

    def copy(self, target: torch.Tensor, source: torch.Tensor, stream: Any) -> None:
        """Queue a copy between host and device memory. Device memory stays allocated until then."""
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
        (target if target.is_cuda else source).record_stream(stream)

    def upload(self, data: bytes) -> torch.Tensor:
        """Copy data to uint8 in device memory, before the next work of the current stream."""
        memory = torch.frombuffer(bytearray(data), dtype=torch.uint8).pin_memory()
        return memory.to(self._device, non_blocking=True)

    def run(self, stream: Any, work: Callable[[], object], tensors: Sequence[torch.Tensor]) -> None:
        """Call ``work``, which queues work on ``stream``, for which the tensors stay allocated."""
        with torch.cuda.stream(stream), torch.no_grad():
            work()
        for tensor in tensors:
            tensor.record_stream(stream)

    def future(self) -> torch.futures.Future:
        """Return a future whose waiting streams wait for its tensor."""
        return torch.futures.Future(devices=[self._device])


def _unlock(device: torch.device, address: int) -> None:
    """Unlock pages before their memory is freed, when no copy uses them."""
    with torch.cuda.device(device):
        torch.cuda.synchronize()
        torch.cuda.check_error(torch.cuda.cudart().cudaHostUnregister(address))


class Reports:
    """Small results on a device, which the host checks when their copies have arrived.

    Args:
        device: the device's functions
        stream: stream on which the results are computed and copied
    """

    def __init__(self, device: Cuda, stream: Any) -> None:
        self._device, self._stream = device, stream
        self._pending: deque[tuple[Any, torch.Tensor, Callable[[torch.Tensor], str]]] = deque()
        self._free: list[torch.Tensor] = []

    def add(self, numbers: torch.Tensor, problem: Callable[[torch.Tensor], str]) -> None:
        """Queue a copy of ``numbers`` to host memory, in which ``problem`` finds an error or ""."""
        size = numbers.numel() * numbers.element_size()
        fitting = [memory for memory in self._free if memory.numel() == size]
        if fitting:
            self._free = [memory for memory in self._free if memory is not fitting[0]]
        memory = fitting[0] if fitting else self._device.host_memory(size)
        copy = memory.view(numbers.dtype).view(numbers.shape)
        self._device.copy(copy, numbers, self._stream)
        self._pending.append((self._stream.record_event(), memory, lambda: problem(copy)))

    def poll(self) -> str:
        """Check the reports that have arrived, and return the error of the first bad one, or ""."""
        found = ""
        while self._pending and self._pending[0][0].query():
            _, memory, problem = self._pending.popleft()
            found = found or problem()
            self._free.append(memory)
        return found


class Staged(HostStaging):
    """Staging of tensors of one device through host memory.

    Host memory is kept for the next step. Its size is that of all buckets in progress at a time.
    """

    def __init__(self, device: Cuda) -> None:
        self.device = device
        self.down, self.up = device.stream(), device.stream()
        self._free: list[tuple[torch.Tensor, Any]] = []  # memory, and its last copy's event
        self._lock = threading.Lock()

    def future(self) -> torch.futures.Future:
        """See :class:`HostStaging`."""
        return self.device.future()

    def fetch(self, flat: torch.Tensor, part: slice | None = None) -> Fetched:
        """See :class:`HostStaging`."""
        size = flat.numel() * flat.element_size()
        memory, returned = self._take(size)
        if returned is not None:
            self.down.wait_event(returned)
        self.down.wait_event(self.device.current_stream().record_event())
        copy = memory[:size].view(flat.dtype)
        part = part or slice(None)
        self.device.copy(copy[part], flat[part], self.down)
        return _StagedCopy(self, flat, memory, copy, self.down.record_event())

    def _take(self, size: int) -> tuple[torch.Tensor, Any]:
        with self._lock:
            fitting = [each for each in self._free if each[0].numel() >= size]
            if fitting:
                best = min(fitting, key=lambda each: each[0].numel())
                self._free = [each for each in self._free if each is not best]
                return best
            if self._free:  # of former buckets: DDP makes other ones after its first step
                self._free.pop(0)
        return self.device.host_memory(size), None

    def returning(self) -> contextlib.AbstractContextManager:
        """See :class:`HostStaging`."""
        return self.device.use(self.up)

    def give_back(self, memory: torch.Tensor) -> None:
        """Keep host memory for another bucket, which uses it after the copies queued now."""
        with self._lock:
            self._free.append((memory, self.up.record_event()))


class _StagedCopy(Fetched):
    def __init__(
        self, by: Staged, flat: torch.Tensor, memory: torch.Tensor, copy: torch.Tensor, ready: Any
    ) -> None:
        super().__init__(flat)
        self._by, self._memory, self._ready = by, memory, ready
        self.memory = copy

    def host(self, timeout: float) -> torch.Tensor:
        wait_for(self._ready, timeout)
        return self.memory

    def copy_back(self) -> None:
        self._by.device.copy(self._flat, self.memory, self._by.up)
        self.release()

    def release(self) -> None:
        self._by.give_back(self._memory)


def current(device: torch.device) -> contextlib.AbstractContextManager:
    """Return the context in which NCCL exchanges objects on ``device``."""
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


def device_of(tensors: list[torch.Tensor]) -> torch.device:
    """Return the device of a model, or its first one."""
    return tensors[0].device if tensors else torch.device("cpu")
