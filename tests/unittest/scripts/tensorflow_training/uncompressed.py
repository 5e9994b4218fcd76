"""Uncompressed training equals that of one process."""

import keras
import numpy as np

import hipress.tensorflow as hvd
from common import print_bits, rank


def make_model(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [keras.Input((8,)), keras.layers.Dense(300, "tanh"), keras.layers.Dense(1)]
    )


random = np.random.default_rng(0)
x = random.normal(size=(96, 8)).astype(np.float32)
y = x.sum(1, keepdims=True) / 3
alone, together = make_model(0), make_model(rank)
alone.compile(keras.optimizers.SGD(0.002, momentum=0.9), "mse", jit_compile=False)
# One process sees the workers' batches side by side.
order = np.arange(96).reshape(16, 2, 3)  # steps, workers, examples
alone.fit(x, y, 6, epochs=3, shuffle=False, verbose=0)

optimizer = keras.optimizers.SGD(0.002, momentum=0.9)
assert hvd.DistributedOptimizer(optimizer) is optimizer
together.compile(optimizer, "mse", jit_compile=False)
hvd.broadcast_variables(together.variables)
mine = order[:, rank].reshape(-1)
history = together.fit(x[mine], y[mine], 3, epochs=3, shuffle=False, verbose=0).history["loss"]
assert history[-1] < 0.8 * history[0], history
for one, other in zip(alone.get_weights(), together.get_weights()):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
print_bits(together.variables)

if rank == 0:
    together.save("model.keras")
    loaded = keras.models.load_model("model.keras").optimizer
    assert type(loaded) is keras.optimizers.SGD and loaded.momentum == 0.9, type(loaded)
    assert int(loaded.iterations) == 48
