"""A gradient tape that averages gradients over the workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hipress.config import CompressionConfig
from hipress.tensorflow.gradients import Average


class DistributedGradientTape:
    """A ``tf.GradientTape`` whose gradients are the averages over all workers.

    >>> with tf.GradientTape() as tape:
    ...     loss = loss_of(model(images), labels)
    >>> tape = hvd.DistributedGradientTape(tape, compression="onebit")
    >>> gradients = tape.gradient(loss, model.trainable_variables)

    Or in the ``with`` itself. In eager mode or in a ``tf.function`` without jit_compile. Every
    other attribute is the tape's, but for Jacobians, which are refused.

    :param compression, op, sparse_as_dense: see :func:`DistributedOptimizer`
    :raises ValueError: in one sentence, for another op or a second compression
    :raises HipressError: for a compression that is not allowed, or if somebody is missing
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
        self._average = Average(compression, op, sparse_as_dense)

    def __getattr__(self, name: str) -> Any:
        if name == "_tape":  # copy asks for attributes before there are any
            raise AttributeError(name)
        return getattr(self._tape, name)

    def __enter__(self) -> DistributedGradientTape:
        self._tape.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._tape.__exit__(*exception)

    def jacobian(self, *_args: Any, **_options: Any) -> Any:
        """:raises ValueError: always, as that of the tape would not be averaged"""
        raise ValueError("Jacobians are not averaged: take them from the tf.GradientTape itself")

    batch_jacobian = jacobian

    def gradient(self, target: Any, sources: Any, *args: Any, **options: Any) -> Any:
        """Return the tape's gradients, averaged, in the structure of ``sources``, which are
        variables.

        :raises ValueError: in one sentence, for a gradient that cannot be sent
        """
        gradients = self._tape.gradient(target, sources, *args, **options)
        averages = self._average(tf.nest.flatten(gradients), tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(gradients, averages)
