"""Trains with fit; the first process of slot 1 dies in step 12.

Ends when its second process has taken part for 150 steps. Slot 0 then trains the same alone,
without HiPress, and compares weights or, if gradients were compressed, what the model has
learned.
"""

import os
import signal
import sys
import time

import keras
import numpy as np

import hipress.tensorflow.elastic as elastic

BATCH, DIES = 48, 12


def parts(seed):
    keras.utils.set_random_seed(seed)
    layers = [
        keras.Input((64,)),
        keras.layers.Dense(96, "relu", name="a"),
        keras.layers.Dense(4, name="b"),
    ]
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.9, staircase=True)
    return keras.Sequential(layers), keras.optimizers.SGD(rate, momentum=0.9)


def batch(step):
    values = np.random.RandomState(step).randn(BATCH, 64).astype(np.float32)
    return values, values[:, :4] * 2


slot = os.environ["HIPRESS_ELASTIC_SLOT"]
first = os.environ["HIPRESS_ELASTIC_RESTART"] == "0"
model, optimizer = parts(0 if slot == "0" else os.getpid())  # others' weights are copied
state = elastic.State(
    model, optimizer, {"type": sys.argv[1], "min_size": 256}, check_every=1, timeout=60
)
model.compile(state.optimizer, "mse", jit_compile=False)


class Pace(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        time.sleep(0.02 if state.step <= DIES or state.size == 1 else 0)
        if first and slot == "1" and state.step == DIES:
            time.sleep(1.5)  # the other worker also begins this step
            os.kill(os.getpid(), signal.SIGKILL)


@elastic.run
def train(state):
    def batches():
        step = state.step
        while True:
            inputs, targets = batch(step)
            yield inputs[state.rank :: state.size], targets[state.rank :: state.size]
            step += 1

    joined = state.size == 2 and state.step > DIES
    model.fit(
        batches(),
        steps_per_epoch=150 if joined else 1 << 20,
        verbose=0,
        callbacks=[Pace(), state.callback()],
    )


train(state)
print("iterations", int(optimizer.iterations.numpy()))
if slot == "0":
    alone, sgd = parts(0)
    alone.compile(sgd, "mse", jit_compile=False)
    for step in range(state.step):
        alone.train_on_batch(*batch(step))
    if sys.argv[1] == "none":
        for mine, theirs in zip(model.variables, alone.variables):
            np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-3, atol=1e-4)
    else:
        untrained, _ = parts(0)
        inputs, targets = batch(10_000)
        before, exact, compressed = (
            float(np.square(np.asarray(each(inputs)) - targets).mean())
            for each in (untrained, alone, model)
        )
        # What the residuals still hold is missing; the codec is wrong if it is much.
        print("ratio", (before - compressed) / (before - exact))
        assert before - compressed > 0.8 * (before - exact)
