"""This worker's job: it joins at the first call and leaves at exit; broadcast and saved states."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from hipress.autotune.explanation import Explanation
from hipress.autotune.steps import FIRST_KEY
from hipress.config import CompressionConfig
from hipress.runtime import states
from hipress.runtime.node import HipressError, Node


class _WorkerNode(Node):
    """Node that reports the results of type "auto", and which optimizers support error feedback."""

    def __init__(self) -> None:
        super().__init__()
        self.compares_results = True
        self.feedback: list[bool] = []
        """Whether a user of averages supports error feedback, per user."""

    def allows_feedback(self) -> bool:
        return all(self.feedback)


class WorkerJob:
    """The node and the state that the calls of this process share.

    A process without a launcher is a job of one worker, whose averages are its own gradients.
    """

    def __init__(self) -> None:
        self.node = _WorkerNode() if os.environ.get("DMLC_ROLE") else None
        self.keys = itertools.count()
        """Numbers of keys, assigned in the same order on all workers."""
        self._compression: CompressionConfig | None = None
        self._initialized: list[int] = []
        self._states: list[bytes] | None = None

    @property
    def compresses(self) -> bool:
        """Whether gradients may be compressed."""
        return self._compression is not None and self._compression.type != "none"

    def initialized(self, keys: Sequence[int]) -> None:
        """Record keys of gradients, in their order, and load their saved states."""
        self._initialized.extend(keys)
        if self._states is not None:
            self._load(self._states, keys)

    def load_states(self, path: str | os.PathLike[str]) -> None:
        """Load states; see :func:`load_states`."""
        if self.node is None:
            return
        parts = states.read(self.node, path)
        if parts is None:
            own = states.path_of(path, self.node.rank)
            raise HipressError(f"cannot read the compression states {own}: there is no such file")
        self._load(parts, self._initialized)
        self._states = parts

    def _load(self, parts: list[bytes], keys: Sequence[int]) -> None:
        # Load consecutive numbers together: saved keys in between may not be in use yet.
        numbers = sorted(keys)
        begins = [n for n, before in zip(numbers, [None, *numbers]) if before != n - 1]
        lasts = [n for n, after in zip(numbers, [*numbers[1:], None]) if after != n + 1]
        for first, last in zip(begins, lasts):
            states.load(self.node, parts, first, last)

    def compress(
        self, compression: str | Mapping[str, object] | CompressionConfig, feedback: bool = False
    ) -> None:
        """Set the job's compression, or check that it is already set to this one."""
        try:
            config = CompressionConfig.of(compression)
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


_job: WorkerJob | None = None


def join() -> WorkerJob:
    """Return the job of this process, which the first call joins."""
    global _job
    if _job is None:
        _job = WorkerJob()
    return _job


def init() -> None:
    """Join the job and block until all workers are present. Other functions also do so.

    Raises:
        HipressError: If the environment is wrong or a worker is missing.
    """
    join()


def rank() -> int:
    """Return the rank of this worker, from 0."""
    node = join().node
    return 0 if node is None else node.rank


def size() -> int:
    """Return the number of workers in the job."""
    node = join().node
    return 1 if node is None else node.num_workers


def stats() -> dict[str, int]:
    """Return bytes and messages so far, see :meth:`.Node.stats`, or {} in a job of one process."""
    node = join().node
    return {} if node is None else node.stats()


def explain() -> Explanation:
    """Return the reasons for the current method and the measurements, as a printable object."""
    node = join().node
    return Explanation("uncompressed, for there is one worker") if node is None else node.explain()


def save_states(path: str | os.PathLike[str]) -> None:
    """Save the states of compression: residuals, momentum of codecs, counters of random ones.

    Every worker calls it after the same step, with its checkpoint of model and optimizer. Each
    worker atomically writes ``path.worker-RANK``; worker 0's file also holds the servers' states.
    Without compression no file is written.

    Raises:
        HipressError: If the file cannot be written. An existing file is then unchanged.
    """
    node = join().node
    if node is not None:
        states.save(node, path, 0, FIRST_KEY - 1)  # without the plans' measurements


def load_states(path: str | os.PathLike[str]) -> None:
    """Load the states that :func:`save_states` saved in a job of the same shape.

    The job then continues bit for bit. Every worker calls it before training. Variables get their
    states when they are first used.

    Raises:
        HipressError: If the file is missing or incomplete, or the job's shape or variables differ.
    """
    join().load_states(path)


def shutdown() -> None:
    """Leave the job, as the end of the process does. Nothing can be sent afterwards."""
    node = join().node
    if node is not None:
        node.leave()


def broadcast_variables(variables: Iterable[tf.Variable], root_rank: int = 0) -> None:
    """Make variables of any dtype, TensorFlow's or Keras's, equal to rank 0's, bit for bit.

    Call it outside of a ``tf.function``. The job keeps the sent values until its end, with two
    bytes per byte, so this is meant for the start of training.

    Args:
        variables: The same variables on all workers.
        root_rank: Must be 0. Scripts for Horovod pass it.

    Raises:
        ValueError: For another root_rank.
        HipressError: If the workers' variables have different sizes, or a node fails.
    """
    if root_rank != 0:
        raise ValueError(f"variables are those of rank 0: root_rank must be 0, not {root_rank!r}")
    if hasattr(variables, "variables"):
        raise TypeError("broadcast_variables takes model.variables, and not the model")
    job, variables = join(), list(variables)
    if strangers := [v for v in variables if not hasattr(v, "assign")]:
        raise TypeError(
            "broadcast_variables takes variables, as of model.variables, and not a "
            f"{type(strangers[0]).__name__}"
        )
    if not variables:
        warnings.warn(
            "there are no variables to broadcast: a model without an Input has none before its "
            "first call, and then each worker's own",
            stacklevel=2,
        )
    if job.node is None or not variables:
        return
    values = [np.asarray(variable) for variable in variables]
    data = np.frombuffer(b"".join(value.tobytes() for value in values), np.uint8)
    # A byte is sent as a number. In a job without servers, values are sent by sums with the zeros
    # of all other workers, which keep such numbers, whatever the variable's dtype.
    numbers, key = data.astype(np.float16), next(job.keys)
    job.node.init_array(key, numbers, f"values of {len(values)} variables")
    job.node.is_no_gradient(key)
    job.node.pull(key, numbers).wait()
    received, begin = numbers.astype(np.uint8), 0
    for variable, value in zip(variables, values):
        part = received[begin : begin + value.nbytes]
        begin += value.nbytes
        variable.assign(np.frombuffer(part.tobytes(), value.dtype).reshape(value.shape))
