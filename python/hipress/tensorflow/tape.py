"""Gradient tape that averages gradients over the workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hipress.config import CompressionConfig
from hipress.tensorflow.gradients import Average


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
        self._average = Average(compression, op, sparse_as_dense)

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
        """Return the tape's gradients, averaged, in the structure of ``sources``, which are
        variables.

        Raises:
            ValueError: For a gradient that cannot be sent.
        """
        gradients = self._tape.gradient(target, sources, *args, **options)
        averages = self._average(tf.nest.flatten(gradients), tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(gradients, averages)
