"""Elastic training of type auto with fit; argument: gradients, adam or rounds."""

import sys
import time

import keras
import numpy as np

import hipress.tensorflow.elastic as elastic
from elastic_choice import FakeTimes

times, kind = FakeTimes(), sys.argv[1]
model = keras.Sequential(
    [keras.Input((64,)), keras.layers.Dense(96, "relu", name="a"), keras.layers.Dense(4, name="b")]
)
sgd = keras.optimizers.SGD(0.05, momentum=0.9)
optimizer = sgd if kind == "gradients" else keras.optimizers.Adam(0.001)
more = {}
if kind == "rounds":
    outer = keras.optimizers.SGD(0.7, momentum=0.9, nesterov=True)
    more = {"sync_every": 5, "outer_optimizer": outer}
state = elastic.State(
    model, optimizer, {"type": "auto", "min_size": 256}, check_every=1, timeout=60, **more
)
model.compile(state.optimizer, "mse", jit_compile=False)


class Say(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        times.say(state, state.step)
        time.sleep(0.01)


def batches():
    step = state.step
    while True:
        inputs = np.random.RandomState(step).randn(48, 64).astype(np.float32)
        yield inputs[state.rank :: state.size], 2 * inputs[state.rank :: state.size, :4]
        step += 1


@elastic.run
def train(state):
    model.fit(batches(), steps_per_epoch=1 << 20, verbose=0, callbacks=[Say(), state.callback()])


train(state)
