"""Membership of this worker in the job: joined at the first call, left when the process ends."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence

from hipress.autotune.explanation import Explanation
from hipress.autotune.steps import FIRST_KEY
from hipress.config import CompressionConfig
from hipress.runtime import states
from hipress.runtime.node import HipressError, Node


class _WorkerNode(Node):
    """A node that shows type "auto" results, and tells whether optimizers bear feedback."""

    def __init__(self) -> None:
        super().__init__()
        self.compares_results = True
        self.feedback: list[bool] = []
        """Whether each user of averages bears error feedback."""

    def allows_feedback(self) -> bool:
        return all(self.feedback)


class Job:
    """The node and what the calls of this process share.

    A process that no launcher started is a job of one: its gradients are its own averages.
    """

    def __init__(self) -> None:
        self.node = _WorkerNode() if os.environ.get("DMLC_ROLE") else None
        self.keys = itertools.count()
        """The numbers of keys, given out in the same order on all workers."""
        self._compression: CompressionConfig | None = None
        self._initialised: list[int] = []
        self._states: list[bytes] | None = None

    @property
    def compresses(self) -> bool:
        """Whether gradients may be compressed."""
        return self._compression is not None and self._compression.type != "none"

    def initialised(self, keys: Sequence[int]) -> None:
        """Note keys of gradients, in their order; load what was saved of them.

        :raises HipressError: if that does not fit them
        """
        self._initialised.extend(keys)
        if self._states is not None:
            self._load(self._states, keys)

    def load_states(self, path: str | os.PathLike[str]) -> None:
        """See :func:`load_states`."""
        if self.node is None:
            return
        parts = states.read(self.node, path)
        if parts is None:
            own = states.path_of(path, self.node.rank)
            raise HipressError(f"cannot read the compression states {own}: there is no such file")
        self._load(parts, self._initialised)
        self._states = parts

    def _load(self, parts: list[bytes], keys: Sequence[int]) -> None:
        # In runs: between them may be keys that were saved and are not used yet.
        numbers = sorted(keys)
        begins = [n for n, before in zip(numbers, [None, *numbers]) if before != n - 1]
        ends = [n for n, after in zip(numbers, [*numbers[1:], None]) if after != n + 1]
        for first, last in zip(begins, ends):
            states.load(self.node, parts, first, last)

    def compress(
        self, wanted: str | Mapping[str, object] | CompressionConfig, feedback: bool = False
    ) -> None:
        """Set the job's compression, or checks that it is the one that is set.

        :param feedback: whether who asks bears error feedback
        :raises ValueError: if it is another one
        :raises HipressError: for a type or parameter that is not allowed
        """
        try:
            config = CompressionConfig.of(wanted)
            config.store_params()
        except ValueError as error:
            raise HipressError(str(error)) from error
        if self.node is not None:
            self.node.feedback.append(feedback)
        if self._compression is None:
            if self.node is not None:
                self.node.set_gradient_compression(config)
            self._compression = config
        elif self._compression != config:
            raise ValueError(
                f"a job has one compression: it is {self._compression}, and cannot be {config}, too"
            )

    def leave(self) -> None:
        """Leaves in peace, when all that was pushed is over."""
        if self.node is not None:
            self.node.leave()


_job: Job | None = None


def join() -> Job:
    """Return the job of this process; the first call joins it.

    :raises HipressError: in one sentence, if the environment is wrong or somebody is missing
    """
    global _job
    if _job is None:
        _job = Job()
    return _job


def init() -> None:
    """Join the job and block until everybody is there; every other call does so, too.

    :raises HipressError: in one sentence, if the environment is wrong or somebody is missing
    """
    join()


def rank() -> int:
    """Return the number of this worker, from 0."""
    node = join().node
    return 0 if node is None else node.rank


def size() -> int:
    """Return the number of workers in the job."""
    node = join().node
    return 1 if node is None else node.num_workers


def stats() -> dict[str, int]:
    """Return bytes and messages so far, see :meth:`.Node.stats`; none in a job of one process."""
    node = join().node
    return {} if node is None else node.stats()


def explain() -> Explanation:
    """Why gradients are synchronized as they are, and what was measured; to be printed."""
    node = join().node
    return Explanation("uncompressed, for there is one worker") if node is None else node.explain()


def save_states(path: str | os.PathLike[str]) -> None:
    """Save what compression remembers: residuals, momentum of codecs, counts of random ones.

    Every worker calls it, after the same step, beside its checkpoint of model and optimizer. Each
    writes ``path.worker-RANK``, at once; worker 0's holds the servers' part, too. Where nothing is
    compressed there is nothing to save, and no file.

    :raises HipressError: if it cannot be written; what was there is there still
    """
    node = join().node
    if node is not None:
        states.save(node, path, 0, FIRST_KEY - 1)  # without what plans have measured


def load_states(path: str | os.PathLike[str]) -> None:
    """Load what :func:`save_states` saved, in a job of the same shape.

    The job then goes on with the same bits. Every worker calls it, before training; variables get
    theirs when they are first used.

    :raises HipressError: for no file, one that is not whole, or another shape of job or variables
    """
    join().load_states(path)


def shutdown() -> None:
    """Leave the job in peace, as the end of the process does; after it nothing can be sent."""
    join().leave()
