"""Calls that workers would not make alike are refused, and the job continues."""

import copy

import keras
import numpy as np
import tensorflow as tf

import hipress.tensorflow as hvd
from common import rank, refused


def gradients(used, sources):
    with hvd.DistributedGradientTape(tf.GradientTape(persistent=True)) as tape:
        assert isinstance(tape, hvd.DistributedGradientTape)
        loss = tf.add_n([tf.reduce_sum(v) * (rank + 1.0) for v in used])
    for one in tape, copy.copy(tape):
        refused("Jacobians are not averaged", lambda one=one: one.jacobian(loss, sources))
        refused("Jacobians are not averaged", lambda one=one: one.batch_jacobian(loss, sources[0]))
        assert one.watched_variables() == tuple(used)
    return copy.copy(tape).gradient(loss, sources)


# All have the name Variable:0. Each worker lacks another gradient; then one lacks the only one.
three = [tf.Variable(tf.zeros(2)) for _ in range(3)]
for lacking in (rank, 2 if rank else None):
    used = [v for i, v in enumerate(three) if i != lacking]
    refused(
        f"None for: {2 if lacking is None else lacking} Variable:0",
        lambda used=used: gradients(used, three),
        hvd.HipressError,
    )
alone = tf.Variable(0.0)
refused(
    "None for: 0 Variable:0", lambda: gradients([[alone], three][rank], [alone]), hvd.HipressError
)
assert gradients(three, [alone, tf.constant(1.0)]) == [None, None]
nothing, one, other = gradients(three[:2], [three[2], *three[:2]])
assert nothing is None and one.numpy().tolist() == other.numpy().tolist() == [1.5, 1.5]
assert all(g.numpy().tolist() == [1.5, 1.5] for g in gradients(three, three))
many = [tf.Variable(0.0, name="x" * 40) for _ in range(300)]  # names have a longest length
assert gradients(many[:1], many)[0].numpy() == 1.5

empty = tf.Variable(tf.zeros([3, 0]))
mixed, none = gradients([three[0], empty], [three[0], empty]), gradients([empty], [empty])
assert [g.shape for g in mixed] == [2, [3, 0]] and mixed[0].numpy().tolist() == [1.5, 1.5]
assert none[0].shape == [3, 0]


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(three[0])
    return hvd.DistributedGradientTape(tape).gradient(loss, three[0])


@tf.function
def sometimes(wanted):
    return tf.cond(wanted, step, lambda: tf.zeros(2))


refused(
    "inside a tf.cond, to which one worker alone may not come", lambda: sometimes(tf.constant(True))
)
assert step().numpy().tolist() == [1, 1]

# Around steps of Keras's own there is one.
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD())
model.compile(optimizer, "mse", jit_compile=False, steps_per_execution=2)
model.fit(np.ones((6, 2)), np.ones((6, 1)), 2, verbose=0)
assert int(optimizer.iterations) == 3
