"""Type "auto" in Keras's elastic jobs: one choice for all, which outlives its members."""

import pytest

from elastic_choice import (
    WAYS,
    check_a_death_while_they_measure,
    check_that_the_choice_stays,
    start,
)
from harness.marks import needs_tensorflow

pytestmark = [needs_tensorflow, pytest.mark.timeout(170)]

PROGRAM = """
import sys
import time

import hipress.tensorflow.elastic as elastic

import keras
import numpy as np

from elastic_choice import Pretence

pretence, kind = Pretence(), sys.argv[1]
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(96, "relu", name="a"),
                          keras.layers.Dense(4, name="b")])
sgd = keras.optimizers.SGD(0.05, momentum=0.9)
optimizer = sgd if kind == "gradients" else keras.optimizers.Adam(0.001)
more = {}
if kind == "rounds":
    outer = keras.optimizers.SGD(0.7, momentum=0.9, nesterov=True)
    more = {"sync_every": 5, "outer_optimizer": outer}
state = elastic.State(
    model, optimizer, {"type": "auto", "min_size": 256}, check_every=1, timeout=60, **more)
model.compile(state.optimizer, "mse", jit_compile=False)


class Say(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        pretence.say(state, state.step)
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
"""


@pytest.mark.slow
def test_who_is_left_and_who_joins_go_on_with_the_choice():
    check_that_the_choice_stays(start(PROGRAM, "gradients"), WAYS["gradients"])


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("kind", ["adam", "rounds"])
def test_a_death_while_they_measure(kind):
    check_a_death_while_they_measure(PROGRAM, kind)
