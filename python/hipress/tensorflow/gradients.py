"""Averages of all gradients of a step in one call, in eager mode and in a tf.function; the tape."""

from __future__ import annotations

import functools
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext
from tensorflow.python.ops.control_flow_v2_func_graphs import CondBranchFuncGraph

from hipress.config import CompressionConfig
from hipress.dtypes import NUMPY
from hipress.tensorflow.worker_job import WorkerJob, join


class GradientAverage:
    """Average of gradients over the workers. The node holds the residuals of compression.

    Args:
        compression: A codec's name; a mapping with "type" and other arguments of
            ``kv.set_gradient_compression`` (parameters, min_size, topology, plan); or a
            :class:`hipress.CompressionConfig`.
        op: "average" or "sum".
        sparse_as_dense: Convert tf.IndexedSlices to tensors, instead of raising an error.
        feedback: Whether the user of the averages supports error feedback, for type "auto".
    """

    def __init__(
        self,
        compression: str | Mapping[str, object] | CompressionConfig,
        op: str,
        sparse_as_dense: bool,
        feedback: bool = False,
    ) -> None:
        if op not in ("average", "sum"):
            raise ValueError(f"op must be 'average' or 'sum', not {op!r}")
        self._job = join()
        self._job.compress(compression, feedback)
        self._op, self._sparse_as_dense = op, sparse_as_dense

    def __call__(self, gradients: Sequence, variables: Sequence) -> list:
        """Return the averages (or sums), in the order of ``gradients``; None stays None."""
        check_no_cond()
        averages = [
            None if gradient is None else to_tensor(gradient, variable, self._sparse_as_dense)
            for gradient, variable in zip(gradients, variables)
        ]
        if self._job.node is None:
            return averages
        check_not_compiled()
        group = _groups(self._job).of(averages, variables)
        if not group.indices:
            return averages
        tensors = [averages[i] for i in group.indices]
        dtypes = [tensor.dtype for tensor in tensors]
        divisor = self._job.node.num_workers if self._op == "average" else 1
        # Stateful, so that a tf.function runs exchanges in the same order on all workers.
        results = tf.numpy_function(functools.partial(group.exchange, divisor), tensors, dtypes)
        for i, result in zip(group.indices, tf.nest.flatten(results)):
            result.set_shape(variables[i].shape)
            averages[i] = result
        return averages


def to_tensor(gradient, variable, sparse_as_dense: bool) -> tf.Tensor:
    """Return a gradient in the form in which it is sent."""
    if not hasattr(variable, "assign"):
        raise ValueError(
            f"gradients are averaged by variable, and a {type(variable).__name__} is none"
        )
    name = name_of(variable)
    if isinstance(gradient, tf.IndexedSlices):
        if not sparse_as_dense:
            raise ValueError(
                f"the gradient of {name} is sparse (tf.IndexedSlices), which HiPress does not "
                "send: sparse_as_dense=True turns it into a tensor of the variable's size"
            )
        gradient = tf.convert_to_tensor(gradient)
    if gradient.dtype.name not in NUMPY:
        raise ValueError(
            f"the gradient of {name} must be float32 or float16, not {gradient.dtype.name}"
        )
    return gradient


def check_not_compiled() -> None:
    """Check that the current function is not compiled by XLA."""
    graph = tf.compat.v1.get_default_graph()
    if not tf.executing_eagerly() and GraphOrParentsInXlaContext(graph):
        raise ValueError(
            "gradients cannot be sent from a function that XLA compiles: give Keras's "
            "model.compile, or your tf.function, jit_compile=False"
        )


def check_no_cond() -> None:
    """Check that the current function is not called in a tf.cond."""
    graph = tf.compat.v1.get_default_graph()
    # With steps_per_execution, Keras calls this function in a tf.cond, which tests for more data.
    # Workers get the same answer, because they must make the same steps.
    while graph is not None and getattr(graph, "name", "") != "one_step_on_data":
        if isinstance(graph, CondBranchFuncGraph):
            raise ValueError(
                "gradients cannot be averaged inside a tf.cond, to which one worker alone may not "
                "come; of a loss scaler make it DistributedOptimizer(LossScaleOptimizer(optimizer))"
            )
        graph = getattr(graph, "outer_graph", None)


class _Group:
    """Gradients that are sent together, in memory that the node uses in place.

    Some codecs cannot encode a NaN or Inf, and would keep it in their residuals. If gradients may
    be compressed, a worker that has one therefore sends zeros. A key of one element, which is never
    compressed, counts these workers. Uncompressed sums contain the NaN or Inf themselves.
    """

    def __init__(
        self,
        job: WorkerJob,
        indices: list[int],
        keys: list[int],
        arrays: list[np.ndarray],
        number: int,
    ) -> None:
        self.indices = indices
        """Indices of a step's gradients that are sent."""
        self._arrays, self._node = arrays, job.node
        self._checks, self._lost = job.compresses, np.zeros(1, np.float32)
        if self._checks:
            keys, arrays = [*keys, number], [*arrays, self._lost]
        self._group = job.node.group(keys, arrays)

    def exchange(self, divisor: int, *gradients: np.ndarray) -> list[np.ndarray]:
        """Return the sums over all workers, divided, in new memory, because TensorFlow keeps it.

        All are NaN if gradients may be compressed and a worker has a NaN or Inf in one.
        """
        for array, gradient in zip(self._arrays, gradients):
            array[...] = gradient
        self._lost[0] = self._checks and not all(map(_is_finite, self._arrays))
        if self._lost[0]:
            for array in self._arrays:
                array[...] = 0
        pending = self._group.pushpull()  # type "auto" may measure here first
        began = time.perf_counter()
        pending.wait()
        self._node.observe_results(self._group.keys, self._arrays, time.perf_counter() - began)
        if self._lost[0]:
            return [np.full_like(array, np.nan) for array in self._arrays]
        return [np.divide(a, a.dtype.type(divisor), out=np.empty_like(a)) for a in self._arrays]


def _is_finite(values: np.ndarray) -> bool:
    """Return whether no element of a float32 or float16 array is NaN or Inf."""
    if values.dtype == np.float16:  # NumPy's isfinite takes five times as long for float16
        return bool((values.view(np.uint16) & 0x7FFF).max() < 0x7C00)
    return bool(np.isfinite(values).all())


class _Groups:
    """One key per variable, and the groups in which they are sent."""

    def __init__(self, job: WorkerJob) -> None:
        self._job = job
        self._keys: dict[int, tuple[object, int]] = {}
        """Variables and their keys, by id. A kept variable's id is not reused."""
        self._initialized: set[int] = set()
        self._made: dict[tuple, _Group] = {}

    def of(self, gradients: list[tf.Tensor | None], variables: Sequence) -> _Group:
        """Return a step's group of gradients. All workers request new ones in the same order."""
        # A None gradient also gets a number, so that numbers do not depend on gradients.
        keys = tuple(self._key(variable) for variable in variables)
        identity = keys, tuple(gradient is None for gradient in gradients)
        if identity not in self._made:
            self._made[identity] = self._make(keys, gradients, variables)
        return self._made[identity]

    def _make(self, keys: tuple, gradients: list, variables: Sequence) -> _Group:
        # Workers with different None gradients would wait for different keys, so names are
        # compared.
        name = _name_of_all(gradients, variables)
        key = next(self._job.keys)
        self._job.node.init_array(key, np.zeros(1, np.float32), name, compress=False)
        if not self._job.compresses:
            self._job.node.is_no_gradient(key)  # otherwise it is sent with the group, in each step
        indices, arrays, new = [], [], []
        for i, gradient in enumerate(gradients):
            if gradient is None or 0 in (shape := tuple(variables[i].shape)):
                continue  # the store does not support gradients of zero elements
            indices.append(i)
            arrays.append(np.zeros(shape, gradient.dtype.as_numpy_dtype))
            if keys[i] not in self._initialized:
                compress = self._job.node.compresses_shape(shape)
                self._job.node.init_array(keys[i], arrays[-1], name_of(variables[i]), compress)
                self._initialized.add(keys[i])
                new.append(keys[i])
        self._job.initialized(new)
        return _Group(self._job, indices, [keys[i] for i in indices], arrays, key)

    def _key(self, variable) -> int | None:
        if not hasattr(variable, "assign"):
            return None  # a tensor, not a variable: its gradient is None, or an error was raised
        if id(variable) not in self._keys:
            self._keys[id(variable)] = variable, next(self._job.keys)
        return self._keys[id(variable)][1]


def _name_of_all(gradients: list, variables: Sequence) -> str:
    """Return a text that must be equal on all workers: number of gradients, and the None ones."""
    without = [
        f"{i} {name_of(variable) if hasattr(variable, 'assign') else 'a tensor'}"
        for i, (gradient, variable) in enumerate(zip(gradients, variables))
        if gradient is None
    ]
    text = f"gradients of {len(variables)} variables, None for: {', '.join(without) or 'none'}"
    return text if len(text) < 500 else f"{text[:500]}... ({zlib.crc32(text.encode()):08x})"


@functools.cache
def _groups(job: WorkerJob) -> _Groups:
    return _Groups(job)


def name_of(variable) -> str:
    """Return a variable's path if it is Keras's, otherwise its name."""
    return getattr(variable, "path", variable.name)


class DistributedGradientTape:
    """``tf.GradientTape`` whose gradients are the averages over all workers.

    >>> with tf.GradientTape() as tape:
    ...     loss = loss_of(model(images), labels)
    >>> tape = hvd.DistributedGradientTape(tape, compression="onebit")
    >>> gradients = tape.gradient(loss, model.trainable_variables)

    It may also be made in the ``with`` statement. It works in eager mode, and in a ``tf.function``
    without jit_compile. Every other attribute is the tape's, except Jacobians, which raise an
    error.

    Args:
        compression: See :func:`DistributedOptimizer`.
        op: See :func:`DistributedOptimizer`.
        sparse_as_dense: See :func:`DistributedOptimizer`.

    Raises:
        ValueError: For another op or a second compression.
        HipressError: For an invalid compression, or if a worker is missing.
    """

    def __init__(
        self,
        tape: tf.GradientTape,
        compression: str | Mapping[str, object] | CompressionConfig = "none",
        *,
        op: str = "average",
        sparse_as_dense: bool = False,
    ) -> None:
        self._tape = tape
        self._average = GradientAverage(compression, op, sparse_as_dense)

    def __getattr__(self, name: str) -> Any:
        if name == "_tape":  # copy reads attributes before any are set
            raise AttributeError(name)
        return getattr(self._tape, name)

    def __enter__(self) -> DistributedGradientTape:
        self._tape.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._tape.__exit__(*exception)

    def jacobian(self, *_args: Any, **_options: Any) -> Any:
        """Refuse Jacobians, which the tape would not average.

        Raises:
            ValueError: Always.
        """
        raise ValueError("Jacobians are not averaged: take them from the tf.GradientTape itself")

    batch_jacobian = jacobian

    def gradient(self, target: Any, sources: Any, *args: Any, **options: Any) -> Any:
        """Return the tape's averaged gradients, in the structure of ``sources``.

        Raises:
            ValueError: For a gradient that cannot be sent.
        """
        gradients = self._tape.gradient(target, sources, *args, **options)
        averages = self._average(tf.nest.flatten(gradients), tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(gradients, averages)
