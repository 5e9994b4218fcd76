"""A loop has the bits of the reference; arguments: a folder, and the step to resume from."""

import sys

import keras
import numpy as np
import tensorflow as tf

import hipress.tensorflow as hvd
from common import assign, batch, network, print_digest, rank, size, weights
from diloco_reference import H, Reference

path, first = sys.argv[1], int(sys.argv[2])
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
    model,
    H,
    keras.optimizers.SGD(1.0),
    {"type": "sparseloco", "min_size": 1024},
    fragments=2,
    fragment_sync_delay=1,
    fragment_update_alpha=0.25,
)
# The middle of all 5240 numbers is in the second layer's kernel.
turns = [(2, range(2)), (0, range(2, 6))]
reference = (
    None
    if first
    else Reference(
        [network() for _ in range(size)],
        step_of,
        turns,
        1,
        0.25,
        1,
        0,
        "sparseloco",
        1024,
        weights=weights,
        assign=assign,
    )
)
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
