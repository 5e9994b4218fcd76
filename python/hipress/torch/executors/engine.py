"""The native engine as the ranks of a process group use it: keys, failures, GPU staging.

A gradient that is synchronised is a key, a bucket of them one call
(:mod:`hipress.torch.executors.host_bucket`). Everything between that call and the future's
completion runs in the library's threads; no thread of Python's waits for the network.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import ctypes
import datetime
import itertools
import os
import queue
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist

from hipress._lib import Done, check_call, lib
from hipress.compression import Compressor
from hipress.errors import HipressError as NodeError
from hipress.torch.executors.job import join
from hipress.torch.executors.staging import Host, backend, staging

_REPORT_SECONDS = 2.0
"""Time in which the engine learns of a death that another connection has shown."""

_BEHIND = (
    "it hangs, is far behind, or did not compute these gradients (a parameter unused in its "
    "forward pass needs DDP's find_unused_parameters=True)"
)


class HipressError(RuntimeError):
    """A collective operation has failed; the sentence says on account of whom."""


class EncodeBinding(NamedTuple):
    """The codec and scale of one task of a rank's program: HipressEncodeBinding in c_api.h."""

    task: int
    codec: Compressor
    wire: int
    factor: float


_BINDING = np.dtype([("task", "i8"), ("codec", "u8"), ("wire", "i8"), ("factor", "f8")])
_running: dict[int, Callable[[str | None], None]] = {}
_numbers = itertools.count(1)


@Done
def _on_done(context: int, error: bytes | None) -> None:
    """Ends an operation; called by the library's threads."""
    _running.pop(context)(None if error is None else error.decode("utf-8", "replace"))


class Engine:
    """This rank's part of the job that the ranks of a process group make.

    To be made on all ranks together; :func:`engine_of` does.

    :param name: of the job, the same on all ranks, and no other job's
    :param timeout: seconds that a step waits for another rank
    :raises HipressError: if a rank is missing
    """

    def __init__(self, group: dist.ProcessGroup, timeout: float, name: str) -> None:
        self.rank, self.world_size = dist.get_rank(group), dist.get_world_size(group)
        self.timeout, self.name = timeout, name
        self._ranks = dist.get_process_group_ranks(group)
        self._user_group, self._stagings = group, {}
        self._failing = threading.Lock()
        self.error: HipressError | None = None
        self._keys = itertools.count(int(name[:7], 16) << 32)
        self._retired_keys: collections.deque[int] = collections.deque()
        self._jobs: queue.SimpleQueue | None = None
        try:
            self.member, self._scheduler = join(group, name, timeout)
        except NodeError as error:
            raise HipressError(self.named(str(error))) from error

    def close(self, in_peace: bool = False) -> None:
        """Leaves the job. No thread of the engine's writes to a gradient or a state any more when
        this returns, and the same ranks or others may make another engine.

        :param in_peace: all ranks have completed all steps, and close theirs now; else this one
            leaves as a failure, at once
        """
        for about in [about for about, engine in _engines.items() if engine is self]:
            del _engines[about]
        with contextlib.suppress(NodeError):
            self.member.stop() if in_peace else self.member.abort()
        if self._scheduler is not None:
            self._scheduler.stop(at_once=not in_peace)

    def __del__(self) -> None:
        if lib is not None and hasattr(self, "member"):
            self.member.free()

    def use(self, group: dist.ProcessGroup) -> None:
        """Makes this the user's own group from now on; it has the same ranks."""
        self._user_group = group

    def named(self, sentence: str) -> str:
        """The sentence of the library's with the job's ranks as users number them."""
        text = re.sub(r"\bworker (\d+)", lambda m: f"rank {self._ranks[int(m[1])]}", sentence)
        # The scheduler is a thread of the first rank's process, and goes with it.
        text = re.sub(r"\b(the )?scheduler\b", f"rank {self._ranks[0]}", text)
        text = text.replace(" (HIPRESS_TIMEOUT changes this)", "")
        return f"{text}; {_BEHIND}" if text.startswith("waited ") else text

    # Keys.

    def add_key(
        self, name: str, program: np.ndarray, size: int, dtype: int, about: str,
        bindings: Sequence[EncodeBinding], output_factor: float = 1.0, momentum: float = 0.0,
    ) -> int:  # fmt: skip
        """Begins to make a key, on all ranks together and in the same order; returns its number.
        Keys that were retired are dropped first.

        :param program: of this rank, see :func:`hipress.casync.program.flatten`
        :param size: elements from the gradient's first to behind its last
        :param dtype: type flag
        :param about: must be the same on all ranks
        """
        while self._retired_keys:
            lib.HipressDropKey(self.member.handle, self._retired_keys.popleft())
        key = next(self._keys)
        table = np.zeros(len(bindings), _BINDING)
        for row, each in zip(table, bindings):
            row["task"], row["codec"] = each.task, each.codec._handle.value
            row["wire"], row["factor"] = each.wire, each.factor
        self.check(
            lib.HipressAddKey(
                self.member.handle, key, name.encode(), size, dtype, about.encode(),
                program.ctypes.data, len(program), table.ctypes.data, len(table), output_factor,
                momentum,
            )
        )  # fmt: skip
        return key

    def await_keys(self) -> None:
        """Waits until all ranks have made the keys that this one has: one round trip for all.

        :raises hipress.HipressError: if ranks differ, or one does not make these keys in time
        """
        self.check(lib.HipressAwaitKeys(self.member.handle))

    def retire_keys(self, keys: Iterable[int]) -> None:
        """Has keys dropped that no step uses any more, when this rank next makes one.

        A step is over on this rank when all messages of other ranks for it have come, so none of
        them finds its key gone. May be called from any thread, also by Python's garbage collector.
        """
        self._retired_keys.extend(keys)

    def momentum(self, key: int, count: int) -> torch.Tensor:
        """The last result of a key with a shared momentum, float32[count]."""
        values = torch.empty(count, dtype=torch.float32, device="cpu")
        self.check(lib.HipressGetMomentum(self.member.handle, key, values.data_ptr()))
        return values

    def set_momentum(self, key: int, values: torch.Tensor) -> None:
        """Sets the last result of a key with a shared momentum: float32 in host memory."""
        values = values.contiguous()
        self.check(lib.HipressSetMomentum(self.member.handle, key, values.data_ptr()))

    def roll_back_momentum(self, key: int, transaction: int) -> None:
        """Puts a key's last result back to what it was before a transaction."""
        self.check(lib.HipressMomentumRollBack(self.member.handle, key, transaction))

    def check(self, code: int) -> None:
        """:raises hipress.HipressError: with what went wrong in a call of the library"""
        try:
            check_call(code, NodeError)
        except NodeError as error:
            raise NodeError(self.named(str(error))) from None

    # Steps.

    def run(
        self, bucket: ctypes.c_void_p, address: int, transaction: int,
        done: Callable[[str | None, bool], None],
    ) -> None:  # fmt: skip
        """Starts a step of a bucket whose flat tensor is at ``address``.

        :param transaction: by whose number it can be put back; 0: it cannot
        :param done: called when it is over, in any thread, with the error's sentence and whether
            the results are NaN because of a NaN or Inf
        """
        nonfinite, number = ctypes.c_int(), next(_numbers)
        _running[number] = lambda error: done(error and self.named(error), bool(nonfinite.value))
        found = ctypes.byref(nonfinite)
        lib.HipressBucketRun(bucket, address, transaction, found, _on_done, number)

    def settle(self, steps: Sequence[torch.futures.Future]) -> None:
        """Returns when no thread works for a step that this rank has begun. Where that cannot be
        waited for, as the job has failed or a step is not over, this rank leaves the job first.

        :param steps: the futures of all steps of this rank that may be under way
        :raises hipress.HipressError: if a step that waits for the user's process group does not end
        """
        running = not all(step.done() for step in steps)
        if not running and not self.error and not self.failure():
            try:
                self.check(lib.HipressAwaitEncodes(self.member.handle))
                return
            except NodeError:  # somebody has died since
                pass
        self.member.abort()  # ends all that the library's threads do
        until = time.monotonic() + self.timeout + _REPORT_SECONDS
        while not all(step.done() for step in steps):
            if time.monotonic() > until:
                raise HipressError("a step of a job that has failed does not end")
            time.sleep(0.001)

    def fail(self, error: Exception | str, what: str) -> HipressError:
        """Records a failure, which ends all later steps, here and on the other ranks; returns the
        first one. The other ranks get a failure report.

        :param error: a sentence is the library's, which all ranks know already
        :param what: names the bucket, or another thing
        """
        with self._failing:
            reports = self.error is None and not isinstance(error, str)
            if self.error is None:
                if not isinstance(error, HipressError):
                    error = HipressError(f"{what}: {error}" if what else str(error))
                self.error = error
        if reports:  # without the lock: this ends steps, whose callbacks come here
            sentence = f"worker {self.rank} gave up: {self.error}"
            lib.HipressFailJob(self.member.handle, sentence.encode())
        return self.error

    def failure(self, seconds: float = 0.0) -> str:
        """The reason why no operation can succeed any more; empty if none is known after so many
        ``seconds``."""
        until = time.monotonic() + seconds
        while True:
            found = self.member.failure()
            if found or time.monotonic() >= until:
                return self.named(found)
            time.sleep(0.01)

    # What goes by the user's own group.

    def wait(self, work: dist.Work, what: str, device: torch.device) -> None:
        """Waits for a collective operation of the user's group that all ranks take part in; NCCL's
        are waited for by the current stream, and NCCL watches them.

        :raises HipressError: if it fails, or takes longer than the timeout
        """
        if backend(self._user_group, device).name() == "nccl":
            work.wait()
            return
        try:
            work.wait(datetime.timedelta(seconds=self.timeout))
        except RuntimeError as error:
            raise HipressError(self.lost(error, what)) from error

    def lost(self, error: Exception, what: str) -> str:
        """The sentence about a collective operation of the user's group that has failed."""
        why = self.failure(_REPORT_SECONDS) or "a rank has died or is too far behind"
        first = str(error).splitlines()[0]
        return f"{what}: {why}: the all-reduce of what goes uncompressed failed ({first})"

    # Gradients on a GPU.

    def staging(self, device: torch.device) -> Host:
        """The staging of tensors on ``device``."""
        if device not in self._stagings:
            self._stagings[device] = staging(device)
        return self._stagings[device]

    def submit(self, job: Callable[[], None]) -> None:
        """Runs ``job``, which waits for a GPU or for the user's group, in a thread; jobs run one by
        one."""
        if self._jobs is None:
            self._jobs = queue.SimpleQueue()
            thread = threading.Thread(target=self._work, name="hipress-staging", daemon=True)
            thread.start()
            atexit.register(self._end, thread)
        self._jobs.put(job)

    def _work(self) -> None:
        torch.set_grad_enabled(False)  # per thread
        while (job := self._jobs.get()) is not None:
            job()

    def _end(self, thread: threading.Thread) -> None:
        # A thread that comes back from PyTorch's C++ when Python has ended takes the process along.
        self._jobs.put(None)
        thread.join(_REPORT_SECONDS)


_engines: dict[tuple, Engine] = {}


def close_all() -> None:
    """Closes all engines of this process, before their process groups are destroyed."""
    for engine in list(_engines.values()):
        engine.close()


def engine_of(group: dist.ProcessGroup, timeout: float) -> Engine:
    """The group's engine for this timeout, on all ranks together: a new one if there is none yet,
    or the last one has failed.

    :raises HipressError: if a rank is missing
    """
    # A group that is made anew may have the name of one that was destroyed, and other ranks.
    ranks = tuple(dist.get_process_group_ranks(group))
    about = (group.group_name, ranks, dist.get_rank(group), timeout)
    known = _engines.get(about)
    if known is not None and (known.error or known.member.left_job or known.failure()):
        with contextlib.suppress(NodeError):
            known.member.abort()
        known = None
    mine = (uuid.uuid4().hex, known.name if known else "", bool(os.environ.get("HIPRESS_SECRET")))
    found: list = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, mine, group=group)
    secret = [rank for rank, (*_, given) in zip(ranks, found) if given]
    if secret and len(secret) < len(found):
        raise HipressError(
            f"rank {secret[0]} has HIPRESS_SECRET in its environment, and not all ranks have: give "
            "all of them the same one, or none"
        )
    if known is None or any(name != known.name for _, name, _ in found):
        _engines[about] = known = Engine(group, timeout, found[0][0])
    known.use(group)
    return known
