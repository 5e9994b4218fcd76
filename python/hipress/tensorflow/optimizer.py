"""An optimizer of Keras that averages gradients over the workers first."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import keras
import tensorflow as tf
from keras.src.saving.object_registration import GLOBAL_CUSTOM_NAMES

from hipress.autotune.methods import MAX_MOMENTUM
from hipress.config import CompressionConfig
from hipress.tensorflow.gradients import Average


class _Distributed:
    """A class that is put before an optimizer's own."""

    @classmethod
    def from_config(cls, *args, **kwargs):
        """Make one of the optimizer's own class, which averages nothing."""
        return cls.__mro__[2].from_config(*args, **kwargs)

    def apply(self, grads, trainable_variables=None):
        known = self._trainable_variables if trainable_variables is None else trainable_variables
        if len(known) != len(grads):
            if trainable_variables is None:
                return super().apply(grads, None)  # Keras says what is wrong
            raise ValueError(f"there are {len(grads)} gradients, and {len(known)} variables")
        if trainable_variables is not None and not self.built:
            # Before what waits for the averages: TensorFlow lifts it out of a function.
            self.build(list(trainable_variables))
        averages = self._hipress_average(list(grads), list(known))
        # In a graph what needs no gradient, such as the count of steps, waits for them, too: if
        # somebody has died there is no step.
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

    It is the same object, with its state and its class's methods, and a saved model has the
    optimizer that it was. All workers must make the same steps. With the policy mixed_float16 give
    it a ``keras.optimizers.LossScaleOptimizer``: one around it, as ``model.compile`` makes, would
    skip a step on one worker alone, and is refused in a graph.

    :param optimizer: one of Keras 3's
    :param compression: "auto", which chooses by what workers measure and says why in
        :func:`hipress.tensorflow.explain`; a codec's name; a mapping with "type" and what else
        ``kv.set_gradient_compression`` takes (parameters, min_size, topology, plan); or a
        :class:`hipress.CompressionConfig`
    :param op: "average" or "sum"
    :param sparse_as_dense: turns tf.IndexedSlices into tensors, instead of refusing them
    :raises ValueError: in one sentence, for another optimizer or op, or a second compression
    :raises HipressError: for a compression that is not allowed, or if somebody is missing
    """
    check_optimizer(optimizer)
    average = Average(compression, op, sparse_as_dense, bears_feedback(optimizer))
    return averaging(optimizer, average)


def bears_feedback(optimizer: keras.optimizers.Optimizer) -> bool:
    """Return whether training bears residuals as it is: SGD does, as it adds gradients up, unless
    it clips what residuals have saved up; of subclasses nothing is known."""
    clips = (optimizer.clipnorm, optimizer.clipvalue, optimizer.global_clipnorm)
    return (
        type(optimizer) is keras.optimizers.SGD
        and 0 <= optimizer.momentum <= MAX_MOMENTUM
        and not any(clips)
    )


def averaging(
    optimizer: keras.optimizers.Optimizer, average: Callable[[list, list], list]
) -> keras.optimizers.Optimizer:
    """Make ``optimizer`` use what ``average`` makes of gradients and their variables.

    :raises ValueError: for another optimizer
    """
    check_optimizer(optimizer)
    kind = type(optimizer)
    # Its name and module stay, so that Keras saves and loads it as what it is.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    made = type(kind.__name__, (_Distributed, kind), names)
    if kind in GLOBAL_CUSTOM_NAMES:  # a class of the script's own, which saved models name so
        GLOBAL_CUSTOM_NAMES[made] = GLOBAL_CUSTOM_NAMES[kind]
    object.__setattr__(optimizer, "__class__", made)
    object.__setattr__(optimizer, "_hipress_average", average)
    return optimizer


def check_optimizer(optimizer: object) -> None:
    """:raises ValueError: for one that cannot average gradients, or be an inner optimizer"""
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ValueError(f"optimizer must be one of Keras 3's, not a {type(optimizer).__name__}")
    if keras.backend.backend() != "tensorflow":
        raise ValueError(f"Keras must run on TensorFlow, not on {keras.backend.backend()}")
    if isinstance(optimizer, _Distributed):
        raise ValueError("the optimizer averages gradients already")
