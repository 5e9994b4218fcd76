"""Trains Keras with the settings in HELD_UP, as JSON."""

import hashlib
import json
import os

import keras
import numpy as np

import hipress.tensorflow as hvd

settings = json.loads(os.environ["HELD_UP"])
width = settings["width"]
keras.utils.set_random_seed(hvd.rank())
model = keras.Sequential(
    [keras.Input((width,))] + [keras.layers.Dense(width) for _ in range(settings["layers"])]
)
optimizer = hvd.DistributedOptimizer(
    keras.optimizers.SGD(1e-3, momentum=0.5), {"type": settings["type"], "min_size": 1000}
)
hvd.broadcast_variables(model.variables)
model.compile(optimizer, "mse", jit_compile=False, run_eagerly=settings["eager"])
dice = np.random.default_rng(hvd.rank())
values = dice.standard_normal((4 * settings["steps"], width)).astype(np.float32)
model.fit(values, values, batch_size=4, verbose=0)
found = hashlib.sha256(b"".join(np.asarray(v).tobytes() for v in model.trainable_variables))
print("result", found.hexdigest(), flush=True)
