"""A gradient tape that averages gradients over the workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hipress.tensorflow.gradients import Average


class DistributedGradientTape:
    """A ``tf.GradientTape`` whose gradients are the averages over all workers.

    >>> with tf.GradientTape() as tape:
    ...     loss = loss_of(model(images), labels)
    >>> tape = hvd.DistributedGradientTape(tape, compression="onebit")
    >>> gradients = tape.gradient(loss, model.trainable_variables)

    In eager mode or in a ``tf.function`` without jit_compile. Every other attribute is the tape's.

    :param compression, op, sparse_as_dense: see :func:`DistributedOptimizer`
    :raises ValueError: in one sentence, for another op or a second compression
    :raises HipressError: for a compression that is not allowed, or if somebody is missing
    """

    def __init__(
        self,
        tape: tf.GradientTape,
        compression: str | Mapping[str, object] = "none",
        *,
        op: str = "average",
        sparse_as_dense: bool = False,
    ) -> None:
        self._tape = tape
        self._average = Average(compression, op, sparse_as_dense)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)

    def gradient(self, target: Any, sources: Any, *args: Any, **options: Any) -> Any:
        """The tape's gradients, averaged, in the structure of ``sources``, which are variables.

        :raises ValueError: in one sentence, for a gradient that cannot be sent
        """
        gradients = self._tape.gradient(target, sources, *args, **options)
        averages = self._average(tf.nest.flatten(gradients), tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(gradients, averages)
