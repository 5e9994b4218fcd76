"""Broadcasts variables of every dtype."""

import warnings

import keras
import numpy as np
import tensorflow as tf

import hipress.tensorflow as hvd
from common import print_bits, rank, refused


def variables(worker):
    odd = np.array([-0.0, np.nan, np.inf, 1e-42, worker], np.float32)
    random = np.random.default_rng(worker)
    values = [
        odd,
        np.int64(-worker - 2),
        np.array([worker == 0, True]),
        random.normal(size=(7, 300)),
        tf.cast([1.5, -0.0, worker], tf.bfloat16),
        random.integers(0, 2**32, 40_000, dtype=np.uint32),
    ]
    return [tf.Variable(value) for value in values] + [keras.Variable(random.normal(size=3))]


mine = variables(rank)
hvd.broadcast_variables(mine, root_rank=0)
for one, other in zip(mine, variables(0)):
    assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), other
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    hvd.broadcast_variables([])
assert "no variables to broadcast" in str(caught[0].message)
refused("root_rank must be 0, not 1", lambda: hvd.broadcast_variables(mine, root_rank=1))
print_bits(mine)
