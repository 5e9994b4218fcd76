"""Work handles of the operations that the process group runs itself.

Operations that Gloo runs return Gloo's own handles, which are not made here.
"""

from __future__ import annotations

import functools
import threading
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future


class FutureWork(dist.Work):
    """Handle of an operation that a future completes, with the methods of Gloo's handles.

    Unlike PyTorch's own handle for futures, it supports ``wait(timeout)``.

    Args:
        future: Future whose value is the list of result tensors.
        timeout: Time limit of ``wait()`` without an argument. Default: no limit.
    """

    def __init__(self, future: torch.futures.Future, timeout: timedelta | None = None) -> None:
        super().__init__()
        self._future = future
        self._timeout = timeout

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the operation is done, and raise its error if it failed."""
        timeout = timeout or self._timeout  # C++ passes a timedelta of 0 for "no limit"
        if timeout:
            done = threading.Event()
            self._future.add_done_callback(lambda _: done.set())
            if not done.wait(timeout.total_seconds()):
                raise RuntimeError("Operation timed out!")
        self._future.wait()
        return True

    def synchronize(self) -> None:
        """Wait until the operation is done."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether the operation is done or has failed."""
        return self._future.done()

    def is_success(self) -> bool:
        """Return whether the operation has not failed so far."""
        return self.exception() is None

    def exception(self) -> Exception | None:
        """Return the operation's error, or None if it has not failed so far."""
        if self._future.done():
            try:
                self._future.value()
            except Exception as error:
                return error
        return None

    def result(self) -> list[torch.Tensor]:
        """Return the result tensors."""
        if not self._future.done():
            raise RuntimeError(
                "Work needs to be completed before calling result(). "
                "Should call wait() before result()."
            )
        return self._future.value()

    def source_rank(self) -> int:
        """Raise, because only a receive has a source rank."""
        raise RuntimeError(
            "sourceRank() may only be called on work objects that correspond to a recv or "
            "recv-from-any call."
        )

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        """Return the future that completes the operation."""
        return self._future


class _Probe(dist.ProcessGroup):
    """A process group whose all-reduce is done at once."""

    def allreduce(self, tensors, opts=None) -> dist.Work:
        future = torch.futures.Future()
        future.set_result(tensors)
        return FutureWork(future)


@functools.cache
def _outlives_its_python_object() -> bool:
    """Return whether C++ can use a handle made in Python after Python drops it.

    DDP calls the process group from C++. PyTorch 2.6 keeps only the C++ part of a handle, which
    has no future.
    """
    work = dist.ProcessGroup.allreduce(_Probe(0, 1), [torch.zeros(1)], dist.AllreduceOptions())
    try:
        work.get_future()
    except RuntimeError:
        return False
    return True


def work_of(future: torch.futures.Future, timeout: timedelta | None = None) -> dist.Work:
    """Return a handle of the operation that a future completes.

    If PyTorch is too old for our handle, it is PyTorch's own, without ``wait(timeout)``.
    """
    if _outlives_its_python_object():
        return FutureWork(future, timeout)
    return _create_work_from_future(future)
