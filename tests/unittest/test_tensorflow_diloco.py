"""DiLoCo with Keras: in fit and in a loop, against a reference in NumPy."""

from __future__ import annotations

import re

import pytest

from diloco_reference import REFERENCE
from harness.cluster import run_cluster, worker_outputs
from harness.marks import needs_tensorflow

# Importing TensorFlow and Keras takes each worker some seconds of processor time.
pytestmark = [needs_tensorflow, pytest.mark.timeout(300)]

HEAD = """
import hipress.tensorflow as hvd
import hashlib
import keras
import numpy as np
import tensorflow as tf

H = 4
rank, size = hvd.rank(), hvd.size()

def network(seed=0):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([
        keras.Input((32,)), keras.layers.Dense(48, "tanh"), keras.layers.Dense(64),
        keras.layers.Dense(8)])

def batch(worker, step):
    inputs = np.random.RandomState(1000 * worker + step).randn(16, 32).astype(np.float32)
    return inputs, inputs[:, :8]

def weights(model):
    return [np.array(v) for v in model.trainable_variables]

def print_digest(arrays):
    print("digest", hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()[:16])

def assign(net, i, values):
    net.trainable_variables[i].assign(values)
"""


def run(body: str, servers: int = 0, topology: str = "auto") -> list[str]:
    return worker_outputs(run_cluster(
        HEAD + REFERENCE + body, 2, servers, timeout=240,
        env={"TF_CPP_MIN_LOG_LEVEL": "2", "HIPRESS_TOPOLOGY": topology,
             "HIPRESS_START_TIMEOUT": "200"},
    ))  # fmt: skip


def digests(outputs: list[str]) -> list[str]:
    """What all workers printed alike."""
    found = [re.findall(r"^digest (\w+)", output, re.MULTILINE) for output in outputs]
    assert found[0] and all(each == found[0] for each in found), outputs
    return found[0]


def test_fit_has_the_weights_of_a_reference_and_takes_a_nan_back():
    outputs = run("""
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
        [network() for _ in range(size)], step_of, [(0, range(6))], 0, 0, 0.7, 0.9, "none", 0)
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
refused("is float64", hvd.DiLoCo, keras.Sequential(
    [keras.Input((2,)), keras.layers.Dense(1, dtype="float64")]), H)
refused("cannot be type=onebit", hvd.DiLoCo, other, H, None, "onebit")
refused("every 4", hvd.DiLoCo, other, H + rank, error=hvd.HipressError)
""")  # fmt: skip
    digests(outputs)


@pytest.mark.slow
def test_a_loop_has_the_bits_of_a_reference_and_of_a_job_that_goes_on(tmp_path):
    body = f"path, first = {str(tmp_path)!r}, FIRST" + """
loss = keras.losses.MeanSquaredError()

def step_of(net, worker, step):
    inputs, targets = batch(worker, step)
    with tf.GradientTape() as tape:
        value = loss(targets, net(inputs))
    net.optimizer.apply(tape.gradient(value, net.trainable_variables), net.trainable_variables)

def with_adam(net):
    net.optimizer = keras.optimizers.Adam(0.01)
    net.optimizer.build(net.trainable_variables)

model = network(seed=rank)
with_adam(model)
diloco = hvd.DiLoCo(
    model, H, keras.optimizers.SGD(1.0), {"type": "sparseloco", "min_size": 1024}, fragments=2,
    fragment_sync_delay=1, fragment_update_alpha=0.25)
# The middle of all 5240 numbers is in the second layer's kernel.
turns = [(2, range(2)), (0, range(2, 6))]
reference = None if first else Reference(
    [network() for _ in range(size)], step_of, turns, 1, 0.25, 1, 0, "sparseloco", 1024)
for net in reference.nets if reference else ():
    with_adam(net)
state = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
if first:
    state.read(f"{path}/own-{rank}").expect_partial()
    diloco.load_states(f"{path}/states")
    try:
        diloco.load_states(f"{path}/nothing")
    except hvd.HipressError as error:
        assert "there is no such file" in str(error)
for step in range(first + 1, 3 * H + 2):
    step_of(model, rank, step)
    diloco.step()
    if reference:
        reference.advance(step)
        for mine, theirs in zip(weights(model), weights(reference.nets[rank])):
            assert np.array_equal(mine, theirs), (step, np.abs(mine - theirs).max())
    if step == 2 * H + 2 and reference:  # the first fragment has just been sent
        state.write(f"{path}/own-{rank}")
        diloco.save_states(f"{path}/states")
diloco.synchronize()
print_digest(weights(model))
"""
    found = run(body.replace("FIRST", "0"), 1, "ps") + run(body.replace("FIRST", "10"), 1, "ps")
    assert len(digests(found)) == 1
    names = ["states.diloco-0", "states.diloco-1", "states.worker-0", "states.worker-1"]
    assert sorted(path.name for path in tmp_path.glob("states*")) == names
