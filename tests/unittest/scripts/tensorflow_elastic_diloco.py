"""Trains with fit until a second process has been in slot 1 for two outer steps and has died.

Then the other worker makes two outer steps and two steps alone. The first process of slot 1 dies
in outer step 3, the second as workers synchronize. Slot 0 then does the same alone, with NumPy,
by the journals.
"""

import json
import os
import signal
import time
from pathlib import Path

import keras
import numpy as np

import hipress.tensorflow.elastic as elastic
from diloco_reference import H, Reference
from elastic_rounds import inject
from hipress.elastic.training.session import digest


def network(seed=0):
    keras.utils.set_random_seed(seed)
    net = keras.Sequential(
        [
            keras.Input((32,)),
            keras.layers.Dense(48, "tanh", name="a"),
            keras.layers.Dense(64, name="b"),
            keras.layers.Dense(8, name="c"),
        ]
    )
    return net, keras.optimizers.Adam(0.01)


def batch(slot, step):
    inputs = np.random.RandomState(1000 * slot + step).randn(16, 32).astype(np.float32)
    return inputs, inputs[:, :8]


def weights(net):
    return [np.array(v) for v in net.trainable_variables]


def assign(net, i, values):
    net.trainable_variables[i].assign(values)


slot = int(os.environ["HIPRESS_ELASTIC_SLOT"])
first = os.environ["HIPRESS_ELASTIC_RESTART"] == "0"
model, optimizer = network(slot)  # slot 0's weights are everybody's
state = elastic.State(
    model,
    optimizer,
    sync_every=H,
    outer_optimizer=keras.optimizers.SGD(1.0),
    check_every=1,
    timeout=60,
    joined=0,
)
assert state.optimizer is optimizer
model.compile(optimizer, "mse")


class Faults(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        time.sleep(0.3 if state.size == 1 and not state.joined else 0.02)  # another one comes
        if slot and first and state.step == 2 * H + 2:
            os.kill(os.getpid(), signal.SIGKILL)


@elastic.run
def train(state):
    if slot and not first:
        inject(("die", state.outer_steps.completed + 3), state)
    if state.size == 2 and state.step > 2 * H:
        state.joined = state.step

    def batches():
        for step in range(state.step, 1 << 30):
            yield batch(slot, step)

    last = state.step + 2 * H + 2 if state.joined and state.size == 1 else 1 << 30
    model.fit(
        batches(),
        steps_per_epoch=last - state.step,
        verbose=0,
        callbacks=[Faults(), state.callback()],
    )


train(state)

known, optimizers = {}, None


def of(slot, process):
    if (slot, process) not in known:
        net, adam = network()
        net.compile(adam, "mse")
        net.optimizer.build(net.trainable_variables)
        for variable, value in zip(adam.variables, optimizers or ()):  # copies what rank 0 had
            variable.assign(value)
        net.slot = slot
        known[slot, process] = net
    return known[slot, process]


rounds = {}
for path in Path(os.environ["HIPRESS_ELASTIC_LOG"]).glob("worker-*.jsonl"):
    for event in map(json.loads, path.read_text().splitlines()):
        if event["event"] == "round":
            rounds.setdefault(event["round"], {})[event["rank"]] = (event["slot"], event["pid"])
reference = Reference(
    [of(0, 0)],
    lambda net, _, step: net.train_on_batch(*batch(net.slot, step - 1)),
    [(0, range(6))],
    0,
    0,
    1,
    0,
    "none",
    0,
    weights=weights,
    assign=assign,
)
for number in sorted(rounds):
    reference.nets = [of(*worker) for _, worker in sorted(rounds[number].items())]
    reference.codecs = [reference.codecs[0]] * len(reference.nets)
    for net in reference.nets:
        for i, outer in enumerate(reference.outer):
            assign(net, i, outer)
    last = min(state.step, number * H)
    for step in range((number - 1) * H + 1, last + 1):
        reference.advance(step)
    if last % H:  # the last outer step is shorter
        reference.pending[last] = {i: reference.mean(i) for i in range(6)}
        reference.take(last)
    optimizers = [np.array(v) for v in reference.nets[0].optimizer.variables]
    named = [
        (name, memoryview(values.reshape(-1)).cast("B"))
        for (name, _), values in zip(state.weights(), weights(reference.nets[0]))
    ]
    print("round", number, digest([*named, *named]))  # weights, and outer weights
