"""Native engine for the ranks of a process group: names, momentum, GPU staging."""

from __future__ import annotations

import contextlib
import datetime
import queue
import threading
import uuid
import weakref
from collections.abc import Callable
from typing import Annotated, Optional

import msgspec
import torch
import torch.distributed as dist

from hipress.errors import Cause, HipressError
from hipress.native.library import lib
from hipress.runtime import engine as native
from hipress.torch import exchange
from hipress.torch.executors.group_job import join
from hipress.torch.executors.staging import Cuda, HostStaging, Staged
from hipress.torch.private import backend

_REPORT_SECONDS = 2.0
"""Seconds in which the engine learns of a failure that another connection has shown."""

_JobName = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]
"""Name of a job, which becomes a part of file names."""

_BEHIND = (
    "it hangs, is far behind, or did not compute these gradients (a parameter unused in its "
    "forward pass needs DDP's find_unused_parameters=True)"
)


class ProcessGroupEngine(native.Engine):
    """This rank's part of the job that the ranks of a process group form.

    All ranks construct it together, with the same unique name; :func:`engine_of` does that. A step
    waits for another rank for ``timeout`` seconds.
    """

    def __init__(self, group: dist.ProcessGroup, timeout: float, name: str) -> None:
        self._ranks = dist.get_process_group_ranks(group)
        self._user_group, self._stagings = group, {}
        self._jobs: queue.SimpleQueue | None = None
        self._closed = False
        try:
            member, scheduler = join(group, name, timeout)
        except HipressError as error:
            raise self.explained(error) from error
        rank, world_size = dist.get_rank(group), dist.get_world_size(group)
        super().__init__(member, scheduler, rank, world_size, timeout, name)

    def close(self, without_failure: bool = False) -> None:
        """See :meth:`hipress.runtime.engine.Engine.close`."""
        for about in [about for about, engine in _engines.items() if engine is self]:
            del _engines[about]
        super().close(without_failure)
        self._closed = True
        if self._jobs is not None:
            self._end_jobs()
        self._stagings.clear()

    def explained(self, error: HipressError) -> HipressError:
        """Return an error of the library with the group's rank, and why a rank may be late."""
        late = error.cause == Cause.TIMED_OUT
        explained = error.as_kind(HipressError, f"{error}; {_BEHIND}" if late else str(error))
        if error.rank is not None:
            # The scheduler is a thread of the first rank's process, and ends with it.
            explained.rank = self._ranks[error.rank if error.role == "worker" else 0]
            explained.role = "worker"
        return explained

    def momentum(self, key: int, count: int) -> torch.Tensor:
        """Return the last result of a key with a shared momentum, float32[count]."""
        values = torch.empty(count, dtype=torch.float32, device="cpu")
        self.check(lib.HipressGetMomentum(self.member.handle, key, values.data_ptr()))
        return values

    def set_momentum(self, key: int, values: torch.Tensor) -> None:
        """Set the last result of a key with a shared momentum: float32 in host memory."""
        values = values.contiguous()
        self.check(lib.HipressSetMomentum(self.member.handle, key, values.data_ptr()))

    def roll_back_momentum(self, key: int, transaction: int) -> None:
        """Restore a key's last result from before a transaction."""
        self.check(lib.HipressMomentumRollBack(self.member.handle, key, transaction))

    # Operations on the user's own group.

    def wait(self, work: dist.Work, what: str, device: torch.device) -> None:
        """Wait for a collective operation of the user's group, in which all ranks take part.

        For operations of NCCL the current stream waits, and NCCL watches them.
        """
        if backend(self._user_group, device).name() == "nccl":
            work.wait()
            return
        try:
            work.wait(datetime.timedelta(seconds=self.timeout))
        except RuntimeError as error:
            raise HipressError(self.lost(error, what)) from error

    def lost(self, error: Exception, what: str) -> str:
        """Return a sentence about a failed collective operation of the user's group."""
        why = self.failure(_REPORT_SECONDS) or "a rank has died or is too far behind"
        first = str(error).splitlines()[0]
        return f"{what}: {why}: the all-reduce of what goes uncompressed failed ({first})"

    # Gradients on a GPU.

    def staging(self, device: torch.device) -> HostStaging:
        """Return the staging of tensors on ``device``."""
        if device not in self._stagings:
            self._stagings[device] = (
                Staged(Cuda(device)) if device.type == "cuda" else HostStaging()
            )
        return self._stagings[device]

    def submit(self, job: Callable[[], None]) -> None:
        """Run ``job`` in a thread, after earlier ones. It waits for a GPU or the user's group."""
        if self._closed:  # jobs after close() run in a thread that ends with each
            jobs, _ = _start_thread()
            jobs.put(job)
            jobs.put(None)
            return
        if self._jobs is None:
            self._jobs, thread = _start_thread()
            self._end_jobs = weakref.finalize(self, _end, self._jobs, thread)
        self._jobs.put(job)


def _start_thread() -> tuple[queue.SimpleQueue, threading.Thread]:
    jobs = queue.SimpleQueue()
    thread = threading.Thread(target=_work, args=(jobs,), name="hipress-staging", daemon=True)
    thread.start()
    return jobs, thread


def _work(jobs: queue.SimpleQueue) -> None:
    torch.set_grad_enabled(False)  # per thread
    while (job := jobs.get()) is not None:
        job()
        del job  # it may be the last that holds the engine


def _end(jobs: queue.SimpleQueue, thread: threading.Thread) -> None:
    # A thread that returns from PyTorch's C++ after Python has ended crashes the process.
    jobs.put(None)
    if thread is not threading.current_thread():
        thread.join(_REPORT_SECONDS)


_engines: dict[tuple, ProcessGroupEngine] = {}


def close_all() -> None:
    """Close all engines of this process, before their process groups are destroyed."""
    for engine in list(_engines.values()):
        engine.close()


def engine_of(group: dist.ProcessGroup, timeout: float) -> ProcessGroupEngine:
    """Return the group's engine for this timeout, on all ranks together.

    It is a new one if there is none yet, or the last one has failed.
    """
    # A new group may have the name of one that was destroyed, and other ranks.
    ranks = tuple(dist.get_process_group_ranks(group))
    about = (group.group_name, ranks, dist.get_rank(group), timeout)
    known = _engines.get(about)
    if known is not None and (known.error or known.member.left_job or known.failure()):
        with contextlib.suppress(HipressError):
            known.member.abort()
        known = None
    mine = [uuid.uuid4().hex, known.name if known else None]
    found = exchange.gather(group, mine, "names of jobs", tuple[_JobName, Optional[_JobName]])
    if known is None or any(name != known.name for _, name in found):
        _engines[about] = known = ProcessGroupEngine(group, timeout, found[0][0])
    known._user_group = group  # which has the same ranks
    return known
