"""Node of a job: the store of a worker, and the service of a server or scheduler.

Front ends share this layer. It works on NumPy-like memory: an address, a number of elements, and a
type flag. MXNet's arrays and futures belong to the front ends.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_int64, c_uint32, c_void_p
from dataclasses import replace

import numpy as np

from hipress.autotune.plan_controller import PlanController
from hipress.autotune.steps import FIRST_KEY
from hipress.autotune.store import KnownKey, StoreController, TunedNode
from hipress.config import AUTO, CompressionConfig
from hipress.errors import HipressError
from hipress.native.library import abi, bytes_at, floats_at, lib, string_pairs
from hipress.runtime.group import Group
from hipress.runtime.key_graphs import KeyGraphs
from hipress.runtime.member import JobMember
from hipress.runtime.operations import Operations, Pending, memory_of
from hipress.topology import Graph
from hipress.topology.flat_program import flatten
from hipress.topology.graph import Role, worker


class Later(enum.Enum):
    """Type of :data:`LATER`."""

    LATER = abi.HIPRESS_LATER


LATER = Later.LATER
"""Answer of a controller (:meth:`Node.serve`) to a command that it cannot answer yet."""

LAST_KEY = (1 << 64) - 1
"""Highest number of a key."""
_AUTO_IS_SYNC = (
    "{} auto needs synchronous updates: its workers agree by sums of what all push, which "
    "asynchronous servers do not make; choose a plan from a file, or a type by its name"
)


class Node(TunedNode, JobMember):
    """Node of a job in the DMLC_* environment: a worker with its store, a server or a scheduler.

    Raises:
        HipressError: If the environment is wrong or a node is missing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._updaters: list[object] = []
        self._operations = Operations()

        if self.role == "worker":
            operations = self._operations
            code = lib.HipressReportTogether(
                self._handle, operations.on_done, operations.on_done_together
            )
            self._check(code)
            with self._sentences():
                self._graphs = KeyGraphs(*self._group_size())

    # ---- A worker's store ----

    def set_sync(self, sync: bool) -> None:
        """Choose synchronous (default) or asynchronous updates, before the first :meth:`init`.

        Raises:
            HipressError: For asynchronous updates with ``plan="auto"``, or without servers.
        """
        if not sync and self.auto is not None and self.auto.watching:
            raise self.Error(_AUTO_IS_SYNC.format(self.auto.option))
        with self._sentences():
            self._graphs.set_sync(sync)
        self._check(lib.HipressSetSync(self._handle, int(sync)))

    @property
    def topology(self) -> str:
        """Topology of the job: a name in :data:`hipress.topology.TOPOLOGIES`."""
        with self._sentences():
            return self._graphs.topology

    @property
    def serverless(self) -> bool:
        """Whether only workers hold keys, without servers."""
        with self._sentences():
            return self._graphs.serverless

    def init(
        self, key: int, name: str, data: int | None, n: int, dtype: int, compress: bool = True
    ) -> Graph:
        """Initialize ``key`` on all workers together with rank 0's value, and return its graph.

        On rank 0 ``data`` is the address of ``n`` elements of type ``dtype`` (0 float32, 2 float16,
        12 bfloat16). With ``compress=False`` gradients of the key are never compressed.

        Raises:
            HipressError: If the workers disagree; the same error on all workers.
        """
        with self._sentences():
            graph, description = self._graphs.next(n, name, compress)
        nodes = [node for node in graph.tasks if node.role == Role.SERVER]
        nodes.append(worker(self.rank))
        programs = [flatten(graph, node) for node in nodes]
        addresses = (c_void_p * len(nodes))(*(program.ctypes.data for program in programs))
        self._call(
            lib.HipressInit,
            key,
            name.encode(),
            data,
            n,
            dtype,
            description.encode(),
            len(nodes),
            (c_uint32 * len(nodes))(*(node.packed for node in nodes)),
            addresses,
            (c_int64 * len(nodes))(*(len(program) for program in programs)),
        )
        self._graphs.in_use = True
        self.known_keys[key] = KnownKey(name, n, dtype, compress)
        return graph

    def init_array(
        self, key: int, value: np.ndarray, name: str | None = None, compress: bool = True
    ) -> Graph:
        """Initialize ``key`` with a C-contiguous float32 or float16 array; see :meth:`init`."""
        address, n, flag = memory_of(value)
        return self.init(key, name or str(key), address, n, flag, compress)

    def push(self, key: int, gradient: np.ndarray, priority: int = 0) -> Pending:
        """Push ``gradient``, which must not change until the result's ``wait`` returns."""
        self.before_push((key,))
        self.observe((key,), (gradient,))
        memory, n, flag = memory_of(gradient)
        return self.start(lib.HipressPush, gradient, key, memory, n, flag, priority)

    def pull(self, key: int, out: np.ndarray, priority: int = 0) -> Pending:
        """Pull the result of this worker's latest push of ``key`` into ``out``."""
        memory, n, flag = memory_of(out)
        return self.start(lib.HipressPull, out, key, memory, n, flag, priority)

    def pushpull(
        self, key: int, gradient: np.ndarray, out: np.ndarray | None = None, priority: int = 0
    ) -> Pending:
        """Push ``gradient`` and pull into ``out``, by default ``gradient`` itself."""
        self.before_push((key,))
        self.observe((key,), (gradient,))
        memory, n, flag = memory_of(gradient)
        to, its_n, its_flag = (memory, n, flag) if out is None else memory_of(out)
        if its_n != n or its_flag != flag:
            raise self.Error("gradient and output must have the same size and dtype")
        keeps = (gradient, out)
        return self.start(lib.HipressPushPull, keeps, key, memory, to, n, flag, priority)

    def group(
        self,
        keys: Sequence[int],
        gradients: Sequence[np.ndarray],
        outs: Sequence[np.ndarray] | None = None,
        priorities: Sequence[int] | None = None,
    ) -> Group:
        """Return a group of keys whose gradients are ready at the same time, for one call per step.

        With many small gradients, one call takes a fraction of the processor time of a call per
        gradient. Arrays are C-contiguous, float32 or float16, and used in place. By default
        ``outs`` are the gradients themselves.

        Raises:
            HipressError: If the arrays cannot be used, or their numbers or sizes differ.
        """
        return Group(self, keys, gradients, outs, priorities)

    def start(self, function: Callable[..., int], keeps: object, *what: int) -> Pending:
        """Call ``function`` for a push or pull of memory that belongs to ``keeps``."""
        pending = Pending(self.Error, keeps)
        operations = self._operations
        operation = operations.add(pending)
        code = function(self._handle, *what, operations.on_done, operation)
        if code != 0:
            operations.forget(operation)
            self._check(code)
        return pending

    def set_gradient_compression(
        self, compression: str | Mapping[str, object] | CompressionConfig
    ) -> None:
        """Compress all later pushes, for example as ``{"type": "2bit", "threshold": 0.5}``.

        ``topology``, ``devices_per_host`` and ``plan`` (a file) apply to keys that are initialized
        later. With ``plan="auto"`` all workers call this together. They measure for some seconds
        from which size on compression pays, and how to partition gradients. They check the plan
        again later, so all workers must push their keys in the same order
        (:mod:`hipress.autotune.plan_controller`). With type "auto" they also choose the codec
        before the first push (:mod:`hipress.autotune`). Both need synchronous updates.

        Raises:
            HipressError: If a parameter is invalid. The message lists the allowed ones.
        """
        with self._sentences():
            config = CompressionConfig.of(compression)
        if config.type == AUTO:
            self._choose(config)
            return
        self._requested = config
        if (config.plan or os.environ.get("HIPRESS_PLAN")) == AUTO:
            if not self._graphs.sync:
                raise self.Error(_AUTO_IS_SYNC.format("plan"))
            config = replace(config, plan=None)
            self._compress(config)  # an error in it is reported at once
            if not isinstance(self.auto, PlanController):
                chosen = os.environ.get("HIPRESS_PARTITION_ELEMENTS")
                self.auto = PlanController(self, self._compress, None if chosen else self._cut)
            self.auto.decide(config)
            return
        if self.auto is not None:
            self.auto.stop()
        self._compress(config)

    def _choose(self, config: CompressionConfig) -> None:
        if os.environ.get("HIPRESS_PLAN"):
            raise self.Error("type auto chooses without a plan: leave HIPRESS_PLAN out")
        if not self._graphs.sync:
            raise self.Error(_AUTO_IS_SYNC.format("type"))
        if isinstance(self.auto, StoreController) and self.auto.watching:
            if self.auto.config != config:
                raise self.Error(
                    f"a job has one type auto: it is {self.auto.config}, and cannot be {config}"
                )
            return
        if self.auto is not None:
            self.auto.stop()
        self.auto = StoreController(self, config, self._compress)

    def _cut(self, elements: int) -> None:
        self._graphs.partition_elements = elements

    def before_push(self, keys: Sequence[int], settle: Callable[[], None] | None = None) -> None:
        """Prepare a push of ``keys`` through :attr:`handle`, before each push, in the same order.

        With ``plan="auto"`` or type "auto", all workers check from time to time, at the same push,
        whether the plan or the choice is still right. ``settle`` blocks until all pushes and pulls
        have completed; by default it is :meth:`wait_all`.

        Raises:
            HipressError: If a node fails meanwhile.
        """
        if self.auto is not None:
            self.auto.before_push(keys, settle or self.wait_all)

    def _compress(self, config: CompressionConfig) -> None:
        with self._sentences():
            params = config.store_params()
            graphs = self._graphs.configured(config)
        self._check(lib.HipressSetGradientCompression(self._handle, *string_pairs(params)))
        self._graphs = graphs

    def command(self, server: int, head: int, body: bytes) -> bytes:
        """Send a command to one server and return its answer.

        Raises:
            HipressError: With the server's message, if it refuses.
        """
        return bytes_at(*self._call(lib.HipressCommand, server, head, body, len(body)))

    def save_states(self, server: int | None = None, first: int = 0, last: int = LAST_KEY) -> bytes:
        """Return the states of encodes of keys ``first`` to ``last``, of a server or this worker.

        States are residuals, momentum, and counters of random codecs. Blocks until all pushes of
        this worker are encoded.

        Raises:
            HipressError: If a node fails meanwhile.
        """
        rank = -1 if server is None else server
        return bytes_at(*self._call(lib.HipressSaveStates, rank, first, last))

    def norm_of_states(self, first: int = 0, last: int = LAST_KEY) -> float:
        """Return the 2-norm of all vectors that :meth:`save_states` saves of this worker."""
        return self._call(lib.HipressNormOfStates, first, last)

    def load_states(
        self, states: bytes, server: int | None = None, first: int = 0, last: int = LAST_KEY
    ) -> None:
        """Load states that :meth:`save_states` returned in a job of the same shape.

        Raises:
            HipressError: If the states do not match. All states are then unchanged.
        """
        rank = -1 if server is None else server
        self._check(lib.HipressLoadStates(self._handle, rank, first, last, states, len(states)))

    def barrier(self) -> None:
        """Block until all workers have called it."""
        self._check(lib.HipressBarrier(self._handle))

    def wait_all(self) -> None:
        """Block until all earlier pushes and pulls have completed."""
        self._check(lib.HipressWaitAll(self._handle))

    # ---- Serving ----

    def set_updater(
        self, updater: Callable[[int, str, np.ndarray, np.ndarray], None] | None
    ) -> None:
        """Make values of servers weights, which ``updater(key, name, grad, weight)`` updates.

        ``grad`` and ``weight`` are float32 views of native memory, of this server's shard. The
        updater changes ``weight`` in place. If it raises, the job fails with the exception's
        message. Keys by which workers with ``plan="auto"`` agree remain sums.
        """
        if updater is None:
            native = abi.HipressUpdater(0)
        else:

            def call(_context, key, name, gradient, weight, n):
                try:
                    gradient, weight = floats_at(gradient, n), floats_at(weight, n)
                    if key >= FIRST_KEY:  # a key of the plan, by which workers agree, is a sum
                        weight[:] = gradient
                    else:
                        updater(key, name.decode(), gradient, weight)
                    return 0
                except BaseException as error:  # an exception must not unwind into native code
                    lib.HipressSetError(_sentence(error))
                    return -1

            native = abi.HipressUpdater(call)
        self._check(lib.HipressSetUpdater(self._handle, native, None))
        # The library calls the new updater from now on, but a call of the previous one may be
        # starting.
        self._updaters.append(native)

    def fail_job(self, sentence: str) -> None:
        """Fail all operations of all workers, running and later, with this message. For servers."""
        self._check(lib.HipressFailJob(self._handle, sentence.encode()))

    def serve(
        self, controller: Callable[[int, int, bytes], bytes | Later | None] | None = None
    ) -> None:
        """Serve until the job ends; ``controller(worker, head, body)`` answers commands.

        If it returns :data:`LATER`, it is called again with the same command after the next
        command, and every second.

        Raises:
            HipressError: If a node has died or the job has failed.
        """
        interrupted: list[KeyboardInterrupt] = []

        def call(_context, rank, head, body, size):
            try:
                if controller is None:
                    raise HipressError("this server takes no commands")
                answer = controller(rank, head, bytes_at(body, size))
                if answer is LATER:
                    return LATER.value
                if answer:
                    lib.HipressSetReply(answer, len(answer))
                return 0
            except BaseException as error:  # an exception must not unwind into native code
                if isinstance(error, KeyboardInterrupt):
                    interrupted.append(error)
                    return abi.HIPRESS_INTERRUPTED
                lib.HipressSetError(_sentence(error))
                return -1

        code = lib.HipressServe(self._handle, abi.HipressController(call), None)
        if interrupted:
            raise interrupted[0]
        self._check(code)


def _sentence(error: BaseException) -> bytes:
    """Return the message for users, with the type of an error that is no HipressError."""
    own = isinstance(error, HipressError)
    return (str(error) if own else f"{type(error).__name__}: {error}").encode()
