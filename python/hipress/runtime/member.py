"""Membership of this process in a job: joining, members, leaving.

The environment describes a job by the names of MXNet and ps-lite. Code can pass the same names as
options: a process may be a member of any number of jobs.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from ctypes import c_void_p
from typing import TYPE_CHECKING, Any

from hipress.compression import user_codecs  # noqa: F401 (loads codecs)
from hipress.errors import HipressError
from hipress.native.library import call, check_call, error_of, lib, string_pairs
from hipress.runtime import interrupts
from hipress.runtime.process_end import ProcessEnd
from hipress.topology import graph
from hipress.topology.graph import Role

if TYPE_CHECKING:
    from typing_extensions import Self


def worker_name(rank: int, ranks: object = "") -> str:
    """Return a worker's name in sentences for users, as ``NodeNames`` in C++ does.

    Args:
        rank: Rank in the job.
        ranks: HIPRESS_RANKS of the job: what users call ranks 0, 1, ..., for example "1,3".
    """
    return f"rank {str(ranks).split(',')[rank]}" if ranks else f"worker {rank}"


class JobMember:
    """Membership of this process in a job.

    The constructor joins the job and blocks until all nodes are present. A ``with`` statement
    leaves the job at the end of the block: normally, or after an exception as a failure. Otherwise
    the process leaves in the same ways when it ends (:mod:`hipress.runtime.process_end`).

    Args:
        options: Values by the environment's names (``DMLC_ROLE``, ``HIPRESS_SECRET``, ...). They
            override the environment.

    Raises:
        HipressError: If options are wrong or a node is missing.
    """

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        self._ranks = str((options or {}).get("HIPRESS_RANKS", ""))
        pairs = string_pairs(options or {})
        self._handle = c_void_p(call(lib.HipressStartWith, *pairs, kind=self.Error))
        self._end = ProcessEnd(self, self.exits_at_once)
        self._freeing = threading.Lock()  # another thread may call interrupt()
        if self.role == "worker":
            interrupts.watch(self)

    Error: type[Exception] = HipressError
    """Type of error that this node raises."""
    exits_at_once = False
    """Whether a process whose node has failed skips the rest of its exit."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._end.forked:  # a child process that ends inside its parent's with-block
            return
        well = error is None or (isinstance(error, SystemExit) and error.code in (None, 0))
        if not well:
            self.abort()
        elif not self._end.left:  # the block itself may have called stop()
            try:
                self.leave()
            except BaseException:
                self.abort()
                raise

    def _check(self, code: int) -> None:
        check_call(code, self.Error)

    def _call(self, function: Any, *arguments: Any) -> Any:
        """Call a C function of this node and return its results."""
        return call(function, self._handle, *arguments, kind=self.Error)

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        """Convert ValueErrors to this node's errors."""
        try:
            yield
        except ValueError as error:
            raise self.Error(str(error)) from error

    # ---- Who we are ----

    @property
    def handle(self) -> c_void_p:
        """HipressNodeHandle for native front ends."""
        return self._handle

    @property
    def role(self) -> str:
        """Role of this node: "worker", "server" or "scheduler"."""
        return self._call(lib.HipressRole)

    @property
    def rank(self) -> int:
        """Rank among the nodes of this role, from 0."""
        return self._call(lib.HipressRank)

    @property
    def name(self) -> str:
        """Name of this worker in sentences for users."""
        return worker_name(self.rank, self._ranks)

    def _group_size(self) -> tuple[int, int]:
        return self._call(lib.HipressGroupSize)

    @property
    def num_workers(self) -> int:
        """Number of workers in the job."""
        return self._group_size()[0]

    @property
    def num_servers(self) -> int:
        """Number of servers in the job."""
        return self._group_size()[1]

    @property
    def timeout(self) -> int:
        """Seconds that a wait for other nodes may last (``HIPRESS_TIMEOUT``)."""
        return self._call(lib.HipressTimeout)

    def num_dead_node(self, node_id: int = 7) -> int:
        """Return the number of dead nodes of a group: the scheduler (1), servers (2), workers (4).

        ``node_id`` is the sum of these numbers. A node that has left as a failure counts itself.
        """
        return self._call(lib.HipressNumDeadNode, node_id)

    def left(self) -> str:
        """Return the names of :meth:`nodes_left`: "worker 0 and worker 2"; empty for none."""
        names = [
            "the scheduler" if node.role == Role.SCHEDULER else str(node)
            for node in self.nodes_left()
        ]
        return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))

    def nodes_left(self) -> list[graph.NodeId]:
        """Return the nodes that have left the job without a failure.

        Servers and the scheduler know of all workers. A worker knows of those it had a connection
        with.
        """
        nodes, count = self._call(lib.HipressLeft)
        return [graph.NodeId.unpack(node) for node in nodes[:count]]

    def failure(self) -> str:
        """Return the message of :meth:`job_error`, which is empty if the job has not failed."""
        return str(self.job_error() or "")

    def job_error(self) -> HipressError | None:
        """Return the error of all operations if the job has failed, otherwise None."""
        return error_of(self._call(lib.HipressFailure))

    def stats(self) -> dict[str, int]:
        """Return counters of the transport and, on a worker, of the store, in bytes or messages.

        ``pushed_bytes`` and ``pulled_bytes`` count sent and received bytes, headers included.
        ``pushed_raw_bytes`` and ``pulled_raw_bytes`` are their uncompressed sizes.
        """
        return json.loads(self._call(lib.HipressStats))

    def debug(self) -> dict[str, object]:
        """Return this node's activities, waits and latest events, in the form of ``hipress debug``.

        See ``docs/guides/debug-a-hang.md``.
        """
        return json.loads(self._call(lib.HipressDebugDump))

    # ---- Leaving ----

    @property
    def left_job(self) -> bool:
        """Whether the node has left the job, normally or as a failure."""
        return self._end.left

    def leave(self) -> None:
        """Wait until all operations of this node have ended, then leave the job.

        In a forked child of the process that joined, this does nothing.

        Raises:
            HipressError: If a node has died, so that operations cannot end. This node has not left.
        """
        if self._end.forked:
            return
        self.settle()
        self.stop()

    def settle(self) -> None:
        """Wait until all operations of this node have ended, so that it can leave."""
        if self.role == "worker":
            self._call(lib.HipressWaitAll)

    def stop(self) -> None:
        """Leave the job at once. In a forked child this does nothing."""
        if self._end.leave():
            try:
                self.disconnect()
                self._check(lib.HipressStop(self._handle))
            except BaseException:  # a signal handler's, such as KeyboardInterrupt
                lib.HipressAbort(self._handle)
                raise

    def abort(self, status: int = 1) -> None:
        """Leave the job as a failure. The other nodes get an error that names this node.

        Args:
            status: Exit status of the process, if it :attr:`exits_at_once`.
        """
        if self._end.leave(status):
            self.disconnect()
            self._check(lib.HipressAbort(self._handle))

    def free(self) -> None:
        """Free the memory and the files of a node that has left, and that is not used again."""
        if self._end.left and not self._end.forked and self._handle:
            with self._freeing:
                handle, self._handle = self._handle, c_void_p()
                lib.HipressFree(handle)

    def interrupt(self) -> None:
        """End all operations of a worker, if there are any, with an error on all workers."""
        with self._freeing:
            if not self._end.left:
                sentence = f"{self.name} was interrupted (SIGINT)"
                lib.HipressFailPending(self._handle, sentence.encode())

    def disconnect(self) -> None:
        """Disconnect native front ends, just before the node leaves."""
