"""Copies an optimizer by its config and makes the copy distributed."""

import keras
import numpy as np

import hipress.tensorflow as hvd
from common import network

optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.25))
copy = type(optimizer).from_config(optimizer.get_config())
assert type(copy) is keras.optimizers.Adam and abs(float(copy.learning_rate) - 0.25) < 1e-6
model = network()
model.compile(hvd.DistributedOptimizer(copy), "mse", jit_compile=False)
model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
