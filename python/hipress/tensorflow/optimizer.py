"""Keras optimizer that averages gradients over the workers first."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import keras
import tensorflow as tf
from keras.src.saving.object_registration import GLOBAL_CUSTOM_NAMES

from hipress.autotune.methods import MAX_MOMENTUM
from hipress.config import CompressionConfig
from hipress.tensorflow.gradients import GradientAverage


class _Distributed:
    """Class that precedes an optimizer's own class among its bases."""

    @classmethod
    def from_config(cls, *args, **kwargs):
        """Make an optimizer of the original class, which averages nothing."""
        return cls.__mro__[2].from_config(*args, **kwargs)

    def apply(self, grads, trainable_variables=None):
        known = self._trainable_variables if trainable_variables is None else trainable_variables
        if len(known) != len(grads):
            if trainable_variables is None:
                return super().apply(grads, None)  # Keras raises the error
            raise ValueError(f"there are {len(grads)} gradients, and {len(known)} variables")
        if trainable_variables is not None and not self.built:
            # Build before waiting for averages: TensorFlow lifts this out of a function.
            self.build(list(trainable_variables))
        averages = self._hipress_average(list(grads), list(known))
        # In a graph, operations that need no gradient, such as the count of steps, also wait for
        # the averages: if a worker has died, there is no step.
        with tf.control_dependencies([each for each in averages if each is not None]):
            return super().apply(averages, trainable_variables)


def DistributedOptimizer(  # Horovod's name
    optimizer: keras.optimizers.Optimizer,
    compression: str | Mapping[str, object] | CompressionConfig = "none",
    *,
    op: str = "average",
    sparse_as_dense: bool = False,
) -> keras.optimizers.Optimizer:
    """Make ``optimizer`` average gradients over the workers, compressed, before it uses them.

    >>> optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), {"type": "tbq"})
    >>> model.compile(optimizer, "sparse_categorical_crossentropy", jit_compile=False)

    The result is the same object, with its state and its class's methods. A saved model contains
    the original optimizer. All workers must make the same steps. With the policy mixed_float16,
    pass a ``keras.optimizers.LossScaleOptimizer``. One around the result, as ``model.compile``
    makes it, would skip a step on one worker alone, and raises an error in a graph.

    Args:
        optimizer: A Keras 3 optimizer.
        compression: "auto", which chooses by measurements and gives its reasons in
            :func:`hipress.tensorflow.explain`; a codec's name; a mapping with "type" and other
            arguments of ``kv.set_gradient_compression`` (parameters, min_size, topology, plan); or
            a :class:`hipress.CompressionConfig`.
        op: "average" or "sum".
        sparse_as_dense: Convert tf.IndexedSlices to tensors, instead of raising an error.

    Raises:
        ValueError: For another optimizer or op, or a second compression.
        HipressError: For an invalid compression, or if a worker is missing.
    """
    check_optimizer(optimizer)
    average = GradientAverage(compression, op, sparse_as_dense, allows_feedback(optimizer))
    return averaging(optimizer, average)


def allows_feedback(optimizer: keras.optimizers.Optimizer) -> bool:
    """Return whether an optimizer supports error feedback.

    SGD does, because it adds gradients up, unless it clips accumulated residuals. Subclasses are
    unknown and count as unsupported.
    """
    clips = (optimizer.clipnorm, optimizer.clipvalue, optimizer.global_clipnorm)
    return (
        type(optimizer) is keras.optimizers.SGD
        and 0 <= optimizer.momentum <= MAX_MOMENTUM
        and not any(clips)
    )


def averaging(
    optimizer: keras.optimizers.Optimizer, average: Callable[[list, list], list]
) -> keras.optimizers.Optimizer:
    """Make ``optimizer`` use the results of ``average`` on gradients and their variables."""
    check_optimizer(optimizer)
    kind = type(optimizer)
    # Keep name and module, so that Keras saves and loads it as the original class.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    made = type(kind.__name__, (_Distributed, kind), names)
    if kind in GLOBAL_CUSTOM_NAMES:  # a class of the script, by which saved models name it
        GLOBAL_CUSTOM_NAMES[made] = GLOBAL_CUSTOM_NAMES[kind]
    object.__setattr__(optimizer, "__class__", made)
    object.__setattr__(optimizer, "_hipress_average", average)
    return optimizer


def check_optimizer(optimizer: object) -> None:
    """Check that an optimizer can average gradients, or be an inner optimizer."""
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ValueError(f"optimizer must be one of Keras 3's, not a {type(optimizer).__name__}")
    if keras.backend.backend() != "tensorflow":
        raise ValueError(f"Keras must run on TensorFlow, not on {keras.backend.backend()}")
    if isinstance(optimizer, _Distributed):
        raise ValueError("the optimizer averages gradients already")
