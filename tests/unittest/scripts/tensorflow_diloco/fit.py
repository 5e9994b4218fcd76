"""Keras's fit has the weights of the reference; a NaN rolls back."""

import keras
import numpy as np

import hipress.tensorflow as hvd
from common import assign, batch, network, print_digest, rank, size, weights
from diloco_reference import H, Reference

model, other = network(seed=rank), network()  # worker 0's become everybody's
model.compile(keras.optimizers.Adam(0.01), "mse")
diloco = hvd.DiLoCo(model, H)
x, y = map(np.concatenate, zip(*(batch(rank, step) for step in range(3 * H))))
history = model.fit(x, y, 16, shuffle=False, verbose=0, callbacks=[diloco])
print_digest(weights(model))


def step_of(net, worker, step):
    net.train_on_batch(*batch(worker, step - 1))


if rank == 0:
    reference = Reference(
        [network() for _ in range(size)],
        step_of,
        [(0, range(6))],
        0,
        0,
        0.7,
        0.9,
        "none",
        0,
        weights=weights,
        assign=assign,
    )
    for net in reference.nets:
        net.compile(keras.optimizers.Adam(0.01), "mse")
    for step in range(1, 3 * H + 1):
        reference.advance(step)
    for mine, theirs in zip(weights(model), reference.outer):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5)

before = weights(model)
if rank == 1:
    model.trainable_variables[0].assign(before[0] * np.nan)
model.fit(x[:64], y[:64], 16, shuffle=False, verbose=0, callbacks=[diloco])
for mine, theirs in zip(weights(model), before):
    assert np.array_equal(mine, theirs)


def refused(sentence, call, *args, error=ValueError, **more):
    try:
        call(*args, **more)
    except error as caught:
        assert sentence in str(caught), caught
    else:
        raise AssertionError(sentence)


model.compile("sgd", "mse", steps_per_execution=2, jit_compile=False)
refused("steps_per_execution=1, not 2", model.fit, x, y, verbose=0, callbacks=[diloco])
other.compile("sgd", "mse")
used = keras.optimizers.SGD()
used.build(other.trainable_variables)
refused("another model", other.fit, x, y, verbose=0, callbacks=[diloco])
refused("has no weights yet", hvd.DiLoCo, keras.Sequential([keras.layers.Dense(1)]), H)
refused("sync_every must be 1 or more", hvd.DiLoCo, other, 0)
refused("not 4", hvd.DiLoCo, other, H, fragment_sync_delay=4)
refused("too few steps for 5", hvd.DiLoCo, other, H, fragments=5)
refused("must be one of Keras 3's", hvd.DiLoCo, other, H, "sgd")
refused("is in use", hvd.DiLoCo, other, H, used)
refused(
    "is float64",
    hvd.DiLoCo,
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, dtype="float64")]),
    H,
)
refused("cannot be type=onebit", hvd.DiLoCo, other, H, None, "onebit")
refused("every 4", hvd.DiLoCo, other, H + rank, error=hvd.HipressError)
