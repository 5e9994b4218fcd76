"""Gradients that do not fit the variables are refused."""

import keras
import tensorflow as tf

import hipress.tensorflow as hvd

optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1))
variable = keras.Variable([1.0, 2.0])
for prepare in (lambda: None, lambda: optimizer.build([variable])):
    prepare()
    try:
        optimizer.apply([tf.ones(2)] * (1 + optimizer.built))
    except ValueError as error:
        print("refused:", error)
optimizer.apply([tf.ones(2)])
assert abs(float(variable[0]) - 0.9) < 1e-6
