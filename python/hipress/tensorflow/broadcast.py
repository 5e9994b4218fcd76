"""Broadcast of rank 0's values to all workers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from hipress.tensorflow.job import join


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
    received, at = numbers.astype(np.uint8), 0
    for variable, value in zip(variables, values):
        part = received[at : at + value.nbytes]
        at += value.nbytes
        variable.assign(np.frombuffer(part.tobytes(), value.dtype).reshape(value.shape))
