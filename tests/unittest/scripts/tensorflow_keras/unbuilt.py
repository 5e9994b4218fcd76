"""Trains in a function with an optimizer that is not built yet."""

import keras
import numpy as np
import tensorflow as tf

import hipress.tensorflow as hvd
from common import network

keras.utils.set_random_seed(1)  # with some weights, a bias hardly changes
model = network()
optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.1))
before = [np.array(v) for v in model.trainable_variables]


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    )


for _ in range(2):
    step(tf.ones((4, 2)))
assert int(optimizer.iterations) == 2
assert all(abs(np.array(v) - b).max() > 0.1 for v, b in zip(model.trainable_variables, before))
