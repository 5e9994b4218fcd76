"""Trains with type auto while the network changes."""

import keras
import numpy as np

import hipress.tensorflow as hvd
from common import print_bits, rank, refused
from hipress.tensorflow.optimizer import allows_feedback
from known_times import measure_store

now = {"uncompressed": 1.0}
lines = measure_store(lambda method_name: now.get(method_name, 5 * max(now.values())))


class Change(keras.callbacks.Callback):
    def on_batch_begin(self, batch, logs=None):
        if batch == 25:
            now.clear()
            now.update({"uncompressed": 50.0, "maxminef bits=2": 5.0, "maxmin bits=8": 6.0})


for supports, other in (
    (True, keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True)),
    (False, keras.optimizers.SGD(0.1, momentum=0.99)),
    (False, keras.optimizers.SGD(0.1, clipnorm=1.0)),
    (False, keras.optimizers.Adam(0.1)),
):
    assert allows_feedback(other) is supports, other

random = np.random.default_rng(rank)
x = random.normal(size=(180, 64)).astype(np.float32)
keras.utils.set_random_seed(0)
model = keras.Sequential(
    [keras.Input((64,)), keras.layers.Dense(300, "tanh"), keras.layers.Dense(1)]
)
optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.002, momentum=0.9), "auto")
refused(
    "a job has one compression",
    lambda: hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), "onebit"),
)
model.compile(optimizer, "mse", jit_compile=False)
hvd.broadcast_variables(model.variables)
model.fit(
    x, x.sum(1, keepdims=True) / 3, 3, epochs=1, shuffle=False, verbose=0, callbacks=[Change()]
)
print_bits(model.variables)
print(hvd.explain())
print("lines", len(lines))
model.fit(x[:3], np.full((3, 1), np.inf if rank == 1 else 1), verbose=0)
assert all(np.isnan(values).all() for values in model.get_weights())  # for any choice
