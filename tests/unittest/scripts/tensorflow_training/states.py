"""Trains from step FIRST to LAST with states in a folder; arguments: FIRST, LAST, folder."""

import sys

import keras
import numpy as np
import tensorflow as tf

import hipress.tensorflow as hvd
from common import print_bits, rank, refused

first, last = map(int, sys.argv[1:3])
path = sys.argv[3]
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(3)])
optimizer = hvd.DistributedOptimizer(
    keras.optimizers.SGD(0.1, momentum=0.9), {"type": "terngrad", "min_size": 0}
)
optimizer.build(model.trainable_variables)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
if first:
    checkpoint.restore(f"{path}/model").expect_partial()
    hvd.load_states(f"{path}/states")
    refused("there is no such file", lambda: hvd.load_states(f"{path}/nothing"), hvd.HipressError)
for step in range(first, last):
    x = np.random.RandomState(100 * step + rank).normal(size=(4, 8)).astype("float32")
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    variables = model.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
if not first and last < 8:
    hvd.save_states(f"{path}/states")
    if rank == 0:
        checkpoint.write(f"{path}/model")
print_bits(model.variables)
