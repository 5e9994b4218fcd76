"""An overflow on one worker is skipped by all; argument: the compression, as JSON."""

import json
import sys

import keras
import numpy as np

import hipress.tensorflow as hvd
from common import print_bits, rank, refused

compression = json.loads(sys.argv[1])
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [keras.Input((4,)), keras.layers.Dense(600, "relu"), keras.layers.Dense(1)]
)
scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01), initial_scale=8.0)
optimizer = hvd.DistributedOptimizer(scaled, compression)
model.compile(optimizer, "mse", jit_compile=False)
assert model.optimizer is optimizer
hvd.broadcast_variables(model.variables)
x = np.random.default_rng(rank).normal(size=(12, 4)).astype(np.float32)
y = np.ones((12, 1), np.float32)
model.fit(x, y, 4, epochs=2, verbose=0)
before = model.get_weights()
model.fit(x[:4], np.full((4, 1), np.inf if rank == 1 else 1), 4, verbose=0)
assert all((a == b).all() for a, b in zip(before, model.get_weights()))
model.fit(x, y, 4, verbose=0)
assert any((a != b).any() for a, b in zip(before, model.get_weights()))
assert np.isfinite(model.get_weights()[0]).all()
assert float(optimizer.dynamic_scale) == 4, float(optimizer.dynamic_scale)
print_bits(model.variables)

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(
    hvd.DistributedOptimizer(keras.optimizers.SGD(), compression), "mse", jit_compile=False
)
refused("DistributedOptimizer(LossScaleOptimizer(", lambda: model.fit(x, y, verbose=0))
