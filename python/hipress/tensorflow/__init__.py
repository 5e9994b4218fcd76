"""Compressed gradients for TensorFlow and Keras, over the same nodes as MXNet's store.

>>> import hipress.tensorflow as hvd
>>> optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), "onebit")
>>> model.compile(optimizer, loss, jit_compile=False)
>>> hvd.broadcast_variables(model.variables)

Import it first: in a server or scheduler of a job (DMLC_ROLE) the import serves until the job ends,
and then exits.
"""

# What belongs here: Keras optimizers and gradient tapes. `gradients` gives each variable a key of
# `hipress.runtime.node.Node`, and copies a step's gradients into a group's memory, inside a
# `tf.function` through `tf.numpy_function`. From there on the path is the store's. In elastic jobs
# (`elastic`), one graph of TensorFlow serves all views.

from __future__ import annotations

import os

if os.environ.get("DMLC_ROLE") in ("server", "scheduler"):
    from hipress.runtime import serving

    serving.exit_with(serving.serve())

from hipress.errors import not_installed

try:
    import tensorflow  # noqa: F401
except ModuleNotFoundError as error:
    raise not_installed(
        error,
        "tensorflow",
        "hipress.tensorflow needs TensorFlow 2.16 or later: pip install 'hipress[tensorflow]' "
        "(in HiPress's source tree: make tensorflow)",
    ) from None

from hipress.runtime.node import HipressError
from hipress.tensorflow.diloco import DiLoCo
from hipress.tensorflow.gradients import DistributedGradientTape
from hipress.tensorflow.optimizer import DistributedOptimizer
from hipress.tensorflow.worker_job import (
    broadcast_variables,
    explain,
    init,
    load_states,
    rank,
    save_states,
    shutdown,
    size,
    stats,
)

__all__ = [
    "DiLoCo",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "HipressError",
    "broadcast_variables",
    "explain",
    "init",
    "load_states",
    "rank",
    "save_states",
    "shutdown",
    "size",
    "stats",
]
