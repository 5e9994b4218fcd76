"""Saves and loads a model with a registered optimizer; argument: a file."""

import sys

import keras
import numpy as np

import hipress.tensorflow as hvd
from common import network


@keras.saving.register_keras_serializable("mine")
class Mine(keras.optimizers.SGD):
    pass


model = network()
model.compile(hvd.DistributedOptimizer(Mine(0.1)), "mse", jit_compile=False)
model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
model.save(sys.argv[1])
loaded = keras.models.load_model(sys.argv[1])
assert type(loaded.optimizer) is Mine, type(loaded.optimizer).__mro__
