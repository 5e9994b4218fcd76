"""Sums all gradients of a step in one call, in eager mode and in a tf.function alike."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from hipress.tensorflow.job import Job, join


class Average:
    """Averages gradients over the workers; residuals of compression are the node's.

    :param compression: a codec's name, or a mapping: "type" and what else
        ``kv.set_gradient_compression`` takes (parameters, min_size, topology, plan)
    :param op: "average" or "sum"
    :param sparse_as_dense: turns tf.IndexedSlices into tensors, instead of refusing them
    :raises ValueError: for another op, or if the job has another compression
    :raises HipressError: for a type or parameter that is not allowed, or if somebody is missing
    """

    def __init__(
        self, compression: str | Mapping[str, object], op: str, sparse_as_dense: bool
    ) -> None:
        if op not in ("average", "sum"):
            raise ValueError(f"op must be 'average' or 'sum', not {op!r}")
        self._job = join()
        self._job.compress(compression)
        self._op, self._sparse_as_dense = op, sparse_as_dense

    def __call__(self, gradients: Sequence, variables: Sequence) -> list:
        """The averages (or sums), in the order of ``gradients``; None stays None.

        :raises ValueError: in one sentence, for a gradient that cannot be sent
        """
        where = [i for i, gradient in enumerate(gradients) if gradient is not None]
        tensors = [self._tensor(gradients[i], variables[i]) for i in where]
        if self._job.node is not None and where:
            tensors = self._exchanged(tensors, [variables[i] for i in where])
        results = dict(zip(where, tensors))
        return [results.get(i) for i in range(len(gradients))]

    def _tensor(self, gradient, variable) -> tf.Tensor:
        if not hasattr(variable, "assign"):
            raise ValueError(
                f"gradients are averaged by variable, and a {type(variable).__name__} is none"
            )
        name = _name(variable)
        if isinstance(gradient, tf.IndexedSlices):
            if not self._sparse_as_dense:
                raise ValueError(
                    f"the gradient of {name} is sparse (tf.IndexedSlices), which HiPress does not "
                    "send: sparse_as_dense=True turns it into a tensor of the variable's size"
                )
            gradient = tf.convert_to_tensor(gradient)
        if gradient.dtype not in (tf.float32, tf.float16):
            raise ValueError(
                f"the gradient of {name} must be float32 or float16, not {gradient.dtype.name}"
            )
        return gradient

    def _exchanged(self, tensors: list[tf.Tensor], variables: list) -> list[tf.Tensor]:
        graph = tf.compat.v1.get_default_graph()
        if not tf.executing_eagerly() and GraphOrParentsInXlaContext(graph):
            raise ValueError(
                "gradients cannot be sent from a function that XLA compiles: give Keras's "
                "model.compile, or your tf.function, jit_compile=False"
            )
        dtypes = [tensor.dtype for tensor in tensors]
        group = _groups(self._job).of(variables, dtypes)
        divisor = self._job.node.num_workers if self._op == "average" else 1
        # Stateful, so that a tf.function runs exchanges in the same order on all workers.
        results = tf.numpy_function(functools.partial(group.exchange, divisor), tensors, dtypes)
        results = tf.nest.flatten(results)
        for result, variable in zip(results, variables):
            result.set_shape(variable.shape)
        return results


class _Group:
    """Gradients that travel together, with memory of their own, which the node uses in place."""

    def __init__(self, job: Job, keys: tuple[int, ...], variables: list, dtypes: list) -> None:
        self._arrays = [
            np.zeros(tuple(variable.shape), dtype.as_numpy_dtype)
            for variable, dtype in zip(variables, dtypes)
        ]
        self._group = job.node.group(keys, self._arrays)

    def exchange(self, divisor: int, *gradients: np.ndarray) -> list[np.ndarray]:
        """The sums over all workers, divided, in new memory, as TensorFlow keeps what it is given.

        :raises HipressError: if the job has failed; the message names the node that died
        """
        for array, gradient in zip(self._arrays, gradients):
            array[...] = gradient
        self._group.pushpull().wait()
        return [np.divide(a, a.dtype.type(divisor), out=np.empty_like(a)) for a in self._arrays]


class _Groups:
    """A key for each variable, and the groups in which they are sent."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._keys: dict[int, tuple[object, int]] = {}
        """By id; the variable with it, whose id is then nobody else's."""
        self._made: dict[tuple[int, ...], _Group] = {}

    def of(self, variables: list, dtypes: list[tf.DType]) -> _Group:
        """The group of these variables; all workers ask for new ones in the same order."""
        keys = tuple(self._key(v, dtype) for v, dtype in zip(variables, dtypes))
        if keys not in self._made:
            self._made[keys] = _Group(self._job, keys, variables, dtypes)
        return self._made[keys]

    def _key(self, variable, dtype: tf.DType) -> int:
        if id(variable) not in self._keys:
            key = next(self._job.keys)
            zeros = np.zeros(tuple(variable.shape), dtype.as_numpy_dtype)
            self._job.node.init_array(key, zeros, _name(variable))
            self._keys[id(variable)] = variable, key
        return self._keys[id(variable)][1]


@functools.cache
def _groups(job: Job) -> _Groups:
    return _Groups(job)


def _name(variable) -> str:
    """Keras's variables have a path, which says more than their name."""
    return getattr(variable, "path", variable.name)
