"""Native engine for gradients in host memory, with encodes that the caller binds.

A key is one synchronized gradient, and a call synchronizes a bucket of keys. The library's threads
do everything between the call and its end. No Python thread waits for the network.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from hipress.dtypes import FLOAT32
from hipress.errors import Code, HipressError
from hipress.native.library import abi, check_call, error_of, lib
from hipress.runtime.error_feedback import ErrorFeedback
from hipress.runtime.member import JobMember
from hipress.runtime.scheduler import Scheduler
from hipress.topology.flat_program import flatten
from hipress.topology.graph import Graph, Op, worker
from hipress.topology.origins import results

_REPORT_SECONDS = 2.0
"""Seconds in which the engine learns of a death that another connection has shown."""
_running: dict[int, Callable[[HipressError | None], None]] = {}
_numbers = itertools.count(1)


@abi.HipressDone
def _on_done(context: int, error: ctypes._Pointer) -> None:
    """End an operation. The library's threads call it."""
    _running.pop(context)(error_of(error))


class Engine:
    """Worker's part of a job without servers.

    Args:
        scheduler: Scheduler of the job, if it is in this process.
        timeout: Seconds that a step waits for another rank.
        name: Unique hexadecimal name of the job, equal on all ranks.
    """

    def __init__(
        self,
        member: JobMember,
        scheduler: Scheduler | None,
        rank: int,
        world_size: int,
        timeout: float,
        name: str,
    ) -> None:
        self.member, self._scheduler = member, scheduler
        self.rank, self.world_size, self.timeout, self.name = rank, world_size, timeout, name
        self._failing = threading.Lock()
        self.error: RuntimeError | None = None
        self._keys = itertools.count(int(name[:7], 16) << 32)
        self._retired_keys: collections.deque[int] = collections.deque()

    def close(self, without_failure: bool = False) -> None:
        """Leave the job.

        Afterwards no thread of the engine writes to a gradient or a state, and another engine can
        be made.

        Args:
            without_failure: All ranks have completed all steps, and close their engines now.
                Otherwise this rank leaves as a failure, at once.
        """
        with contextlib.suppress(HipressError):
            self.member.stop() if without_failure else self.member.abort()
        if self._scheduler is not None:
            self._scheduler.stop(at_once=not without_failure)

    def __del__(self) -> None:
        if lib is not None and hasattr(self, "member"):
            self.member.free()

    def explained(self, error: HipressError) -> HipressError:
        """Return an error of the library in the form for users."""
        return error

    # Keys.

    def add_key(
        self,
        name: str,
        graph: Graph,
        dtype: int,
        about: str,
        error_feedback: ErrorFeedback,
        position: Callable[[int], int] = lambda element: element,
        momentum: float = 0.0,
        float32_sums: bool = True,
    ) -> int:
        """Begin to make a key, on all ranks together and in the same order, and return its number.

        The work of the key on this rank is its graph's program. Codec, state and scale of each
        encode are bound to it here (``src/graph/flow.h``). Retired keys are dropped first.

        ``about`` must be equal on all ranks. ``position`` returns the position of an element in the
        gradient's memory. ``momentum`` is the factor of the last result, which the key keeps and
        every rank compresses. If ``float32_sums``, partial sums of uncompressed gradients are sent
        as float32, whatever the gradient's type; the final result has that type.
        """
        self.drop_retired_keys()
        key, node, final = next(self._keys), worker(self.rank), results(graph)
        mean = 1.0 / self.world_size if error_feedback.codecs.average else 1.0
        rows, states = [], []
        for index, task in enumerate(graph.tasks.get(node, [])):
            if task.op != Op.ENCODE:
                continue
            is_result = (node, index) in final
            kind = error_feedback.codecs.kind(task, is_result)
            states.append(error_feedback.state_of(name, graph, index, task, kind))
            wire = dtype if task.of_gradient or is_result or not float32_sums else FLOAT32
            factor = mean if is_result and not task.of_gradient else 1.0
            rows.append((index, states[-1]._handle, wire, factor))
        table = (abi.HipressEncodeBinding * len(rows))(*rows)
        program = flatten(graph, node, position)
        self.check(
            lib.HipressAddKey(
                self.member.handle,
                key,
                name.encode(),
                position(graph.n - 1) + 1,
                dtype,
                f"{about} {dtype} {name} {graph.partitions}".encode(),
                program.ctypes.data,
                len(program),
                table,
                len(table),
                mean,
                momentum,
            )
        )
        return key

    def await_keys(self) -> None:
        """Wait until all ranks have made the keys of this rank. All keys take one round trip.

        Raises:
            hipress.HipressError: If ranks differ, or one does not make these keys in time.
        """
        self.check(lib.HipressAwaitKeys(self.member.handle))

    def retire_keys(self, keys: Iterable[int]) -> None:
        """Mark keys that no step uses any more, so that :meth:`drop_retired_keys` drops them.

        A step ends on this rank when all messages of other ranks for it have arrived. Therefore no
        message arrives for a dropped key. Any thread may call this, also Python's garbage
        collector.
        """
        self._retired_keys.extend(keys)

    def drop_retired_keys(self) -> None:
        """Drop retired keys with their memory. Making a key also does this."""
        while self._retired_keys:
            lib.HipressDropKey(self.member.handle, self._retired_keys.popleft())

    def check(self, code: int) -> None:
        """Check the result of a call of the library.

        Raises:
            hipress.HipressError: If the call has failed.
        """
        try:
            check_call(code, HipressError)
        except HipressError as error:
            raise self.explained(error) from None

    # Steps.

    def run(
        self,
        bucket: ctypes.c_void_p,
        address: int,
        transaction: int,
        done: Callable[[HipressError | None, bool], None],
    ) -> None:
        """Start a step of a bucket whose flat tensor is at ``address``.

        ``transaction`` is the number by which the step can be rolled back, or 0 if it cannot.
        ``done`` is called at the end, in any thread, with the error and whether the results are NaN
        because of a NaN or Inf.
        """
        nonfinite, number = ctypes.c_int(), next(_numbers)
        _running[number] = lambda error: done(
            error and self.explained(error), bool(nonfinite.value)
        )
        is_nonfinite = ctypes.byref(nonfinite)
        code = lib.HipressBucketRun(bucket, address, transaction, is_nonfinite, _on_done, number)
        if code != 0:  # in a forked child
            del _running[number]
            self.check(code)

    def await_encodes(self) -> None:
        """Wait until all encodes that finished steps of this rank do for other ranks have ended.

        Raises:
            hipress.HipressError: If the job has failed.
        """
        self.check(lib.HipressAwaitEncodes(self.member.handle))

    def end_steps(self, steps: Sequence[Any]) -> None:
        """Return when no thread works for a step of this rank.

        If the job has failed or a step is not over, this rank leaves the job first.

        Args:
            steps: All steps of this rank that may be running.

        Raises:
            hipress.HipressError: If a step that waits for the user's process group does not end.
        """
        running = not all(step.done() for step in steps)
        if not running and not self.error and not self.failure():
            try:
                self.await_encodes()
                return
            except HipressError:  # a process has died since
                pass
        self.member.abort()  # ends all work of the library's threads
        until = time.monotonic() + self.timeout + _REPORT_SECONDS
        while not all(step.done() for step in steps):
            if time.monotonic() > until:
                raise HipressError("a step of a job that has failed does not end")
            time.sleep(0.001)

    def fail(self, error: Exception, what: str) -> RuntimeError:
        """Record a failure, which ends all later steps on all ranks; return the first one.

        Args:
            error: The failure. Other ranks get a report, unless the job has failed: then they know.
            what: Name of the bucket, or of another thing.
        """
        # The error may be of another job, such as that of a subgroup.
        of_job = isinstance(error, HipressError) and error.code == Code.JOB
        known = of_job and self.member.job_error() is not None
        with self._failing:
            reports = self.error is None and not known
            if self.error is None:
                # A sentence made in Python names what has failed; one of the library does not.
                if not isinstance(error, HipressError) or error.code != Code.NONE:
                    sentence = f"{what}: {error}" if what else str(error)
                    native = error if isinstance(error, HipressError) else HipressError(sentence)
                    error = native.as_kind(HipressError, sentence)
                self.error = error
        if reports:  # without the lock, because this ends steps, whose callbacks come here
            sentence = f"{self.member.name} gave up: {self.error}"
            lib.HipressFailJob(self.member.handle, sentence.encode())
        return self.error

    def failure(self, seconds: float = 0.0) -> HipressError | None:
        """Return the job's failure, or None if none is known after so many ``seconds``."""
        until = time.monotonic() + seconds
        while True:
            error = self.member.job_error()
            if error or time.monotonic() >= until:
                return error and self.explained(error)
            time.sleep(0.01)


class Bucket:
    """Gradients of one type in contiguous memory, which one call synchronizes.

    Args:
        dtype: Type flag.
        spans: (first element, elements) of all gradients, with adjacent ones merged.
        keys: Keys of gradients that are sent in place, with the offset of their first element.
        fused: Spans of gradients that are sent in a fusion buffer, by the key ``fusion``.
        checked: Whether a NaN or Inf anywhere makes all results NaN and leaves all states
            unchanged. Otherwise it is treated as a number.
        own_keys: Keys of this bucket alone, which are dropped with it.

    Raises:
        hipress.HipressError: If ranks differ in their keys, or one is missing.
    """

    def __init__(
        self,
        engine: Engine,
        dtype: int,
        spans: Sequence[tuple[int, int]],
        keys: Sequence[tuple[int, int]],
        fusion: int = 0,
        fused: Sequence[tuple[int, int]] = (),
        checked: bool = True,
        own_keys: Sequence[int] = (),
    ) -> None:
        self._engine, self._handle, self._own_keys = engine, ctypes.c_void_p(), own_keys
        every, small = (np.array(each, np.int64).reshape(-1, 2) for each in (spans, fused))
        numbers = np.array([key for key, _ in keys], np.uint64)
        offsets = np.array([offset for _, offset in keys], np.int64)
        engine.await_keys()
        engine.check(
            lib.HipressBucketCreate(
                engine.member.handle,
                dtype,
                every.ctypes.data,
                len(every),
                numbers.ctypes.data,
                offsets.ctypes.data,
                len(keys),
                fusion,
                small.ctypes.data,
                len(small),
                int(checked),
                ctypes.byref(self._handle),
            )
        )

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and lib is not None:
            lib.HipressBucketFree(self._handle)
            self._engine.retire_keys(self._own_keys)

    def start(
        self, address: int, transaction: int, done: Callable[[HipressError | None, bool], None]
    ) -> None:
        """Start a step in this memory, which must stay valid until its end."""
        self._engine.run(self._handle, address, transaction, done)

    def begin(self, address: int, transaction: int, what: str) -> Future[None]:
        """Start a step, and return a future of its end. ``what`` names the bucket in errors."""
        future: Future[None] = Future()

        def done(error: HipressError | None, nonfinite: bool) -> None:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(self._engine.fail(error, what))

        self.start(address, transaction, done)
        return future
