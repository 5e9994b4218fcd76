"""Averages gradients of each kind, and refuses others."""

import keras
import numpy as np
import tensorflow as tf

import hipress.tensorflow as hvd
from common import rank, refused


def gradients(*variables, dense=False, op="average", **more):
    with tf.GradientTape() as tape:
        loss = tf.add_n(
            [
                tf.cast(tf.reduce_sum(tf.gather(v, [1, 1]) if name == "sparse" else v), tf.float32)
                * (rank + 1)
                for name, v in more.items()
            ]
        )
    tape = hvd.DistributedGradientTape(tape, op=op, sparse_as_dense=dense)
    return tape.gradient(loss, [*variables, *more.values()])


half, unused = tf.Variable(tf.ones(3, tf.float16)), tf.Variable(1.0)
table, wide = tf.Variable(tf.ones([4, 2])), tf.Variable(tf.ones(2, tf.float64))
nothing, average = gradients(unused, half=half)
assert nothing is None and average.dtype == tf.float16 and (average.numpy() == 1.5).all()
(total,) = gradients(op="sum", half=half)
assert (total.numpy() == 3).all()
refused(f"the gradient of {table.name} is sparse", lambda: gradients(sparse=table))
refused("must be float32 or float16, not float64", lambda: gradients(wide=wide))
(rows,) = gradients(dense=True, sparse=table)
assert rows.numpy().tolist() == [[0, 0], [3, 3], [0, 0], [0, 0]]
refused("a job has one compression", lambda: hvd.DistributedGradientTape(None, "onebit"))
refused("op must be 'average' or 'sum'", lambda: hvd.DistributedGradientTape(None, op="max"))
constant = tf.constant(1.0)
with tf.GradientTape() as tape:
    tape.watch(constant)
    loss = constant * 2
tape = hvd.DistributedGradientTape(tape)
refused("averaged by variable, and a EagerTensor is none", lambda: tape.gradient(loss, constant))

optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD())
refused("averages gradients already", lambda: hvd.DistributedOptimizer(optimizer))
refused("must be one of Keras 3's, not a str", lambda: hvd.DistributedOptimizer("sgd"))
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile(optimizer, "mse", jit_compile=True)
refused("jit_compile=False", lambda: model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0))
hvd.shutdown()
refused("the key-value store has been closed", lambda: gradients(half=half), Exception)
